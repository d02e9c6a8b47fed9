import { expect, test } from 'vitest';
import type { MetadataPort } from '../../../ports/metadata/port.ts';
import { createBucketCache } from './bucket-cache.ts';

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
