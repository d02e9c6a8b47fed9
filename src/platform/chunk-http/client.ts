// The disks of other nodes, over HTTP/1.1 with connections that are kept (design "Chunks over machines"): one pool per node,
// so many requests at once, the rest waits in a queue with an end. It says what a disk said and never asks twice: whom to
// ask next is src/chunks/copies'.
import { assert } from '../../base/assert.ts';
import { crc32 } from '../../base/crypto/crc32.ts';
import { unpackPlain } from '../../base/record-codec.ts';
import type {
  ChunkId,
  ChunkPort,
  ChunkRead,
  ChunkReadOptions,
  Fence,
  StoredChunk,
} from '../../ports/chunks.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskChunks, DiskDirectory, PutOptions } from '../../ports/disk-chunks.ts';
import type { DiskOrders, InspectedChunk, Order } from '../../ports/disk-orders.ts';
import type { DiskId } from '../../ports/placement.ts';
import {
  ChunkUnread,
  DiskBusy,
  OldFence,
  OtherBytes,
  OwnedHere,
  StaleMap,
} from '../../types/chunk-refusals.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { chunkName } from '../../types/names.ts';
import { toInspected, toNext, toObject, toPage, toUsage } from './answers.ts';
import { createDial } from './dial.ts';
import { type NodeAnswer, NodeConnection, type NodeRequest } from './node-connection.ts';
import { createProver, type PeerCredentials } from './peer-proof.ts';
import {
  type BatchBody,
  type BatchName,
  batchPath,
  CHUNK_BODY_BYTES_MAX,
  chunkPath,
  formatChecksum,
  formatFence,
  formatPart,
  packBatch,
} from './wire.ts';

export interface ChunkClientOptions {
  clusterId: string;
  credentials: PeerCredentials;
  clock: ClockPort;
  /** Called with the placement version of each answer. */
  onMapVersion?: (version: number) => void;
}

export interface ChunkClient extends DiskDirectory {
  /** Ends what is under way, and all connections. */
  close(): Promise<void>;
}

/** Where it is not that of any request. */
const TIMEOUTS_MS: Partial<Record<BatchName, number>> = {
  // A whole disk is counted by reading what is known of all its chunks.
  recount: LIMITS.chunkRecountMaxMs,
  pull: LIMITS.chunkPullMaxMs,
};

export function createChunkClient(options: ChunkClientOptions): ChunkClient {
  const { credentials } = options;
  const prover = credentials.kind === 'secret' ? createProver(credentials.secret) : undefined;
  const dial = createDial(credentials);
  const nodes = new Map<string, NodeConnection>();
  const disks = new Map<string, DiskChunks & DiskOrders>();
  return {
    chunksOf({ id, address }) {
      const name = `${address} ${id}`;
      let chunks = disks.get(name);
      if (chunks === undefined) {
        const node = nodes.get(address) ?? new NodeConnection(address, { ...options, prover, dial });
        nodes.set(address, node);
        chunks = new RemoteDisk(node, id);
        disks.set(name, chunks);
      }
      return chunks;
    },
    async close() {
      await Promise.all([...nodes.values()].map((node) => node.close()));
    },
  };
}

class RemoteDisk implements DiskChunks, DiskOrders {
  readonly #node: NodeConnection;
  readonly #diskId: DiskId;

  constructor(node: NodeConnection, diskId: DiskId) {
    this.#node = node;
    this.#diskId = diskId;
  }

