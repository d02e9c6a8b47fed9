import { expect, test } from 'vitest';
import { createShardWorker } from './shard-worker.ts';

const { signal } = new AbortController();

/** What was done in so many rounds, in the order of shards. */
async function rounds(
  count: number,
  unit: (shard: number) => Promise<boolean>,
  idleMs = 1000,
): Promise<string[]> {
  let visited = '';
  const worker = createShardWorker({
    name: 'some-job',
    shards: () => [0, 1, 2],
    idleMs,
    async unit(shard) {
      visited += shard;
      return unit(shard);
    },
  });
  const seen: string[] = [];
  for (let round = 0; round < count; round++) {
    visited = '';
    const { failures = [] } = await worker.work(signal);
    const told = failures.map((error) => (error as Error).message).sort();
    seen.push([[...visited].sort().join(''), ...told].join(' '));
  }
  return seen;
}

test('failing shards do not delay the others, and get their turns after longer pauses', async () => {
  const unit = async (shard: number) => {
    if (shard < 2) throw new Error(`shard ${shard}`);
    return true;
  };
  const whole = '012 shard 0 shard 1';
  expect(await rounds(9, unit)).toEqual([whole, whole, '2', whole, '2', '2', '2', whole, '2']);
});

test('each shard begins a round in its turn', async () => {
  const firsts: number[] = [];
  let isFirst = true;
  const worker = createShardWorker({
    name: 'some-job',
    shards: () => [4, 5, 6],
    idleMs: 1000,
    async unit(shard) {
      if (isFirst) firsts.push(shard);
      isFirst = false;
      return false;
    },
  });
  for (let round = 0; round < 4; round++) {
    isFirst = true;
    await worker.work(signal);
  }
  expect(firsts).toEqual([4, 5, 6, 4]);
});

test('a waiting round counts its wait, so that no shard rests for longer than a minute', async () => {
  let count = 0;
  const unit = async (shard: number) => {
    if (shard === 0 && ++count < 9) throw new Error('again');
    return false;
  };
  const seen = await rounds(10, unit, 60_000);
  expect(seen.slice(0, 8)).toEqual(Array.from({ length: 8 }, () => '012 again'));
  expect(seen.slice(8)).toEqual(['012', '012']);
});

test('where every unit fails the worker has failed, and next time all have their turn', async () => {
  let isBroken = true;
  const worker = createShardWorker({
    name: 'some-job',
    shards: () => [0, 1],
    idleMs: 1000,
    async unit(shard) {
      if (isBroken) throw new Error(`shard ${shard}`);
      return false;
    },
  });
  for (let round = 0; round < 5; round++) await expect(worker.work(signal)).rejects.toThrow(/^shard [01]$/);
  isBroken = false;
  expect(await worker.work(signal)).toEqual({ state: 'idle', idleMs: 1000 });
});
