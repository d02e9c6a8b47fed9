// Commands that look at some rows, each too few for a turn of its own: hundreds may be ready in one turn of the event loop, as
// when those that wait for one key follow one another. What they weigh together is bounded.
import { nextTurn } from '../../base/async/next-turn.ts';

/** A command of so few rows is an ordinary one, and counts nothing. */
const ORDINARY_ROWS = 24;

/** Beyond ordinary commands, of all shards of this thread in this turn of the loop. */
let turnRows = 0;
let isWatching = false;

/** Counts a command of so many rows. False: it is to wait, for `rowsMax` and more have been looked at in this turn. */
export function fitsIntoTurn(rows: number, rowsMax: number): boolean {
  const extraRows = rows - ORDINARY_ROWS;
  if (extraRows <= 0) return true;
  if (turnRows >= rowsMax) return false;
  turnRows += extraRows;
  if (!isWatching) {
    isWatching = true;
    void nextTurn().then(() => {
      isWatching = false;
      turnRows = 0;
    });
  }
  return true;
}
