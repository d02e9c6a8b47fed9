// One request to a storage node, from its head to its answer: who asks, by which map, of which disk, what. It ends in an
// answer or a refusal of wire.ts, and never in an exception.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ByteGate } from '../../base/async/byte-gate.ts';
import { EMPTY_BYTES } from '../../base/bytes/bytes.ts';
import { partEnd } from '../../base/bytes/tls-parts.ts';
import { crc32 } from '../../base/crypto/crc32.ts';
import { freeMemory } from '../../base/free-memory.ts';
import { packPlain } from '../../base/record-codec.ts';
import type { ServedDisk, ServedDisks } from '../../ports/chunk-server.ts';
import type { ChunkId, ChunkPart } from '../../ports/chunks.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskId } from '../../ports/placement.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import type { Deadlines } from './deadlines.ts';
import { isSameProof, type Prover } from './peer-proof.ts';
import { receiveBody } from './receive-body.ts';
import { codeOf, Refused } from './refused.ts';
import { refuseOtherHomes, runBatch } from './run-batch.ts';
import {
  type BatchName,
  CHUNK_BODY_BYTES_MAX,
  formatChecksum,
  HEADER,
  parseChecksum,
  parseFence,
  parsePart,
  parsePath,
  parseWhole,
  REFUSALS,
  type Target,
  TLS_PART_BYTES,
  unpackBatch,
} from './wire.ts';

export interface ExchangeParts {
  disks: ServedDisks;
  clusterId: string;
  /** Absent where certificates say who asks. */
  prover: Prover | undefined;
  /** The node's address as it is announced to others. */
  address(): string;
  /** Monotonic ms. */
  startedAtMs: number;
  clock: ClockPort;
  log: Logger;
  onStranger(fields: object): void;
  /** Where there is a prover: what came on it has proved to be a member's. */
  onMember(socket: Socket): void;
  takeMemory: TakeMemory;
  /** Connections end with their answers. */
  isStopping(): boolean;
  /** Of answers that are on their way. */
  deadlines: Deadlines;
  /** Of each disk its own: one that hangs must not keep the others from their work. */
  gatesOf(diskId: DiskId): DiskGates;
}

/**
 * Memory for a body of so many bytes, which goes to the disk with it. With `release` it stays the giver's, and is released when
 * the disk is done with it; otherwise it comes back however the disk gives it back.
 */
export type TakeMemory = (sizeBytes: number) => { bytes: Uint8Array; release?(): void };

export interface DiskGates {
  /** Bytes of chunks on their way to the disk. */
  received: ByteGate;
  /** Bytes of what it is asked and ordered: small, and not to wait behind chunks. */
  asked: ByteGate;
  /** Chunks on their way from the disk. */
  reads: ByteGate;
}

/** By so much two clocks of one machine may differ in how they count. */
const CLOCK_GRAIN_MS = 5;
/** One for all: as long as a disk hangs there may be many. */
const NOBODY_WAITS = new AppError('ServiceUnavailable', {
  cause: new Error('it waited for longer than anybody does'),
});

interface Answer {
  status: number;
  bytes?: Uint8Array;
  /** Of HEAD, which has no bytes. */
  sizeBytes?: number;
  checksum?: number;
}

export class ChunkExchange {
  readonly #parts: ExchangeParts;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #sizeBytes: number;
  #proof = '';

  constructor(parts: ExchangeParts, request: IncomingMessage, response: ServerResponse) {
    this.#parts = parts;
    this.#request = request;
    this.#response = response;
    this.#sizeBytes = parseWhole(request.headers['content-length']) ?? 0;
  }

  /** Resolves when the answer has been given, or its connection is gone. */
  async run(): Promise<void> {
    try {
      this.#authenticate();
      const target = parsePath(this.#request.url ?? '');
      if (target === undefined) throw new Refused('malformed');
      const version = this.#mapVersion();
      if (version > this.#parts.disks.mapVersion()) await this.#parts.disks.adopt(version);
      const chunks = this.#parts.disks.chunksOf(target.diskId);
      if (chunks === undefined) throw new Refused('no-disk');
      await this.#serve(chunks, target, version);
    } catch (error) {
      this.#refuse(error);
    }
  }

  /** Certificates were checked before any request; the cluster's name distinguishes two clusters of one authority. */
  #authenticate(): void {
    const { prover, clusterId, address } = this.#parts;
    const isOurs = this.#header(HEADER.cluster) === clusterId;
    if (prover === undefined) {
      if (!isOurs) throw new Refused('other-cluster');
      return;
    }
    const timeMs = this.#header(HEADER.timeMs);
    const proof = prover.request({
      clusterId,
      address: address(),
      method: this.#request.method ?? '',
      path: this.#request.url ?? '',
      sizeBytes: this.#sizeBytes,
      checksum: this.#header(HEADER.checksum),
      map: this.#header(HEADER.map),
      fence: this.#header(HEADER.fence),
      timeMs,
    });
    if (!isOurs || !this.#isOfNow(timeMs) || !isSameProof(this.#header(HEADER.proof), proof))
      throw new Refused('stranger');
    this.#proof = proof;
    this.#parts.onMember(this.#request.socket);
  }

  /** Not older than this process either: the process that listened here before may have accepted it. */
  #isOfNow(timeMs: string): boolean {
    const { clock, startedAtMs } = this.#parts;
    const ageMs = clock.wallMs() - (parseWhole(timeMs) ?? 0);
    const uptimeMs = clock.monotonicMs() - startedAtMs;
    return Math.abs(ageMs) <= LIMITS.peerProofAgeMaxMs && ageMs <= uptimeMs + CLOCK_GRAIN_MS;
  }

  #header(name: string): string {
    const value = this.#request.headers[name];
    return typeof value === 'string' ? value : '';
  }

