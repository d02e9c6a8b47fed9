// Adds what gateways have counted of requests to the days of buckets. A batch comes under a request id: however often it is
// sent, it counts once.
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { MeteredBucket } from '../../ports/metadata/usage.ts';
import type { CounterDelta, RowPut, View } from '../../ports/state-machine.ts';
import { dayOf, isAccountTraffic, STORED_FIELDS } from '../../types/metered.ts';
import { usageStateCodec } from '../../types/records/usage-record.ts';
import { findBucket } from '../buckets/buckets.ts';
import { COUNTER } from '../schema/counters.ts';
import { defineCommand, exclusive, LOCK } from '../schema/define-command.ts';
import { put, usageStateRow } from '../schema/keyspace.ts';
import { CLOSED_AFTER_MS } from './close-usage-worker.ts';
import { findUsageState } from './usage-rows.ts';

/** Of the clock by which days are closed and shard time. */
const CLOCKS_APART_MS = 60_000;

export const addTraffic = defineCommand<CommandOf<'add-traffic'>, OutcomeOf<'add-traffic'>>({
  locks: ({ days }) => [
    ...[...new Set(days.map(({ bucketId }) => bucketId))].map((bucketId) => exclusive(LOCK.usage(bucketId))),
  ],

  leavesBusy: ({ leavesBusy }) => leavesBusy === true,

  look({ days }, view) {
    for (const metered of days) {
      findUsageState(view, metered);
      if (!isAccountTraffic(metered)) findBucket(view, metered.bucketId);
    }
  },

  decide({ days }, view, { nowMs, left }) {
    const today = dayOf(nowMs);
    const puts: RowPut[] = [];
    const counters: CounterDelta[] = [];
    const unplaced: number[] = [];
    const leftAt: number[] = [];
    for (const [at, { figures, day, ...metered }] of days.entries()) {
      if (left.has(LOCK.usage(metered.bucketId))) {
        leftAt.push(at);
        continue;
      }
      const firstOpen = firstOpenDay(view, metered, nowMs);
      if (firstOpen === undefined) {
        unplaced.push(at);
        continue;
      }
      // By the gateway's clock, but no day that is closed, and none that has not begun here.
      const counted = Math.min(Math.max(day, firstOpen), today);
      const { accountId, bucketId } = metered;
      if (isAccountTraffic(metered) && findUsageState(view, metered) === undefined)
        puts.push(
          put(
            usageStateRow(accountId, bucketId),
            usageStateCodec.encode({ closedDay: counted - 1, sums: [] }),
          ),
        );
      const delta = figures.map((figure, field) => (field < STORED_FIELDS ? 0 : figure));
      counters.push({ name: COUNTER.dayUsage(bucketId, counted), delta });
    }
    const outcome = { kind: 'added', unplaced, ...(leftAt.length > 0 && { left: leftAt }) } as const;
    return { outcome, puts, counters };
  },
});

/** Undefined: there is no such bucket, or it is deleted and has no more records. */
function firstOpenDay(view: View, metered: MeteredBucket, nowMs: number): number | undefined {
  const state = findUsageState(view, metered);
  if (state !== undefined) return state.closedDay + 1;
  // Without a row nothing tells whether the day before is closed: it may be as soon as closing may have begun.
  if (isAccountTraffic(metered)) return dayOf(nowMs - CLOSED_AFTER_MS + CLOCKS_APART_MS);
  const bucket = findBucket(view, metered.bucketId);
  // One that is not metered yet is about to be: from today on.
  const isKept = bucket !== undefined && bucket.state !== 'deleted' && bucket.owner === metered.accountId;
  return isKept ? Number.MAX_SAFE_INTEGER : undefined;
}
