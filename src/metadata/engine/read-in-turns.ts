// Queries that read many rows give up the thread between their reads: rows are decoded on it, and a scan whose rows lie
// in the store's cache would otherwise hold it to its end. What reads a few rows waits only where hundreds of such are ready in
// one turn of the loop.
import type { StateReader } from '../../ports/state-machine.ts';

/** Rows that are read and decoded in one turn; they take 1 to 3 ms. */
const TURN_ROWS = 250;
/** A read costs as much as so many rows, however few it gives. */
const READ_ROWS = 4;

/** Waits before a read of so many rows with which the query has taken its share. */
type MayRead = (count: number) => Promise<void> | undefined;

/** Of one query. */
interface QueryTurns {
  /** Awaited before a read with which the query has taken its share. */
  take(): Promise<void>;
  /** Likewise before any other one, where this turn of the loop has no room for more. */
  join(): Promise<void> | undefined;
}

/** `state` for one query. */
export function readInTurns(state: StateReader, turns: QueryTurns): StateReader {
  let rows = 0;
  const mayRead: MayRead = (count) => {
    rows += READ_ROWS + count;
    if (rows < TURN_ROWS) return turns.join();
    rows = 0;
    return turns.take();
  };
  return {
    ...state,
    ...readsInTurns(state, mayRead),
    view(from) {
      const view = state.view(from);
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
      const turn = mayRead(addresses.length);
      if (turn !== undefined) await turn;
      return state.rows(addresses);
    },
    async range(range) {
      const turn = mayRead(range.limit);
      if (turn !== undefined) await turn;
      return state.range(range);
    },
    cursor(range) {
      const cursor = state.cursor(range);
      const { rowCost = 1 } = range;
      return {
        seek: (key) => cursor.seek(key),
        close: () => cursor.close(),
        async next(count) {
          const turn = mayRead(count * rowCost);
          if (turn !== undefined) await turn;
          return cursor.next(count);
        },
      };
    },
  };
}
