import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { createPatiences } from './patience.ts';

function setUp() {
  const clock = createManualClock(0);
  const patience = createPatiences(clock, { mostMs: 9000, leastMs: 1000 })();
  return {
    clock,
    patience,
    /** A question that is answered after so long. */
    ask(ms: number): number {
      const answered = patience.begin();
      clock.advance(ms);
      answered();
      return patience.leftMs();
    },
  };
}

test('waits share one bound, and each has the least of it', () => {
  const { ask } = setUp();
  expect(ask(4000)).toBe(5000);
  expect(ask(3000)).toBe(2000);
  expect(ask(8000)).toBe(1000);
});

test('quick answers, and its own client, take nothing of it, and give back what waits have taken', () => {
  const { ask, patience, clock } = setUp();
  expect(ask(500)).toBe(9000);
  expect(ask(4000)).toBe(5000);
  expect(ask(500)).toBe(5500);
  const arrived = patience.begin('client');
  clock.advance(60_000);
  arrived();
  expect(patience.leftMs()).toBe(9000);
});

test('a client that hears from it waits as long as there are answers, and one that is sent its answer as long as it reads', () => {
  const { ask, patience, clock } = setUp();
  patience.beginLong();
  for (let count = 0; count < 10; count++) expect(ask(7000)).toBe(9000);
  clock.advance(60_000);
  expect(ask(100)).toBe(9000);
  clock.advance(9000);
  expect(patience.leftMs()).toBe(1000);
  patience.waited(5000);
  expect(ask(100)).toBe(4000);
  patience.beginSending();
  expect(patience.leftMs()).toBe(9000);
});

test('what hangs is left when nothing of it is left, and its own outcome counts before', async () => {
  const { patience, clock } = setUp();
  const late = () => new Error('late');
  const hanging = patience.bound(new Promise(() => {}), late);
  await expect(patience.bound(Promise.resolve(1), late)).resolves.toBe(1);
  await expect(patience.bound(Promise.reject(new Error('its own')), late)).rejects.toThrow('its own');
  let isOver = false;
  hanging.catch(() => {
    isOver = true;
  });
  for (let ms = 0; ms < 9000; ms += 250, await new Promise(setImmediate)) {
    expect(isOver).toBe(false);
    clock.advance(250);
  }
  await expect(hanging).rejects.toThrow('late');
});
