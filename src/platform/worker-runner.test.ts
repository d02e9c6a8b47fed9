import { once } from 'node:events';
import { expect, test } from 'vitest';
import type { Worker } from '../ports/worker.ts';
import { systemClock } from './system-clock.ts';
import { createWorkerRunner } from './worker-runner.ts';

/** A clock that notes each wait and ends it when told. */
function handClock() {
  const waits: { ms: number; end: () => void }[] = [];
  const arrivals: (() => void)[] = [];
  return {
    clock: {
      ...systemClock,
      sleep: (ms: number, signal?: AbortSignal) =>
        new Promise<void>((end) => {
          signal?.addEventListener('abort', () => end());
          waits.push({ ms, end });
          arrivals.shift()?.();
        }),
    },
    async nextWait(): Promise<{ ms: number; end: () => void }> {
      if (waits.length === 0) await new Promise<void>((resolve) => arrivals.push(resolve));
      return waits.shift() ?? { ms: -1, end: () => {} };
    },
  };
}

function quiet() {
  const errors: object[] = [];
  const nothing = () => {};
  return {
    errors,
    log: {
      debug: nothing,
      info: nothing,
      warn: nothing,
      error: (fields: object) => void errors.push(fields),
    },
    telemetry: { count: nothing, observe: nothing, gauge: nothing, gaugeAll: nothing },
  };
}

test('a busy worker is called again soon, an idle one after its wait or when woken', async () => {
  const hand = handClock();
  let units = 0;
  const worker: Worker = {
    name: 'count',
    work: async () => (++units % 2 === 1 ? { state: 'busy' } : { state: 'idle', idleMs: 5000 }),
  };
  const runner = createWorkerRunner({ workers: [worker], ...hand, ...quiet() });
  runner.start();
  const breath = await hand.nextWait();
  expect([units, breath.ms]).toEqual([1, 1]);
  breath.end();
  expect([(await hand.nextWait()).ms, units]).toEqual([5000, 2]);
  runner.wake('count');
  runner.wake('no such job');
  await hand.nextWait();
  expect(units).toBe(3);
  await runner.stop();
});

test('failures are logged and back off up to a minute; a success resets the pause', async () => {
  const hand = handClock();
  const spy = quiet();
  let isBroken = true;
  const worker: Worker = {
    name: 'break',
    work: async () => {
      if (isBroken) throw new Error('no luck');
      return { state: 'idle', idleMs: 7 };
    },
  };
  const runner = createWorkerRunner({ workers: [worker], ...hand, ...spy });
  runner.start();
  const pausesMs: number[] = [];
  for (let round = 0; round < 8; round++) {
    const wait = await hand.nextWait();
    pausesMs.push(wait.ms);
    if (round === 7) isBroken = false;
    wait.end();
  }
  expect(pausesMs).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
  expect(spy.errors).toHaveLength(8);
  expect(spy.errors[0]).toMatchObject({ worker: 'break', retryInMs: 1000 });
  const idle = await hand.nextWait();
  expect(idle.ms).toBe(7);
  isBroken = true;
  idle.end();
  expect((await hand.nextWait()).ms).toBe(1000);
  await runner.stop();
});

test('failed parts are logged, and the worker continues as usual', async () => {
  const hand = handClock();
  const spy = quiet();
  const worker: Worker = {
    name: 'part',
    work: async () => ({ state: 'busy', failures: [new Error('one')] }),
  };
  const runner = createWorkerRunner({ workers: [worker], ...hand, ...spy });
  runner.start();
  for (let round = 1; round <= 3; round++) {
    const { ms, end } = await hand.nextWait();
    expect([ms, spy.errors.length]).toEqual([1, round]);
    end();
  }
  expect(spy.errors[0]).toMatchObject({ worker: 'part', retryInMs: 1 });
  await runner.stop();
});

test('stop ends waits at once, aborts units and waits for them', async () => {
  const ended: string[] = [];
  const workers: Worker[] = [
    { name: 'idle', work: async () => ({ state: 'idle', idleMs: 1e9 }) },
    {
      name: 'at work',
      async work(signal) {
        await once(signal, 'abort');
        ended.push('at work');
        throw new Error('cut off');
      },
    },
    {
      name: 'in part',
      async work(signal) {
        await once(signal, 'abort');
        return { state: 'busy', failures: [new Error('cut off')] };
      },
    },
  ];
  const spy = quiet();
  const runner = createWorkerRunner({ workers, clock: systemClock, ...spy });
  runner.start();
  await Promise.all([runner.stop(), runner.stop()]);
  expect(ended).toEqual(['at work']);
  expect(spy.errors).toEqual([]);
});

test('several workers may have one name: all of them are woken, and all of them end', async () => {
  const hand = handClock();
  const units = [0, 0];
  const workers = units.map((_, at): Worker => {
    const work = async () => {
      units[at] = (units[at] ?? 0) + 1;
      return { state: 'idle', idleMs: 5000 } as const;
    };
    return { name: 'scrub', work };
  });
  const runner = createWorkerRunner({ workers, ...hand, ...quiet() });
  runner.start();
  for (let wait = 0; wait < 2; wait++) await hand.nextWait();
  runner.wake('scrub');
  for (let wait = 0; wait < 2; wait++) await hand.nextWait();
  expect(units).toEqual([2, 2]);
  await runner.stop();
});
