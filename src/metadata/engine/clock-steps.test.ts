import { expect, test } from 'vitest';
import { openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import { ClockSteps, JUMP_MS } from './clock-steps.ts';

const DAY = 24 * 3600_000;

test('small steps add up to a jump, which counts as a whole', () => {
  const steps = new ClockSteps();
  expect(steps.add(6 * DAY)).toEqual({ kind: 'keep' });
  expect(steps.add(1000)).toEqual({ kind: 'small' });
  expect(steps.add(DAY)).toEqual({ kind: 'jump', jumpMs: 7 * DAY + 1000 });
  expect(steps.sumMs).toBe(0);
  expect(steps.add(JUMP_MS + 1)).toEqual({ kind: 'jump', jumpMs: JUMP_MS + 1 });
});

test('7 days of steps are forgotten in 28 days, and no more than there are', () => {
  const steps = new ClockSteps();
  steps.add(7 * DAY);
  steps.passed(4 * DAY);
  expect(steps.sumMs).toBe(6 * DAY);
  steps.passed(100 * DAY);
  expect(steps.sumMs).toBe(0);
});

test('what was kept goes on from there, less what has passed since', () => {
  const steps = new ClockSteps();
  steps.restore({ jumpMs: 0, stepsMs: 6 * DAY, timeMs: 10 * DAY }, 14 * DAY);
  expect(steps.sumMs).toBe(5 * DAY);
  expect(steps.add(2 * DAY + 1)).toEqual({ kind: 'jump', jumpMs: 7 * DAY + 1 });
});

test('a server whose clock is set 6 days ahead at each restart releases no more than 7 days', async () => {
  const first = await openMetadata();
  const { clock, kv } = first;
  let world = first;
  for (let restart = 1; restart <= 10; restart++) {
    await world.shards.close();
    clock.shiftWall(6 * DAY);
    world = await openMetadata({ clock, kv, seed: restart });
    const unacceptedMs = await world.shards.timeJumps.unacceptedMs();
    expect(restart * 6 * DAY - unacceptedMs).toBeLessThanOrEqual(JUMP_MS);
    expect(world.shards.timeJumps.mayRemoveByAge(0)).toBe(restart === 1);
  }
  const shownMs = await world.shards.timeJumps.unacceptedMs();
  expect(await world.shards.timeJumps.accept(shownMs - 1)).toEqual({ acceptedMs: 0, grownMs: shownMs });
  expect(await world.shards.timeJumps.accept(shownMs)).toEqual({ acceptedMs: shownMs, grownMs: 0 });
  expect(await world.shards.timeJumps.unacceptedMs()).toBe(0);
});
