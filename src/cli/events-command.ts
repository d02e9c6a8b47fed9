// holdfast events: what happens to the objects of buckets whose events are recorded, and which buckets these are.
import { Refusal } from '../base/refusal.ts';
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatBytes, formatCount, formatForeign } from './format.ts';
import { encodeSegment } from './sign-request.ts';

/** As the operator API has it. */
interface Event {
  type: string;
  at: string;
  bucket?: string;
  key?: string;
  ofAccount?: string;
  versionId?: string;
  sizeBytes?: number;
  otherKey?: string;
}

interface Page {
  events: Event[];
  cursor: string;
  hasMore: boolean;
  lostCount: number;
  missingShards: number[];
}

export interface EventsOptions extends ConnectOptions {
  bucket?: string;
  /** Goes on with what happens from then on. */
  follow?: boolean;
  /** What was printed is forgotten by the server. */
  take?: boolean;
  /** Ends it, behind what is printed. */
  signal?: AbortSignal;
}

/** Between two looks at what is new. */
const LOOK_EVERY_MS = 1000;

export async function showEvents(context: CliContext, options: EventsOptions): Promise<void> {
  const { bucket, follow = false, take = false, signal, json = false } = options;
  if (take && bucket !== undefined)
    throw new Refusal('--take is for events of all buckets, without --bucket');
  const client = await connect(context, options);
  for (let cursor: string | undefined; ; ) {
    const asked = { ...(bucket !== undefined && { bucket }), ...(cursor !== undefined && { cursor }) };
    const page = (await client.call('POST', '/events', asked)) as Page;
    if (page.lostCount > 0) context.print(describeLost(page.lostCount, json));
    for (const event of page.events) context.print(json ? JSON.stringify(event) : formatEvent(event));
    // Printed first: what is lost on the way is shown twice, and never not at all.
    if (take && page.events.length > 0) await client.call('POST', '/events/take', { cursor: page.cursor });
    cursor = page.cursor;
    if (signal?.aborted) return;
    if (page.hasMore) continue;
    if (!follow) return tellMissing(context, page, json);
    await context.sleep(LOOK_EVERY_MS);
  }
}

function tellMissing(context: CliContext, { missingShards }: Page, json: boolean): void {
  if (missingShards.length === 0) return;
  const text = `Shards that do not answer: ${missingShards.join(', ')}.`;
  context.print(json ? JSON.stringify({ missingShards }) : text);
}

function describeLost(lostCount: number, json: boolean): string {
  if (json) return JSON.stringify({ lostCount });
  return `${formatCount(lostCount)} events are missing here: they were more than the server keeps.`;
}

function formatEvent({ type, at, bucket, key, ofAccount, versionId, sizeBytes, otherKey }: Event): string {
  const what =
    bucket === undefined ? `account ${ofAccount}` : key === undefined ? bucket : `${bucket}/${key}`;
  const parts = [`${at.slice(0, 19)}Z`, type.replace(/^(s3|holdfast):/, ''), formatForeign(what)];
  if (versionId !== undefined) parts.push(versionId);
  if (sizeBytes !== undefined) parts.push(formatBytes(sizeBytes));
  if (otherKey !== undefined) {
    const isNew = type.startsWith('s3:ObjectCreated:') || type.endsWith(':DeleteMarkerCreated');
    parts.push(`renamed ${isNew ? 'from' : 'to'} ${formatForeign(otherKey)}`);
  }
  return parts.join('  ');
}

interface BucketEvents {
  bucket: string;
  isRecorded: boolean;
}

/** `isRecorded` undefined: only looks. */
export async function bucketEvents(
  context: CliContext,
  bucket: string,
  options: ConnectOptions & { isRecorded?: boolean },
): Promise<void> {
  const { isRecorded } = options;
  const client = await connect(context, options);
  const path = `/buckets/${encodeSegment(bucket)}/events`;
  const answer = await (isRecorded === undefined
    ? client.call('GET', path)
    : client.call('PUT', path, { isRecorded }));
  context.print(formatAnswer(options, answer as BucketEvents, () => describe(answer as BucketEvents)));
}

function describe({ bucket, isRecorded }: BucketEvents): string {
  return `events of ${formatForeign(bucket)} are ${isRecorded ? '' : 'not '}recorded`;
}
