// holdfast keys status and holdfast keys rotate.
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatCount, formatTable } from './format.ts';

const POLL_MS = 500;

/** Reminds the operator to copy the keys again after a rotation. */
const COPY_AGAIN =
  'master-keys.json of the server has changed: copy it again, and keep the copy apart from the data.\n' +
  'An older copy does not open what is written from now on, and opens nothing once the rotation is done.';

/** As the operator API has it. */
export interface Keys {
  activeKeyId: string;
  olderKeyIds: string[];
  shardsDone: number;
  shardCount: number;
  rewrappedCount: number;
  isWaitingForRequests: boolean;
}

/** In one line. */
export function describeKeys(keys: Keys): string {
  if (keys.olderKeyIds.length === 0) return `${keys.activeKeyId} only, no rotation under way`;
  const progress = `${keys.shardsDone} of ${keys.shardCount} shards in this pass, ${formatCount(keys.rewrappedCount)} keys wrapped anew`;
  const waiting = keys.isWaitingForRequests ? ', waiting for requests that began earlier' : '';
  return `rotating from ${keys.olderKeyIds.join(', ')} to ${keys.activeKeyId}: ${progress}${waiting}`;
}

export async function showKeys(context: CliContext, options: ConnectOptions): Promise<void> {
  const client = await connect(context, options);
  printKeys(context, (await client.call('GET', '/keys')) as Keys, options);
}

export async function rotateKeys(
  context: CliContext,
  options: ConnectOptions & { wait?: boolean },
): Promise<void> {
  const client = await connect(context, options);
  let keys = (await client.call('POST', '/keys/rotate')) as Keys;
  let printed = '';
  while (options.wait === true && keys.olderKeyIds.length > 0) {
    const line = describeKeys(keys);
    if (options.json !== true && line !== printed) context.print(line);
    printed = line;
    await context.sleep(POLL_MS);
    keys = (await client.call('GET', '/keys')) as Keys;
  }
  printKeys(context, keys, options);
  if (options.json !== true) context.print(COPY_AGAIN);
}

function printKeys(context: CliContext, keys: Keys, options: ConnectOptions): void {
  context.print(formatAnswer(options, keys, () => formatTable([['master keys', describeKeys(keys)]])));
}
