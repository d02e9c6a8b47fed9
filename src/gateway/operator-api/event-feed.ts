// What `holdfast events` shows: the events of the buckets whose events are recorded, over all shards, in the order of their
// times; events of one shard in the order in which they happened. Where who reads has come to is a text that it keeps; what
// it takes is gone for all who read.
import type { EventPosition } from '../../ports/metadata/events.ts';
import type { MetadataPort, ResultOf } from '../../ports/metadata/port.ts';
import { AppError } from '../../types/errors.ts';
import type { EventConsumer } from '../../types/events.ts';
import { LIMITS } from '../../types/limits.ts';
import type { EventRecord } from '../../types/records/event-record.ts';
import { requireDone } from '../../types/require-done.ts';
import type { ResolvedBucket } from '../s3/context.ts';
import { findBucket, noSuchBucket } from './find-bucket.ts';

const FEED: EventConsumer = 'feed';
/** Asked at once. */
const SHARDS_AT_ONCE = 16;

export interface ShownEvent {
  type: string;
  /** ISO 8601, by the clock of the shard. */
  at: string;
  /** The name that the bucket had. */
  bucket?: string;
  bucketId?: string;
  key?: string;
  ofAccount?: string;
  versionId?: string;
  sizeBytes?: number;
  etag?: string;
  /** Of a rename: the key that the object had before, or has now. */
  otherKey?: string;
  requestId?: string;
  account?: string;
  address?: string;
  /** Together: which event it is. */
  shard: number;
  seq: number;
}

export interface EventPage {
  events: ShownEvent[];
  /** Where the next page begins. */
  cursor: string;
  /** There may be more at once. */
  hasMore: boolean;
  /** Events that have gone before they were read, of all buckets. */
  lostCount: number;
  /** Shards that did not answer: what they have comes later. */
  missingShards: number[];
}

/** NoSuchEntity for a bucket that is not there, ValidationError for a cursor that was never given. */
export async function readEvents(
  metadata: MetadataPort,
  asked: { bucket?: string; cursor?: string },
): Promise<EventPage> {
  const positions = parseCursor(asked.cursor, metadata.shardCount);
  const bucket = asked.bucket === undefined ? undefined : await findBucket(metadata, asked.bucket);
  const all = Array.from({ length: metadata.shardCount }, (_, shard) => shard);
  const wanted = bucket === undefined ? all : [bucket.homeShard];
  const page: EventPage = { events: [], cursor: '', hasMore: false, lostCount: 0, missingShards: [] };
  for (let at = 0; at < wanted.length; at += SHARDS_AT_ONCE) {
    const shards = wanted.slice(at, at + SHARDS_AT_ONCE);
    const bucketId = bucket?.record.bucketId;
    const found = await Promise.all(
      shards.map(async (shard) => {
        const from = positions.get(shard);
        return await metadata.query({ shard }, 'list-events', {
          consumer: FEED,
          limit: LIMITS.eventsPageMax,
          ...(from && { from }),
          ...(bucketId && { bucketId }),
        });
      }),
    );
    for (const [index, reply] of found.entries()) {
      const shard = shards[index] as number;
      if (reply.kind === 'done') addPage(page, positions, { shard, listed: reply.value });
      else page.missingShards.push(shard);
    }
    cut(page, positions);
  }
  page.cursor = formatCursor(positions);
  return page;
}

function addPage(
  page: EventPage,
  positions: Map<number, EventPosition>,
  { shard, listed }: { shard: number; listed: ResultOf<'list-events'> },
): void {
  const { events, next, isAll, lostCount } = listed;
  for (const { seq, event } of events) page.events.push(showEvent(event, { shard, seq }));
  // Shards without events are not in the cursor: they begin with the first one that they get.
  if (next.seq > 0) positions.set(shard, next);
  if (!isAll) page.hasMore = true;
  page.lostCount += lostCount;
}

