// Restores the match between index rows and bytes after tables of a disk were lost: a row without bytes is removed, bytes
// without a row get one. Readers verify the bytes by their tags.
import { compareBytes, toHex } from '../../base/bytes/bytes.ts';
import { crc32 } from '../../base/crypto/crc32.ts';
import { type ReadPage, readPage } from '../../base/read-page.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
import { orLost } from './chunk-halves.ts';
import {
  dataBounds,
  dataKey,
  decodeIndexRow,
  encodeIndexRow,
  encodeTotals,
  indexBounds,
  indexKey,
  keyBehind,
  parseDataKey,
  parseIndexKey,
  TOTALS_KEY,
} from './keyspace.ts';

const PAGE_ROWS = 500;

export interface JoinedHalves {
  /** Chunks whose bytes are gone. */
  lostCount: number;
  /** Chunks whose row was lost and has been restored. */
  regainedCount: number;
}

/**
 * Durable when it resolves. Nothing else may write meanwhile. Rejects with Corruption where a row of the index cannot be read; of
 * bytes that cannot be read the rows stay as they are.
 */
export async function joinHalves(kv: KvPort, clock: ClockPort): Promise<JoinedHalves> {
  // Also rows that say where bytes are, which the store itself goes around.
  for await (const _rows of pagesOf(kv, { column: 'index', gte: Uint8Array.of(0), lt: Uint8Array.of(0xff) }));
  const lostCount = await dropEmptyRows(kv);
  const regainedCount = await regainRows(kv, clock);
  await recount(kv);
  return { lostCount, regainedCount };
}

async function dropEmptyRows(kv: KvPort): Promise<number> {
  let lostCount = 0;
  for await (const rows of pagesOf(kv, { column: 'index', ...indexBounds() })) {
    const ids = rows.map(({ key }) => parseIndexKey(key));
    const known = await presentKeys(kv, 'data', ids.map(dataKey));
    const gone = rows.filter((_, at) => !known[at]);
    lostCount += gone.length;
    if (gone.length > 0) await kv.commit(gone.map(({ key }) => ({ column: 'index', key, value: null })));
  }
  return lostCount;
}

async function regainRows(kv: KvPort, clock: ClockPort): Promise<number> {
  let regainedCount = 0;
  for await (const { rows } of readablePages(kv, { column: 'data', ...dataBounds(indexBounds()) })) {
    const ids = rows.map(({ key }) => parseDataKey(key));
    const known = await kv.getMany('index', ids.map(indexKey));
    const puts: KvPut[] = [];
    for (const [at, id] of ids.entries()) {
      if (known[at] !== undefined) continue;
      const [bytes] = await orLost(() => kv.getMany('data', [dataKey(id)]), 1);
      if (bytes === undefined || bytes === 'lost') continue;
      const row = { sizeBytes: bytes.length, crc32: crc32(bytes), receivedAtMs: clock.wallMs() };
      puts.push({ column: 'index', key: indexKey(id), value: encodeIndexRow(row) });
    }
    regainedCount += puts.length;
    if (puts.length > 0) await kv.commit(puts);
  }
  return regainedCount;
}

async function recount(kv: KvPort): Promise<void> {
  const totals = { chunkCount: 0, liveBytes: 0 };
  for await (const rows of pagesOf(kv, { column: 'index', ...indexBounds(), keysOnly: false })) {
    for (const { value } of rows) {
      totals.chunkCount++;
      totals.liveBytes += decodeIndexRow(value).sizeBytes;
    }
  }
  await kv.commit([{ column: 'index', key: TOTALS_KEY, value: encodeTotals(totals) }]);
}

/** The keys alone, from the first of `keys` to the last: values of chunks are large. What cannot be read counts as there. */
async function presentKeys(kv: KvPort, column: string, keys: readonly Uint8Array[]): Promise<boolean[]> {
  const [first, last] = [keys[0], keys.at(-1)];
  if (first === undefined || last === undefined) return [];
  const found = new Set<string>();
  for await (const { rows, lost } of readablePages(kv, { column, gte: first, lt: keyBehind(last) })) {
    for (const { key } of rows) found.add(toHex(key));
    if (lost === undefined) continue;
    for (const key of keys)
      if (compareBytes(key, lost.gte) >= 0 && compareBytes(key, lost.lt) < 0) found.add(toHex(key));
  }
  return keys.map((key) => found.has(toHex(key)));
}

/** Keys alone; goes on behind what cannot be read. */
async function* readablePages(
  kv: KvPort,
  range: { column: string; gte: Uint8Array; lt: Uint8Array },
): AsyncGenerator<ReadPage> {
  for (let gte: Uint8Array | undefined = range.gte; gte !== undefined; ) {
    const page: ReadPage = await readPage(kv, { ...range, gte, limit: PAGE_ROWS, keysOnly: true });
    yield page;
    gte = page.next;
  }
}

async function* pagesOf(
  kv: KvPort,
  range: { column: string; gte: Uint8Array; lt: Uint8Array; keysOnly?: boolean },
) {
  for (let gte: Uint8Array | undefined = range.gte; gte !== undefined; ) {
    const rows = await kv.range({ keysOnly: true, ...range, gte, limit: PAGE_ROWS });
    yield rows;
    const last = rows.at(-1);
    gte = last === undefined || rows.length < PAGE_ROWS ? undefined : keyBehind(last.key);
  }
}
