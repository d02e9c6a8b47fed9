import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { LIMITS } from '../../types/limits.ts';
import { createDiskHealth } from './disk-health.ts';

function openHealth() {
  const clock = createManualClock(0);
  const health = createDiskHealth(clock);
  const state = () => [health.isWell('d', 'read'), health.isWell('d', 'write')];
  return { clock, health, state };
}

test('a failed disk is left alone, then tried by one request whose outcome decides', () => {
  const { clock, health, state } = openHealth();
  expect(state()).toEqual([true, true]);
  health.failed('d');
  clock.advance(LIMITS.diskSuspectMs - 1);
  expect(state()).toEqual([false, false]);
  clock.advance(1);
  expect(state()).toEqual([true, true]);
  health.asked('d', 'write');
  expect(state()).toEqual([true, false]);
  health.answered('d', 'write');
  health.asked('d', 'write');
  expect(state()).toEqual([true, true]);
});

test('a full disk gets no writes for a while, and reads as before', () => {
  const { clock, health, state } = openHealth();
  health.isFull('d');
  expect(state()).toEqual([true, false]);
  health.answered('d', 'read');
  expect(state()).toEqual([true, false]);
  clock.advance(LIMITS.diskSuspectMs);
  expect(state()).toEqual([true, true]);
});

test('consecutive slow answers count, for reads and writes separately', () => {
  const { health, state } = openHealth();
  for (let count = 1; count < LIMITS.diskSlowAnswersMax; count++) health.wasSlow('d', 'read');
  health.answered('d', 'read');
  for (let count = 1; count < LIMITS.diskSlowAnswersMax; count++) health.wasSlow('d', 'read');
  health.asked('d', 'read');
  expect(state()).toEqual([true, true]);
  health.wasSlow('d', 'read');
  expect(state()).toEqual([false, true]);
});

test('a disk that cannot read one chunk is healthy, one that cannot read several is not', () => {
  const { clock, health, state } = openHealth();
  for (let count = 0; count < 10; count++) health.couldNotRead('d', 'a');
  expect(state()).toEqual([true, true]);
  health.couldNotRead('d', 'b');
  health.answered('d', 'read');
  health.couldNotRead('d', 'c');
  expect(state()).toEqual([true, true]);
  for (let count = 1; count < LIMITS.diskUnreadChunksMax; count++) health.couldNotRead('d', `e${count}`);
  expect(state()).toEqual([false, true]);
  // One request tries it, and its failure to read a chunk proves nothing about the disk.
  clock.advance(LIMITS.diskSuspectMs);
  health.asked('d', 'read');
  expect(state()).toEqual([false, true]);
  health.couldNotRead('d', 'a');
  expect(state()).toEqual([true, true]);
});

test('whether a disk takes writes is known for a while after its last write', () => {
  const { clock, health } = openHealth();
  expect(health.takesWrites('d')).toBe(false);
  for (const refuse of [() => health.isFull('d'), () => health.failed('d'), () => clock.advance(60_000)]) {
    health.answered('d', 'read');
    expect(health.takesWrites('d')).toBe(false);
    health.answered('d', 'write');
    clock.advance(5000);
    expect(health.takesWrites('d')).toBe(true);
    refuse();
    expect(health.takesWrites('d')).toBe(false);
  }
});
