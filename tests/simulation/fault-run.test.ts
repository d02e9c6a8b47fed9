// When planned faults begin: what must be alone does so while nothing else is wrong.
import { expect, test } from 'vitest';
import { Chance } from './chance.ts';
import { Counts } from './counts.ts';
import { FaultRun, type FaultRunParts } from './fault-run.ts';
import type { Losses } from './losses.ts';
import { Scheduler } from './scheduler.ts';

const DISTURBED_MS = 3000;

test('faults that must not overlap wait until no other is active', async () => {
  const scheduler = new Scheduler();
  const counts = new Counts();
  let alteredAtMs: number | undefined;
  const alter = () => {
    alteredAtMs = scheduler.nowMs;
    return true;
  };
  const losses = { isLevel: () => true, isWhole: () => true, note: () => undefined } as unknown as Losses;
  const run = new FaultRun({
    scheduler,
    counts,
    losses,
    chance: new Chance(1),
    untilMs: 60_000,
    world: { nodes: [{ disk: { alter } }], gateways: [] } as unknown as FaultRunParts['world'],
  });
  const hasEnded = run.disturb('a node stands still');
  run.schedule([{ name: 'altered row', atMs: 100, durationMs: 1 }]);
  await scheduler.run(() => false, DISTURBED_MS);
  expect(alteredAtMs).toBeUndefined();
  expect(run.mayStopNodes).toBe(true);
  hasEnded();
  await scheduler.run(() => false, 2 * DISTURBED_MS);
  expect(alteredAtMs).toBeGreaterThan(DISTURBED_MS - 1);
  expect(counts.of('fault: altered row')).toBe(1);
});
