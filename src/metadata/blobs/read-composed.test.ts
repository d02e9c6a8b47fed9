// Pages of what compositions alone keep: which shard is asked what, and what becomes of its answers.
import { beforeEach, expect, test } from 'vitest';
import type { ClaimedBlob, CompositionHolder } from '../../ports/metadata/blobs.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { BlobId, BucketId } from '../../types/names.ts';
import { readComposed } from './read-composed.ts';

const blob = (text: string) => text.repeat(32) as BlobId;
const [HERE, THERE] = ['here' as BucketId, 'there' as BucketId];
const on = (text: string, ...shards: number[]) => shards.map((shard) => ({ blobId: blob(text), shard }));
const composition = (bucketId: BucketId): CompositionHolder => ({ kind: 'composition', bucketId });

let claimed: ClaimedBlob[];
let next: BlobId | undefined;
/** What shards hold, by shard and blob. */
let held: Record<string, CompositionHolder>;
let silent: number | undefined;
let answersMax: number;
let states: Record<string, string>;
beforeEach(() => {
  [claimed, next, held, silent, answersMax, states] = [[], undefined, {}, undefined, 100, {}];
});

async function query(
  { shard }: { shard: number },
  name: string,
  { blobIds = [], bucketId = '' }: { blobIds?: BlobId[]; bucketId?: string },
) {
  if (shard === silent) return { kind: 'unknown' };
  const done = (value: unknown) => ({ kind: 'done', value, timeMs: 0 });
  if (name === 'get-bucket')
    return done({ bucket: { name: `name of ${bucketId}`, state: states[bucketId] ?? 'open' } });
  if (name === 'count-composed-only')
    return done({
      buckets: [{ bucketId: HERE, sizeBytes: 5, blobCount: 1 }],
      claimed,
      ...(next && { next }),
    });
  return done({
    holders: blobIds.slice(0, answersMax).map((id) => held[`${shard} ${id}`] ?? { kind: 'none' }),
  });
}
const metadata = { shardCount: 3, query } as unknown as MetadataPort;
const read = (shard = 0) => readComposed(metadata, { shard });
const of = (bucketId: BucketId, sizeBytes: number, blobCount: number) => ({
  bucketId,
  name: `name of ${bucketId}`,
  sizeBytes,
  blobCount,
});

test('pages lead to the next page, then to the next shard, then end', async () => {
  next = blob('a');
  expect(await read()).toEqual({ buckets: [of(HERE, 5, 1)], next: { shard: 0, after: next } });
  next = undefined;
  expect(await read(1)).toEqual({ buckets: [of(HERE, 5, 1)], next: { shard: 2 } });
  expect(await read(2)).toEqual({ buckets: [of(HERE, 5, 1)] });
  await expect(read(3)).rejects.toMatchObject({ code: 'NoSuchEntity' });
});

test('data of several shards counts where all of them use it by compositions only', async () => {
  claimed = [
    { blobId: blob('a'), sizeBytes: 10, claims: on('a', 1, 2) },
    { blobId: blob('b'), sizeBytes: 100, claims: on('b', 1, 2) },
    { blobId: blob('c'), sizeBytes: 1000, claims: on('c', 1, 2) },
    { blobId: blob('d'), sizeBytes: 10_000, claims: on('d', 1), bucketId: HERE },
    { blobId: blob('e'), sizeBytes: 100_000, claims: on('e', 1) },
  ];
  held = {
    [`2 ${blob('a')}`]: composition(THERE),
    [`1 ${blob('b')}`]: composition(THERE),
    [`2 ${blob('b')}`]: { kind: 'other' },
    [`1 ${blob('c')}`]: { kind: 'other' },
    [`2 ${blob('c')}`]: composition(THERE),
    [`1 ${blob('d')}`]: composition(THERE),
  };
  const expected = [of(HERE, 5 + 10_000, 2), of(THERE, 10, 1)];
  expect((await read()).buckets).toEqual(expected);
  answersMax = 1;
  expect((await read()).buckets).toEqual(expected);
});

test('uses in pages of other shards are asked of the shards that have links', async () => {
  const inPages = { kind: 'claimed' as const, claims: on('f', 0, 2) };
  claimed = [
    { blobId: blob('a'), sizeBytes: 10, claims: on('a', 1) },
    { blobId: blob('b'), sizeBytes: 100, claims: on('b', 1) },
    { blobId: blob('c'), sizeBytes: 1000, claims: [...on('c', 1), ...on('f', 2)] },
  ];
  held = {
    [`1 ${blob('a')}`]: inPages,
    [`1 ${blob('b')}`]: { ...inPages, claims: on('e', 2) },
    [`1 ${blob('c')}`]: { kind: 'other' },
    [`2 ${blob('f')}`]: composition(THERE),
  };
  expect((await read()).buckets).toEqual([of(HERE, 5, 1), of(THERE, 10, 1)]);
});

test('a shard that does not answer makes the page repeatable', async () => {
  claimed = [{ blobId: blob('a'), sizeBytes: 10, claims: on('a', 2) }];
  silent = 2;
  expect(await read()).toEqual({ buckets: [], missingShard: 2, next: { shard: 0 } });
  silent = 0;
  expect(await read()).toEqual({ buckets: [], missingShard: 0, next: { shard: 0 } });
});

test('a bucket that is being emptied is listed without its name', async () => {
  states = { here: 'deleted' };
  expect((await read()).buckets).toEqual([{ ...of(HERE, 5, 1), name: HERE }]);
});
