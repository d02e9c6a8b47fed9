// The feed over several shards: one order, pages without a gap or a repetition, and shards that do not answer.
import { beforeEach, expect, test } from 'vitest';
import { type MetadataShards, OWNER, openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BucketId, BucketName, ObjectKey } from '../../types/names.ts';
import { NO_ORIGINALS } from '../../types/originals.ts';
import { EMPTY_MANIFEST } from '../../types/version.ts';
import { type EventPage, readEvents, takeEvents } from './event-feed.ts';

const SHARDS = 40;
const bucketOf = (shard: number) => `b${shard.toString(16).padStart(15, '0')}` as BucketId;

let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata({ shardCount: SHARDS });
});

async function record(...shards: number[]): Promise<void> {
  for (const shard of shards) {
    const bucketId = bucketOf(shard);
    const name = `bucket-${shard}` as BucketName;
    await world.execute('create-bucket', { bucketId, name, owner: OWNER }, shard);
    const config = { bucketId, kind: 'events' } as const;
    await world.execute('set-bucket-config', { ...config, document: { consumers: ['feed'] } }, shard);
  }
}

async function put(shard: number, key: string): Promise<void> {
  world.clock.advance(1);
  const version = {
    sizeBytes: 0,
    etag: '0'.repeat(32),
    owner: OWNER,
    originals: NO_ORIGINALS,
    manifest: EMPTY_MANIFEST,
  };
  const command = { bucketId: bucketOf(shard), key: key as ObjectKey, version };
  await world.execute('commit-version', { ...command, data: { births: [], links: [] } }, shard);
}

/** All pages from here on; each key as it is returned. */
async function readAll(
  metadata: MetadataPort,
  cursor?: string,
): Promise<Omit<EventPage, 'events' | 'hasMore'> & { keys: string[]; sizes: number[] }> {
  const keys: string[] = [];
  const sizes: number[] = [];
  for (let at = cursor; ; ) {
    const { events, hasMore, ...page } = await readEvents(metadata, at === undefined ? {} : { cursor: at });
    keys.push(...events.map(({ key = '' }) => key));
    sizes.push(events.length);
    if (!hasMore) return { ...page, keys, sizes };
    at = page.cursor;
  }
}

test('events of all shards are in time order, over pages', async () => {
  await record(1, 17, 39);
  const keys: string[] = [];
  const count = LIMITS.eventsPageMax + 500;
  for (let at = 0; at < count; at++) {
    const key = `${at}`;
    keys.push(key);
    await put([1, 17, 39][at % 3] as number, key);
  }
  const all = await readAll(world.shards);
  expect(all.keys).toEqual(keys);
  expect(all.sizes).toEqual([LIMITS.eventsPageMax, 500]);
  await put(17, 'more');
  expect((await readAll(world.shards, all.cursor)).keys).toEqual(['more']);
});

test('one shard with more than a page does not delay others', async () => {
  await record(1, 2);
  const count = 2 * LIMITS.eventsPageMax + 1;
  for (let at = 0; at < count; at++) await put(1, `${at}`);
  await put(2, 'other');
  const { keys, sizes } = await readAll(world.shards);
  expect(keys).toEqual([...Array.from({ length: count }, (_, at) => `${at}`), 'other']);
  expect(Math.max(...sizes)).toBe(LIMITS.eventsPageMax);
});

test('a shard that does not answer is named, and its events come later', async () => {
  await record(1, 2);
  for (const key of ['a', 'b']) for (const shard of [1, 2]) await put(shard, `${key}${shard}`);
  const begun = await readEvents(world.shards, {});
  let isAway = true;
  const partly: MetadataPort = {
    shardCount: SHARDS,
    execute: (...call) => world.shards.execute(...call),
    query: async (envelope, name, query) =>
      isAway && envelope.shard === 2 ? { kind: 'unknown' } : await world.shards.query(envelope, name, query),
  };
  expect(await readAll(partly)).toMatchObject({ keys: ['a1', 'b1'], missingShards: [2] });
  for (const shard of [1, 2]) await put(shard, `c${shard}`);
  const { keys, cursor } = await readAll(partly, begun.cursor);
  expect(keys).toEqual(['c1']);
  isAway = false;
  expect(await readAll(partly, cursor)).toMatchObject({ keys: ['c2'], missingShards: [] });
});

test('events before a cursor are taken from each shard, and none behind it', async () => {
  await record(1, 2);
  for (const shard of [1, 2]) await put(shard, `a${shard}`);
  const { cursor } = await readAll(world.shards);
  for (const shard of [1, 2]) await put(shard, `b${shard}`);
  await takeEvents(world.shards, cursor);
  await takeEvents(world.shards, cursor);
  expect(await readAll(world.shards)).toMatchObject({ keys: ['b1', 'b2'], lostCount: 0 });
});
