import { expect, test } from 'vitest';
import { createReadTurns } from './read-turns.ts';

/** Turns that begin when they are told to. */
function open() {
  let next: (() => void) | undefined;
  const nextTurn = (then: () => void) => {
    next = then;
  };
  const turns = createReadTurns({ turnBytesMax: 4, readBytes: 1, pieceBytesMin: 1, nextTurn });
  const gone: string[] = [];
  const read = (tenant: string, sizeBytes = 1) => turns.mayGoOn([tenant], sizeBytes, () => gone.push(tenant));
  const turn = () => {
    const then = next;
    next = undefined;
    then?.();
    return gone.splice(0);
  };
  const enter = (tenant: string, sizeBytes: number) => turns.enter([tenant], sizeBytes);
  return {
    read,
    enter,
    wait: (tenant: string) => turns.wait([tenant]),
    turn,
    hasTurn: () => next !== undefined,
  };
}

test('one turn reads so much, and what is left goes on in the next', () => {
  const { read, turn, hasTurn } = open();
  expect([read('a'), read('a'), read('a'), read('a')]).toEqual([true, true, true, false]);
  expect(turn()).toEqual(['a']);
  expect(read('a')).toBe(true);
  expect(turn()).toEqual([]);
  expect(hasTurn()).toBe(false);
});

test('a crowd of one tenant goes on so many at a time, and another one does not wait behind it', () => {
  const { read, turn } = open();
  for (let at = 0; at < 13; at++) read('a');
  read('b');
  expect(turn()).toEqual(['a', 'b', 'a', 'a']);
  expect(turn()).toEqual(['a', 'a', 'a', 'a']);
});

test('small pieces are not free', () => {
  const { read } = open();
  expect([0, 0, 0, 0].map((sizeBytes) => read('a', sizeBytes))).toEqual([true, true, true, false]);
});

test('who has read more than a turn has is alone in its next one, and tenants take turns', () => {
  const { read, turn } = open();
  for (let at = 0; at < 3; at++) read('a', 4);
  for (let at = 0; at < 3; at++) read('b', 4);
  const turns = Array.from({ length: 6 }, turn);
  expect(turns).toEqual([['a'], ['b'], ['a'], ['b'], ['a'], ['b']]);
});

test('who waits for a turn has as much of it as all who read', async () => {
  const { read, wait, turn } = open();
  const done = Promise.withResolvers<void>();
  wait('a').then(done.resolve);
  for (let at = 0; at < 5; at++) read('b');
  expect(turn()).toEqual([]);
  await done.promise;
  expect(turn()).toEqual(['b', 'b']);
});

test('work that is ready in one turn begins in it as far as there is room, and else in later ones, in turns of tenants', async () => {
  const { enter, turn } = open();
  expect([enter('a', 2), enter('a', 2)]).toEqual([undefined, undefined]);
  const begun: string[] = [];
  for (const tenant of ['a', 'a', 'a', 'b']) void enter(tenant, 2)?.then(() => begun.push(tenant));
  const turns: string[][] = [];
  for (let count = 0; count < 3; count++) {
    turn();
    await Promise.resolve();
    turns.push(begun.splice(0));
  }
  expect(turns).toEqual([['a', 'b'], ['a', 'a'], []]);
  expect(enter('a', 2)).toBe(undefined);
});
