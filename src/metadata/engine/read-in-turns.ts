// Queries that read many rows give up the thread between their reads: rows are decoded on it, and a scan whose rows lie
// in the store's cache would otherwise hold it to its end. What reads a few rows waits for nobody.
import type { StateReader } from '../../ports/state-machine.ts';

/** Rows that are read and decoded in one turn; they take 1 to 3 ms. */
const TURN_ROWS = 250;
/** A read costs as much as so many rows, however few it gives. */
const READ_ROWS = 4;

/** Waits before a read of so many rows with which the query has taken its share. */
type MayRead = (count: number) => Promise<void> | undefined;

/** `state` for one query. `turn` is awaited before a read with which the query has taken its share. */
export function readInTurns(state: StateReader, turn: () => Promise<void>): StateReader {
  let rows = 0;
  const mayRead: MayRead = (count) => {
    rows += READ_ROWS + count;
    if (rows < TURN_ROWS) return undefined;
    rows = 0;
    return turn();
  };
  return {
    ...state,
    ...readsInTurns(state, mayRead),
    view() {
      const view = state.view();
      return { ...view, ...readsInTurns(view, mayRead), close: () => view.close() };
    },
  };
}

function readsInTurns(
  state: Pick<StateReader, 'rows' | 'range' | 'cursor'>,
  mayRead: MayRead,
): Pick<StateReader, 'rows' | 'range' | 'cursor'> {
  return {
    async rows(addresses) {
      await mayRead(addresses.length);
      return state.rows(addresses);
    },
    async range(range) {
      await mayRead(range.limit);
      return state.range(range);
    },
    cursor(range) {
      const cursor = state.cursor(range);
      const { rowCost = 1 } = range;
      return {
        seek: (key) => cursor.seek(key),
        close: () => cursor.close(),
        async next(count) {
          await mayRead(count * rowCost);
          return cursor.next(count);
        },
      };
    },
  };
}
