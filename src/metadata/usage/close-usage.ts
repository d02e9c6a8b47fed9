// Closes days of buckets: each gets a record of what was stored at its end and of its traffic, and its vector goes.
import { must } from '../../base/assert.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { MeteredBucket } from '../../ports/metadata/usage.ts';
import type { CounterDelta, RowPut, View } from '../../ports/state-machine.ts';
import { dayOf, isAccountTraffic } from '../../types/metered.ts';
import type { BucketName } from '../../types/names.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import {
  type UsageRecord,
  type UsageStateRecord,
  usageRecordCodec,
  usageStateCodec,
} from '../../types/records/usage-record.ts';
import { findBucket } from '../buckets/buckets.ts';
import { COUNTER } from '../schema/counters.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { u48 } from '../schema/key-parts.ts';
import {
  bucketRow,
  put,
  remove,
  USAGE_CLOSED_ROW,
  usageRecordRow,
  usageStateRow,
} from '../schema/keyspace.ts';
import { refuse } from '../versions/write-version.ts';
import { accountCounters } from './recount-usage.ts';
import { figuresOf, findUsageState, measuresFor, storedAfter } from './usage-rows.ts';

export const closeUsage = defineCommand<CommandOf<'close-usage'>, OutcomeOf<'close-usage'>>({
  locks: ({ buckets }) => [
    ...[...new Set(buckets.map(({ bucketId }) => bucketId))].map((bucketId) =>
      exclusive(LOCK.usage(bucketId)),
    ),
  ],

  leavesBusy: ({ leavesBusy }) => leavesBusy === true,

  look({ buckets }, view) {
    // Many: what is only looked at is not decoded.
    for (const bucket of buckets) {
      view.row(usageStateRow(bucket.accountId, bucket.bucketId));
      if (!isAccountTraffic(bucket)) view.row(bucketRow(bucket.bucketId));
    }
  },

  counters: ({ buckets }, view) =>
    buckets.flatMap((metered) => {
      const before = findUsageState(view, metered);
      return before === undefined ? [] : [COUNTER.dayUsage(metered.bucketId, before.closedDay + 1)];
    }),

  decide({ buckets, throughDay }, view, { nowMs, shard, vector, left }) {
    const puts: RowPut[] = [];
    const counters: CounterDelta[] = [];
    let closedCount = 0;
    const isLeft = ({ bucketId }: MeteredBucket) => left.has(LOCK.usage(bucketId));
    const leftOut = buckets.filter(isLeft);
    for (const metered of buckets) {
      if (isLeft(metered)) continue;
      const { accountId, bucketId } = metered;
      const before = findUsageState(view, metered);
      if (before === undefined) continue;
      const day = before.closedDay + 1;
      // By shard time, which never decreases: what comes later is of a later day.
      if (day > throughDay || day >= dayOf(nowMs)) continue;
      const delta = vector(COUNTER.dayUsage(bucketId, day));
      const { name, state } = ownerOfUsage(view, metered);
      const sums = storedAfter(before.sums, delta);
      const deletedDay = state === 'deleted' ? (before.deletedDay ?? day) : undefined;
      const deleted = deletedDay === undefined ? {} : { deletedDay };
      const orphaned = measuresFor(before.orphaned, { day, shard });
      const record: UsageRecord = { bucketName: name, figures: figuresOf(sums, delta, orphaned), ...deleted };
      // Of an account's requests without a bucket there are records of the days that have had some.
      const isIdle = isAccountTraffic(metered) && delta.every((value) => value === 0);
      if (!isIdle) puts.push(put(usageRecordRow(metered, day), usageRecordCodec.encode(record)));
      const kept = orphaned.length > 0 && { orphaned };
      const after: UsageStateRecord = { closedDay: day, sums, ...deleted, ...kept };
      const row = usageStateRow(accountId, bucketId);
      // What a deleted bucket still has is emptied, or inside the minimum duration: until then there are records of it.
      const isOver = isIdle || (state === 'deleted' && sums.every((sum) => sum === 0));
      puts.push(isOver ? remove(row) : put(row, usageStateCodec.encode(after)));
      if (delta.some((value) => value !== 0))
        counters.push({ name: COUNTER.dayUsage(bucketId, day), delta: delta.map((value) => -value) });
      closedCount++;
    }
    const some = leftOut.length > 0 && { left: leftOut };
    return { outcome: { kind: 'closed', closedCount, ...some }, puts, counters };
  },
});