/** What is more than a page comes with the next one. */
function cut(page: EventPage, positions: Map<number, EventPosition>): void {
  // Stable: within a shard times do not decrease.
  page.events.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : a.shard - b.shard || a.seq - b.seq));
  const beyond = page.events.splice(LIMITS.eventsPageMax);
  if (beyond.length > 0) page.hasMore = true;
  for (const { shard, seq } of beyond.reverse()) {
    const { incarnation } = positions.get(shard) as EventPosition;
    positions.set(shard, { incarnation, seq });
  }
}

/** Those before the cursor go, for all who read. ValidationError as above. */
export async function takeEvents(metadata: MetadataPort, cursor: string): Promise<void> {
  for (const [shard, upTo] of parseCursor(cursor, metadata.shardCount)) {
    for (let isAll = false; !isAll; ) {
      const command = { consumer: FEED, upTo };
      const outcome = requireDone(await metadata.execute({ shard }, 'take-events', command));
      isAll = outcome.kind === 'other-history' || outcome.isAll;
    }
  }
}

export interface BucketEvents {
  bucket: string;
  isRecorded: boolean;
}

/** NoSuchEntity. */
export async function readBucketEvents(metadata: MetadataPort, name: string): Promise<BucketEvents> {
  const { configs, record } = await findBucket(metadata, name);
  return { bucket: record.name, isRecorded: consumersOf(configs).includes(FEED) };
}

/** NoSuchEntity. */
export async function setBucketEvents(
  metadata: MetadataPort,
  name: string,
  isRecorded: boolean,
): Promise<BucketEvents> {
  const { homeShard, record, configs } = await findBucket(metadata, name);
  const others = consumersOf(configs).filter((consumer) => consumer !== FEED);
  const consumers = isRecorded ? [...others, FEED] : others;
  const reply = await metadata.execute({ shard: homeShard }, 'set-bucket-config', {
    bucketId: record.bucketId,
    kind: 'events',
    document: consumers.length === 0 ? null : { consumers },
  });
  if (requireDone(reply).kind === 'no-such-bucket') throw noSuchBucket();
  return { bucket: record.name, isRecorded };
}

function consumersOf({ events }: ResolvedBucket['configs']): readonly EventConsumer[] {
  return events?.consumers ?? [];
}

function showEvent(event: EventRecord, place: { shard: number; seq: number }): ShownEvent {
  const { timeMs, origin, ...rest } = event;
  const { requestId, accountId: account, address } = origin ?? {};
  return {
    ...rest,
    at: new Date(timeMs).toISOString(),
    ...(requestId !== undefined && { requestId }),
    ...(account !== undefined && { account }),
    ...(address !== undefined && { address }),
    ...place,
  };
}

// ---- cursors: shard.incarnation.seq of each shard that has had events, in base 36, joined by "-" ----

const CURSOR = /^(?:[0-9a-z]{1,4}\.[0-9a-z]{1,6}\.[0-9a-z]{1,10}(?:-(?!$)|$))*$/;

function formatCursor(positions: ReadonlyMap<number, EventPosition>): string {
  return [...positions]
    .map(([shard, { incarnation, seq }]) => [shard, incarnation, seq].map((n) => n.toString(36)).join('.'))
    .join('-');
}

function parseCursor(text = '', shardCount: number): Map<number, EventPosition> {
  const positions = new Map<number, EventPosition>();
  if (text === '') return positions;
  if (!CURSOR.test(text)) throw badCursor();
  for (const part of text.split('-')) {
    const [shard, incarnation, seq] = part.split('.').map((digits) => Number.parseInt(digits, 36));
    if (shard === undefined || incarnation === undefined || seq === undefined || shard >= shardCount)
      throw badCursor();
    positions.set(shard, { incarnation, seq });
  }
  return positions;
}

function badCursor(): AppError {
  const message = 'cursor is not one that this server has given';
  return new AppError('ValidationError', { message, fields: { cursor: 'is not valid' } });
}
