// holdfast status: how the server is doing, on one screen, and what is wrong with it.
import { describeClock } from './clock-command.ts';
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatBytes, formatCount, formatDuration, formatTable } from './format.ts';
import { describeKeys, type Keys } from './keys-commands.ts';

/** As the operator API has it. */
interface Status {
  version: string;
  endpoint: string;
  startedAt: string;
  uptimeMs: number;
  accountCount: number;
  bucketCount: number;
  objectCount: number;
  objectBytes: number;
  chunkCount: number;
  chunkBytes: number;
  pendingReclaimBytes: number;
  diskFreeBytes: number;
  diskTotalBytes: number;
  largeWrites?: 'direct' | 'buffered';
  alarms?: string[];
  clockJumpMs: number;
  keys: Keys;
  lastErrors: { at: string; event: string; message: string; count: number }[];
}

const WRITES = {
  direct: 'written directly',
  buffered: 'written by way of the page cache: its file system has no direct I/O',
} as const;

/** Of a server that has alarms. */
export const ALARMED = 2;

/** Gives the exit code: 0, or ALARMED. */
export async function showStatus(context: CliContext, options: ConnectOptions): Promise<number> {
  const client = await connect(context, options);
  const status = (await client.call('GET', '/status')) as Status;
  context.print(formatAnswer(options, status, () => formatStatus(status)));
  return (status.alarms ?? []).length === 0 ? 0 : ALARMED;
}

function formatStatus(status: Status): string {
  const freePercent = Math.round((100 * status.diskFreeBytes) / Math.max(1, status.diskTotalBytes));
  const rows = [
    ['version', status.version],
    ['address', status.endpoint],
    ['up for', `${formatDuration(status.uptimeMs)}, since ${status.startedAt}`],
    ['accounts', formatCount(status.accountCount)],
    ['buckets', formatCount(status.bucketCount)],
    ['objects', `${formatCount(status.objectCount)}, ${formatBytes(status.objectBytes)}`],
    ['chunks', `${formatCount(status.chunkCount)}, ${formatBytes(status.chunkBytes)}`],
    ['pending reclaim', formatBytes(status.pendingReclaimBytes)],
    [
      'disk free',
      `${formatBytes(status.diskFreeBytes)} of ${formatBytes(status.diskTotalBytes)} (${freePercent} %)`,
    ],
    ...(status.largeWrites === undefined ? [] : [['large chunks', WRITES[status.largeWrites]]]),
    ['clock', describeClock(status.clockJumpMs)],
    ['master keys', describeKeys(status.keys)],
    ['last errors', status.lastErrors.length === 0 ? 'none' : ''],
  ];
  const errors = status.lastErrors.map(({ at, event, message, count }) => {
    return ['', at, event, count > 1 ? `${message} (${formatCount(count)} times)` : message];
  });
  const alarms = status.alarms?.map((alarm) => `ALARM ${alarm}`) ?? [];
  return [formatTable(rows), ...(errors.length === 0 ? [] : [formatTable(errors)]), ...alarms].join('\n');
}
