import { expect, test } from 'vitest';
import { countedTelemetry } from '../../tests/support/counted-telemetry.ts';
import type { AppError } from '../model/errors.ts';
import { LIMITS } from '../model/limits.ts';
import type { ClockPort } from '../ports/clock.ts';
import { createBodyBudget } from './body-budget.ts';

const LIMIT = 32 * 1024 * 1024;

/** A clock that stands still until `pass`, which runs every sleeper that is due. */
function manualClock() {
  let nowMs = 0;
  let sleepers: { atMs: number; resolve(): void }[] = [];
  const clock: ClockPort = {
    wallMs: () => nowMs,
    monotonicMs: () => nowMs,
    sleep: (ms) => new Promise((resolve) => sleepers.push({ atMs: nowMs + ms, resolve })),
  };
  async function pass(ms: number): Promise<void> {
    const endMs = nowMs + ms;
    while (nowMs < endMs) {
      nowMs += 100;
      const due = sleepers.filter(({ atMs }) => atMs <= nowMs);
      sleepers = sleepers.filter(({ atMs }) => atMs > nowMs);
      for (const { resolve } of due) resolve();
      await new Promise(setImmediate);
    }
  }
  return { clock, pass };
}

function setUp() {
  const { clock, pass } = manualClock();
  const telemetry = { count() {}, observe() {}, gauge() {}, gaugeAll() {} };
  const budget = createBodyBudget({ limitBytes: LIMIT, clock, telemetry });
  const evicted: string[] = [];
  const open = (name: string) =>
    budget.open({
      needBytes: LIMIT / 8,
      onEvicted: (error: AppError) => evicted.push(`${name} ${error.code}`),
    });
  return { budget, open, evicted, pass };
}

test('what bodies hold is told from the start', async () => {
  const { telemetry, linesOf } = countedTelemetry();
  const budget = createBodyBudget({ limitBytes: LIMIT, clock: manualClock().clock, telemetry });
  expect(await linesOf('holdfast_body_buffer_bytes')).toEqual(['0']);
  budget.open({ needBytes: 1, onEvicted() {} }).hold(5);
  expect(await linesOf('holdfast_body_buffer_bytes')).toEqual(['5']);
});

test('bodies take what there is room for, without waiting', () => {
  const { budget, open } = setUp();
  const lease = open('a');
  expect(lease.admit()).toBeUndefined();
  lease.hold(LIMIT / 4);
  expect(lease.hasRoom()).toBe(true);
  lease.hold(LIMIT / 4);
  expect(lease.hasRoom()).toBe(false);
  expect(lease.admit()).toBeUndefined();
  lease.release(LIMIT / 4);
  expect(budget.usedBytes()).toBe(LIMIT / 4);
  lease.close();
  lease.close();
  lease.hold(5);
  expect(budget.usedBytes()).toBe(0);
});

test('beyond the limit they wait, and are let in one after the other', async () => {
  const { budget, open } = setUp();
  const holder = open('holder');
  holder.hold(LIMIT);
  const order: string[] = [];
  const waiting = Array.from({ length: 20 }, async (_, at) => {
    const lease = open(String(at));
    await lease.admit();
    order.push(String(at));
    return lease;
  });
  await new Promise(setImmediate);
  expect(order).toEqual([]);
  holder.release(2 * LIMITS.chunkBytesMin);
  await new Promise(setImmediate);
  expect(order).toEqual(['0', '1']);
  expect(budget.usedBytes()).toBe(LIMIT);
  const first = await Promise.race(waiting);
  first.hold(10);
  first.release(10);
  await new Promise(setImmediate);
  expect(order).toHaveLength(3);
  holder.close();
  await new Promise(setImmediate);
  expect(order).toHaveLength(20);
});

test('who waits too long is refused, and who came later waits on', async () => {
  const { open, pass, evicted } = setUp();
  const holder = open('holder');
  holder.hold(LIMIT);
  holder.idle();
  const first = open('first')
    .admit()
    ?.catch((error: AppError) => error.code);
  await pass(LIMITS.bodyBufferWaitMaxMs - 1000);
  const second = open('second').admit();
  await pass(2000);
  expect(await first).toBe('SlowDown');
  holder.release(LIMIT);
  await second;
  expect(evicted[0]).toBe('holder SlowDown');
});

test('a body whose client stands still or trickles gives way, but only when others wait', async () => {
  const { open, pass, evicted } = setUp();
  const trickling = open('trickling');
  trickling.hold(LIMIT / 2);
  const onTheWay = open('on the way to the disk');
  onTheWay.hold(LIMIT / 2 - 100);
  await pass(LIMITS.bodyStalledMs);
  trickling.hold(100);
  trickling.idle();
  await pass(LIMITS.bodyStalledMs);
  expect(evicted).toEqual([]);
  const admitted = open('new').admit();
  await pass(1000);
  expect(new Set(evicted)).toEqual(new Set(['trickling SlowDown']));
  trickling.close();
  await admitted;
});

