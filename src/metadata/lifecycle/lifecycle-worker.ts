// Carries out the lifecycle of the buckets of the shards that are led here: those that are due, a page of each in turn, so
// that none waits for a large one. How far a bucket has come is in its row; what a page has found is decided in the commit.
import type { ClockPort } from '../../ports/clock.ts';
import type { LifecyclePage } from '../../ports/metadata/lifecycle.ts';
import type { CommandOf, MetadataPort, ResultOf } from '../../ports/metadata/port.ts';
import type { TelemetryPort } from '../../ports/telemetry.ts';
import type { TimeJumps } from '../../ports/time-jumps.ts';
import type { Worker } from '../../ports/worker.ts';
import type { BucketId } from '../../types/names.ts';
import {
  LIFECYCLE_ACTIONS,
  type LifecycleCounts,
  type LifecyclePlace,
} from '../../types/records/lifecycle-record.ts';
import { createShardWorker, doneValue, forEachJob, resting } from '../workers/shard-worker.ts';

/** Rows of one look, and items of one entry. */
const PAGE_ROWS = 5000;
const PAGE_ITEMS = 192;
/** Examined without an entry, where nothing is due: what a restart examines again at most. */
const UNNOTED_ROWS_MAX = 200_000;
/** Of each due bucket, before the queue is looked at again. */
const PAGES_OF_LOOK = 4;
/** Due buckets of one shard in one round. */
const BUCKETS_MAX = 100;

export interface LifecyclePace {
  /** Length of a lifecycle day. */
  lifecycleDayMs: number;
  /** From one look for due buckets to the next, while there are none. */
  lifecycleLookEveryMs: number;
  /** Share of the time that is worked, percent; the rest is left to clients. */
  lifecycleWorkShare: number;
}

type Found = Extract<ResultOf<'find-expirable'>, { kind: 'found' }>;
/** Pages that were examined and are not noted yet, as one. */
type Unnoted = Found & { page: LifecyclePage };

