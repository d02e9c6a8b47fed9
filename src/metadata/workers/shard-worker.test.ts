import { describe, expect, test } from 'vitest';
import { createQueueWalks, createShardWorker } from './shard-worker.ts';

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

test('a shard that is slow delays no others, and few are visited at once', async () => {
  const gate = Promise.withResolvers<void>();
  const done: number[] = [];
  let inUnits = 0;
  let mostInUnits = 0;
  const worker = createShardWorker({
    name: 'some-job',
    shards: () => [0, 1, 2, 3, 4, 5],
    idleMs: 1000,
    atOnce: 2,
    async unit(shard) {
      mostInUnits = Math.max(mostInUnits, ++inUnits);
      await (shard === 0 ? gate.promise : Promise.resolve());
      inUnits--;
      done.push(shard);
      if (shard === 5) gate.resolve();
      return false;
    },
  });
  expect(await worker.work(signal)).toEqual({ state: 'idle', idleMs: 1000 });
  expect(done).toEqual([1, 2, 3, 4, 5, 0]);
  expect(mostInUnits).toBe(2);
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

describe('a walk through a queue', () => {
  const item = (timeMs: number, name: string) => ({ timeMs, name });

  /** Looks at a page of two, takes out those that are not `busy`, and gives the names of the page. */
  function createLooks(queue: { timeMs: number; name: string }[], busy: readonly string[]) {
    const walks = createQueueWalks<string>();
    const keyOf = ({ timeMs, name }: { timeMs: number; name: string }) => `${timeMs} ${name}`;
    return (): string => {
      const { fromMs = 0, after = '' } = walks.from(0);
      queue.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
      const isAhead = (one: { timeMs: number; name: string }) =>
        after === '' ? one.timeMs >= fromMs : keyOf(one) > after;
      const page = queue.filter(isAhead).slice(0, 2);
      const left = page.filter(({ name }) => busy.includes(name));
      for (const one of page) if (!left.includes(one)) queue.splice(queue.indexOf(one), 1);
      const last = page.at(-1);
      const next = page.length === 2 && last !== undefined ? keyOf(last) : undefined;
      walks.passed(0, { next, lastMs: last?.timeMs, leftFromMs: left[0]?.timeMs });
      return page.map(({ name }) => name).join('');
    };
  }

  test('an item of the last ms is found also where its key comes before those that were seen', () => {
    const queue = [item(1, 'b'), item(2, 'm')];
    const look = createLooks(queue, []);
    expect(look()).toBe('bm');
    queue.push(item(2, 'a'), item(3, 'c'));
    expect(look()).toBe('ac');
    expect(look()).toBe('');
  });

  test('what is left over holds up nothing behind it, and the next walk begins with it', () => {
    const look = createLooks([item(1, 'a'), item(1, 'b'), item(1, 'c'), item(2, 'd')], ['a', 'b']);
    expect([look(), look(), look(), look()]).toEqual(['ab', 'cd', '', 'ab']);
  });
});
