import { expect, test } from 'vitest';
import { createFairTurns } from './fair-turns.ts';
import { nextTurn } from './next-turn.ts';
import type { Steps } from './steps.ts';

const of = (owner: string, work = 'some') => ({ owner, work });

function* count(name: string, steps: number, seen: string[]): Steps<string> {
  for (let step = 1; step < steps; step++) {
    seen.push(name + step);
    yield;
  }
  seen.push(name + steps);
  return name;
}

test("owners take turns step by step; one owner's computations run one after the other", async () => {
  const seen: string[] = [];
  const turns = createFairTurns();
  const done = await Promise.all([
    turns.finish(of('one'), count('a', 3, seen)),
    turns.finish(of('one'), count('b', 2, seen)),
    turns.finish(of('one'), count('c', 2, seen)),
    turns.finish(of('other'), count('x', 2, seen)),
    turns.take(of('third')).then(() => seen.push('third')),
  ]);
  expect(done.slice(0, 4)).toEqual(['a', 'b', 'c', 'x']);
  expect(seen).toEqual(['a1', 'x1', 'third', 'a2', 'x2', 'a3', 'b1', 'b2', 'c1', 'c2']);
});

test('an owner with many kinds of work has no more turns than one with a single kind, and each kind has some', async () => {
  const seen: string[] = [];
  const turns = createFairTurns();
  await Promise.all([
    turns.finish(of('one', 'listings'), count('a', 3, seen)),
    turns.finish(of('one', 'documents'), count('b', 2, seen)),
    turns.finish(of('one', 'documents'), count('c', 1, seen)),
    turns.finish(of('one', 'decisions'), count('d', 1, seen)),
    turns.finish(of('other'), count('x', 4, seen)),
  ]);
  expect(seen).toEqual(['a1', 'x1', 'b1', 'x2', 'd1', 'x3', 'a2', 'x4', 'b2', 'a3', 'c1']);
});

test('between two steps the event loop turns once', async () => {
  const seen: string[] = [];
  let loops = 0;
  const turns = createFairTurns({
    async pause() {
      seen.push(`loop ${++loops}`);
    },
  });
  await turns.finish(of('one'), count('a', 3, seen));
  await turns.take(of('one'));
  expect(seen.slice(0, 5)).toEqual(['a1', 'loop 1', 'a2', 'loop 2', 'a3']);
});

test('a long step is followed by an equally long pause, a short one by none', async () => {
  let nowMs = 0;
  const restsMs: number[] = [];
  const clock = {
    monotonicMs: () => nowMs,
    async sleep(ms: number) {
      restsMs.push(ms);
    },
  };
  const turns = createFairTurns({ clock });
  for (const tookMs of [5, 100, 5000]) {
    await turns.take(of('one'));
    nowMs += tookMs;
  }
  await turns.take(of('one'));
  expect(restsMs).toEqual([100, 1000]);
});

test('a failed computation affects its own owner only', async () => {
  // biome-ignore lint/correctness/useYield: it fails before
  function* fail(): Steps<string> {
    throw new Error('of the first');
  }
  const turns = createFairTurns();
  const failed = turns.finish(of('one'), fail());
  const good = turns.finish(of('one'), count('a', 2, []));
  await expect(failed).rejects.toThrow('of the first');
  expect(await good).toBe('a');
});

test('of a kind of work two computations of an owner are begun at once, of all eight; owners that wait take turns', async () => {
  const turns = createFairTurns();
  const seen: string[] = [];
  const ends: (() => void)[] = [];
  const begin = (owner: string, work?: string) =>
    turns.begin(of(owner, work)).then((end) => {
      seen.push(owner);
      ends.push(end);
    });
  const begun = ['1', '1', '1', '1', '2', '3', '4', '5'].map((owner) => begin(owner));
  begun.push(begin('6'), begin('7'), begin('8'), begin('1', 'other'));
  await nextTurn();
  // Another kind has places of its own.
  expect(seen.toSorted()).toEqual(['1', '1', '1', '2', '3', '4', '5', '6', '7']);
  while (ends.length > 0) {
    ends.shift()?.();
    await nextTurn();
  }
  await Promise.all(begun);
  expect(seen.slice(9)).toEqual(['8', '1', '1']);
});
