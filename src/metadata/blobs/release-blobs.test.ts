import { beforeEach, describe, expect, test } from 'vitest';
import {
  BUCKET,
  beginUpload,
  etagOf,
  type MetadataShards,
  type NewData,
  putPart,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { type Background, MINUTE, openBackground } from '../../../tests/support/metadata/metadata-workers.ts';
import type { BlobId, ObjectKey } from '../../types/names.ts';

let world: MetadataShards;
let background: Background;
async function setUp(shardCount = 1): Promise<void> {
  background = await openBackground(shardCount);
  ({ world } = background);
}
const run: Background['run'] = (...names) => background.run(...names);
const newStored: Background['newStored'] = (...args) => background.newStored(...args);
const chunksLeft = () => background.chunksLeft();
const blobOf = (data: NewData) => data.uses[0]?.blobId as BlobId;
const MiB = 1024 * 1024;

describe('blobs without links', () => {
  beforeEach(() => setUp());

  test('are erased after the reading grace: chunks first, rows last', async () => {
    const data = await newStored(3 * MiB);
    await world.put('a', { data });
    await world.put('b', { data: world.newData({ storage: 'inline', sizeBytes: 5 }) });
    await world.remove('a');
    await world.remove('b');
    await run('mark', 'release');
    expect([await chunksLeft(), await world.stateOf(blobOf(data))]).toEqual([3, ['condemned']]);
    world.clock.advance(10 * MINUTE);
    await run('release');
    expect(await chunksLeft()).toBe(3);
    world.clock.advance(1);
    await run('release');
    expect([await chunksLeft(), await world.stateOf(blobOf(data))]).toEqual([0, [undefined]]);
    const left = await world.kv.range({
      column: 'bodies',
      gte: new Uint8Array(1),
      lt: Buffer.alloc(9, 255),
      limit: 9,
    });
    expect(left).toEqual([]);
    expect(await world.query('list-condemned', { olderThanMs: 0, limit: 9 })).toEqual({
      blobs: [],
      totalCount: 0,
    });
  });

  test('a failed drop leaves the rows, and is tried again', async () => {
    const data = await newStored(3 * MiB);
    await world.put('a', { data });
    await world.remove('a');
    await run('mark');
    world.clock.advance(11 * MINUTE);
    const { chunks } = background;
    const { drop } = chunks;
    chunks.drop = async () => {
      throw new Error('out of reach');
    };
    await expect(run('release')).rejects.toThrow('out of reach');
    expect(await world.stateOf(blobOf(data))).toEqual(['condemned']);
    chunks.drop = drop;
    await run('release');
    expect([await chunksLeft(), await world.stateOf(blobOf(data))]).toEqual([0, [undefined]]);
  });

  test('a paged manifest is erased first, the data of its parts a grace later', async () => {
    const key = 'a' as ObjectKey;
    const uploadId = await beginUpload(world, key);
    const parts = [];
    for (let partNumber = 1; partNumber <= 300; partNumber++) {
      const data = await newStored(5 * MiB);
      await putPart(world, { key, uploadId }, { partNumber, data });
      parts.push({ partNumber, etag: etagOf(`part ${partNumber}`) });
    }
    await world.execute('complete-upload', { bucketId: BUCKET, key, uploadId, parts });
    await world.remove('a');
    for (const expected of [1500, 0]) {
      await run('mark');
      world.clock.advance(11 * MINUTE);
      await run('release');
      expect(await chunksLeft()).toBe(expected);
    }
    expect(await world.query('list-condemned', { olderThanMs: 0, limit: 9 })).toEqual({
      blobs: [],
      totalCount: 0,
    });
  });

  test('a manifest that must wait does not delay the blobs behind it', async () => {
    const key = 'a' as ObjectKey;
    const uploadId = await beginUpload(world, key);
    const parts = [];
    for (let partNumber = 1; partNumber <= 65; partNumber++) {
      await putPart(world, { key, uploadId }, { partNumber, data: await newStored(5 * MiB) });
      parts.push({ partNumber, etag: etagOf(`part ${partNumber}`) });
    }
    await world.execute('complete-upload', { bucketId: BUCKET, key, uploadId, parts });
    // More than a page of them.
    const others = Array.from({ length: 150 }, (_, at) => `b${at}`);
    for (const other of others) await world.put(other, { data: await newStored(1) });
    await world.remove('a');
    await run('mark');
    for (const other of others) await world.remove(other);
    await run('mark');
    world.clock.advance(11 * MINUTE);
    const { execute } = world.shards;
    world.shards.execute = async (envelope, name, command) =>
      name === 'release-manifest-page' ? { kind: 'unknown' } : execute(envelope, name, command);
    await expect(run('release')).rejects.toThrow();
    for (let page = 1; page < 4; page++) await run('release').catch(() => {});
    expect(await chunksLeft()).toBe(65 * 5);
    world.shards.execute = execute;
    // To the end of the present walk, and then from what was left.
    await run('release', 'release', 'mark');
    world.clock.advance(11 * MINUTE);
    await run('release');
    expect(await chunksLeft()).toBe(0);
  });

  test('many are erased in batches, with new ones among them', async () => {
    for (let at = 0; at < 600; at++) await world.put(`k${at}`, { data: await newStored(1) });
    const all = await world.query('list-objects', { bucketId: BUCKET, prefix: '', max: 1000 });
    for (const { key } of all.objects) await world.remove(key);
    await run('mark');
    world.clock.advance(11 * MINUTE);
    const late = await newStored(1);
    await world.put('late', { data: late });
    await world.remove('late');
    await run('mark', 'release');
    expect(await chunksLeft()).toBe(1);
    background.reopen();
    world.clock.advance(11 * MINUTE);
    await run('release');
    expect(await chunksLeft()).toBe(0);
  });
});

test('a unit ends early when its signal is aborted', async () => {
  await setUp(2);
  const outcome = await background.workers.mark.work(AbortSignal.abort());
  expect(outcome).toEqual({ state: 'idle', idleMs: 1000 });
});
