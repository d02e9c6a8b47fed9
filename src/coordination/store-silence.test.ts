// How long the store has been silent, by its answers alone.
import { expect, test } from 'vitest';
import { createManualClock } from '../../tests/support/run/simulated.ts';
import type { CoordinationStore } from './store.ts';
import { measureSilence } from './store-silence.ts';

function setUp() {
  const clock = createManualClock(1e12);
  let isAway = false;
  let report: Parameters<CoordinationStore['watch']>[0]['onChange'] = () => {};
  const answer = async () => {
    if (isAway) throw new Error('no answer');
  };
  const away = (value: boolean) => {
    isAway = value;
  };
  const store: CoordinationStore = {
    get: () => answer().then(() => ({ row: undefined, revision: 1 })),
    list: () => answer().then(() => ({ rows: [], revision: 1 })),
    put: () => answer().then(() => ({ kind: 'lost' })),
    grantLease: () => answer().then(() => '7'),
    keepLease: () => answer().then(() => true),
    revokeLease: answer,
    async watch({ onChange }) {
      report = onChange;
    },
  };
  const change = { key: 'k', row: undefined, revision: 2 };
  return { clock, away, ...measureSilence(store, clock), reportChange: () => report(change), change };
}

test('an answer ends the silence, a failure does not', async () => {
  const { clock, away, store, silentMs } = setUp();
  const calls = [
    () => store.get('k'),
    () => store.list('k'),
    () => store.put({ key: 'k', value: 'v' }),
    () => store.grantLease(1000),
    () => store.keepLease('7'),
    () => store.revokeLease('7'),
  ];
  for (const call of calls) {
    clock.advance(5000);
    expect(silentMs()).toBe(5000);
    away(true);
    await expect(call()).rejects.toThrow('no answer');
    expect(silentMs()).toBe(5000);
    away(false);
    await call();
    expect(silentMs()).toBe(0);
  }
});

test('a change from a watch counts as an answer, and is passed on', async () => {
  const { clock, store, silentMs, reportChange, change } = setUp();
  const told: unknown[] = [];
  const { signal } = new AbortController();
  await store.watch({ prefix: 'k', fromRevision: 1, onChange: (one) => void told.push(one), signal });
  clock.advance(5000);
  expect(silentMs()).toBe(5000);
  reportChange();
  expect([silentMs(), told]).toEqual([0, [change]]);
});
