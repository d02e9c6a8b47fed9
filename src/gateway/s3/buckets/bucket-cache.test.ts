import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { MetadataPort } from '../../../ports/metadata/port.ts';
import { createBucketCache } from './bucket-cache.ts';

test('of buckets with large documents two of an owner are read at once, and nothing of them before', async () => {
  const end = Promise.withResolvers<void>();
  let whole = 0;
  const query = async (
    _envelope: unknown,
    name: string,
    { bytesMax }: { name: string; bytesMax?: number },
  ) => {
    if (name === 'find-name')
      return done({ record: { state: 'active', bucketId: 'b000000000000001', homeShard: 0 } });
    const bucket = { name: 'bucket', state: 'active', owner: 'one' };
    if (bytesMax !== undefined) return done({ bucket, configs: {}, isLarge: true });
    whole++;
    await end.promise;
    return done({ bucket, configs: { policy: { text: 'long' } } });
  };
  const done = (value: unknown) => ({ kind: 'done', value, timeMs: 0 });
  const caches = createBucketCache({ query } as unknown as MetadataPort);
  // What is asked for by several names at once is read for each; the answer has another name, for all but one.
  const names = ['bucket', ...Array.from({ length: 10 }, (_, at) => `bucket-${at}`)];
  const found = names.map((name) => caches.find(name));
  for (let turn = 0; turn < 20; turn++) await nextTurn();
  expect(whole).toBe(2);
  end.resolve();
  expect((await Promise.all(found)).filter((one) => one !== undefined)).toHaveLength(1);
  expect(whole).toBe(names.length);
});

test('a crowd at a bucket that is not cached reads it once; one that wants it as it is now, twice', async () => {
  const asked: string[] = [];
  const answers: Record<string, unknown> = {
    'find-name': { record: { state: 'active', bucketId: 'b000000000000001', homeShard: 0 } },
    'get-bucket': { bucket: { name: 'bucket', state: 'active' }, configs: {} },
  };
  const query = async (_envelope: unknown, name: string) => {
    asked.push(name);
    return { kind: 'done', value: answers[name], timeMs: 0 };
  };
  const buckets = createBucketCache({ query } as unknown as MetadataPort);
  const crowd = <T>(ask: () => Promise<T>) => Promise.all(Array.from({ length: 20 }, ask));
  const found = await crowd(() => buckets.find('bucket'));
  // Only the first one had asked before it was read.
  expect(found.map((one) => one?.isCached)).toEqual([false, ...Array(19).fill(true)]);
  expect(asked.splice(0)).toEqual(['find-name', 'get-bucket']);
  await crowd(() => buckets.read('bucket'));
  expect(asked).toEqual(['find-name', 'get-bucket', 'find-name', 'get-bucket']);
});
