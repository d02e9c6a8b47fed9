// Reads rows of a store that may have lost some. A page ends before an unreadable part, and the next page begins behind it.
// A lost block takes with it all rows in it, and nothing tells which those were.
import { must } from './assert.ts';
import { concatBytes } from './bytes/bytes.ts';
import { Corruption } from './corruption.ts';

interface Row {
  key: Uint8Array;
  value: Uint8Array;
}

/** As far as KvPort is needed here. */
interface RowStore {
  range(range: PageRange): Promise<Row[]>;
}

export interface PageRange {
  column: string;
  gte: Uint8Array;
  lt: Uint8Array;
  /** Rows at most. */
  limit: number;
  keysOnly?: boolean;
}

export interface ReadPage {
  rows: Row[];
  /** Nothing between these keys can be read. A page has either a gap or rows. */
  lost?: { gte: Uint8Array; lt: Uint8Array };
  /** Where the next page begins; absent at the end. */
  next?: Uint8Array;
}

/** Longer than any key in use. */
const PROBE_KEY_BYTES = 24;

/** One page, with fewer than `limit` rows where rows are lost. */
export async function readPage(kv: RowStore, range: PageRange): Promise<ReadPage> {
  for (let limit = range.limit; limit > 0; limit = Math.floor(limit / 2)) {
    const rows = await rangeOrLost(kv, { ...range, limit });
    if (rows === 'lost') continue;
    const isEnd = limit === range.limit && rows.length < limit;
    return isEnd ? { rows } : { rows, next: concatBytes(must(rows.at(-1), 'a row').key, Uint8Array.of(0)) };
  }
  const lt = await findReadable(kv, range);
  return { rows: [], lost: { gte: range.gte, lt }, ...(lt !== range.lt && { next: lt }) };
}

async function rangeOrLost(kv: RowStore, range: PageRange): Promise<Row[] | 'lost'> {
  try {
    return await kv.range(range);
  } catch (error) {
    if (error instanceof Corruption) return 'lost';
    throw error;
  }
}

/**
 * The first key from which on a row can be read, where none can from `gte` on; `lt` if there is none. Found by growing
 * steps, then by bisection: readable rows between two lost blocks may be skipped.
 */
async function findReadable(kv: RowStore, range: PageRange): Promise<Uint8Array> {
  const first = toNumber(range.gte);
  const end = toNumber(range.lt);
  const canRead = async (at: bigint) =>
    at >= end || (await rangeOrLost(kv, { ...range, gte: toKey(at), limit: 1 })) !== 'lost';
  let lost = first;
  let step = 1n;
  while (!(await canRead(first + step))) {
    lost = first + step;
    step *= 2n;
  }
  let readable = first + step;
  while (readable - lost > 1n) {
    const middle = (lost + readable) / 2n;
    if (await canRead(middle)) readable = middle;
    else lost = middle;
  }
  return readable >= end ? range.lt : toKey(readable);
}

function toNumber(key: Uint8Array): bigint {
  const padded = Buffer.alloc(PROBE_KEY_BYTES);
  padded.set(key);
  return BigInt(`0x${padded.toString('hex')}`);
}

function toKey(value: bigint): Uint8Array {
  return Buffer.from(value.toString(16).padStart(2 * PROBE_KEY_BYTES, '0'), 'hex');
}
