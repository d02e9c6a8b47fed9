// The rows by which a bucket's lifecycle is found when it is due, and goes on where it was. A bucket is in the queue where
// anything in it may go by itself: by a rule that is enabled, or when its compliance retention has ended. It is looked at
// once each lifecycle day; what is in it is examined only where something may be due, or was changed.
//
// What comes new is due by the rules at some later midnight, which is known. What is there already may become due at once by
// changes of other kinds: other tags, another name, another protection, and the end of a version that is newer. These are
// counted, and the next look compares. A change of rules needs no count: it makes the bucket due.
import { decodeOnce } from '../../base/record-codec.ts';
import type { CounterDelta, RowPut, View } from '../../ports/state-machine.ts';
import type { BucketId } from '../../types/names.ts';
import { type LifecycleRecord, lifecycleCodec } from '../../types/records/lifecycle-record.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import { COUNTER } from '../schema/counters.ts';
import { lifecycleRow, lifecycleTimeRow, PRESENT, put, remove } from '../schema/keyspace.ts';

const decodeLifecycle = decodeOnce(lifecycleCodec);

/** Versions go once their compliance retention has ended. */
export function endsRetention({ compliance }: BucketRecord): boolean {
  return compliance?.isEnabled === true && compliance.deleteAfterRetention;
}

/** Whether anything in the bucket may go by itself. */
export function mayExpire(bucket: BucketRecord): boolean {
  return bucket.hasLifecycle === true || endsRetention(bucket);
}

export function findLifecycle(view: View, bucketId: BucketId): Readonly<LifecycleRecord> | undefined {
  const row = view.row(lifecycleRow(bucketId));
  return row && decodeLifecycle(row);
}

/** For a change by which something that is there already may be due at once. */
export function countChange(bucket: BucketRecord): CounterDelta[] {
  return mayExpire(bucket) ? [{ name: COUNTER.lifecycleChanges(bucket.bucketId), delta: 1 }] : [];
}

/** The counters whose sum is a record's `changeCount`. Renames are counted for the whole shard. */
export function changeCounters(bucketId: BucketId): string[] {
  return [COUNTER.lifecycleChanges(bucketId), COUNTER.moves];
}

export function replaceLifecycle(
  before: LifecycleRecord | undefined,
  record: LifecycleRecord | undefined,
): RowPut[] {
  const puts: RowPut[] = [];
  if (before !== undefined && before.dueAtMs !== record?.dueAtMs)
    puts.push(remove(lifecycleTimeRow(before.dueAtMs, before.bucketId)));
  if (record === undefined)
    return before === undefined ? puts : [...puts, remove(lifecycleRow(before.bucketId))];
  const { bucketId, dueAtMs } = record;
  puts.push(put(lifecycleRow(bucketId), lifecycleCodec.encode(record)));
  if (before?.dueAtMs !== dueAtMs) puts.push(put(lifecycleTimeRow(dueAtMs, bucketId), PRESENT));
  return puts;
}

/** Of a bucket whose rules have changed: it is due at once, and a pass that is under way begins anew. */
export function restartLifecycle(view: View, bucket: BucketRecord, nowMs: number): RowPut[] {
  const { bucketId } = bucket;
  const before = findLifecycle(view, bucketId);
  if (!mayExpire(bucket)) return replaceLifecycle(before, undefined);
  const { stepCount = 0, last } = before ?? {};
  return replaceLifecycle(before, {
    bucketId,
    stepCount: stepCount + 1,
    dueAtMs: nowMs,
    nothingBeforeMs: nowMs,
    changeCount: 0,
    ...(last && { last }),
  });
}

/** Of a bucket that is deleted for good. */
export function endLifecycle(view: View, bucketId: BucketId): RowPut[] {
  return replaceLifecycle(findLifecycle(view, bucketId), undefined);
}
