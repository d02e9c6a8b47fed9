// Going through the whole of a table of a shard, a page at a time.
import { concatBytes, EMPTY_BYTES } from './bytes/bytes.ts';
import { isLastPage } from './row-pages.ts';

/** Behind every key that a table has: none is as long. */
export const TABLE_END = new Uint8Array(64).fill(0xff);

/** The first key that may follow `after`; undefined: the first of all. */
export function behind(after: Uint8Array | undefined): Uint8Array {
  return after === undefined ? EMPTY_BYTES : concatBytes(after, Uint8Array.of(0));
}

/**
 * So many are read on another thread: the process serves requests meanwhile. Fewer would be read in its turn, page after
 * page.
 */
const PAGE_ROWS = 1000;
/** A page is decoded in one turn. Of the largest rows it has a few. */
const PAGE_BYTES = 512 * 1024;

interface Row {
  key: Uint8Array;
  value: Uint8Array;
}

interface Address<Table> {
  table: Table;
  gte: Uint8Array;
  lt: Uint8Array;
  limit: number;
  bytesMax: number;
}

/** Every row of a table, or those whose keys begin with `prefix`. The view is free between any two of them. */
export async function* allRows<Table>(
  view: { range(address: Address<Table>): Promise<Row[]> },
  table: Table,
  prefix: Uint8Array = EMPTY_BYTES,
): AsyncGenerator<Row> {
  const lt = concatBytes(prefix, TABLE_END);
  for (let gte = prefix; ; ) {
    const asked = { limit: PAGE_ROWS, bytesMax: PAGE_BYTES };
    const rows = await view.range({ table, gte, lt, ...asked });
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || isLastPage(rows, asked)) return;
    gte = behind(last.key);
  }
}
