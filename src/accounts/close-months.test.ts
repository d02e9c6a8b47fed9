import { expect, test } from 'vitest';
import { billedCustomer, openBilledWorld } from '../../tests/support/billing/billed-world.ts';
import { dayOf } from '../types/months.ts';
import { createMonthCloser } from './close-months.ts';

const IDLE = { state: 'idle', idleMs: 300_000 };

test('months are closed where the system shard is led, once their last day is counted and the clock is trusted', async () => {
  const billed = await openBilledWorld();
  billed.customers.push(billedCustomer(11, { createdAtMs: Date.UTC(2026, 0, 15) }));
  await billed.invoices.setPriceList({ from: '2025-01-01', currency: 'USD', prices: { activeStorage: '6' } });
  let led: number[] = [];
  let isJumped = true;
  const logged: unknown[] = [];
  const log = { info: (fields: object) => void logged.push(fields) };
  const timeJumps = { mayRemoveByAge: () => !isJumped };
  const worker = createMonthCloser({ invoices: billed.invoices, shards: () => led, timeJumps, log });
  const { signal } = new AbortController();
  const work = () => worker.work(signal);

  billed.lastClosedDay = dayOf(Date.UTC(2026, 2, 30));
  expect(await work()).toEqual(IDLE);
  led = [0, 1];
  expect(await work()).toEqual(IDLE);
  isJumped = false;
  // Two months have gone by, the third is not over.
  expect([await work(), await work(), await work()]).toEqual([{ state: 'busy' }, { state: 'busy' }, IDLE]);
  billed.lastClosedDay++;
  expect([await work(), await work()]).toEqual([{ state: 'busy' }, IDLE]);
  expect(logged).toEqual([{ month: '2026-01' }, { month: '2026-02' }, { month: '2026-03' }]);
  const { items } = await billed.invoices.list({}, { page: 1, size: 10 });
  expect(items.map(({ total }) => total)).toEqual(['6.20', '5.60', '3.40']);
});
