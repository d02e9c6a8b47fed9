// holdfast keys status, rotate and remove.
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatCount, formatTable } from './format.ts';

const POLL_MS = 500;

/** Reminds the operator to copy the keys again after a rotation. */
const COPY_AGAIN =
  'master-keys.json of the server has changed: copy it again, and keep the copy apart from the data.\n' +
  'An older copy does not open what is written from now on, and opens nothing once the rotation is done.';
const REMOVED =
  'Gateways take the key out of their files where they may write them. Where they may not, as in a Secret, do so by\n' +
  '`holdfast cluster remove-key FOLDER KEY`. Then make a new copy of master-keys.json for your safe.';

/** As the operator API has it. */
export interface Keys {
  activeKeyId: string;
  olderKeyIds: string[];
  shardsDone: number;
  shardCount: number;
  rewrappedCount: number;
  isWaitingForRequests: boolean;
  isUnused?: boolean;
  newKeyIds?: string[];
  lacking?: { gateway: string; keyIds: string[] }[];
}

/** In one line. */
export function describeKeys(keys: Keys): string {
  const older = keys.olderKeyIds.join(', ');
  if (older === '') return `${keys.activeKeyId} only, no rotation under way`;
  const counted = `${formatCount(keys.rewrappedCount)} keys wrapped anew`;
  if (keys.isUnused === true) return `${keys.activeKeyId}; nothing needs ${older} any more, ${counted}`;
  const progress = `${keys.shardsDone} of ${keys.shardCount} shards in this pass, ${counted}`;
  const waiting = keys.isWaitingForRequests ? ', waiting for requests that began earlier' : '';
  return `rotating from ${older} to ${keys.activeKeyId}: ${progress}${waiting}`;
}

export async function showKeys(context: CliContext, options: ConnectOptions): Promise<void> {
  const client = await connect(context, options);
  printKeys(context, (await client.call('GET', '/keys')) as Keys, options);
}

/**
 * With `wait` it ends when the older keys are gone, or, of a cluster, may go; where a rotation is under way, it waits for that
 * one.
 */
export async function rotateKeys(
  context: CliContext,
  options: ConnectOptions & { wait?: boolean },
): Promise<void> {
  const client = await connect(context, options);
  const read = async () => (await client.call('GET', '/keys')) as Keys;
  let keys = await client.call('POST', '/keys/rotate').then(
    (begun) => begun as Keys,
    async (error: unknown) => {
      const current = options.wait === true ? await read() : undefined;
      if (current === undefined || current.olderKeyIds.length === 0) throw error;
      return current;
    },
  );
  let printed = '';
  while (options.wait === true && keys.olderKeyIds.length > 0 && keys.isUnused !== true) {
    const line = describeKeys(keys);
    if (options.json !== true && line !== printed) context.print(line);
    printed = line;
    await context.sleep(POLL_MS);
    keys = await read();
  }
  printKeys(context, keys, options);
  if (options.json !== true) context.print(isOfCluster(keys) ? nextStep(keys) : COPY_AGAIN);
}

/** A single node has no new keys that wait: it makes them. */
function isOfCluster({ newKeyIds }: Keys): boolean {
  return newKeyIds !== undefined;
}

function nextStep({ olderKeyIds, isUnused }: Keys): string {
  const removals = olderKeyIds.map((keyId) => `holdfast keys remove ${keyId}`).join(', ');
  return isUnused === true
    ? `Next: ${removals}`
    : `Once \`holdfast keys status\` says that nothing needs the older key any more: ${removals}`;
}

/** Of a cluster: takes an older key that nothing needs out of the files of all gateways. */
export async function removeKey(context: CliContext, keyId: string, options: ConnectOptions): Promise<void> {
  const client = await connect(context, options);
  const keys = (await client.call('DELETE', `/keys/${encodeURIComponent(keyId)}`)) as Keys;
  printKeys(context, keys, options);
  if (options.json !== true) context.print(REMOVED);
}

function printKeys(context: CliContext, keys: Keys, options: ConnectOptions): void {
  const { newKeyIds = [], lacking = [] } = keys;
  const rows = [
    ['master keys', describeKeys(keys)],
    ...(newKeyIds.length > 0 ? [['not used yet', newKeyIds.join(', ')]] : []),
    ...lacking.map(({ gateway, keyIds }) => ['missing', `${keyIds.join(', ')} at the gateway ${gateway}`]),
  ];
  context.print(formatAnswer(options, keys, () => formatTable(rows)));
}
