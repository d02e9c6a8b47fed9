// Closes the days that are over, of all buckets of the shards that are led here, some at a time and a tenth of the time at most.
// After a pause it catches up day by day. Buckets that were there before metering are counted first.
import type { ClockPort } from '../../ports/clock.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { MeteredBucket } from '../../ports/metadata/usage.ts';
import type { TelemetryPort } from '../../ports/telemetry.ts';
import type { Worker } from '../../ports/worker.ts';
import { dayOf, type Metering } from '../../types/metered.ts';
import type { BucketId } from '../../types/names.ts';
import { createLateItems } from '../workers/late-items.ts';
import { createShardWorker, doneValue, resting } from '../workers/shard-worker.ts';
import { createOrphanMeasure } from './measure-orphans.ts';

const MINUTE_MS = 60_000;
/** Of one entry. */
const BUCKETS = 100;
/** Looked at at once. */
const PAGE = 1000;
/** A day is closed so long after its end: gateways may still tell of its traffic. */
export const CLOSED_AFTER_MS = 5 * MINUTE_MS;
const WORK_SHARE = 10;

export function createUsageCloser(deps: {
  metadata: MetadataPort;
  shards(): readonly number[];
  metering: Metering;
  clock: Pick<ClockPort, 'monotonicMs' | 'wallMs'>;
  telemetry: Pick<TelemetryPort, 'gauge'>;
}): Worker {
  const { metadata, shards, metering, clock, telemetry } = deps;
  /** By shard: where the walk is, whether it has found or left any, and what is done. */
  const walks = new Map<number, { after?: MeteredBucket; hasFound: boolean; hasLeft: boolean }>();
  const closed = new Map<number, number>();
  const begun = new Map<number, BucketId | 'all'>();
  const late = createLateItems<MeteredBucket>(({ bucketId }) => bucketId);
  const orphans = createOrphanMeasure(metadata, metering);

  /** How far the shard is closed, also by an earlier process. */
  async function closedDayOf(shard: number): Promise<number> {
    const known = closed.get(shard);
    if (known !== undefined) return known;
    const { day } = doneValue(await metadata.query({ shard }, 'get-usage-closed', {}));
    closed.set(shard, day ?? 0);
    return day ?? 0;
  }

  function reportWaiting(throughDay: number): void {
    const days = shards().flatMap((shard) => closed.get(shard) ?? []);
    // One that has closed no day yet is new: it has none that wait.
    const waiting = days.map((day) => (day === 0 ? 0 : Math.max(0, throughDay - day)));
    telemetry.gauge('holdfast_usage_waiting_days', Math.max(0, ...waiting));
  }

  async function closeAll(shard: number, buckets: MeteredBucket[], throughDay: number) {
    let closedCount = 0;
    let leftCount = 0;
    for (let at = 0; at < buckets.length; at += BUCKETS) {
      const command = { buckets: buckets.slice(at, at + BUCKETS), throughDay, leavesBusy: true } as const;
      const { left = [], ...closed } = doneValue(await metadata.execute({ shard }, 'close-usage', command));
      closedCount += closed.closedCount;
      leftCount += left.length;
      late.begin(shard, left, (bucket) =>
        metadata.execute({ shard }, 'close-usage', { buckets: [bucket], throughDay }),
      );
    }
    return { closedCount, leftCount };
  }

  /** True: there is more. */
  async function begin(shard: number): Promise<boolean> {
    const after = begun.get(shard);
    if (after === 'all') return false;
    const query = { limit: PAGE, ...(after !== undefined && { after }) };
    const { buckets, next } = doneValue(await metadata.query({ shard }, 'list-unmetered', query));
    for (const bucket of buckets) {
      const found = doneValue(
        await metadata.query({ shard }, 'recount-usage', { bucketId: bucket.bucketId }),
      );
      if (found.kind !== 'counted') continue;
      doneValue(await metadata.execute({ shard }, 'mend-usage', { ...bucket, missing: found.missing }));
    }
    begun.set(shard, next ?? 'all');
    return true;
  }

  const steps = createShardWorker({
    name: 'close-usage',
    shards,
    idleMs: MINUTE_MS,
    async unit(shard) {
      if (await begin(shard)) return true;
      const throughDay = dayOf(clock.wallMs() - CLOSED_AFTER_MS) - 1;
      const closedDay = await closedDayOf(shard);
      reportWaiting(throughDay);
      if (throughDay <= closedDay) return false;
      if (await orphans.step(shard, throughDay)) return true;
      const walk = walks.get(shard) ?? { hasFound: false, hasLeft: false };
      const query = { throughDay, limit: PAGE, ...(walk.after && { after: walk.after }) };
      const { buckets, next } = doneValue(await metadata.query({ shard }, 'list-open-usage', query));
      const { closedCount, leftCount } = await closeAll(shard, buckets, throughDay);
      const hasFound = walk.hasFound || closedCount > 0;
      const hasLeft = walk.hasLeft || leftCount > 0;
      if (next !== undefined) walks.set(shard, { after: next, hasFound, hasLeft });
      else {
        walks.delete(shard);
        if (buckets.length > 0 && closedCount === 0) return false;
        // Another walk finds what has more days to close; one that finds nothing is the last.
        if (hasFound) return true;
        if (hasLeft) return false;
        doneValue(await metadata.execute({ shard }, 'note-usage-closed', { day: throughDay }));
        closed.set(shard, throughDay);
        reportWaiting(throughDay);
      }
      return true;
    },
  });

  return resting(steps, { clock, restShare: 100 / WORK_SHARE - 1 });
}
