// One pass over the lifecycle of a bucket, as its worker makes it.
import type { CommandOf, OutcomeOf, QueryOf, ResultOf } from '../../../src/ports/metadata/port.ts';

import type { BucketId } from '../../../src/types/names.ts';
import {
  addLifecycleCounts,
  type LifecycleCounts,
  NO_LIFECYCLE_COUNTS,
} from '../../../src/types/records/lifecycle-record.ts';

/** As the worker's. */
const PAGE_ROWS = 5000;
const PAGE_ITEMS = 250;

interface LifecycleCalls {
  find(query: QueryOf<'find-expirable'>): Promise<ResultOf<'find-expirable'>>;
  step(command: CommandOf<'step-lifecycle'>): Promise<OutcomeOf<'step-lifecycle'>>;
}

/** What it did; nothing where nothing can be due. */
export async function passLifecycle(
  calls: LifecycleCalls,
  { bucketId, dayMs }: { bucketId: BucketId; dayMs: number },
): Promise<LifecycleCounts> {
  let counts = NO_LIFECYCLE_COUNTS;
  for (;;) {
    const found = await calls.find({ bucketId, dayMs, rowsMax: PAGE_ROWS, itemsMax: PAGE_ITEMS });
    if (found.kind === 'gone') return counts;
    const { cfgVersion, stepCount, changeCount, nowMs: beganAtMs, page } = found;
    const place = { bucketId, cfgVersion, stepCount, changeCount, beganAtMs, dayMs };
    const outcome = await calls.step({ ...place, ...(page && { page }) });
    if (outcome.kind !== 'stepped') throw new Error(outcome.kind);
    counts = addLifecycleCounts(counts, outcome.counts);
    if (outcome.record.pass === undefined) return counts;
  }
}
