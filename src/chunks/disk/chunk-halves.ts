// The two halves of a stored chunk, its index row and its bytes. Each may be missing, or unreadable (R40).
import { Corruption } from '../../base/corruption.ts';
import { crc32 } from '../../base/crypto/crc32.ts';
import type { ChunkId, StoredChunk } from '../../ports/chunks.ts';
import type { KvPort } from '../../ports/kv.ts';
import { dataKey, decodeIndexRow, type IndexRow, indexKey } from './keyspace.ts';

/** `lost`: the disk cannot read it. */
export interface ChunkHalves {
  row: IndexRow | undefined | 'lost';
  bytes: Uint8Array | undefined | 'lost';
}

export type Verdict =
  | { kind: 'whole'; row: IndexRow; bytes: Uint8Array }
  | { kind: 'missing' }
  | { kind: 'damaged'; why: string };

export async function readHalves(kv: Pick<KvPort, 'getMany'>, id: ChunkId): Promise<ChunkHalves> {
  const [[row], [bytes]] = await Promise.all([
    readRows(kv, [id]),
    orLost(() => kv.getMany('data', [dataKey(id)]), 1),
  ]);
  return { row, bytes };
}

/** `isProven`: the checksum is not verified. */
export function judge({ row, bytes }: ChunkHalves, { isProven }: { isProven: boolean }): Verdict {
  // If one half is known to be absent, an unreadable neighbour belongs to another chunk.
  if (row === undefined && (bytes === undefined || bytes === 'lost')) return { kind: 'missing' };
  if (row === 'lost' && bytes === undefined) return { kind: 'missing' };
  if (row === 'lost' || bytes === 'lost') return { kind: 'damaged', why: 'the disk has lost it' };
  if (row === undefined || bytes === undefined) return { kind: 'damaged', why: 'half of it is missing' };
  const isRight = bytes.length === row.sizeBytes && (isProven || crc32(bytes) === row.crc32);
  return isRight ? { kind: 'whole', row, bytes } : { kind: 'damaged', why: 'checksum mismatch' };
}

/** The facts about a chunk that the port reports. */
export function storedOf({ sizeBytes, crc32: checksum, receivedAtMs }: IndexRow): StoredChunk {
  return { sizeBytes, checksum, receivedAtMs };
}

/** In the order of `ids`; one that cannot be read does not fail the others. */
export async function readRows(
  kv: Pick<KvPort, 'getMany'>,
  ids: readonly ChunkId[],
): Promise<ChunkHalves['row'][]> {
  const stored = await orLost(() => kv.getMany('index', ids.map(indexKey)), ids.length);
  if (ids.length > 1 && stored[0] === 'lost')
    return (await Promise.all(ids.map((id) => readRows(kv, [id])))).flat();
  return stored.map((row) => (row === undefined || row === 'lost' ? row : decodeIndexRow(row)));
}

/** The rows, or `lost` for each of them when the disk cannot read one: the caller then asks for each alone. */
export async function orLost(
  read: () => Promise<(Uint8Array | undefined)[]>,
  count: number,
): Promise<(Uint8Array | undefined | 'lost')[]> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof Corruption) return Array.from({ length: count }, () => 'lost' as const);
    throw error;
  }
}
