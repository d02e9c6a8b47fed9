// The protocol between client.ts and server.ts, in one place: paths, headers, codes of refusals, bodies of batches.
//   PUT, GET, HEAD, DELETE  /disks/DISK/chunks/BLOB.INDEX
//   POST                    /disks/DISK/BATCH, plain data both ways: what is asked of several chunks, and all orders
// Each request names its cluster; a body has its length and CRC32. Nothing is sent in pieces of unknown number.

import { sealedBytes } from '../../base/crypto/seal.ts';
import { packPlain, unpackPlain } from '../../base/record-codec.ts';
import type { ChunkId, ChunkPart, Fence } from '../../ports/chunks.ts';
import type { DiskId } from '../../ports/placement.ts';
import { LIMITS } from '../../types/limits.ts';
import { type BlobId, chunkName } from '../../types/names.ts';

export const HEADER = {
  cluster: 'holdfast-cluster',
  /** The sender's placement version; in answers the node's. */
  map: 'holdfast-map',
  checksum: 'holdfast-crc32',
  fence: 'holdfast-fence',
  /** Of a GET: the bytes that are needed. Who does not know it gives all of the chunk (200), others these alone (206). */
  part: 'holdfast-part',
  /** Of a HEAD's chunk. */
  receivedAtMs: 'holdfast-received',
  timeMs: 'holdfast-time',
  proof: 'holdfast-proof',
  error: 'holdfast-error',
} as const;

/** Why there is no 2xx, and the status that goes with it. */
export const REFUSALS = {
  stranger: 401,
  'other-cluster': 403,
  malformed: 400,
  'too-large': 413,
  'no-disk': 421,
  'stale-map': 409,
  'old-fence': 409,
  'owned-here': 409,
  'other-bytes': 409,
  checksum: 422,
  missing: 404,
  damaged: 410,
  full: 507,
  unread: 503,
  busy: 503,
  failed: 500,
} as const;
export type RefusalCode = keyof typeof REFUSALS;

export function isRefusalCode(text: string): text is RefusalCode {
  return Object.hasOwn(REFUSALS, text);
}

/** Of one write of a chunk over TLS: each connection that has carried a chunk keeps memory for it. */
export const TLS_PART_BYTES = 128 * 1024;

/** The largest chunk as it is stored. */
export const CHUNK_BODY_BYTES_MAX = sealedBytes({
  sizeBytes: LIMITS.chunkBytesMax,
  blockBytes: LIMITS.sealBlockBytes,
});

/** By home shards alone (R38, R39); their map is in the header. */
export const ORDERS = ['inspect', 'pull', 'drop-misplaced', 'drop-aside'] as const;
export type OrderName = (typeof ORDERS)[number];

export const BATCHES = [
  ...['have', 'drop', 'list', 'usage', 'recount', 'list-aside', 'list-of'],
  ...ORDERS,
] as const;
export type BatchName = (typeof BATCHES)[number];

export type Target = { diskId: DiskId } & ({ kind: 'chunk'; id: ChunkId } | { kind: BatchName });

const PATH = /^\/disks\/([0-9a-f]{32})\/(?:chunks\/([0-9a-f]{32})\.(\d{1,10})|([a-z-]+))$/;

export function chunkPath(diskId: DiskId, id: ChunkId): string {
  return `/disks/${diskId}/chunks/${chunkName(id)}`;
}

export function batchPath(diskId: DiskId, name: BatchName): string {
  return `/disks/${diskId}/${name}`;
}

export function parsePath(path: string): Target | undefined {
  const [, diskId, blobId, index, name] = PATH.exec(path) ?? [];
  if (diskId === undefined) return undefined;
  if (blobId !== undefined) {
    const id = { blobId: blobId as BlobId, index: Number(index) };
    return isIndex(id.index) ? { diskId, kind: 'chunk', id } : undefined;
  }
  const kind = BATCHES.find((known) => known === name);
  return kind && { diskId, kind };
}

export function formatChecksum(crc32: number): string {
  return crc32.toString(16).padStart(8, '0');
}

export function parseChecksum(text: unknown): number | undefined {
  return typeof text === 'string' && /^[0-9a-f]{8}$/.test(text) ? Number.parseInt(text, 16) : undefined;
}

