// Warnings that repeat themselves are logged once, and then each minute.
import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { thinWarnings } from './thin-warnings.ts';

function openLog() {
  const lines: [object, string][] = [];
  const note = (fields: object, event: string) => void lines.push([fields, event]);
  const clock = createManualClock(0);
  return { lines, clock, log: thinWarnings({ debug: note, info: note, warn: note, error: note }, clock) };
}

test('a warning repeated each second is logged once, and then each minute with its number', () => {
  const { lines, clock, log } = openLog();
  for (let second = 0; second <= 120; second++) {
    log.warn({ err: new Error('etcd does not answer') }, 'coordinator-away');
    clock.advance(1000);
  }
  expect(lines.map(([fields]) => ('repeats' in fields ? fields.repeats : undefined))).toEqual([
    undefined,
    59,
    59,
  ]);
});

test('another reason, another event, and errors are passed on', () => {
  const { lines, log } = openLog();
  log.warn({ reason: 'a' }, 'one');
  log.warn({ reason: 'b' }, 'one');
  log.warn({ reason: 'a' }, 'two');
  for (let count = 0; count < 3; count++) log.error({ reason: 'a' }, 'three');
  expect(lines).toHaveLength(6);
});
