// Simulated time: clocks that drift and stand still, processes that pause and end, and steps that repeat exactly.
import { beforeEach, expect, test } from 'vitest';
import { Chance } from './chance.ts';
import { SimulatedHost, SimulatedProcess } from './clock.ts';
import { Scheduler } from './scheduler.ts';

let scheduler: Scheduler;
let host: SimulatedHost;
let process: SimulatedProcess;
const log: string[] = [];

function start(name = 'p'): SimulatedProcess {
  return new SimulatedProcess(name, { host, chance: new Chance(2) });
}
const runFor = (ms: number) => scheduler.run(() => false, scheduler.nowMs + ms);

beforeEach(() => {
  scheduler = new Scheduler();
  host = new SimulatedHost('h', { scheduler, chance: new Chance(1) });
  process = start();
  log.length = 0;
});

/** Says after each sleep how long it took, by the clock of the process and by true time. */
async function sleepAndTell(ms: number, signal?: AbortSignal): Promise<void> {
  const atMs = process.clock.monotonicMs();
  await process.clock.sleep(ms, signal);
  const tookMs = process.clock.monotonicMs() - atMs;
  log.push(`${tookMs.toFixed(0)} true ${Math.round(scheduler.nowMs / 100) * 100}`);
}

test('monotonic clocks drift by less than 5 %, each differently', async () => {
  const hosts = Array.from(
    { length: 20 },
    (_, i) => new SimulatedHost(`${i}`, { scheduler, chance: new Chance(i) }),
  );
  const before = hosts.map(({ monotonicMs }) => monotonicMs);
  await runFor(1000);
  const rates = hosts.map(({ monotonicMs }, i) => (monotonicMs - (before[i] ?? 0)) / 1000);
  expect(Math.min(...rates)).toBeGreaterThan(0.95);
  expect(Math.max(...rates)).toBeLessThan(1.05);
  expect(Math.max(...rates) - Math.min(...rates)).toBeGreaterThan(0.03);
});

test('a sleeper never wakes early by its own clock', async () => {
  const sleeps = Array.from({ length: 50 }, async (_, i) => {
    const untilMs = process.clock.monotonicMs() + i * 7.3;
    await process.clock.sleep(i * 7.3);
    expect(process.clock.monotonicMs()).toBeGreaterThanOrEqual(untilMs);
    return true;
  });
  await runFor(1000);
  expect(await Promise.all(sleeps)).toHaveLength(50);
});

test('an aborted sleep ends at once', async () => {
  const giveUp = new AbortController();
  sleepAndTell(5000, giveUp.signal);
  scheduler.after(200, { name: 'abort', run: () => giveUp.abort() });
  await runFor(1000);
  expect(log).toEqual([expect.stringContaining('true 200')]);
});

test('a paused process does nothing, and then everything in order', async () => {
  sleepAndTell(100);
  sleepAndTell(200);
  process.schedule(150, 'says', () => log.push('said'));
  process.stop();
  await runFor(1000);
  expect(log).toEqual([]);
  process.continue();
  await runFor(1);
  expect(log.map((line) => line.replace(/^\d+ /, ''))).toEqual(['true 1000', 'said', 'true 1000']);
});

test('while a host is suspended its monotonic clock stands still, and sleepers sleep the rest afterwards', async () => {
  sleepAndTell(1000);
  await runFor(400);
  const [monotonicMs, wallMs] = [process.clock.monotonicMs(), process.clock.wallMs()];
  host.suspend();
  await runFor(60_000);
  host.wake();
  expect(process.clock.monotonicMs()).toBe(monotonicMs);
  expect(process.clock.wallMs() - wallMs).toBe(60_000);
  await runFor(500);
  expect(log).toEqual([]);
  await runFor(200);
  expect(log).toEqual([expect.stringMatching(/^1000 true 61[01]00$/)]);
});

test('a wall clock steps without effect on the monotonic one', async () => {
  const [monotonicMs, wallMs] = [process.clock.monotonicMs(), process.clock.wallMs()];
  host.stepWall(-10 * 365 * 86_400_000);
  expect(process.clock.wallMs()).toBe(wallMs - 10 * 365 * 86_400_000);
  expect(process.clock.monotonicMs()).toBe(monotonicMs);
});

test('after its end nothing of a process ever runs', async () => {
  const ended: string[] = [];
  process.onEnd(() => ended.push('told'));
  const program = async () => {
    for (;;) {
      await process.later(10, 'works', () => 0);
      log.push('worked');
    }
  };
  program();
  await runFor(35);
  expect(log).toHaveLength(3);
  process.kill();
  process.kill();
  expect(ended).toEqual(['told']);
  const pending = process.clock.sleep(1).then(() => log.push('woke'));
  await runFor(1000);
  expect(log).toHaveLength(3);
  expect(await Promise.race([pending, 'still pending'])).toBe('still pending');
});

test('events held for a paused process are dropped with it', async () => {
  process.schedule(10, 'says', () => log.push('said'));
  process.stop();
  await runFor(20);
  process.kill();
  process.continue();
  await runFor(20);
  expect(log).toEqual([]);
});

test('a step ends when everything is idle, and a failure ends the run with it', async () => {
  let depth = 0;
  const deep = async (): Promise<void> => {
    if (++depth < 1000) await Promise.resolve().then(deep);
  };
  const seen: number[] = [];
  scheduler.after(1, { name: 'deep', run: () => void deep() });
  scheduler.afterEachStep(() => seen.push(depth));
  scheduler.after(2, {
    name: 'fails',
    run: () => {
      throw new Error('broken');
    },
  });
  scheduler.after(3, { name: 'never', run: () => log.push('never') });
  await expect(runFor(10)).rejects.toThrow('broken');
  expect(seen).toEqual([1000]);
  expect(log).toEqual([]);
});

test('chance: the same seed draws the same, and forks do not disturb each other', () => {
  const draws = (seed: number, between: boolean) => {
    const chance = new Chance(seed);
    const fork = chance.fork('one');
    if (between) chance.fork('two').bytes(100);
    return [fork.float(), chance.int(0, 1e6), chance.pick(['a', 'b', 'c']), [...fork.bytes(4)]];
  };
  expect(draws(7, true)).toEqual(draws(7, false));
  expect(draws(8, false)).not.toEqual(draws(7, false));
  const chance = new Chance(3);
  const sum = Array.from({ length: 10_000 }, () => chance.float()).reduce((a, b) => a + b, 0);
  expect(sum / 10_000).toBeCloseTo(0.5, 1);
});
