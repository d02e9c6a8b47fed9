// What every CoordinatorPort promises (src/ports/coordination.ts).
import { describe, expect, test } from 'vitest';
import { createLocalCoordinator } from '../../src/platform/local-coordinator.ts';
import { createMemoryKv } from '../../src/platform/memory/memory-kv.ts';

const kv = () => createMemoryKv(['rows']);

describe.each([
  [
    'local',
    () => {
      const store = kv();
      return () => createLocalCoordinator(store);
    },
  ],
])('%s', (_name, prepare) => {
  test('epochs of a shard rise, over restarts too, and shards are separate', async () => {
    const open = prepare();
    const first = open();
    const epochs = [await first.acquire(5), await first.acquire(5), await open().acquire(5)].map(
      ({ epoch }) => epoch,
    );
    expect(epochs).toEqual([...new Set(epochs)].sort((a, b) => a - b));
    expect((await first.acquire(6)).incarnation).toBe(1);
  });

  test('calls at the same moment never get the same epoch', async () => {
    const coordinator = prepare()();
    const grants = await Promise.all(Array.from({ length: 10 }, () => coordinator.acquire(1)));
    expect(new Set(grants.map(({ epoch }) => epoch)).size).toBe(10);
  });
});

test('an epoch that could not be made durable is not returned', async () => {
  const store = kv();
  store.fail(new Error('the disk failed'));
  await expect(createLocalCoordinator(store).acquire(1)).rejects.toThrow('the disk failed');
});
