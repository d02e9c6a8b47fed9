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
    ask: (name: string, tookMs: number, sender: [string, string] = ['address', 'key'], isLight = false) =>
      starts.add({
        senderOf: () => sender,
        isLight,
        start() {
          seen.push(name);
          nowMs += tookMs;
        },
      }),
    sleep(ms: number) {
      nowMs += ms;
    },
    turn() {
      seen.push('turn');
      for (const then of turns.splice(0)) then();
    },
  };
}

test('work starts at the end of its turn, and the loop turns once for all of it', () => {
  const { ask, seen, turn, turns } = setUp();
  for (const name of ['a', 'b', 'c']) ask(name, 0.1);
  expect([seen.length, turns.length]).toEqual([0, 1]);
  turn();
  expect(seen).toEqual(['turn', 'a', 'b', 'c']);
  expect(turns).toEqual([]);
});

test('work that does not fit into a turn starts in the next ones', () => {
  const { ask, seen, turn, starts } = setUp();
  for (const name of ['first', 'a', 'b', 'c', 'd', 'e', 'f']) ask(name, name === 'first' ? 4 : 2);
  expect(starts.waitingCount).toBe(7);
  for (let count = 0; count < 4; count++) turn();
  expect(seen.join(' ')).toBe('turn first turn a b turn c d turn e f');
});

test('light work starts together: what it leaves behind runs when all of it has started', async () => {
  const seen: string[] = [];
  const starts = createStartTurns({ clock: { monotonicMs: () => 0 }, turnMs: 4 });
  const ask = (name: string, isLight: boolean) =>
    starts.add({
      senderOf: () => ['address', 'key'],
      isLight,
      async start() {
        seen.push(name);
        await undefined;
        seen.push(`${name} goes on`);
      },
    });
  for (const name of ['a', 'b', 'c']) ask(name, true);
  for (const name of ['d', 'e']) ask(name, false);
  await new Promise(setImmediate);
  expect(seen.join(', ')).toBe('a, b, c, a goes on, b goes on, c goes on, d, d goes on, e, e goes on');
});

test('no more starts together than a turn has room for, by what starts took of late', () => {
  const { ask, seen, turn } = setUp();
  const askLight = (name: string, tookMs: number) => ask(name, tookMs, undefined, true);
  askLight('slow', 2);
  turn();
  for (const name of ['a', 'b', 'c', 'd']) askLight(name, 2);
  turn();
  expect(seen.join(' ')).toBe('turn slow turn a b');
  turn();
  expect(seen.slice(-3)).toEqual(['turn', 'c', 'd']);
  // Once starts are quick again, more of them do.
  for (let count = 0; count < 40; count++) {
    askLight('quick', 0.01);
    turn();
  }
  const before = seen.length;
  for (let count = 0; count < 20; count++) askLight('crowd', 1);
  turn();
  expect(seen.length - before).toBe(17);
});

test('a start that takes longer than a turn has a turn of its own', () => {
  const { ask, seen, turn } = setUp();
  for (const name of ['a', 'b', 'c']) ask(name, 50);
  for (let count = 0; count < 3; count++) turn();
  expect(seen).toEqual(['turn', 'a', 'turn', 'b', 'turn', 'c']);
});

test('nothing starts before earlier waiting work', () => {
  const { ask, seen, turn } = setUp();
  ask('a', 5);
  ask('b', 1);
  turn();
  ask('c', 1, undefined, true);
  turn();
  expect(seen).toEqual(['turn', 'a', 'turn', 'b', 'c']);
});

test('two senders get equal time, and each keeps its order', () => {
  const { ask, seen, turn } = setUp();
  ask('first', 5);
  turn();
  for (const name of ['a1', 'a2', 'a3']) ask(name, 4, ['one', 'A']);
  for (const name of ['b1', 'b2', 'b3', 'b4']) ask(name, 1, ['other', 'B']);
  for (let count = 0; count < 7; count++) turn();
  expect(seen.filter((name) => name !== 'turn').join(' ')).toBe('first a1 b1 b2 b3 b4 a2 a3');
});

test('many addresses of one key, and many keys of one address, wait behind a single sender', () => {
  const { ask, seen, turn } = setUp();
  ask('first', 5);
  turn();
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
  turn();
  for (let at = 0; at < 10; at++) ask('crowd', 4, ['one', 'A']);
  turn();
  ask('own', 4, ['one', 'B']);
  turn();
  expect(seen.filter((name) => name !== 'turn')).toEqual(['first', 'crowd', 'own']);
});

test('used time is forgotten after a while', () => {
  const { ask, seen, turn, sleep } = setUp();
  ask('first', 5);
  turn();
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
  for (const name of ['a', 'b', 'c'])
    starts.add({
      senderOf: () => ['address', 'key'],
      isLight: false,
      start() {
        seen.push(name);
        nowMs += 1;
        void Promise.resolve().then(() => {
          nowMs += 2;
          seen.push(`${name} done`);
        });
      },
    });
  for (let count = 0; count < 2; count++) {
    await new Promise(setImmediate);
    seen.push('turn');
  }
  expect(seen.join(', ')).toBe('a, a done, b, b done, turn, c, c done, turn');
});

test('thousands of senders that wait are looked over once in a turn, and not at each start', () => {
  const { ask, seen, turn, starts } = setUp();
  ask('first', 4);
  turn();
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
  turn();
  for (let count = 0; count < 1000; count++) ask('many', 2, ['address', `key ${count}`]);
  turn();
  ask('one', 2, ['elsewhere', 'mine']);
  turn();
  expect(seen.slice(-2)).toEqual(['one', 'many']);
});
