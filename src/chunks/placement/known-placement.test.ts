import { expect, test } from 'vitest';
import { placedDisks } from '../../../tests/support/disks/placed-disks.ts';
import { createKnownPlacement } from './known-placement.ts';
import { makePlacement } from './placement.ts';

const first = makePlacement({ disks: placedDisks({ zones: 3 }), copies: 3 });
const version = (number: number) => ({ ...first, version: number });

test('keeps the newest map, in whatever order maps arrive', () => {
  const known = createKnownPlacement(first);
  known.learn(version(3));
  known.learn(version(2));
  expect([known.current().version, known.announcedVersion()]).toEqual([3, 3]);
});

test('announces each version above all known maps once', () => {
  const heard: number[] = [];
  const known = createKnownPlacement(version(4), (number) => heard.push(number));
  for (const number of [3, 4, 6, 5, 6, 7]) known.noteVersion(number);
  expect(heard).toEqual([6, 7]);
  expect([known.current().version, known.announcedVersion()]).toEqual([4, 7]);
});

test('a wait for a version resolves with the first map that is new enough', async () => {
  const known = createKnownPlacement(first);
  const { signal } = new AbortController();
  const waits = [2, 3, 5].map((number) => known.atLeast(number, signal));
  known.learn(version(4));
  known.learn(version(5));
  expect((await Promise.all(waits)).map((map) => map.version)).toEqual([4, 4, 5]);
  expect((await known.atLeast(2, signal)).version).toBe(5);
});

test('an aborted wait rejects with ServiceUnavailable', async () => {
  const known = createKnownPlacement(first);
  const giveUp = new AbortController();
  const waiting = known.atLeast(2, giveUp.signal);
  giveUp.abort();
  await expect(waiting).rejects.toMatchObject({ code: 'ServiceUnavailable' });
  await expect(known.atLeast(2, giveUp.signal)).rejects.toMatchObject({ code: 'ServiceUnavailable' });
  known.learn(version(2));
  expect((await known.atLeast(2, giveUp.signal)).version).toBe(2);
});