export function createLifecycleWorker(
  deps: LifecyclePace & {
    metadata: MetadataPort;
    shards(): readonly number[];
    clock: Pick<ClockPort, 'monotonicMs'>;
    telemetry: TelemetryPort;
    timeJumps: Pick<TimeJumps, 'mayRemoveByAge'>;
  },
): Worker {
  const { metadata, shards, clock, telemetry, timeJumps } = deps;
  const { lifecycleDayMs: dayMs, lifecycleLookEveryMs, lifecycleWorkShare } = deps;
  const unnoted = new Map<BucketId, Unnoted>();
  const lags = new Map<number, number>();

  async function find(shard: number, bucketId: BucketId, from?: LifecyclePlace) {
    const query = { bucketId, dayMs, ...(from && { from }), rowsMax: PAGE_ROWS, itemsMax: PAGE_ITEMS };
    return doneValue(await metadata.query({ shard }, 'find-expirable', query));
  }

  /** True: there is more to do in the bucket now. */
  async function advance(shard: number, bucketId: BucketId): Promise<boolean> {
    const before = unnoted.get(bucketId);
    unnoted.delete(bucketId);
    const isReady = before !== undefined && mustBeNoted(before.page);
    const found = isReady ? before : await find(shard, bucketId, before?.page.next);
    if (found.kind === 'gone') return false;
    const joined = isReady || before === undefined ? found : joinedWith(before, found);
    const { page } = joined;
    if (page !== undefined && !mustBeNoted(page)) {
      unnoted.set(bucketId, { ...joined, page });
      return true;
    }
    const { cfgVersion, stepCount, changeCount, nowMs: beganAtMs } = joined;
    const command = { bucketId, cfgVersion, stepCount, changeCount, beganAtMs, dayMs, ...(page && { page }) };
    const { next } = page ?? {};
    // The next page is read while this one is committed: what it finds lies behind. Not that of another stage: whether a marker
    // is alone is known only once what lay below it is gone.
    const [outcome, ahead] = await Promise.all([
      step(shard, command),
      next && next.stage === page?.from.stage && find(shard, bucketId, next).catch(() => undefined),
    ]);
    if (outcome.kind === 'elsewhere') return true;
    const { record, counts } = outcome;
    count(counts);
    if (record.pass === undefined) {
      if (page !== undefined) telemetry.count('holdfast_lifecycle_passes_total');
      return false;
    }
    if (ahead && ahead.kind === 'found' && ahead.page !== undefined)
      unnoted.set(bucketId, { ...ahead, page: ahead.page, stepCount: record.stepCount });
    return true;
  }

  /** Where the disk has no room for its delete markers, the rest of the page is taken, and they are due again in the next pass. */
  async function step(shard: number, command: CommandOf<'step-lifecycle'>) {
    const reply = await metadata.execute({ shard }, 'step-lifecycle', command);
    const { page } = command;
    if (reply.kind !== 'full' || page === undefined) return doneValue(reply);
    const items = page.items.filter(({ isMarked = false }) => !isMarked);
    const left = { ...command, page: { ...page, items, laterMs: command.beganAtMs } };
    return doneValue(await metadata.execute({ shard }, 'step-lifecycle', left));
  }

  function count({ examinedCount, keptCount, byAction }: LifecycleCounts): void {
    telemetry.count('holdfast_lifecycle_examined_total', {}, examinedCount);
    telemetry.count('holdfast_lifecycle_kept_total', {}, keptCount);
    for (const action of LIFECYCLE_ACTIONS) {
      const done = byAction[action] ?? 0;
      if (done > 0) telemetry.count('holdfast_lifecycle_actions_total', { action }, done);
    }
  }

  /** The longest time that a bucket of the shards here has been due. */
  function noteLag(shard: number, lagMs: number): void {
    const led = new Set(shards());
    for (const other of lags.keys()) if (!led.has(other)) lags.delete(other);
    lags.set(shard, lagMs);
    telemetry.gauge('holdfast_lifecycle_lag_seconds', Math.max(...lags.values()) / 1000);
  }

  const steps = createShardWorker({
    name: 'run-lifecycle',
    shards,
    idleMs: lifecycleLookEveryMs,
    async unit(shard, signal) {
      if (!timeJumps.mayRemoveByAge(shard)) return false;
      const query = { limit: BUCKETS_MAX };
      const { due, nowMs } = doneValue(await metadata.query({ shard }, 'list-due-lifecycles', query));
      noteLag(shard, due[0] === undefined ? 0 : nowMs - due[0].dueAtMs);
      let busy = due;
      for (let page = 0; page < PAGES_OF_LOOK && busy.length > 0; page++) {
        const others: typeof due = [];
        await forEachJob(busy, signal, async (bucket) => {
          if (await advance(shard, bucket.bucketId)) others.push(bucket);
          return true;
        });
        busy = others;
      }
      return busy.length > 0 || due.length === BUCKETS_MAX;
    },
  });

  return resting(steps, { clock, restShare: 100 / lifecycleWorkShare - 1 });
}

/** Whether a page is worth an entry: something is due, a stage is over, or much has been examined. */
function mustBeNoted({ from, next, items, examinedCount }: LifecyclePage): boolean {
  return items.length > 0 || next?.stage !== from.stage || examinedCount >= UNNOTED_ROWS_MAX;
}

/** Two pages of a stage, one behind the other, as one. */
function joinedWith(before: Unnoted, { page }: Found): Found {
  if (page === undefined) return before;
  const { next: _, ...first } = before.page;
  const laterMs = Math.min(first.laterMs ?? Infinity, page.laterMs ?? Infinity);
  return {
    ...before,
    page: {
      ...first,
      items: page.items,
      examinedCount: first.examinedCount + page.examinedCount,
      keptCount: first.keptCount + page.keptCount,
      ...(laterMs < Infinity && { laterMs }),
      ...(page.next && { next: page.next }),
    },
  };
}
