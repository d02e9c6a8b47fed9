// Objects and bytes of a bucket or of the whole shard, as counters.ts counts them.
import type { QueryOf, ResultOf } from '../ports/metadata/port.ts';
import type { QuerySpec } from '../ports/state-machine.ts';
import { COUNTER } from './schema/counters.ts';

export const countUsage: QuerySpec<QueryOf<'count-usage'>, ResultOf<'count-usage'>> = {
  async run({ bucketId }, state) {
    const names =
      bucketId === undefined
        ? [COUNTER.objects, COUNTER.bytes]
        : [COUNTER.bucketObjects(bucketId), COUNTER.bucketBytes(bucketId)];
    const [objectCount = 0, sizeBytes = 0, bucketCount = 0] = await state.counters([
      ...names,
      COUNTER.buckets,
    ]);
    return { objectCount, sizeBytes, bucketCount };
  },
};