test('as many give way as others wait, so that a crowd of stalled clients keeps nobody out', async () => {
  const { open, pass, evicted } = setUp();
  const share = LIMIT / 16;
  for (let count = 0; count < 16; count++) {
    const stalled = open('stalled');
    stalled.hold(share);
    stalled.idle();
  }
  await pass(LIMITS.bodyStalledMs);
  const waiting = Array.from({ length: 5 }, (_, at) => open(String(at)).admit());
  await pass(600);
  expect(evicted).toHaveLength(waiting.length);
});

test('the time that a body waited for room does not count as its client’s', async () => {
  const { open, pass, evicted } = setUp();
  const holder = open('holder');
  holder.hold(LIMIT);
  const late = open('let in late');
  const admitted = late.admit();
  await pass(LIMITS.bodyStalledMs + 1000);
  holder.release(LIMITS.chunkBytesMin);
  await admitted;
  late.hold(LIMITS.chunkBytesMin);
  late.idle();
  open('next').admit();
  await pass(1000);
  expect(evicted).toEqual([]);
});

test('a body that gives memory back, or has its client’s answer, stays', async () => {
  const { open, pass, evicted } = setUp();
  const slow = open('slow');
  slow.hold(LIMIT);
  slow.idle();
  const waiting = open('new').admit();
  for (let count = 0; count < 5; count++) {
    await pass(LIMITS.bodyStalledMs / 2);
    slow.hold(1);
    slow.release(1);
  }
  slow.busy();
  await pass(LIMITS.bodyBufferWaitMaxMs - 3 * LIMITS.bodyStalledMs + 1000);
  expect(evicted).toEqual([]);
  slow.close();
  await waiting?.catch(() => {});
});

test('closing a lease ends its waiting', async () => {
  const { open } = setUp();
  open('holder').hold(LIMIT);
  const lease = open('waiter');
  const refused = lease.admit()?.catch((error: AppError) => error.code);
  lease.close();
  expect(await refused).toBe('SlowDown');
});

test('where all memory is held by bodies that wait for more, some are let through to the end of their chunk', async () => {
  const { budget, open } = setUp();
  const leases = Array.from({ length: 32 }, (_, at) => open(String(at)));
  for (const lease of leases) lease.hold(LIMIT / 32);
  const letIn: number[] = [];
  leases.forEach((lease, at) => {
    lease.admit()?.then(() => letIn.push(at));
  });
  await new Promise(setImmediate);
  expect(letIn).toEqual([0]);
  // To its end, without waiting again.
  leases[0]?.hold(LIMIT / 16);
  expect(leases[0]?.admit()).toBeUndefined();
  leases[0]?.hold(LIMIT / 32);
  expect(budget.usedBytes()).toBe(LIMIT + LIMIT / 8 - LIMIT / 32);
  const again = leases[0]?.admit();
  expect(again).toBeDefined();
  await new Promise(setImmediate);
  expect(letIn).toEqual([0, 1]);
  // What it gives back is for all that wait, in their order.
  leases[0]?.release(LIMIT / 8);
  await new Promise(setImmediate);
  expect(letIn.slice(0, 3)).toEqual([0, 1, 2]);
  for (const lease of leases) lease.close();
  await again;
  expect(budget.usedBytes()).toBe(0);
});

test('behind too many that wait, a body that has not begun is refused at once; one that has waits on', async () => {
  const { open } = setUp();
  const begun = open('begun');
  expect(begun.admit()).toBeUndefined();
  open('holder').hold(LIMIT);
  const waiting = Array.from({ length: LIMITS.bodiesWaitingMax }, (_, at) => open(String(at)).admit());
  await expect(open('new').admit()).rejects.toMatchObject({ code: 'SlowDown' });
  const state = await Promise.race([begun.admit(), ...waiting, 'waits']);
  expect(state).toBe('waits');
});

test('bodies that have begun go before those that have not, of which there are so many at a time', async () => {
  const { budget, open, evicted, pass } = setUp();
  const begunMax = LIMIT / LIMITS.bodyShareBytesMin;
  const begun = Array.from({ length: begunMax }, (_, at) => open(String(at)));
  for (const lease of begun) expect(lease.admit()).toBeUndefined();
  const order: string[] = [];
  const wait = (name: string, lease = open(name)) => lease.admit()?.then(() => order.push(name));
  wait('new');
  // One too many of them, but memory there is.
  expect(begun[0]?.admit()).toBeUndefined();
  begun[1]?.hold(LIMIT);
  wait('begun', begun[0]);
  begun[1]?.release(LIMIT);
  await new Promise(setImmediate);
  expect(order).toEqual(['begun']);
  begun[2]?.close();
  await new Promise(setImmediate);
  expect(order).toEqual(['begun', 'new']);
  // Who only announced a body gives way, too.
  begun[3]?.idle();
  wait('next');
  await pass(LIMITS.bodyStalledMs + 500);
  expect(new Set(evicted)).toEqual(new Set(['3 SlowDown']));
  expect(budget.usedBytes()).toBe(2 * LIMITS.chunkBytesMin);
});
