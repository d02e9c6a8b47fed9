// The rules of hanging-disks.ts, one by one; their effect on writes is tested in write-hangs.test.ts.
import { expect, test } from 'vitest';
import { placedDisks } from '../../../tests/support/disks/placed-disks.ts';
import { settleAll } from '../../../tests/support/disks/replicated-world.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { must } from '../../base/assert.ts';
import { LIMITS } from '../../types/limits.ts';
import { HangingDisks, isLate } from './hanging-disks.ts';

const { copyLateMs, copySilentMaxMs, diskSuspectMs, copyLookMs } = LIMITS;

function open({ disksPerNode = 1 } = {}) {
  const clock = createManualClock(0);
  const hanging = new HangingDisks(clock);
  const [disk, other] = placedDisks({ zones: 1, nodesPerZone: 2, disksPerNode });
  const run = async (ms: number) => {
    for (let passedMs = 0; passedMs < ms; passedMs += copyLookMs) {
      clock.advance(copyLookMs);
      await settleAll();
    }
  };
  const state = () => (hanging.isHanging(a) ? 'hangs' : hanging.isSpared(a) ? 'tried' : 'well');
  const a = must(disk, 'a disk');
  return { hanging, run, state, a, b: must(other, 'another') };
}

test('a disk that answers nothing hangs, rests, and is tried by one write, which decides', async () => {
  const { hanging, run, state, a } = open();
  const attempt = hanging.asked(a);
  await run(copySilentMaxMs - copyLookMs);
  expect([state(), isLate(attempt), attempt.isHung]).toEqual(['well', true, false]);
  await run(copyLookMs);
  expect([state(), attempt.isHung]).toEqual(['hangs', true]);
  // Copies that are still under way do not prolong the rest.
  await run(diskSuspectMs);
  expect(state()).toBe('well');
  const trial = hanging.asked(a);
  const beside = hanging.asked(a);
  expect(state()).toBe('tried');
  await run(copyLateMs);
  expect([state(), trial.isHung, beside.isHung]).toEqual(['hangs', false, true]);
  await run(copySilentMaxMs - copyLateMs - copyLookMs);
  expect(trial.isHung).toBe(false);
  await run(copyLookMs);
  expect(trial.isHung).toBe(true);
  await run(diskSuspectMs);
  const again = hanging.asked(a);
  await run(copyLateMs);
  hanging.ended(again, 'answered');
  expect(state()).toBe('well');
});

test.each([
  ['answered', 'well'],
  ['busy', 'hangs'],
  ['failed', 'well'],
  ['dropped', 'hangs'],
] as const)('while it rests an earlier copy ends as %s: it is %s', async (how, expected) => {
  const { hanging, run, state, a } = open();
  hanging.asked(a);
  const late = hanging.asked(a);
  await run(copySilentMaxMs);
  const earlier = how === 'failed' ? { ...late, lookCount: 1 } : late;
  hanging.ended(earlier, how);
  expect(state()).toBe(expected);
});

test('a disk hangs when a late request fails; a failure of an older request on a hanging disk changes nothing', async () => {
  const { hanging, run, state, a } = open();
  const [first, second] = [hanging.asked(a), hanging.asked(a)];
  await run(copyLateMs);
  hanging.ended(first, 'failed');
  expect(state()).toBe('hangs');
  await run(diskSuspectMs - copyLookMs);
  hanging.ended(second, 'failed');
  await run(copyLookMs);
  expect(state()).toBe('well');
  // A request that fails at once delays nobody.
  hanging.ended(hanging.asked(a), 'failed');
  expect([state(), hanging.isSpared(a)]).toEqual(['well', false]);
});

test('a trial without an outcome leaves the trial to the next write', async () => {
  const { hanging, run, state, a } = open();
  const first = hanging.asked(a);
  await run(copySilentMaxMs + diskSuspectMs);
  hanging.ended(first, 'dropped');
  hanging.ended(hanging.asked(a), 'dropped');
  expect(state()).toBe('well');
  hanging.asked(a);
  expect(state()).toBe('tried');
});

test('a node hangs when two of its disks are late and none has answered', async () => {
  const { hanging, run, state, a, b } = open({ disksPerNode: 2 });
  expect(a.nodeId).toBe(b.nodeId);
  const states = () => [state(), hanging.isHanging(b)];
  hanging.asked(a);
  await run(copySilentMaxMs - copyLateMs - copyLookMs);
  // The request is not yet late.
  const soon = hanging.asked(b);
  await run(copyLateMs - copyLookMs);
  hanging.ended(soon, 'answered');
  await run(2 * copyLookMs);
  expect(states()).toEqual(['hangs', false]);
  await run(copySilentMaxMs);
  expect(states()).toEqual(['well', false]);
  hanging.asked(a);
  await run(copyLateMs);
  const late = hanging.asked(b);
  await run(copySilentMaxMs - copyLateMs);
  expect(states()).toEqual(['hangs', true]);
  hanging.ended(late, 'answered');
  expect(states()).toEqual(['hangs', false]);
});

test('a hang is reported without a gap while writes find it again, and ends when no writes come', async () => {
  const { hanging, run, a } = open();
  for (let count = 0; count < 4; count++) {
    hanging.asked(a);
    for (let ms = 0; ms < copySilentMaxMs; ms += copyLookMs) {
      expect(hanging.hasHungLately(a)).toBe(count > 0);
      await run(copyLookMs);
    }
    expect(hanging.hasHungLately(a)).toBe(true);
    await run(diskSuspectMs + 5000);
  }
  await run(60_000);
  expect(hanging.hasHungLately(a)).toBe(false);
  hanging.ended(hanging.asked(a), 'answered');
  expect(hanging.hasHungLately(a)).toBe(false);
});

test('no looks are taken while no copy is under way', async () => {
  const { hanging, run, a } = open();
  let lookCount = 0;
  const stop = hanging.watch(() => lookCount++);
  await run(copyLateMs);
  const attempt = hanging.asked(a);
  await run(2 * copyLookMs);
  hanging.ended(attempt, 'answered');
  await run(copyLateMs);
  expect(lookCount).toBe(2);
  stop();
  hanging.asked(a);
  await run(copyLateMs);
  expect(lookCount).toBe(2);
});
