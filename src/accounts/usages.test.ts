import { expect, test } from 'vitest';
import type { MetadataPort } from '../ports/metadata/port.ts';
import type { BucketDay, UsagePlace } from '../ports/metadata/usage.ts';
import { METERED } from '../types/metered.ts';
import type { AccountId, BucketId, BucketName } from '../types/names.ts';
import { createUsages } from './usages.ts';

const ACCOUNT = '000000000011' as AccountId;
const SHARDS = 3;
const PAGE = 200;
const DAY = 20_000;

/** Of `count` buckets that were deleted, by turns in each shard. */
function openUsages(count: number) {
  const idOf = (at: number) => at.toString(16).padStart(16, '0') as BucketId;
  const days = Array.from({ length: count }, (_, at): BucketDay => {
    const figures = METERED.map(() => 1);
    return { bucketId: idOf(at), bucketName: `bucket-${at}` as BucketName, day: DAY, figures };
  });
  const shards = Array.from({ length: SHARDS }, (_, shard) => days.filter((_, at) => at % SHARDS === shard));
  const metadata = {
    shardCount: SHARDS,
    query: async ({ shard }: { shard: number }, _name: string, { after }: { after?: UsagePlace }) => {
      const all = shards[shard] ?? [];
      const from = after === undefined ? 0 : (Number.parseInt(after.bucketId, 16) - shard) / SHARDS + 1;
      const some = all.slice(from, from + PAGE);
      const last = some.length < PAGE ? undefined : some.at(-1);
      return { kind: 'done', value: { days: some, ...(last && { next: last }) }, timeMs: 0 };
    },
  } as unknown as MetadataPort;
  return { usages: createUsages(metadata), ids: days.map(({ bucketId }) => bucketId) };
}

test('records of many buckets of one day are in order, and are read and put together in many turns of the loop', async () => {
  const count = 12_000;
  const { usages, ids } = openUsages(count);
  let turns = 0;
  const ended = { isIt: false };
  const turn = () => {
    turns++;
    if (!ended.isIt) setImmediate(turn);
  };
  setImmediate(turn);
  const found = await usages.byBucket(ACCOUNT, { fromDay: DAY, toDay: DAY });
  ended.isIt = true;
  expect(found.map(({ bucketId }) => bucketId)).toEqual(ids);
  // A page in one, and a thousand in order in one.
  expect(turns).toBeGreaterThanOrEqual(count / PAGE + count / 1000 - 1);
});
