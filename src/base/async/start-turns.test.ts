import { expect, test } from 'vitest';
import { cpuMs } from '../../../tests/support/run/cpu-time.ts';
import { createStartTurns } from './start-turns.ts';

/** A loop that turns on request, and a clock on which each start takes its given time. */
function setUp() {
  let nowMs = 0;
  const turns: (() => void)[] = [];
  const seen: string[] = [];
  const starts = createStartTurns({
    clock: { monotonicMs: () => nowMs },
    turnMs: 4,
    nextTurn: (then) => void turns.push(then),
    settled: (then) => then(),
  });
  return {
    starts,
    seen,
    turns,
    ask: (name: string, tookMs: number, sender: [string, string] = ['address', 'key']) =>
      starts.start(
        () => sender,
        () => {
          seen.push(name);
          nowMs += tookMs;
        },
      ),
    sleep(ms: number) {
      nowMs += ms;
    },
    turn() {
      seen.push('turn');
      for (const then of turns.splice(0)) then();
    },
  };
}

test('while nothing waits, work starts within the call, and no turn is requested', () => {
  const { ask, seen, turns } = setUp();
  for (const name of ['a', 'b', 'c']) expect(ask(name, 0.1)).toBe(true);
  expect(seen).toEqual(['a', 'b', 'c']);
  expect(turns).toEqual([]);
});

test('work that does not fit into a turn starts in the next ones', () => {
  const { ask, seen, turn, starts } = setUp();
  const started = ['first', 'a', 'b', 'c', 'd', 'e', 'f'].map((name) => ask(name, name === 'first' ? 4 : 2));
  expect(started).toEqual([true, false, false, false, false, false, false]);
  expect(starts.waitingCount).toBe(6);
  for (let count = 0; count < 4; count++) turn();
  expect(seen.join(' ')).toBe('first turn a b turn c d turn e f turn');
  expect(ask('g', 0.1)).toBe(true);
});

test('a turn ends once starts have taken its time', () => {
  const { ask, seen, turn, turns } = setUp();
  for (let count = 0; count < 3; count++) expect(ask('short', 1)).toBe(true);
  expect(turns.length).toBe(0);
  expect(['last', 'watched', 'watched'].map((name) => ask(name, 1))).toEqual([true, true, true]);
  expect(turns.length).toBe(1);
  expect([ask('watched', 1), ask('waits', 1)]).toEqual([true, false]);
  turn();
  expect(seen.slice(-2)).toEqual(['turn', 'waits']);
});

test('a start that takes longer than a turn has a turn of its own', () => {
  const { ask, seen, turn } = setUp();
  for (const name of ['a', 'b', 'c']) ask(name, 50);
  turn();
  turn();
  expect(seen).toEqual(['a', 'turn', 'b', 'turn', 'c']);
});

test('nothing starts before earlier waiting work', () => {
  const { ask, seen, turn } = setUp();
  ask('a', 5);
  ask('b', 1);
  expect(ask('c', 1)).toBe(false);
  turn();
  expect(seen).toEqual(['a', 'turn', 'b', 'c']);
});

test('two senders get equal time, and each keeps its order', () => {
  const { ask, seen, turn } = setUp();
  ask('first', 5);
  for (const name of ['a1', 'a2', 'a3']) ask(name, 4, ['one', 'A']);
  for (const name of ['b1', 'b2', 'b3', 'b4']) ask(name, 1, ['other', 'B']);
  for (let count = 0; count < 7; count++) turn();
  expect(seen.filter((name) => name !== 'turn').join(' ')).toBe('first a1 b1 b2 b3 b4 a2 a3');
});

test('many addresses of one key, and many keys of one address, wait behind a single sender', () => {
  const { ask, seen, turn } = setUp();
  ask('first', 5);
  for (let at = 0; at < 10; at++) ask('key', 4, [`address ${at}`, 'A']);
  for (let at = 0; at < 10; at++) ask('address', 4, ['one', `key ${at}`]);
  for (let count = 0; count < 6; count++) turn();
  ask('alone', 4, ['other', 'B']);
  turn();
  expect(seen.at(-1)).toBe('alone');
  for (let count = 0; count < 4; count++) turn();
  const served = seen.filter((name) => name === 'key' || name === 'address');
  expect(served.filter((name) => name === 'key').length).toBe(served.length / 2);
});

test('a sender that shares its address with a crowd waits for one of them, by its key', () => {
  const { ask, seen, turn } = setUp();
  ask('first', 5);
  for (let at = 0; at < 10; at++) ask('crowd', 4, ['one', 'A']);
  turn();
  ask('own', 4, ['one', 'B']);
  turn();
  expect(seen.filter((name) => name !== 'turn')).toEqual(['first', 'crowd', 'own']);
});

test('used time is forgotten after a while', () => {
  const { ask, seen, turn, sleep } = setUp();
  ask('first', 5);
  for (let at = 0; at < 3; at++) ask('much', 100, ['one', 'A']);
  turn();
  turn();
  for (let second = 0; second < 20; second++) {
    sleep(1000);
    ask('little', 4, ['other', 'B']);
    turn();
  }
  turn();
  expect(seen.filter((name) => name === 'much').length).toBe(3);
});

test('one turn lasts from one round of the event loop to the next, with the work that starts leave behind', async () => {
  let nowMs = 0;
  const seen: string[] = [];
  const starts = createStartTurns({ clock: { monotonicMs: () => nowMs }, turnMs: 4 });
  const ask = (name: string) =>
    starts.start(
      () => ['address', 'key'],
      () => {
        seen.push(name);
        nowMs += 1;
        void Promise.resolve().then(() => {
          nowMs += 3;
          seen.push(`${name} done`);
        });
      },
    );
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i']) ask(name);
  expect(seen.join('')).toBe('abcdefg');
  const before = seen.length * 2;
  await new Promise(setImmediate);
  seen.push('turn');
  await new Promise(setImmediate);
  // Each has used up its turn when it is done.
  expect(seen.slice(before)).toEqual(['h', 'h done', 'turn', 'i', 'i done']);
});

test('thousands of senders that wait are looked over once in a turn, and not at each start', () => {
  const { ask, seen, turn, starts } = setUp();
  ask('first', 4);
  for (let count = 0; count < 8000; count++) ask('many', 0.1, ['address', `key ${count}`]);
  const beganMs = cpuMs();
  while (starts.waitingCount > 0) turn();
  const tookMs = cpuMs() - beganMs;
  expect(seen.filter((name) => name === 'many')).toHaveLength(8000);
  expect(tookMs).toBeLessThan(400);
});

test('who comes while thousands wait, and has had less, is next', () => {
  const { ask, seen, turn } = setUp();
  ask('first', 4);
  for (let count = 0; count < 1000; count++) ask('many', 2, ['address', `key ${count}`]);
  turn();
  ask('one', 2, ['elsewhere', 'mine']);
  turn();
  expect(seen.slice(-2)).toEqual(['one', 'many']);
});