function ownerOfUsage(view: View, metered: MeteredBucket): Pick<BucketRecord, 'name' | 'state'> {
  if (isAccountTraffic(metered)) return { name: '' as BucketName, state: 'open' };
  return must(findBucket(view, metered.bucketId), 'a bucket row outlives what was in it');
}

export const noteOrphaned = defineCommand<CommandOf<'note-orphaned'>, OutcomeOf<'note-orphaned'>>({
  locks: ({ buckets }) => buckets.map(({ bucketId }) => exclusive(LOCK.usage(bucketId))),
  leavesBusy: ({ leavesBusy }) => leavesBusy === true,

  look({ buckets }, view) {
    for (const { bucketId } of buckets) {
      const bucket = findBucket(view, bucketId);
      if (bucket !== undefined) findUsageState(view, { accountId: bucket.owner, bucketId });
    }
  },

  decide({ fromShard, day, buckets }, view, { left }) {
    const leftOut = buckets
      .map(({ bucketId }) => bucketId)
      .filter((bucketId) => left.has(LOCK.usage(bucketId)));
    const puts = buckets.flatMap(({ bucketId, sizeBytes }) => {
      if (left.has(LOCK.usage(bucketId))) return [];
      const bucket = findBucket(view, bucketId);
      const state = bucket && findUsageState(view, { accountId: bucket.owner, bucketId });
      // One that is not metered yet will be by the time of the next measure.
      if (bucket === undefined || state === undefined) return [];
      const others = (state.orphaned ?? []).filter(({ shard }) => shard !== fromShard);
      const orphaned = [...others, { shard: fromShard, day, sizeBytes }];
      const row = usageStateRow(bucket.owner, bucketId);
      return [put(row, usageStateCodec.encode({ ...state, orphaned }))];
    });
    return { outcome: { kind: 'noted', ...(leftOut.length > 0 && { left: leftOut }) }, puts };
  },
});

export const noteUsageClosed = defineCommand<CommandOf<'note-usage-closed'>, OutcomeOf<'note-usage-closed'>>({
  locks: () => [],
  decide: ({ day }) => ({ outcome: { kind: 'noted' }, puts: [put(USAGE_CLOSED_ROW, u48(day))] }),
});

export const mendUsage = defineCommand<CommandOf<'mend-usage'>, OutcomeOf<'mend-usage'>>({
  locks: ({ bucketId }) => [shared(LOCK.bucket(bucketId)), exclusive(LOCK.usage(bucketId))],

  look(command, view) {
    findBucket(view, command.bucketId);
    findUsageState(view, command);
  },

  decide(command, view, { nowMs }) {
    const { accountId, bucketId, missing, held = { objects: 0, bytes: 0 } } = command;
    const bucket = findBucket(view, bucketId);
    if (bucket?.owner !== accountId) return refuse({ kind: 'no-such-bucket' });
    const today = dayOf(nowMs);
    const isMetered = findUsageState(view, command) !== undefined;
    const state = usageStateCodec.encode({ closedDay: today - 1, sums: [] });
    return {
      outcome: { kind: 'mended' },
      puts: isMetered ? [] : [put(usageStateRow(accountId, bucketId), state)],
      counters: [
        ...(missing.some((value) => value !== 0)
          ? [{ name: COUNTER.dayUsage(bucketId, today), delta: missing }]
          : []),
        ...deltasOf([
          [COUNTER.bucketObjects(bucketId), held.objects],
          [COUNTER.bucketBytes(bucketId), held.bytes],
        ]),
      ],
    };
  },
});

export const mendAccount = defineCommand<CommandOf<'mend-account'>, OutcomeOf<'mend-account'>>({
  locks: ({ accountId }) => [exclusive(LOCK.quota(accountId))],
  decide({ accountId, missing: { objects, bytes, uploadBytes } }) {
    const deltas = accountCounters(accountId).map((name, at): [string, number] => [
      name,
      [objects, bytes, uploadBytes][at] ?? 0,
    ]);
    return { outcome: { kind: 'mended' }, puts: [], counters: deltasOf(deltas) };
  },
});

function deltasOf(deltas: readonly [name: string, delta: number][]): CounterDelta[] {
  return deltas.flatMap(([name, delta]) => (delta === 0 ? [] : [{ name, delta }]));
}
