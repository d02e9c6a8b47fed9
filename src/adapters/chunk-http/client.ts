// The disks of other nodes, over HTTP/1.1 with connections that are kept (architecture 5): one pool per node, so many
// requests at once, the rest waits in a queue with an end. It says what a disk said and never asks twice: whom to ask
// next is src/cluster's.
import { crc32 } from 'node:zlib';
import { assert } from '../../lib/assert.ts';
import { unpackPlain } from '../../lib/record-codec.ts';
import { OldFence, OtherBytes, StaleMap } from '../../model/chunk-refusals.ts';
import { AppError } from '../../model/errors.ts';
import { LIMITS } from '../../model/limits.ts';
import type { ChunkId, ChunkPort, ChunkRead, Fence, StoredChunk } from '../../ports/chunks.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskChunks, DiskDirectory, PutOptions } from '../../ports/disk-chunks.ts';
import type { DiskId } from '../../ports/placement.ts';
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
  packBatch,
} from './wire.ts';

export interface ChunkClientOptions {
  clusterId: string;
  credentials: PeerCredentials;
  clock: ClockPort;
  /** Told of the placement version of each answer. */
  onMapVersion?: (version: number) => void;
}

export interface ChunkClient extends DiskDirectory {
  /** Ends what is under way, and all connections. */
  close(): Promise<void>;
}

export function createChunkClient(options: ChunkClientOptions): ChunkClient {
  const { credentials } = options;
  const prover = credentials.kind === 'secret' ? createProver(credentials.secret) : undefined;
  const dial = createDial(credentials);
  const nodes = new Map<string, NodeConnection>();
  const disks = new Map<string, DiskChunks>();
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

class RemoteDisk implements DiskChunks {
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
      ...{ method: 'PUT', path, body: bytes, map, signal },
      checksum: formatChecksum(checksum),
      answerBytesMax: 0,
    });
    if (answer.status !== 201) throw this.#failure(answer, id);
  }

  async get(
    id: ChunkId,
    { isProven, signal }: { isProven: boolean; signal: AbortSignal },
  ): Promise<ChunkRead> {
    const path = chunkPath(this.#diskId, id);
    const answer = await this.#node.request({
      ...{ method: 'GET', path, signal },
      answerBytesMax: CHUNK_BODY_BYTES_MAX,
    });
    const { status, error, bytes, checksum } = answer;
    if (error === 'missing' || error === 'damaged') return { kind: error };
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
      ...{ method: 'HEAD', path: chunkPath(this.#diskId, first), answerBytesMax: 0 },
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
      ...{ method: 'DELETE', path, answerBytesMax: 0 },
      fence: formatFence(fence),
    });
    if (answer.status !== 204) throw this.#failure(answer, id);
  }

  list({ after, limit }: { after?: ChunkId; limit: number }): ReturnType<ChunkPort['list']> {
    assert(limit <= LIMITS.chunkBatchIdsMax, 'a page of chunks fits into one answer');
    return this.#batch('list', { limit, after });
  }

  usage(): ReturnType<ChunkPort['usage']> {
    return this.#batch('usage', {});
  }

  recount(): ReturnType<ChunkPort['recount']> {
    return this.#batch('recount', {});
  }

  /** Answers are what the port's own calls give, of a peer that has proven to be one. */
  async #batch<Reply>(name: BatchName, body: Partial<BatchBody>): Promise<Reply> {
    const packed = packBatch(body);
    const answer = await this.#node.request({
      ...{ method: 'POST', path: batchPath(this.#diskId, name), body: packed },
      checksum: formatChecksum(crc32(packed)),
      answerBytesMax: LIMITS.chunkBatchBytesMax,
      // A whole disk is counted by reading what is known of all its chunks.
      ...(name === 'recount' && { timeoutMs: LIMITS.chunkRecountMaxMs }),
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
      case 'other-bytes':
        return new OtherBytes(id === undefined ? '' : `${id.blobId}.${id.index}`);
      case 'full':
        return new AppError('InsufficientStorage');
      case 'busy':
        return new AppError('SlowDown');
      default: {
        const cause = new Error(`disk ${this.#diskId} at ${this.#node.address}: ${error ?? ''} (${status})`);
        return new AppError('ServiceUnavailable', { cause });
      }
    }
  }
}

function pagesOf(ids: readonly ChunkId[]): ChunkId[][] {
  const pageCount = Math.ceil(ids.length / LIMITS.chunkBatchIdsMax);
  return Array.from({ length: pageCount }, (_, page) =>
    ids.slice(page * LIMITS.chunkBatchIdsMax, (page + 1) * LIMITS.chunkBatchIdsMax),
  );
}
