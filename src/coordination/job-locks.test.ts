// Job locks with lost messages, ended leases and removed places. The contract is in tests/contract/job-locks.test.ts.
import { expect, test } from 'vitest';
import {
  LEASE_MS,
  outcomeOf,
  pass,
  STEP_MS,
  startCoordinatorWorld,
} from '../../tests/support/coordination/coordinator-world.ts';
import { LIMITS } from '../types/limits.ts';

test('a holder that is cut off notices before the next one gets the lock', async () => {
  const { clock, fates, connect, ending } = startCoordinatorWorld();
  const first = await connect('a').jobLocks.acquire('scrub', ending.signal);
  const next = outcomeOf(connect('b').jobLocks.acquire('scrub', ending.signal));
  await pass(clock, 3 * LEASE_MS);
  expect({ isLost: first.lost.aborted, next: next.value }).toEqual({ isLost: false, next: undefined });
  fates.push(({ by }) => (by === 'a' ? 'lost' : undefined));
  const cutAtMs = clock.monotonicMs();
  let lostAtMs = Number.POSITIVE_INFINITY;
  first.lost.addEventListener('abort', () => {
    lostAtMs = clock.monotonicMs();
  });
  while (next.value === undefined && clock.monotonicMs() < cutAtMs + 2 * LEASE_MS) await pass(clock, STEP_MS);
  expect(lostAtMs).toBeLessThan(clock.monotonicMs());
  expect(lostAtMs).toBeLessThanOrEqual(cutAtMs + LEASE_MS);
  expect(next.value?.token).toBeGreaterThan(first.token);
  ending.abort();
});

test('a lease counts from the sending of its renewal, not from the answer (L5)', async () => {
  const { clock, fates, connect, coordinator, ending } = startCoordinatorWorld();
  const lock = await connect('a').jobLocks.acquire('scrub', ending.signal);
  let lastSentMs = 0;
  let renewalCount = 0;
  // Renewals are answered slowly, and later not at all.
  fates.push(({ kind, of }) => {
    if (of !== 'keep') return undefined;
    if (renewalCount >= 2) return 'lost';
    if (kind === 'call') {
      lastSentMs = clock.monotonicMs();
      return 0;
    }
    renewalCount++;
    return LIMITS.coordinatorCallMaxMs - STEP_MS;
  });
  while (!lock.lost.aborted && clock.monotonicMs() < 10 * LEASE_MS) await pass(clock, STEP_MS);
  expect(renewalCount).toBe(2);
  expect(clock.monotonicMs()).toBeLessThan(lastSentMs + LEASE_MS);
  expect(coordinator.rows().size).toBe(1);
  ending.abort();
});

test.each([
  ['by hand', 'remove'],
  ['by setting the coordinator back', 'restore'],
])('a lock that was removed %s is lost', async (_name, how) => {
  const { clock, connect, coordinator, ending } = startCoordinatorWorld();
  const empty = coordinator.copy();
  const lock = await connect('a').jobLocks.acquire('scrub', ending.signal);
  await pass(clock, 0);
  const key = [...coordinator.rows().keys()].find((name) => name.startsWith('job/')) ?? '';
  if (how === 'remove') coordinator.remove(key);
  else coordinator.restore(empty);
  await pass(clock, LIMITS.coordinatorRetryMaxMs);
  expect(lock.lost.aborted).toBe(true);
  ending.abort();
});

test('a waiter whose place was removed queues again, and leaves nothing behind', async () => {
  const { clock, connect, coordinator, ending } = startCoordinatorWorld();
  const first = await connect('a').jobLocks.acquire('scrub', ending.signal);
  const waiting = outcomeOf(connect('b').jobLocks.acquire('scrub', ending.signal));
  await pass(clock, 0);
  const places = () => [...coordinator.rows().keys()].filter((name) => name.startsWith('job/'));
  expect(places()).toHaveLength(2);
  coordinator.remove(places().at(-1) ?? '');
  await pass(clock, 100);
  expect(places()).toHaveLength(2);
  await first.release();
  await pass(clock, 0);
  expect(waiting.value?.token).toBeGreaterThan(first.token);
  await waiting.value?.release();
  expect(places()).toEqual([]);
  ending.abort();
});

test('a place is used even if the answer to its creation was lost', async () => {
  const { clock, fates, connect, ending } = startCoordinatorWorld();
  let lostCount = 0;
  fates.push(({ kind, of }) => (kind === 'answer' && of === 'put' && lostCount++ === 0 ? 'lost' : undefined));
  const lock = outcomeOf(connect('a').jobLocks.acquire('scrub', ending.signal));
  await pass(clock, 2 * LIMITS.coordinatorCallMaxMs);
  expect(lostCount).toBe(2);
  expect(lock.value?.token).toBe(2);
  ending.abort();
});

test('a lock that cannot be released is free when its lease ends', async () => {
  const { clock, fates, connect, ending } = startCoordinatorWorld();
  const first = await connect('a').jobLocks.acquire('scrub', ending.signal);
  fates.push(({ by }) => (by === 'a' ? 'lost' : undefined));
  const released = outcomeOf(first.release().then(() => 'released'));
  const next = outcomeOf(connect('b').jobLocks.acquire('scrub', ending.signal));
  await pass(clock, LIMITS.coordinatorCallMaxMs);
  expect({ ...released, next: next.value }).toEqual({ value: 'released', next: undefined });
  await pass(clock, LEASE_MS);
  expect(next.value?.token).toBeGreaterThan(first.token);
  ending.abort();
});
