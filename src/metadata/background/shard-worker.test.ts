import { expect, test } from 'vitest';
import { createShardWorker } from './shard-worker.ts';

test('a shard whose unit fails does not keep the others from their work', async () => {
  const visited: number[] = [];
  const worker = createShardWorker({
    name: 'some-job',
    shards: () => [0, 1, 2],
    idleMs: 1000,
    async unit(shard) {
      visited.push(shard);
      if (shard < 2) throw new Error(`shard ${shard}`);
      return true;
    },
  });
  await expect(worker.work(new AbortController().signal)).rejects.toThrow('shard 0');
  expect(visited).toEqual([0, 1, 2]);
});
