// holdfast quota: how much an account or a bucket may hold, and what it holds.
import { Refusal } from '../base/refusal.ts';
import { parseByteSize } from '../base/text/byte-units.ts';
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatBytes, formatCount, formatForeign, formatTable } from './format.ts';
import { encodeSegment } from './sign-request.ts';

/** As the operator API has it. */
interface Quota {
  hardBytes?: number;
  hardObjects?: number;
  softBytes?: number;
  softObjects?: number;
  heldBytes: number;
  heldObjects: number;
}

export interface QuotaTarget {
  of: string;
  name: string;
}

/** As written: `5TiB`, `1000`. */
export interface QuotaOptions extends ConnectOptions {
  hardBytes?: string;
  hardObjects?: string;
  softBytes?: string;
  softObjects?: string;
}

function pathOf({ of, name }: QuotaTarget): string {
  if (of === 'account') return `/accounts/${encodeSegment(name)}/quota`;
  if (of === 'bucket') return `/buckets/${encodeSegment(name)}/quota`;
  throw new Refusal('name an account or a bucket: holdfast quota show account <account>');
}

export async function showQuota(
  context: CliContext,
  target: QuotaTarget,
  options: ConnectOptions,
): Promise<void> {
  const client = await connect(context, options);
  const quota = (await client.call('GET', pathOf(target))) as Quota;
  context.print(formatAnswer(options, quota, () => describe(target, quota)));
}

/** Bounds that are not named are taken away: `set` without any ends the quota. */
export async function setQuota(
  context: CliContext,
  target: QuotaTarget,
  options: QuotaOptions,
): Promise<void> {
  const body = {
    hardBytes: readSize('--hard-bytes', options.hardBytes),
    hardObjects: readCount('--hard-objects', options.hardObjects),
    softBytes: readSize('--soft-bytes', options.softBytes),
    softObjects: readCount('--soft-objects', options.softObjects),
  };
  const client = await connect(context, options);
  const quota = (await client.call('PUT', pathOf(target), body)) as Quota;
  context.print(formatAnswer(options, quota, () => describe(target, quota)));
}

function readSize(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const size = parseByteSize(text);
  if (size === undefined)
    throw new Refusal(`${flag} must be a whole number with a unit, as 5TiB, or of bytes`);
  return size;
}

function readCount(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new Refusal(`${flag} must be a whole number`);
  return Number(text);
}

function describe({ of, name }: QuotaTarget, quota: Quota): string {
  const bytes = (value?: number) => (value === undefined ? '-' : formatBytes(value));
  const count = (value?: number) => (value === undefined ? '-' : formatCount(value));
  return formatTable([
    [of, formatForeign(name), ''],
    ['', 'BYTES', 'OBJECTS'],
    ['held', bytes(quota.heldBytes), count(quota.heldObjects)],
    ['soft', bytes(quota.softBytes), count(quota.softObjects)],
    ['hard', bytes(quota.hardBytes), count(quota.hardObjects)],
  ]);
}