export function parseWhole(text: unknown): number | undefined {
  if (typeof text !== 'string' || !/^\d{1,16}$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : undefined;
}

export function formatPart({ offsetBytes, sizeBytes }: ChunkPart): string {
  return `${offsetBytes}.${sizeBytes}`;
}

/** undefined: not one, or of more bytes than a chunk has. */
export function parsePart(text: string): ChunkPart | undefined {
  const [offsetBytes, sizeBytes, ...others] = text.split('.').map(parseWhole);
  if (offsetBytes === undefined || sizeBytes === undefined || others.length > 0) return undefined;
  const isPart = sizeBytes > 0 && offsetBytes + sizeBytes <= CHUNK_BODY_BYTES_MAX;
  return isPart ? { offsetBytes, sizeBytes } : undefined;
}

export function formatFence({ shard, incarnation, epoch }: Fence): string {
  return `${shard}.${incarnation}.${epoch}`;
}

export function parseFence(text: unknown): Fence | undefined {
  const parts = typeof text === 'string' ? text.split('.').map(parseWhole) : [];
  const [shard, incarnation, epoch] = parts;
  if (parts.length !== 3 || shard === undefined || incarnation === undefined || epoch === undefined)
    return undefined;
  return shard < LIMITS.shardCountMax ? { shard, incarnation, epoch } : undefined;
}

/** What a batch is asked with; each kind uses what it needs. */
export interface BatchBody {
  ids: readonly ChunkId[];
  fence?: Fence | undefined;
  after?: ChunkId | undefined;
  limit: number;
  /** Of an inspection. */
  readBytes: boolean;
  /** Of a list: shards. */
  homes: readonly number[];
  /** What the one of `ids` is, and where it is. */
  pull?: PullBody | undefined;
}

export interface PullBody {
  sizeBytes: number;
  checksum: number;
  from: { diskId: DiskId; address: string };
}

interface PackedBatch {
  ids?: readonly (readonly [string, number])[];
  fence?: string;
  after?: readonly [string, number];
  limit?: number;
  readBytes?: boolean;
  homes?: readonly number[];
  pull?: readonly [sizeBytes: number, checksum: number, diskId: string, address: string];
}

export function packBatch(body: Partial<BatchBody>): Uint8Array {
  const pair = ({ blobId, index }: ChunkId) => [blobId, index] as const;
  const { ids, fence, after, limit, readBytes, homes, pull } = body;
  const packed: PackedBatch = {
    ...(ids && { ids: ids.map(pair) }),
    ...(fence && { fence: formatFence(fence) }),
    ...(after && { after: pair(after) }),
    ...(limit !== undefined && { limit }),
    ...(readBytes !== undefined && { readBytes }),
    ...(homes && { homes }),
    ...(pull && { pull: [pull.sizeBytes, pull.checksum, pull.from.diskId, pull.from.address] }),
  };
  return packPlain(packed);
}

/** undefined: not such a body, or more than one may hold. */
export function unpackBatch(bytes: Uint8Array): BatchBody | undefined {
  const packed = unpackObject(bytes);
  if (packed === undefined) return undefined;
  const { ids = [], fence, after, limit = 0, readBytes = false, homes = [], pull } = packed;
  if (!Array.isArray(ids) || ids.length > LIMITS.chunkBatchIdsMax) return undefined;
  const chunkIds = ids.map(toChunkId).filter((id) => id !== undefined);
  if (chunkIds.length !== ids.length) return undefined;
  if (!Number.isInteger(limit) || limit < 0 || limit > LIMITS.chunkBatchIdsMax) return undefined;
  if (typeof readBytes !== 'boolean' || !isHomes(homes)) return undefined;
  const texts = { fence: parseFence(fence), after: toChunkId(after), pull: toPull(pull) };
  const isWhole =
    (fence === undefined || texts.fence !== undefined) &&
    (after === undefined || texts.after !== undefined) &&
    (pull === undefined || texts.pull !== undefined);
  return isWhole ? { ids: chunkIds, limit, readBytes, homes, ...texts } : undefined;
}

function isHomes(homes: unknown): homes is number[] {
  const isShard = (home: unknown) => Number.isInteger(home) && Number(home) >= 0;
  return Array.isArray(homes) && homes.length <= LIMITS.shardCountMax && homes.every(isShard);
}

function toPull(packed: unknown): PullBody | undefined {
  if (!Array.isArray(packed)) return undefined;
  const [sizeBytes, checksum, diskId, address] = packed as unknown[];
  if (!isIndex(sizeBytes) || sizeBytes > CHUNK_BODY_BYTES_MAX || !isIndex(checksum)) return undefined;
  if (typeof diskId !== 'string' || !/^[0-9a-f]{32}$/.test(diskId)) return undefined;
  if (typeof address !== 'string' || !/^[\w.:[\]-]{1,300}$/.test(address)) return undefined;
  return { sizeBytes, checksum, from: { diskId, address } };
}

function unpackObject(bytes: Uint8Array): PackedBatch | undefined {
  try {
    const plain = unpackPlain(bytes);
    return typeof plain === 'object' && plain !== null ? plain : undefined;
  } catch {
    return undefined;
  }
}

function toChunkId(pair: unknown): ChunkId | undefined {
  if (!Array.isArray(pair)) return undefined;
  const [blobId, index] = pair as unknown[];
  if (typeof blobId !== 'string' || !/^[0-9a-f]{32}$/.test(blobId)) return undefined;
  return isIndex(index) ? { blobId: blobId as BlobId, index } : undefined;
}

/** As the keys of a disk hold it, in four bytes. */
export function isIndex(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff;
}

export function isChunkId(value: unknown): value is ChunkId {
  const { blobId, index } = (value ?? {}) as Record<string, unknown>;
  return typeof blobId === 'string' && /^[0-9a-f]{32}$/.test(blobId) && isIndex(index);
}
