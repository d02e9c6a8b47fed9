import { expect, test } from 'vitest';
import { asBuffer } from '../../base/bytes/bytes.ts';
import type { RowCursor, StateReader, TableRef } from '../../ports/state-machine.ts';
import { readInTurns } from './read-in-turns.ts';

const TABLE: TableRef = { id: 1, column: 'rows' };
const BOUNDS = { table: TABLE, gte: Buffer.of(0), lt: Buffer.of(9) };

/** What is done, in its order; reads give nothing. */
function openReader() {
  const done: string[] = [];
  const cursor: RowCursor = {
    seek: (key) => void done.push(`seek ${asBuffer(key).toString('hex')}`),
    next: async (count) => {
      done.push(`next ${count}`);
      return [];
    },
    close: () => void done.push('close'),
  };
  const state: StateReader = {
    rows: async (addresses: readonly unknown[]) => {
      done.push(`rows ${addresses.length}`);
      return [];
    },
    range: async ({ limit }: { limit: number }) => {
      done.push(`range ${limit}`);
      return [];
    },
    cursor: () => cursor,
    view: () => ({ ...state, close: () => void done.push('close') }),
  } as unknown as StateReader;
  const room = { isThere: true };
  const reader = readInTurns(state, {
    take: async () => void done.push('turn'),
    join: () => (room.isThere ? undefined : Promise.resolve(void done.push('join'))),
  });
  return { reader, done, room };
}

test('a look at a few rows waits for no turn', async () => {
  const { reader, done } = openReader();
  await reader.rows([{ table: TABLE, key: Buffer.of(1) }]);
  await reader.range({ ...BOUNDS, limit: 100 });
  expect(done).toEqual(['rows 1', 'range 100']);
});

test('where the turn of the loop has no room for more, a look at a few rows waits, too', async () => {
  const { reader, done, room } = openReader();
  room.isThere = false;
  await reader.rows([{ table: TABLE, key: Buffer.of(1) }]);
  expect(done).toEqual(['join', 'rows 1']);
});

test('a long scan takes a turn for each of its pages', async () => {
  const { reader, done } = openReader();
  const cursor = reader.cursor(BOUNDS);
  cursor.seek(Buffer.of(1));
  await cursor.next(250);
  await cursor.next(250);
  cursor.close();
  expect(done).toEqual(['seek 01', 'turn', 'next 250', 'turn', 'next 250', 'close']);
});

test('a view takes turns with what is read beside it', async () => {
  const { reader, done } = openReader();
  const view = reader.view();
  await view.range({ ...BOUNDS, limit: 200 });
  await reader.rows([{ table: TABLE, key: Buffer.of(1) }]);
  await view.range({ ...BOUNDS, limit: 200 });
  view.close();
  expect(done).toEqual(['range 200', 'rows 1', 'turn', 'range 200', 'close']);
});

test('rows that cost more than others fill a turn the sooner', async () => {
  const { reader, done } = openReader();
  const cursor = reader.cursor({ ...BOUNDS, rowCost: 63 });
  await cursor.next(4);
  await cursor.next(4);
  expect(done).toEqual(['turn', 'next 4', 'turn', 'next 4']);
});

test('many short reads take turns, too: of common prefixes, each skipped by a seek', async () => {
  const { reader, done } = openReader();
  const cursor = reader.cursor(BOUNDS);
  for (let at = 0; at < 100; at++) await cursor.next(8);
  expect(done.filter((event) => event === 'turn')).toHaveLength(4);
});
