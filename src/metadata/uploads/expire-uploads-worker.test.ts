import { beforeEach, describe, expect, test } from 'vitest';
import {
  BUCKET,
  beginUpload,
  etagOf,
  type MetadataShards,
  putPart,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { type Background, DAY, openBackground } from '../../../tests/support/metadata/metadata-workers.ts';
import type { ObjectKey } from '../../types/names.ts';
import { createCompletedUploadForgetter } from '../workers/forget-by-age.ts';
import { createUploadExpiry } from './expire-uploads-worker.ts';

let world: MetadataShards;
let background: Background;
async function setUp(shardCount = 1): Promise<void> {
  background = await openBackground(shardCount);
  ({ world } = background);
}
const run: Background['run'] = (...names) => background.run(...names);
describe('uploads', () => {
  const key = 'a' as ObjectKey;
  beforeEach(() => setUp());
  const openCount = async () =>
    (await world.query('list-uploads', { bucketId: BUCKET, prefix: '', max: 100 })).uploads.length;

  test('are ended by age', async () => {
    for (let at = 0; at < 10; at++) await beginUpload(world, `k${at}`);
    await run('expire');
    expect(await openCount()).toBe(10);
    world.clock.advance(31 * DAY + 1);
    await beginUpload(world, 'young');
    await run('expire');
    expect(await openCount()).toBe(1);
  });

  test('a large ended upload does not delay the others', async () => {
    const blobs = [];
    for (const [name, partCount] of [
      ['large', 200],
      ['small', 1],
    ] as const) {
      const uploadId = await beginUpload(world, name);
      for (let partNumber = 1; partNumber <= partCount; partNumber++) {
        const data = world.newData();
        await putPart(world, { key: name as ObjectKey, uploadId }, { partNumber, data });
        blobs.push(...data.uses.map(({ blobId }) => blobId));
      }
    }
    world.clock.advance(31 * DAY + 1);
    await run('expire');
    expect(await openCount()).toBe(0);
    const [small] = blobs.slice(-1);
    if (small === undefined) throw new Error('no blob');
    await background.workers.parts.work(new AbortController().signal);
    await run('mark');
    expect(await world.stateOf(small)).toEqual(['condemned']);
    await run('parts', 'mark');
    expect(new Set(await world.stateOf(...blobs))).toEqual(new Set(['condemned']));
  });

  test('of a deleted bucket are ended', async () => {
    for (let at = 0; at < 10; at++) await beginUpload(world, `k${at}`);
    await world.execute('delete-bucket', { bucketId: BUCKET });
    await run('expire');
    expect(await openCount()).toBe(0);
    await run('expire');
    const query = { olderThanMs: 0, limit: 9 };
    expect(await world.query('list-stale-uploads', query)).toEqual({ uploads: [], emptiedBucketIds: [] });
  });

  test('R19: after a clock jump none expires until the operator accepts it', async () => {
    const complete = { bucketId: BUCKET, key, parts: [{ partNumber: 1, etag: etagOf('part 1') }] };
    const uploadId = await beginUpload(world, key);
    await putPart(world, { key, uploadId }, { partNumber: 1 });
    await world.execute('complete-upload', { ...complete, uploadId });
    await beginUpload(world, 'left');
    world.clock.advance(31 * DAY + 1);
    let isAccepted = false;
    const deps = {
      metadata: world.shards,
      shards: () => [0],
      timeJumps: { mayRemoveByAge: () => isAccepted },
    };
    const workers = [
      createUploadExpiry({ ...deps, uploadKeptMs: 31 * DAY }),
      createCompletedUploadForgetter(deps),
    ];
    const work = async () => {
      for (const worker of workers)
        while ((await worker.work(new AbortController().signal)).state === 'busy');
      const again = await world.execute('complete-upload', { ...complete, uploadId });
      return [await openCount(), again.kind];
    };
    expect(await work()).toEqual([1, 'committed']);
    isAccepted = true;
    expect(await work()).toEqual([0, 'no-such-upload']);
  });

  test('the answer of a Complete is removed after seven days', async () => {
    const uploadId = await beginUpload(world, key);
    await putPart(world, { key, uploadId }, { partNumber: 1 });
    const complete = () =>
      world.execute('complete-upload', {
        bucketId: BUCKET,
        key,
        uploadId,
        parts: [{ partNumber: 1, etag: etagOf('part 1') }],
      });
    await complete();
    world.clock.advance(7 * DAY - 1);
    await run('forget');
    expect(await complete()).toMatchObject({ repeated: true });
    world.clock.advance(2);
    await run('forget');
    expect(await complete()).toEqual({ kind: 'no-such-upload' });
  });
});
