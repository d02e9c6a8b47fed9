import { expect, test } from 'vitest';
import { createShortTurns } from './short-turns.ts';

/** Turns of the loop are made by `turn`; each piece of work takes `tookMs`. */
function setUp({ tookMs = 1 } = {}) {
  let nowMs = 0;
  const seen: string[] = [];
  let paused: (() => void)[] = [];
  const join = createShortTurns({
    clock: { monotonicMs: () => nowMs },
    pause: () => new Promise((resolve) => paused.push(resolve)),
  });
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return {
    seen,
    pass: (ms: number) => {
      nowMs += ms;
    },
    ask(owner: string, name = owner) {
      const work = () => {
        nowMs += tookMs;
        seen.push(name);
      };
      const waits = join({ owner, work: 'some' });
      if (waits === undefined) work();
      else void waits.then(work);
    },
    async turn() {
      seen.push('turn');
      const all = paused;
      paused = [];
      for (const resolve of all) resolve();
      await settle();
    },
  };
}

test('work that is ready at once has some ms of a turn, and what is left as much of each of the next ones', async () => {
  const { ask, turn, seen } = setUp();
  for (let at = 0; at < 20; at++) ask('one', `${at}`);
  expect(seen).toHaveLength(4);
  for (let count = 0; count < 3; count++) await turn();
  const perTurn = seen.join(' ').split('turn');
  expect(perTurn.map((names) => names.trim().split(' ').filter(Boolean).length)).toEqual([4, 8, 8, 0]);
  expect(seen.filter((name) => name !== 'turn')).toEqual(Array.from({ length: 20 }, (_, at) => `${at}`));
});

test('work that takes longer than a turn may has one of its own, and owners take turns', async () => {
  const { ask, turn, seen } = setUp({ tookMs: 30 });
  ask('first');
  for (const name of ['a1', 'a2', 'a3']) ask('a', name);
  ask('b');
  for (let count = 0; count < 4; count++) await turn();
  expect(seen.join(' ')).toBe('first turn a1 turn b turn a2 turn a3');
});

test('work that comes now and then waits for nothing, however long it goes on', async () => {
  const { ask, turn, pass, seen } = setUp();
  for (let count = 0; count < 50; count++) {
    ask('one');
    pass(3);
    await turn();
  }
  expect(seen.filter((name) => name === 'one')).toHaveLength(50);
  expect(seen.lastIndexOf('one')).toBe(seen.length - 2);
});
