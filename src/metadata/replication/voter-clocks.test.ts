import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { VoterClocks } from './voter-clocks.ts';

const SETS = { voters: ['p', 'f', 'g'] };
const YEAR_MS = 365 * 24 * 60 * 60_000;

function open() {
  const clock = createManualClock(1_000_000);
  const voterClocks = new VoterClocks(clock);
  const hear = (replicaId: string, wallMs: number, askedMs = clock.monotonicMs()) =>
    voterClocks.noteClock(replicaId, { wallMs, askedMs });
  return { clock, voterClocks, hear, isBelieved: () => voterClocks.isOwnBelieved('p', SETS) };
}

test('ours is believed when one of two others agrees, also a while after it was heard', () => {
  const { clock, hear, isBelieved } = open();
  expect(isBelieved()).toBe(false);
  hear('f', clock.wallMs() + YEAR_MS);
  expect(isBelieved()).toBe(false);
  hear('g', clock.wallMs() + 9000);
  clock.advance(60_000);
  expect(isBelieved()).toBe(true);
});

test('ours is set ahead, to where another one was while ours was right: what that said counts no more (A11)', () => {
  const { clock, hear, isBelieved } = open();
  hear('f', clock.wallMs() + YEAR_MS);
  hear('g', clock.wallMs());
  expect(isBelieved()).toBe(true);
  clock.advance(1000);
  const askedBeforeMs = clock.monotonicMs();
  clock.advance(100);
  clock.shiftWall(YEAR_MS);
  expect(isBelieved()).toBe(false);
  // An answer on its way since before is of no more use.
  hear('f', clock.wallMs(), askedBeforeMs);
  expect(isBelieved()).toBe(false);
  hear('f', clock.wallMs() - YEAR_MS);
  hear('g', clock.wallMs() - YEAR_MS);
  expect(isBelieved()).toBe(false);
  clock.shiftWall(-YEAR_MS);
  expect(isBelieved()).toBe(false);
  clock.advance(300);
  hear('g', clock.wallMs());
  expect(isBelieved()).toBe(true);
});

test('a clock that runs apart slowly is not one that is set', () => {
  const { clock, hear, isBelieved } = open();
  hear('g', clock.wallMs());
  for (let step = 0; step < 100; step++) {
    clock.advance(1000);
    clock.shiftWall(50);
    expect(isBelieved()).toBe(true);
  }
});

test('who is no voter any more has no say', () => {
  const { clock, voterClocks, hear, isBelieved } = open();
  hear('g', clock.wallMs());
  voterClocks.forget('g');
  expect(isBelieved()).toBe(false);
});
