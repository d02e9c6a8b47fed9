import { expect, test, vi } from 'vitest';
import { createManualClock } from '../../tests/support/run/simulated.ts';
import { nextTurn } from '../base/async/next-turn.ts';
import type { MetadataPort } from '../ports/metadata/port.ts';
import type { BucketDay, UsagePlace } from '../ports/metadata/usage.ts';
import { LIMITS } from '../types/limits.ts';
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
  return { usages: createUsages(metadata, createManualClock(0)), ids: days.map(({ bucketId }) => bucketId) };
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

test('of a present with very many buckets a page is kept, whatever shards it is of, and shards make the sum', async () => {
  const perShard = 4000;
  const wanted = Array.from({ length: SHARDS }, (_, shard) => perShard - 2 * shard);
  const idOf = (shard: number, at: number) => `${shard}${at.toString(16).padStart(15, '0')}` as BucketId;
  const days: number[] = [];
  const figures = METERED.map(() => 1);
  const metadata = {
    shardCount: SHARDS,
    query: async (
      { shard }: { shard: number },
      name: string,
      { after, limit }: { after?: BucketId; limit: number },
    ) => {
      const from = after === undefined ? 0 : Number.parseInt(after.slice(1), 16) + 1;
      const count = Math.min(limit, (wanted[shard] ?? 0) - from);
      const next = count === limit && { next: idOf(shard, from + count - 1) };
      if (name === 'sum-current-usages')
        return { kind: 'done', value: { figures: figures.map((one) => one * count), count, ...next } };
      days.push(count);
      const found = Array.from({ length: count }, (_, at): BucketDay => {
        const bucketId = idOf(shard, from + at);
        return { bucketId, bucketName: 'bucket' as BucketName, day: DAY, figures };
      });
      return { kind: 'done', value: { day: DAY, days: found, ...next } };
    },
  } as unknown as MetadataPort;
  const usages = createUsages(metadata, createManualClock(0));
  const total = wanted.reduce((sum, count) => sum + count);
  const all = wanted.flatMap((count, shard) => Array.from({ length: count }, (_, at) => idOf(shard, at)));
  for (const page of [1, 5, 12, 13]) {
    const found = await usages.current(ACCOUNT, { page: { page, size: 1000 } });
    expect(found.items.map(({ bucketId }) => bucketId)).toEqual(all.slice((page - 1) * 1000, page * 1000));
    expect(found.total).toBe(total);
  }
  const isWanted = ({ bucketId = '' }: { bucketId?: string }) => bucketId.endsWith('0');
  const some = await usages.current(ACCOUNT, { page: { page: 2, size: 400 }, isWanted });
  const ends = all.filter((bucketId) => bucketId.endsWith('0'));
  expect([some.total, some.items.map(({ bucketId }) => bucketId)]).toEqual([
    ends.length,
    ends.slice(400, 800),
  ]);
  // No answer has more than 200.
  expect(Math.max(...days)).toBe(200);
  days.length = 0;
  expect(await usages.currentOf(ACCOUNT)).toMatchObject({ objects: total, headCalls: total });
  expect(days).toEqual([]);
  expect(await usages.currentOf(ACCOUNT, undefined, isWanted)).toMatchObject({ objects: ends.length });
});

test('of many shards some are asked at once, and after a failure no others', async () => {
  let [underWay, most, asked] = [0, 0, 0];
  const metadata = {
    shardCount: 64,
    query: async ({ shard }: { shard: number }) => {
      asked++;
      most = Math.max(most, ++underWay);
      await nextTurn();
      underWay--;
      if (isFailing && shard === 20) return { kind: 'unknown' };
      return { kind: 'done', value: { figures: [1], count: 1 }, timeMs: 0 };
    },
  } as unknown as MetadataPort;
  let isFailing = false;
  const usages = createUsages(metadata, createManualClock(0));
  expect(await usages.currentOf(ACCOUNT)).toMatchObject({ objects: 64 });
  expect(most).toBeLessThanOrEqual(8);
  [isFailing, asked] = [true, 0];
  await expect(usages.currentOf(ACCOUNT)).rejects.toMatchObject({ code: 'ServiceUnavailable' });
  expect(asked).toBeLessThan(40);
});

test('while a shard does not answer, who asks for the present waits for his own questions alone, and so long at most', async () => {
  const silent = Promise.withResolvers<void>();
  const asked: AccountId[] = [];
  const metadata = {
    shardCount: 1,
    async query(_envelope: object, _name: string, { accountId }: { accountId: AccountId }) {
      asked.push(accountId);
      if (accountId === ACCOUNT) await silent.promise;
      return { kind: 'done', value: { figures: [], count: 0 }, timeMs: 0 };
    },
  } as unknown as MetadataPort;
  const clock = createManualClock(0);
  const usages = createUsages(metadata, clock);
  const asker = { payer: 'partner 1' };
  const blocked = Array.from({ length: 4 }, () => usages.currentOf(ACCOUNT, asker));
  const gone = new AbortController();
  const left = expect(usages.currentOf(ACCOUNT, { ...asker, gone: () => gone.signal })).rejects;
  const late = expect(usages.currentOf(ACCOUNT, asker)).rejects;

  const other = '000000000012' as AccountId;
  await usages.currentOf(other, { payer: 'partner 2' });
  gone.abort();
  await left.toMatchObject({ code: 'ServiceUnavailable' });
  clock.advance(LIMITS.metadataAnswerMaxMs);
  await late.toMatchObject({ code: 'ServiceUnavailable' });
  const begun = [...blocked.map(() => ACCOUNT), other];
  await vi.waitFor(() => expect(asked.toSorted()).toEqual(begun));

  const next = usages.currentOf(ACCOUNT, asker);
  await nextTurn();
  silent.resolve();
  await Promise.all([...blocked, next]);
  await expect(usages.currentOf(ACCOUNT, { ...asker, gone: () => gone.signal })).rejects.toThrow();
  expect(asked).toHaveLength(6);
});
