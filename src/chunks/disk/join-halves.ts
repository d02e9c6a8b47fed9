// Restores the match between index rows and bytes after tables of a disk were lost: a row without bytes is removed, bytes
// without a row get one. Readers verify the bytes by their tags.
import { crc32 } from 'node:zlib';
import type { ClockPort } from '../../ports/clock.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
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

/** Durable when it resolves. Nothing else may write meanwhile. */
export async function joinHalves(kv: KvPort, clock: ClockPort): Promise<JoinedHalves> {
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
  for await (const rows of pagesOf(kv, { column: 'data', ...dataBounds(indexBounds()) })) {
    const ids = rows.map(({ key }) => parseDataKey(key));
    const known = await kv.getMany('index', ids.map(indexKey));
    const puts: KvPut[] = [];
    for (const [at, id] of ids.entries()) {
      if (known[at] !== undefined) continue;
      const [bytes] = await kv.getMany('data', [dataKey(id)]);
      if (bytes === undefined) continue;
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

/** The keys alone, from the first of `keys` to the last: values of chunks are large. */
async function presentKeys(kv: KvPort, column: string, keys: readonly Uint8Array[]): Promise<boolean[]> {
  const [first, last] = [keys[0], keys.at(-1)];
  if (first === undefined || last === undefined) return [];
  const found = new Set<string>();
  for await (const rows of pagesOf(kv, { column, gte: first, lt: keyBehind(last) }))
    for (const { key } of rows) found.add(Buffer.from(key).toString('hex'));
  return keys.map((key) => found.has(Buffer.from(key).toString('hex')));
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
