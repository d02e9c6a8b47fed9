// holdfast bucket: the compliance settings of a bucket, and the end of their lock, which is the operator's alone.
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatCount, formatForeign, formatTable } from './format.ts';
import { encodeSegment } from './sign-request.ts';

/** As the operator API has it. */
interface Compliance {
  bucket: string;
  isEnabled: boolean;
  lockTime?: string;
  isLocked: boolean;
  retentionDays: number;
  conditionalHold: boolean;
  deleteAfterRetention: boolean;
  unlocks: { at: string; by: string; reason: string }[];
}

const pathOf = (bucket: string) => `/buckets/${encodeSegment(bucket)}/compliance`;

export async function showCompliance(
  context: CliContext,
  bucket: string,
  options: ConnectOptions,
): Promise<void> {
  const client = await connect(context, options);
  const compliance = (await client.call('GET', pathOf(bucket))) as Compliance;
  context.print(formatAnswer(options, compliance, () => describe(compliance)));
}

export async function unlockCompliance(
  context: CliContext,
  bucket: string,
  options: ConnectOptions & { reason: string },
): Promise<void> {
  const { reason } = options;
  const client = await connect(context, options);
  const compliance = (await client.call('POST', `${pathOf(bucket)}/unlock`, { reason })) as Compliance;
  context.print(
    formatAnswer(options, compliance, () => {
      const name = formatForeign(compliance.bucket);
      return `the compliance settings of ${name} are no longer locked; they protect as before until somebody changes them`;
    }),
  );
}

function describe(compliance: Compliance): string {
  const { bucket, isEnabled, retentionDays, conditionalHold, deleteAfterRetention, unlocks } = compliance;
  const settings = isEnabled
    ? [
        ['compliance', 'enabled'],
        ['lock', describeLock(compliance)],
        ['kept for', `${formatCount(retentionDays)} days from the creation or the release of an object`],
        ['new objects', conditionalHold ? 'on hold until they are released' : 'not on hold'],
        ['then', deleteAfterRetention ? 'deleted by the server' : 'kept until somebody deletes them'],
      ]
    : [['compliance', 'disabled']];
  const ended = unlocks.map(({ at, by, reason }) => [
    'unlocked',
    `${at.slice(0, 19)}Z by ${formatForeign(by)}: ${formatForeign(reason)}`,
  ]);
  return formatTable([['bucket', formatForeign(bucket)], ...settings, ...ended]);
}

function describeLock({ lockTime, isLocked }: Compliance): string {
  if (lockTime === undefined) return 'off: settings can be changed';
  return isLocked ? `locked since ${lockTime}` : `from ${lockTime} on`;
}