  async put(id: ChunkId, bytes: Uint8Array, { checksum, mapVersion, signal }: PutOptions): Promise<void> {
    const path = chunkPath(this.#diskId, id);
    const map = String(mapVersion);
    const answer = await this.#node.request({
      method: 'PUT',
      path,
      body: bytes,
      map,
      signal,
      checksum: formatChecksum(checksum),
      answerBytesMax: 0,
    });
    if (answer.status !== 201) throw this.#failure(answer, id);
  }

  async get(
    id: ChunkId,
    { isProven, part, signal }: ChunkReadOptions & { signal: AbortSignal },
  ): Promise<ChunkRead> {
    const path = chunkPath(this.#diskId, id);
    const wanted = isProven ? part : undefined;
    const answer = await this.#node.request({
      method: 'GET',
      path,
      signal,
      answerBytesMax: CHUNK_BODY_BYTES_MAX,
      ...(wanted && { part: formatPart(wanted) }),
    });
    const { status, error, bytes, checksum } = answer;
    if (error === 'missing' || error === 'damaged') return { kind: error };
    if (status === 206 && bytes.length === wanted?.sizeBytes) return { kind: 'found', bytes };
    if (status !== 200 || checksum === undefined) throw this.#failure(answer, id);
    if (!isProven && crc32(bytes) !== checksum) return { kind: 'damaged' };
    return { kind: 'found', bytes, checksum };
  }

  async have(ids: readonly ChunkId[]): Promise<(StoredChunk | null)[]> {
    const found: (StoredChunk | null)[] = [];
    for (const page of pagesOf(ids)) found.push(...(await this.#have(page)));
    return found;
  }

  async #have(ids: readonly ChunkId[]): Promise<(StoredChunk | null)[]> {
    const [first] = ids;
    if (first === undefined || ids.length > 1) {
      return this.#batch('have', { ids });
    }
    const request: NodeRequest = {
      method: 'HEAD',
      path: chunkPath(this.#diskId, first),
      answerBytesMax: 0,
    };
    const answer = await this.#node.request(request);
    const { status, error, sizeBytes, checksum, receivedAtMs } = answer;
    if (error === 'missing') return [null];
    if (status !== 200 || checksum === undefined || receivedAtMs === undefined)
      throw this.#failure(answer, first);
    return [{ sizeBytes, checksum, receivedAtMs }];
  }

  async drop(ids: readonly ChunkId[], fence: Fence): Promise<void> {
    const [first] = ids;
    if (first !== undefined && ids.length === 1) return this.#dropOne(first, fence);
    for (const page of pagesOf(ids)) await this.#batch('drop', { ids: page, fence });
  }

  async #dropOne(id: ChunkId, fence: Fence): Promise<void> {
    const path = chunkPath(this.#diskId, id);
    const answer = await this.#node.request({
      method: 'DELETE',
      path,
      answerBytesMax: 0,
      fence: formatFence(fence),
    });
    if (answer.status !== 204) throw this.#failure(answer, id);
  }

  async list({ after, limit }: { after?: ChunkId; limit: number }): ReturnType<ChunkPort['list']> {
    assert(limit <= LIMITS.chunkBatchIdsMax, 'a page of chunks fits into one answer');
    const page = await this.#batch('list', { limit, after });
    return toPage<Listed>(page, { after, limit, idOf });
  }

  async usage(): ReturnType<ChunkPort['usage']> {
    return toUsage(await this.#batch('usage', {}));
  }

  recount(): ReturnType<ChunkPort['recount']> {
    return this.#batch('recount', {});
  }

  async inspect(
    ids: readonly ChunkId[],
    { fence, mapVersion }: Order,
    { readBytes, signal }: { readBytes: boolean; signal: AbortSignal },
  ): Promise<InspectedChunk[]> {
    const found: InspectedChunk[] = [];
    // An order is taken also where there is nothing to be asked.
    do {
      const page = ids.slice(found.length, found.length + LIMITS.chunkBatchIdsMax);
      const asked = { ids: page, fence, readBytes };
      const answered = await this.#batch<unknown[]>('inspect', asked, { mapVersion, signal });
      // A disk that reads answers for as many as it has read in bounded time.
      if (answered.length > page.length || (answered.length === 0 && page.length > 0))
        throw new AppError('ServiceUnavailable', { cause: new Error('an answer of another question') });
      found.push(...answered.map(toInspected));
    } while (found.length < ids.length);
    return found;
  }

  pull(
    { id, sizeBytes, checksum, from }: Parameters<DiskOrders['pull']>[0],
    { fence, mapVersion }: Order,
    signal: AbortSignal,
  ): Promise<'stored' | 'absent'> {
    const body = { ids: [id], fence, pull: { sizeBytes, checksum, from } };
    return this.#batch('pull', body, { mapVersion, signal });
  }

  async dropMisplaced(ids: readonly ChunkId[], order: Order): Promise<void> {
    await this.#dropByOrder('drop-misplaced', ids, order);
  }

  async dropQuarantined(ids: readonly ChunkId[], order: Order): Promise<void> {
    await this.#dropByOrder('drop-aside', ids, order);
  }

  async #dropByOrder(name: BatchName, ids: readonly ChunkId[], { fence, mapVersion }: Order): Promise<void> {
    for (const page of pagesOf(ids)) await this.#batch(name, { ids: page, fence }, { mapVersion });
  }

  async listQuarantined({
    homes,
    after,
    limit,
  }: Parameters<DiskOrders['listQuarantined']>[0]): Promise<ChunkId[]> {
    assert(limit <= LIMITS.chunkBatchIdsMax, 'a page of chunks fits into one answer');
    const page = await this.#batch('list-aside', { homes, after, limit });
    return toPage<ChunkId>(page, { after, limit, idOf: (id) => id });
  }

  async listOf({
    homes,
    after,
    limit,
  }: Parameters<DiskOrders['listOf']>[0]): ReturnType<DiskOrders['listOf']> {
    assert(limit <= LIMITS.chunkBatchIdsMax, 'a page of chunks fits into one answer');
    const { chunks, next } = toObject(await this.#batch('list-of', { homes, after, limit }));
    const page = toPage<Listed>(chunks, { after, limit, idOf });
    return { chunks: page, ...(next !== undefined && { next: toNext(next, after) }) };
  }

  /** Answers are what the port's own calls give; what others go by is looked at in answers.ts. */
  async #batch<Reply>(
    name: BatchName,
    body: Partial<BatchBody>,
    how: { mapVersion?: number; signal?: AbortSignal } = {},
  ): Promise<Reply> {
    const packed = packBatch(body);
    const timeoutMs = TIMEOUTS_MS[name];
    const answer = await this.#node.request({
      method: 'POST',
      path: batchPath(this.#diskId, name),
      body: packed,
      checksum: formatChecksum(crc32(packed)),
      answerBytesMax: LIMITS.chunkBatchBytesMax,
      ...(how.mapVersion !== undefined && { map: String(how.mapVersion) }),
      ...(how.signal && { signal: how.signal }),
      ...(timeoutMs !== undefined && { timeoutMs }),
    });
    if (answer.status !== 200 || crc32(answer.bytes) !== answer.checksum) throw this.#failure(answer);
    return unpackPlain(answer.bytes) as Reply;
  }

  #failure({ status, error, mapVersion }: NodeAnswer, id?: ChunkId): Error {
    switch (error) {
      case 'stale-map':
        return new StaleMap(mapVersion);
      case 'old-fence':
        return new OldFence();
      case 'owned-here':
        return new OwnedHere();
      case 'other-bytes':
        return new OtherBytes(id === undefined ? '' : chunkName(id));
      case 'unread':
        return new ChunkUnread(new Error(`disk ${this.#diskId} at ${this.#node.address} could not read it`));
      case 'full':
        return new AppError('InsufficientStorage');
      case 'busy':
        return new DiskBusy();
      default: {
        const cause = new Error(`disk ${this.#diskId} at ${this.#node.address}: ${error ?? ''} (${status})`);
        return new AppError('ServiceUnavailable', { cause });
      }
    }
  }
}

type Listed = Awaited<ReturnType<ChunkPort['list']>>[number];

/** Of what may not be one. */
const idOf = (row: Listed): unknown => (row as Partial<Listed> | null)?.id;

function pagesOf(ids: readonly ChunkId[]): ChunkId[][] {
  const pageCount = Math.ceil(ids.length / LIMITS.chunkBatchIdsMax);
  return Array.from({ length: pageCount }, (_, page) =>
    ids.slice(page * LIMITS.chunkBatchIdsMax, (page + 1) * LIMITS.chunkBatchIdsMax),
  );
}
