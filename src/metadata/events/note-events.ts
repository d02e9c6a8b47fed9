// The rows of events, which go into the entry that makes them true. Each consumer numbers them from 0, without gaps, by a
// counter: so it sees what it has missed, and the row that makes room for a new one is known without being read. A bucket
// that asks for none costs a look at its row, which commands have.
import type { CommittedVersion } from '../../ports/metadata/versions.ts';
import type { CounterDelta, DecideContext, RowPut } from '../../ports/state-machine.ts';
import type { ETag } from '../../types/etag.ts';
import type { EventConsumer, EventType, RequestOrigin } from '../../types/events.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AccountId, ObjectKey, VersionId } from '../../types/names.ts';
import { type EventRecord, eventCodec } from '../../types/records/event-record.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import type { VersionRecord } from '../../types/version.ts';
import { NO_CHANGE, type RowChange } from '../blobs/repair-entries.ts';
import { COUNTER } from '../schema/counters.ts';
import { put, remove } from '../schema/keyspace.ts';
import { eventRow } from './event-rows.ts';

/** What happened, without what is the same of all events of an entry. */
export interface NewEvent {
  type: EventType;
  key: ObjectKey;
  /** Of the version; told where the bucket keeps versions, or has kept them. */
  versionId: VersionId;
  sizeBytes?: number;
  etag?: ETag;
  /** As EventRecord has it. */
  otherKey?: ObjectKey;
}

/** `origin`: of a job, the request that has begun it; default: the one that the command is made for. */
export type EventContext = Pick<DecideContext, 'nowMs' | 'counter'> & { origin?: RequestOrigin | undefined };

/** Rows of these events, in their order. `happened` is asked only where the bucket has somebody who wants to know. */
export function noteEvents(
  bucket: BucketRecord,
  context: EventContext,
  happened: () => readonly NewEvent[],
): RowChange {
  const { events: consumers } = bucket;
  if (consumers === undefined) return NO_CHANGE;
  return rowsOf(
    consumers,
    happened().map((event) => recordOf(bucket, event, context)),
    context,
  );
}

/** The bucket holds more than its soft quota by this command. */
export function noteSoftQuota(
  { bucketId, name, events = [] }: BucketRecord,
  context: EventContext,
): RowChange {
  const { nowMs, origin } = context;
  const event: EventRecord = {
    type: SOFT_QUOTA_PASSED,
    bucketId,
    bucket: name,
    timeMs: nowMs,
    ...(origin && { origin }),
  };
  return rowsOf(events, [event], context);
}

/** An account does so. Nobody has to ask for it: it is for operators, and comes seldom. */
export function noteSoftQuotaOfAccount(accountId: AccountId, context: EventContext): RowChange {
  const event: EventRecord = { type: SOFT_QUOTA_PASSED, ofAccount: accountId, timeMs: context.nowMs };
  return rowsOf(['feed'], [event], context);
}

const SOFT_QUOTA_PASSED = 'holdfast:SoftQuota:Passed';

function rowsOf(
  consumers: readonly EventConsumer[],
  events: readonly EventRecord[],
  context: Pick<EventContext, 'counter'>,
): RowChange {
  if (events.length === 0) return NO_CHANGE;
  const records = events.map((event) => eventCodec.encode(event));
  const puts: RowPut[] = [];
  const counters: CounterDelta[] = [];
  for (const consumer of consumers) {
    const name = COUNTER.events(consumer);
    let seq = context.counter(name);
    for (const record of records) {
      puts.push(put(eventRow(consumer, seq), record));
      // It may have been taken before.
      if (seq >= LIMITS.eventsKeptMax) puts.push(remove(eventRow(consumer, seq - LIMITS.eventsKeptMax)));
      seq++;
    }
    counters.push({ name, delta: records.length });
  }
  return { puts, counters };
}

/** A version has come to be, by `type`. */
export function noteCreated(
  bucket: BucketRecord,
  context: EventContext,
  created: {
    type: EventType;
    key: ObjectKey;
    version: { sizeBytes: number; etag: ETag };
    written: Pick<CommittedVersion, 'versionId'>;
  },
): RowChange {
  const { type, key, version, written } = created;
  const { sizeBytes, etag } = version;
  return noteEvents(bucket, context, () => [{ type, key, versionId: written.versionId, sizeBytes, etag }]);
}

/** A version, or delete marker, has gone for good. */
export function removalOf(
  key: ObjectKey,
  version: Pick<VersionRecord, 'versionId' | 'isDeleteMarker' | 'sizeBytes' | 'etag'>,
): NewEvent {
  const { versionId, isDeleteMarker, sizeBytes, etag } = version;
  const size = isDeleteMarker ? {} : { sizeBytes, etag };
  return { type: 's3:ObjectRemoved:Delete', key, versionId, ...size };
}

function recordOf(
  { bucketId, name, versioning }: BucketRecord,
  { type, key, versionId, sizeBytes, etag, otherKey }: NewEvent,
  { nowMs, origin }: EventContext,
): EventRecord {
  return {
    type,
    bucketId,
    bucket: name,
    key,
    timeMs: nowMs,
    ...(versioning !== 'unversioned' && { versionId }),
    ...(sizeBytes !== undefined && { sizeBytes }),
    ...(etag !== undefined && { etag }),
    ...(otherKey !== undefined && { otherKey }),
    ...(origin && { origin }),
  };
}