  #mapVersion(): number {
    const text = this.#header(HEADER.map);
    const version = text === '' ? 0 : parseWhole(text);
    if (version === undefined) throw new Refused('malformed');
    return version;
  }

  async #serve(chunks: ServedDisk, target: Target, version: number): Promise<void> {
    const { method } = this.#request;
    const gates = this.#parts.gatesOf(target.diskId);
    if (target.kind !== 'chunk') {
      if (method !== 'POST') throw new Refused('malformed');
      return this.#batch(chunks, target.kind, { version, gate: gates.asked });
    }
    switch (method) {
      case 'PUT':
        return this.#put(chunks, target.id, { version, gate: gates.received });
      case 'GET':
        return this.#get(chunks, target.id, gates.reads);
      case 'HEAD':
        return this.#head(chunks, target.id);
      case 'DELETE':
        return this.#delete(chunks, target.id);
      default:
        throw new Refused('malformed');
    }
  }

  async #put(
    chunks: ServedDisk,
    id: ChunkId,
    { version, gate }: { version: number; gate: ByteGate },
  ): Promise<void> {
    if (version < this.#parts.disks.mapVersion()) throw new Refused('stale-map');
    await this.#withBody({ bytesMax: CHUNK_BODY_BYTES_MAX, gate }, async (bytes, checksum) => {
      // A newer version may have been announced while the body came.
      if (version < this.#parts.disks.mapVersion()) throw new Refused('stale-map');
      await chunks.put(id, bytes, checksum);
      this.#answer({ status: 201 });
    });
  }

  async #get(chunks: ServedDisk, id: ChunkId, reads: ByteGate): Promise<void> {
    await reads.enter(1, () => this.#whileWaitedFor());
    try {
      if (this.#response.destroyed) return;
      const part = this.#part();
      // Who asks for a part proves it by its tags.
      const read = await chunks.get(id, { isProven: part !== undefined, part });
      if (read.kind !== 'found') throw new Refused(read.kind);
      const { bytes } = read;
      const status = part !== undefined && read.checksum === undefined ? 206 : 200;
      this.#answer({ status, bytes, checksum: read.checksum ?? crc32(bytes) });
      await this.#sent();
    } finally {
      reads.leave(1);
    }
  }

  #part(): ChunkPart | undefined {
    const text = this.#header(HEADER.part);
    const part = text === '' ? undefined : parsePart(text);
    if (text !== '' && part === undefined) throw new Refused('malformed');
    return part;
  }

  async #head(chunks: ServedDisk, id: ChunkId): Promise<void> {
    const [stored] = await chunks.have([id]);
    if (stored == null) throw new Refused('missing');
    const { sizeBytes, checksum, receivedAtMs } = stored;
    this.#response.setHeader(HEADER.receivedAtMs, receivedAtMs);
    this.#answer({ status: 200, sizeBytes, checksum });
  }

  async #delete(chunks: ServedDisk, id: ChunkId): Promise<void> {
    const fence = parseFence(this.#header(HEADER.fence));
    if (fence === undefined) throw new Refused('malformed');
    refuseOtherHomes([id], fence);
    await chunks.drop([id], fence);
    this.#answer({ status: 204 });
  }

  async #batch(
    chunks: ServedDisk,
    name: BatchName,
    { version, gate }: { version: number; gate: ByteGate },
  ): Promise<void> {
    await this.#withBody({ bytesMax: LIMITS.chunkBatchBytesMax, gate }, async (bytes) => {
      const body = unpackBatch(bytes);
      if (body === undefined) throw new Refused('malformed');
      const ask = { version, signal: this.#untilGone(), clock: this.#parts.clock };
      const packed = packPlain(await runBatch(chunks, name, { ...body, ...ask }));
      this.#answer({ status: 200, bytes: packed, checksum: crc32(packed) });
    });
  }

  /** Aborts when nobody waits for the answer any more. */
  #untilGone(): AbortSignal {
    const gone = new AbortController();
    this.#response.once('close', () => gone.abort());
    return gone.signal;
  }

  /** The same, for what has to wait itself: the end of a connection whose body nobody reads is not seen. */
  #whileWaitedFor(): AbortSignal {
    const gone = new AbortController();
    const giveUp = () => gone.abort(NOBODY_WAITS);
    if (this.#response.closed) giveUp();
    else this.#response.once('close', giveUp);
    void this.#parts.clock.sleep(LIMITS.chunkPullMaxMs, gone.signal).then(giveUp);
    return gone.signal;
  }

  /** Waits for room, takes the whole body and checks it; the room is free again when `use` is done. */
  async #withBody(
    { bytesMax, gate }: { bytesMax: number; gate: ByteGate },
    use: (bytes: Uint8Array, checksum: number) => Promise<void>,
  ): Promise<void> {
    const { takeMemory } = this.#parts;
    const sizeBytes = this.#sizeBytes;
    if (this.#request.headers['transfer-encoding'] !== undefined) throw new Refused('malformed');
    if (sizeBytes > bytesMax) throw new Refused('too-large');
    const expected = parseChecksum(this.#header(HEADER.checksum));
    if (expected === undefined) throw new Refused('malformed');
    await gate.enter(sizeBytes, () => this.#whileWaitedFor());
    let taken: ReturnType<TakeMemory> = { bytes: EMPTY_BYTES };
    try {
      if (sizeBytes > 0) taken = takeMemory(sizeBytes);
      const { bytes } = taken;
      if (!(await receiveBody(this.#request, bytes)))
        throw new Refused('malformed', new Error('the body ended early'));
      if (crc32(bytes) !== expected) throw new Refused('checksum');
      await use(bytes, expected);
    } finally {
      taken.release?.();
      gate.leave(sizeBytes);
    }
  }

  #answer({ status, bytes, sizeBytes = bytes?.length ?? 0, checksum }: Answer, error = ''): void {
    const { prover, disks } = this.#parts;
    const response = this.#response;
    if (response.headersSent || response.destroyed) return;
    const facts = {
      status,
      sizeBytes,
      error,
      checksum: checksum === undefined ? '' : formatChecksum(checksum),
      map: String(disks.mapVersion()),
    };
    response.statusCode = status;
    if (this.#parts.isStopping()) response.shouldKeepAlive = false;
    response.setHeader(HEADER.map, facts.map);
    if (status !== 204) response.setHeader('content-length', sizeBytes);
    if (facts.checksum !== '') response.setHeader(HEADER.checksum, facts.checksum);
    if (error !== '') response.setHeader(HEADER.error, error);
    if (prover !== undefined)
      response.setHeader(HEADER.proof, prover.answer({ ...facts, proof: this.#proof }));
    // A client that does not read the answer loses the connection; also one that reads bit by bit, for which memory is
    // held.
    response.socket?.setTimeout(LIMITS.chunkRequestMaxMs);
    if (bytes !== undefined) this.#endInTime();
    if (bytes === undefined) response.end();
    else this.#endWith(bytes, 0);
  }

  #endWith(bytes: Uint8Array, fromBytes: number): void {
    const response = this.#response;
    const toBytes = partEnd(response.socket, bytes, { fromBytes, partBytes: TLS_PART_BYTES });
    const part = bytes.subarray(fromBytes, toBytes);
    if (toBytes === bytes.length) response.end(part, () => freeMemory(bytes));
    else response.write(part, (error) => error ?? this.#endWith(bytes, toBytes));
  }

  #endInTime(): void {
    const { deadlines } = this.#parts;
    const late = deadlines.add(LIMITS.chunkRequestMaxMs, () => this.#response.destroy());
    this.#response.once('close', () => deadlines.remove(late));
  }

  #sent(): Promise<void> {
    const response = this.#response;
    if (response.closed || response.destroyed) return Promise.resolve();
    return new Promise((resolve) => response.once('close', resolve));
  }

  #refuse(error: unknown): void {
    if (error === NOBODY_WAITS && this.#response.closed) return;
    const code = codeOf(error);
    const { log, onStranger } = this.#parts;
    const { socket, url, method } = this.#request;
    if (code === 'failed' || code === 'other-bytes' || code === 'checksum') {
      // Another node is away, or the caller cancelled: nothing is wrong here.
      const isOfOthers = error instanceof AppError && error.code === 'ServiceUnavailable';
      log[isOfOthers ? 'warn' : 'error']({ err: error, method, path: url }, 'chunk-request-failed');
    }
    if (code === 'stranger' || code === 'other-cluster') {
      onStranger({ remote: socket.remoteAddress });
      this.#turnAway(REFUSALS[code]);
      return;
    }
    // What is too much to be dropped costs its connection.
    if (code === 'too-large' || code === 'malformed') this.#response.shouldKeepAlive = false;
    this.#answer({ status: REFUSALS[code] }, code);
  }

  #turnAway(status: number): void {
    const response = this.#response;
    response.shouldKeepAlive = false;
    response.statusCode = status;
    response.end(() => this.#request.socket.destroySoon());
  }
}
