// The world and its checkers, proved on the stand-in: a node that is right passes, every bug that is planted in it is
// found, and a seed gives the same steps each time.
import { expect, test } from 'vitest';
import { amountOf } from '../support/run/long-form.ts';
import { driverOf } from './drivers.ts';
import { metadataDriver } from './metadata-driver.ts';
import { registerDriver } from './register-driver.ts';
import { createStandIn, STAND_IN_BUGS, type StandInBug } from './stand-in.ts';
import { runSeed } from './world.ts';

const SEEDS_MAX = 80;
/** Of the node that is right; the product itself has a hundred (seeds.test.ts). */
const RIGHT_SEEDS = amountOf({ short: 4, long: 16 });

test('the same seed gives the same steps, another one gives others', async () => {
  const run = (seed: number) => runSeed({ seed, kind: createStandIn(), driver: registerDriver });
  const [first, again, other] = [await run(11), await run(11), await run(12)];
  expect(again.traceHash).toBe(first.traceHash);
  expect(again).toEqual(first);
  expect(other.traceHash).not.toBe(first.traceHash);
});

test('a seed has a complete history', async () => {
  const report = await runSeed({ seed: 21, kind: createStandIn(), driver: metadataDriver });
  expect(report.operationCount).toBeGreaterThanOrEqual(300);
  expect(report.faults.length).toBeGreaterThanOrEqual(3);
  expect(report.unknownCount).toBeLessThan(report.operationCount / 4);
});

test('correct behaviour passes', async () => {
  for (let seed = 100; seed < 100 + RIGHT_SEEDS; seed++)
    await runSeed({ seed, kind: createStandIn(), driver: driverOf(seed) });
});

/** By which invariants each bug shows. */
const FOUND_BY: Record<StandInBug, RegExp> = {
  'log not synced': /I(1|2|4|6|7|16): /,
  // A creator that asks again is told of its own object.
  'no request ids': /^I6: |^I7: /,
  // Or the two get in one another's way, and one is told nothing.
  'no locks': /^I7: |I5: writes row|^I15: /,
  'stale reads': /^I7: /,
  'lists in two reads': /^I7: /,
  'backup loses a row': /I5: applies an entry without/,
  'no tickets': /^I6: .*503|^I7: /,
  'backups answer': /^I3: /,
};

test.each(STAND_IN_BUGS)('is found: %s', async (bug) => {
  const kind = createStandIn(bug);
  for (let seed = 1; seed <= SEEDS_MAX; seed++) {
    const failure = await runSeed({ seed, kind, driver: registerDriver }).then(
      () => undefined,
      (error: Error) => error,
    );
    if (failure === undefined) continue;
    expect(failure).toMatchObject({ name: 'SimulationFailure' });
    expect(failure.message).toMatch(FOUND_BY[bug]);
    return;
  }
  expect.fail(`not found in ${SEEDS_MAX} seeds`);
});
