// The bytes of a version, in order: located, fetched ahead for a reader that is fast enough, verified, unsealed. Each
// returned buffer is correct; on damage the generator throws, and never ends early as if complete (R33).
import { must } from '../base/assert.ts';
import {
  type BlockRange,
  type ChunkPosition,
  openBlock,
  sealedBytes,
  sealedPart,
} from '../base/crypto/seal.ts';
import { freeMemory } from '../base/free-memory.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import { homeShardOf } from '../types/names.ts';
import { decodePiece, type PieceRecord } from '../types/records/piece-record.ts';
import type { Tenant } from '../types/tenant.ts';
import { type Manifest, type ManifestPage, ownBody } from '../types/version.ts';
import type { BodyLease } from './body-budget.ts';
import type { DataPath } from './data-path.ts';
import { type ChunkRun, chunkRuns, locateBlobRuns, MissingPage } from './locate-runs.ts';
import type { ByteRange, MetadataCalls } from './object-store.ts';

const BLOCK_BYTES = LIMITS.sealBlockBytes;

export interface BodyToRead {
  /** The tenant whose memory it takes. */
  tenant: Tenant;
  /** Its request holds other memory meanwhile (BodyNeeds). */
  isWithin?: boolean;
  calls: MetadataCalls;
  kek: Uint8Array;
  manifest: Manifest;
  range: ByteRange;
  /** Sealed bytes, if they came with the version. */
  inlineBody?: Uint8Array;
  /**
   * Reads the version again and returns its manifest if it still has these bytes (R33); they may have been compacted
   * meanwhile.
   */
  reread(): Promise<Manifest | undefined>;
  /** The object's name, for the operator's log. */
  name?: { bucket: string; key: string; version: string };
  /** Called when the reader stands still while others wait for memory. */
  onEvicted(error: AppError): void;
}

/**
 * The plaintext of the range in order, in buffers of their own of at most LIMITS.sealBlockBytes. A reader that stands still
 * while others wait for memory keeps the buffer that it has; the rest of its chunk is fetched again.
 */
export async function* readPlaintext(path: DataPath, body: BodyToRead): AsyncGenerator<Buffer> {
  for await (const batch of readPlaintextBatches(path, body)) yield* batch;
}

/**
 * As readPlaintext, up to LIMITS.piecesGivenMax buffers at a time for a reader who took those before within LIMITS.quickReadMs, while
 * much memory is free: each hand over costs more than a buffer's bytes do.
 */
export async function* readPlaintextBatches(path: DataPath, body: BodyToRead): AsyncGenerator<Buffer[]> {
  const reader = new ChunkReader(path, body);
  try {
    for (;;) {
      const fetched = await reader.next();
      if (fetched === undefined) return;
      for await (const batch of openFetched(reader, fetched)) {
        reader.give(batch);
        yield batch;
        if (!reader.goOn(fetched)) break;
      }
      reader.release(fetched);
    }
  } finally {
    reader.close();
  }
}

async function* openFetched(reader: ChunkReader, fetched: Fetched): AsyncGenerator<Buffer[]> {
  const [run] = fetched.runs;
  if (run?.use.storage === 'pieces') yield [reader.openGrown(run, fetched.bytes)];
  else if (fetched.runs.length > 1) yield [reader.openTogether(fetched)];
  else yield* openSingle(reader, fetched);
}

/** A chunk whose tags do not fit is fetched again. */
async function* openSingle(reader: ChunkReader, fetched: Fetched): AsyncGenerator<Buffer[]> {
  const run = must(fetched.runs[0], 'a fetch has a run');
  const brokenAtBytes = fetched.isOpened
    ? yield* inBatches(reader.cut(run, fetched.bytes), () => reader.piecesToGive())
    : yield* inBatches(reader.open({ run, bytes: must(fetched.bytes[0], 'bytes of its chunk') }));
  if (brokenAtBytes === undefined) return;
  const rest = { ...run, fromBytes: Math.max(brokenAtBytes, run.fromBytes) };
  const sound = await reader.fetchSound(run);
  fetched.bytes = [sound];
  yield* inBatches(reader.open({ run: rest, bytes: sound }, { isLast: true }));
}

/** Several buffers at a time: as many as `count` says when a batch begins. */
function* inBatches<T>(buffers: Generator<Buffer, T>, count = () => 1): Generator<Buffer[], T> {
  try {
    for (;;) {
      const batch: Buffer[] = [];
      for (let left = count(); left > 0; left--) {
        const next = buffers.next();
        if (next.done === true) {
          if (batch.length > 0) yield batch;
          return next.value;
        }
        batch.push(next.value);
      }
      yield batch;
    }
  } finally {
    // Who reads no further leaves memory that they give back at their end.
    buffers.return(undefined as T);
  }
}

/** One fetch: a run of one chunk, several small bodies in one shard, or a run of a growing blob, with its rows as bytes. */
interface Fetched {
  runs: readonly ChunkRun[];
  bytes: Uint8Array[];
  /** `bytes` are plaintext: the seal blocks of the run, up to the first that does not verify. */
  isOpened: boolean;
  /** Its memory was released before all of it was read. */
  isDropped: boolean;
}

interface Fetch {
  runs: readonly ChunkRun[];
  bytes: Promise<Uint8Array[]>;
  isOpened: boolean;
  isDone: boolean;
}

/** A body of several blobs may have chunks of several sizes. Which those in pages have is not known yet. */
function largestChunkBytes({ settings }: DataPath, manifest: Manifest): number {
  let largestBytes = settings.chunkSizeBytes;
  if (manifest.kind === 'paged') return settings.largeChunkSizeBytes ?? largestBytes;
  for (const { storage, chunkSizeBytes } of manifest.uses)
    if (storage === 'chunks' && chunkSizeBytes > largestBytes) largestBytes = chunkSizeBytes;
  return largestBytes;
}

class ChunkReader {
  readonly #path: DataPath;
  readonly #body: BodyToRead;
  readonly #lease: BodyLease;
  #manifest: Manifest;
  #runs: AsyncGenerator<ChunkRun[]>;
  /** Of the current blob. */
  #dataKey: { blobId: string; bytes: Uint8Array } | undefined;
  /** In order; the first is needed next. */
  readonly #ahead: Fetch[] = [];
  /** Fetches that may be under way. Grows when the reader had to wait, so a slow reader holds little. */
  #window = 1;
  /** Bytes of the range for which no fetch has begun. */
  #leftBytes: number;
  /** Bytes of the range that the reader has. */
  #givenBytes = 0;
  /** The fetch that is being read. */
  #current: Fetched | undefined;
  /** What one fetch takes. */
  readonly #chunkSizeBytes: number;
  /** What it takes besides while a chunk is opened. */
  readonly #openingBytes: number;
  /** Memory for the buffer on its way to the client, while a chunk is read. */
  readonly #toSendBytes: number;
  /** Of the manifest's own pieces, where they are many. */
  readonly #manifestBytes: number;
  /** What the batch on its way takes beyond that. */
  #batchBytes = 0;
  #givenAtMs = 0;
  /** The client took its last buffers within LIMITS.quickReadMs. */
  #isQuick = false;
  #hasBegun = false;
  /** `#toSendBytes` count. */
  #isSending = false;
  #validatedAtMs: number;

  constructor(path: DataPath, body: BodyToRead) {
    this.#path = path;
    this.#body = body;
    this.#leftBytes = body.range.sizeBytes;
    this.#toSendBytes = Math.min(body.range.sizeBytes, BLOCK_BYTES);
    this.#chunkSizeBytes = largestChunkBytes(path, body.manifest);
    const isOpened = body.range.sizeBytes > LIMITS.codecInlineBytesMax;
    this.#openingBytes = isOpened ? this.#chunkSizeBytes : 0;
    this.#manifest = body.manifest;
    const segmentCount = ownBody(body.manifest)?.segments.length ?? 0;
    this.#manifestBytes = memoryOf(segmentCount);
    this.#lease = path.budget.open({
      tenant: body.tenant,
      patience: body.calls.patience,
      onShrink: () => this.#shrink(),
      needBytes: this.#chunkSizeBytes + this.#openingBytes + this.#toSendBytes,
      // Its request is counted, and so are those that may wait.
      ...(body.isWithin && { isWithin: true, needsNoPlace: true }),
      onEvicted: (error) => body.onEvicted(error),
    });
    this.#runs = this.#runsOf(body.range);
    this.#validatedAtMs = path.clock.monotonicMs();
  }

  async next(): Promise<Fetched | undefined> {
    await this.#revalidate();
    if (this.#ahead.length === 0) {
      // All bytes are delivered: do not wait for memory only to signal the end.
      if (this.#leftBytes === 0) return undefined;
      await this.#admit();
      await this.#begin();
    }
    const first = this.#ahead[0];
    if (first === undefined) return undefined;
    if (!first.isDone) this.#window = Math.min(this.#window + 1, 1 + LIMITS.readAheadChunks);
    while (this.#ahead.length < this.#window && this.#leftBytes > 0 && this.#lease.hasRoom())
      await this.#begin();
    // Each that comes in time shows a long copy, or a digest, to get on.
    const answered = this.#body.calls.patience.begin();
    const fromMs = this.#path.clock.monotonicMs();
    const bytes = await first.bytes;
    if (this.#path.clock.monotonicMs() - fromMs <= LIMITS.copyLateMs) answered();
    // Nothing was idle during the wait: it is still the first.
    this.#ahead.shift();
    this.#current = { runs: first.runs, bytes, isOpened: first.isOpened, isDropped: false };
    return this.#current;
  }

  /** Not before it may begin: who waits for memory holds none. */
  async #admit(): Promise<void> {
    const toBeginBytes = this.#hasBegun ? 0 : this.#manifestBytes;
    const room = this.#lease.admit(
      this.#chunkSizeBytes + this.#openingBytes + this.#toSendBytes + toBeginBytes,
    );
    if (room !== undefined) await room;
    if (!this.#hasBegun) this.#lease.holdBeside(this.#manifestBytes);
    this.#hasBegun = true;
    if (!this.#isSending) this.#lease.hold(this.#toSendBytes);
    this.#isSending = true;
  }

  /** How many buffers the next batch may have. */
  piecesToGive(): number {
    return this.#isQuick && this.#lease.hasRoom() ? LIMITS.piecesGivenMax : 1;
  }

  /** The reader gets buffers; the fetches behind them wait for the client. */
  give(batch: readonly Buffer[]): void {
    const sizeBytes = batch.reduce((sum, { length }) => sum + length, 0);
    this.#givenBytes += sizeBytes;
    this.#givenAtMs = this.#path.clock.monotonicMs();
    this.#batchBytes = Math.max(0, sizeBytes - this.#toSendBytes);
    this.#lease.hold(this.#batchBytes);
    this.#lease.idle();
  }

  /** The client has taken its buffers. False when the rest of the fetch was released meanwhile. */
  goOn(fetched: Fetched): boolean {
    this.#isQuick = this.#path.clock.monotonicMs() - this.#givenAtMs <= LIMITS.quickReadMs;
    this.#lease.busy();
    this.#lease.release(this.#batchBytes);
    this.#batchBytes = 0;
    this.#lease.progress();
    return !fetched.isDropped;
  }

  /** Releases everything but the buffers that the client has; the rest is located and fetched again. */
  #shrink(): void {
    const { range } = this.#body;
    if (this.#current !== undefined) this.#drop(this.#current);
    this.#dropAhead();
    this.#window = 1;
    this.#leftBytes = range.sizeBytes - this.#givenBytes;
    const offsetBytes = range.offsetBytes + this.#givenBytes;
    const rest = { offsetBytes, sizeBytes: this.#leftBytes };
    this.#runs = this.#runsOf(rest);
  }

  /** What names the pieces is kept as long as the client reads: all of a manifest's own, and those of one page. */
  #runsOf(range: ByteRange): AsyncGenerator<ChunkRun[]> {
    const onPage = ({ segments }: ManifestPage) =>
      this.#lease.holdBeside(this.#manifestBytes + memoryOf(segments.length));
    return runsToFetch({ calls: this.#body.calls, manifest: this.#manifest, range, onPage });
  }

  #drop(fetched: Fetched): void {
    if (fetched.isDropped) return;
    fetched.isDropped = true;
    freeChunks(fetched);
    this.#lease.release(chunkBytesOf(fetched.runs));
  }

  #dropAhead(): void {
    for (const { bytes, ...fetch } of this.#ahead.splice(0)) {
      const drop = (come: Uint8Array[]) => this.#drop({ ...fetch, bytes: come, isDropped: false });
      bytes.then(drop, () => drop([]));
    }
  }

  /** Begins the next fetch, if there is one. */
  async #begin(): Promise<void> {
    const next = await this.#nextRun();
    if (next.done === true) {
      this.#leftBytes = 0;
      return;
    }
    const runs = next.value;
    this.#leftBytes -= runs.reduce((sum, run) => sum + run.toBytes - run.fromBytes, 0);
    this.#lease.hold(chunkBytesOf(runs));
    const isOpened = isOpenedAhead(runs);
    if (!isOpened) this.#lease.hasTaken();
    const fetch: Fetch = { runs, bytes: this.#fetch(runs, isOpened), isOpened, isDone: false };
    const onEnd = () => {
      fetch.isDone = true;
    };
    fetch.bytes.then(onEnd, onEnd);
    this.#ahead.push(fetch);
  }

  async #nextRun(): Promise<IteratorResult<ChunkRun[]>> {
    try {
      return await this.#runs.next();
    } catch (error) {
      if (error instanceof MissingPage && (await this.#body.reread()) !== undefined)
        this.#path.log.error({ ...this.#body.name, err: error.cause }, 'data-of-a-version-is-lost');
      throw error;
    }
  }

  async #fetch(runs: readonly ChunkRun[], isOpened: boolean): Promise<Uint8Array[]> {
    const [run] = runs;
    if (run?.use.storage === 'inline') return this.#fetchBodies(runs);
    if (run?.use.storage === 'pieces') return this.#fetchPieces(run);
    if (run !== undefined && isOpened) return this.#fetchOpened(run);
    return Promise.all(runs.map((one) => this.#fetchChunk(one)));
  }

  async #fetchBodies(runs: readonly ChunkRun[]): Promise<Uint8Array[]> {
    const { inlineBody, calls } = this.#body;
    if (inlineBody !== undefined) return [inlineBody];
    const blobIds = runs.map(({ use }) => use.blobId);
    const shard = homeShardOf(must(blobIds[0], 'a body is asked for'));
    const { value } = await calls.query({ shard }, 'get-bodies', { blobIds });
    return Promise.all(runs.map((run, index) => value.bodies[index] ?? this.#fail(run, 'missing')));
  }

  /** The rows that the version uses: others may have been appended since. */
  async #fetchPieces(run: ChunkRun): Promise<Uint8Array[]> {
    const { blobId, grown } = run.use;
    const { pieceCount } = must(grown, 'pieces tell how many they are');
    const shard = homeShardOf(blobId);
    const { value } = await this.#body.calls.query({ shard }, 'get-pieces', { blobId, pieceCount });
    return value.pieces ?? this.#fail(run, 'missing');
  }

  /** All of the chunk, or the seal blocks of the run alone. */
  async #fetchChunk(run: ChunkRun): Promise<Uint8Array> {
    const { blobId } = run.use;
    const part = sealedPart(positionOf(run), blocksOf(run));
    // Each seal block is verified by its tag before it is returned.
    const how = { isProven: true, ...(part.sizeBytes < sealedBytes(positionOf(run)) && { part }) };
    const read = await this.#path.chunks.get({ blobId, index: run.chunkIndex }, how);
    return read.kind === 'found' ? read.bytes : this.#fail(run, read.kind);
  }

  /** The plaintext of the run's seal blocks, up to the first that does not verify. */
  async #fetchOpened(run: ChunkRun): Promise<Uint8Array[]> {
    const { chunkBytes } = run;
    const chunk = (await this.#fetchChunk(run)) as Uint8Array<ArrayBuffer>;
    const position = positionOf(run);
    const held = heldOf(run, chunk);
    const options = { dataKey: this.#dataKeyOf(run), position, chunk, held, ...blocksOf(run) };
    // Sealed bytes and plaintext are there at the same time.
    this.#lease.hold(chunkBytes);
    this.#lease.hasTaken();
    try {
      return await this.#path.codecs.openBlocks(options);
    } finally {
      // The chunk is held until the client has read it, by the same grant.
      this.#lease.release(chunkBytes, { endsStep: false });
    }
  }

  /** Fetches a chunk whose tags do not fit again: an intact copy, where there is one (R37). */
  async fetchSound(run: ChunkRun): Promise<Uint8Array> {
    const { blobId } = run.use;
    const read = await this.#path.chunks.get({ blobId, index: run.chunkIndex }, { isProven: false });
    return read.kind === 'found' ? read.bytes : this.#fail(run, read.kind);
  }

  /**
   * The seal blocks of a fetched chunk within the range, cut to it. Uses up chunks of the store. Returns where a block
   * begins that does not verify, unless this is the last try.
   */
  *open(
    fetched: { run: ChunkRun; bytes: Uint8Array },
    { isLast = fetched.run.use.storage === 'inline' } = {},
  ): Generator<Buffer, number | undefined> {
    try {
      const brokenAtBytes = yield* this.#openAll(fetched);
      if (brokenAtBytes === undefined || !isLast) return brokenAtBytes;
      const { chunkIndex, use } = fetched.run;
      throw new AppError('InternalError', { cause: new Error(`chunk ${chunkIndex} of ${use.blobId}`) });
    } finally {
      if (fetched.run.use.storage === 'chunks') freeMemory(fetched.bytes);
    }
  }

  /** The plaintext of several small bodies, in a buffer of its own. */
  openTogether({ runs, bytes }: Fetched): Buffer {
    const bodies = runs.flatMap((run, index) => [
      ...this.open({ run, bytes: must(bytes[index], 'bytes of each run') }),
    ]);
    return Buffer.concat(bodies);
  }

  /** The plaintext of a range of a growing blob, in a buffer of its own. */
  openGrown({ use, fromBytes, toBytes }: ChunkRun, rows: readonly Uint8Array[]): Buffer {
    const pieces = this.#decodePieces(use.blobId, rows);
    const sizeBytes = pieces.reduce((sum, piece) => sum + piece.sizeBytes, 0);
    // R23: another piece may have taken the place of a lost one.
    if (pieces.at(-1)?.pieceId !== use.grown?.lastPieceId || sizeBytes !== use.sizeBytes)
      throw this.#unsound(use.blobId, 'pieces-are-others');
    const key = this.#path.keys.openDataKey(this.#body.kek, use);
    const opened: Buffer[] = [];
    let startBytes = 0;
    for (const piece of pieces) {
      const [from, to] = [
        Math.max(fromBytes - startBytes, 0),
        Math.min(toBytes - startBytes, piece.sizeBytes),
      ];
      startBytes += piece.sizeBytes;
      if (from < to) opened.push(this.#openPieceRow(piece, key).subarray(from, to));
    }
    return Buffer.concat(opened);
  }

  #decodePieces(blobId: string, rows: readonly Uint8Array[]): PieceRecord[] {
    try {
      return rows.map(decodePiece);
    } catch {
      throw this.#unsound(blobId, 'piece-does-not-open');
    }
  }

  #openPieceRow({ pieceId, sizeBytes, wrappedDataKey, sealed }: PieceRecord, key: Uint8Array): Buffer {
    const dataKey = this.#path.keys.openDataKey(key, { blobId: pieceId, wrappedDataKey });
    const position = {
      blobId: pieceId,
      chunkIndex: 0,
      isLastChunk: true,
      sizeBytes,
      blockBytes: BLOCK_BYTES,
    };
    const plaintext = openBlock({ dataKey, position, chunk: sealed, block: 0 });
    if (plaintext === undefined) throw this.#unsound(pieceId, 'piece-does-not-open');
    return plaintext;
  }

  #unsound(blobId: string, event: string): AppError {
    this.#path.log.error({ blobId }, event);
    return new AppError('InternalError', { cause: new Error(`pieces of ${blobId}`) });
  }

  #openAll({ run, bytes }: { run: ChunkRun; bytes: Uint8Array }): Generator<Buffer, number | undefined> {
    const [dataKey, position, held] = [this.#dataKeyOf(run), positionOf(run), heldOf(run, bytes)];
    return this.#giveBlocks(run, (block) => openBlock({ dataKey, position, chunk: bytes, block, held }));
  }

  /**
   * As `open`, of seal blocks that are plaintext already. Each leaves the list before it is given: whoever drops the list does not
   * free what the client has.
   */
  cut(run: ChunkRun, blocks: Uint8Array[]): Generator<Buffer, number | undefined> {
    return this.#giveBlocks(run, () => {
      const next = blocks.shift();
      return next && Buffer.from(next.buffer, next.byteOffset, next.length);
    });
  }

  /** The plaintext that `plaintextOf` has of each seal block of the run, cut to it, up to the first of which it has none. */
  *#giveBlocks(
    run: ChunkRun,
    plaintextOf: (block: number) => Buffer | undefined,
  ): Generator<Buffer, number | undefined> {
    const { fromBytes, toBytes } = run;
    for (let block = Math.floor(fromBytes / BLOCK_BYTES); block * BLOCK_BYTES < toBytes; block++) {
      const plaintext = plaintextOf(block);
      if (plaintext === undefined) return this.#brokenAt(run, block);
      const startBytes = block * BLOCK_BYTES;
      yield plaintext.subarray(Math.max(fromBytes - startBytes, 0), toBytes - startBytes);
    }
    return undefined;
  }

  /** Where the block begins in the chunk, in bytes of plaintext. */
  #brokenAt({ use, chunkIndex }: ChunkRun, block: number): number {
    this.#path.log.error({ blobId: use.blobId, chunkIndex, block }, 'chunk-does-not-open');
    return block * BLOCK_BYTES;
  }

  #dataKeyOf({ use }: ChunkRun): Uint8Array {
    if (this.#dataKey?.blobId !== use.blobId)
      this.#dataKey = { blobId: use.blobId, bytes: this.#path.keys.openDataKey(this.#body.kek, use) };
    return this.#dataKey.bytes;
  }

  release(fetched: Fetched): void {
    // Between two chunks it holds nothing but what names its pieces. So who waits for the next chunk keeps no room of others, and
    // needs none beyond the limit, which a slow client would keep for as long as it likes.
    if (this.#ahead.length === 0 && this.#isSending) {
      this.#lease.release(this.#toSendBytes, { endsStep: false });
      this.#isSending = false;
    }
    this.#drop(fetched);
    this.#current = undefined;
  }

  async #revalidate(): Promise<void> {
    const nowMs = this.#path.clock.monotonicMs();
    if (nowMs - this.#validatedAtMs < LIMITS.readerRevalidateMs) return;
    const manifest = await this.#body.reread();
    if (manifest === undefined) throw new AppError('ServiceUnavailable', { cause: GONE });
    this.#validatedAtMs = nowMs;
    // Compacted data is found in its new place; fetches under way still read the old one.
    const { range } = this.#body;
    const offsetBytes = range.offsetBytes + range.sizeBytes - this.#leftBytes;
    this.#manifest = manifest;
    this.#runs = this.#runsOf({ offsetBytes, sizeBytes: this.#leftBytes });
  }

  /** The reason for missing bytes: the version is gone, which is normal, or data is lost, which is an alarm (R33, R37). */
  async #fail({ use, chunkIndex }: ChunkRun, kind: 'missing' | 'damaged'): Promise<never> {
    const { blobId } = use;
    if (kind === 'missing' && (await this.#isReplaced(blobId)))
      throw new AppError('ServiceUnavailable', { cause: GONE });
    this.#path.log.error({ ...this.#body.name, blobId, chunkIndex, kind }, 'data-of-a-version-is-lost');
    if (use.storage === 'chunks') this.#path.noteLost?.({ blobId, index: chunkIndex }, kind);
    throw new AppError(kind === 'missing' ? 'ServiceUnavailable' : 'InternalError', {
      cause: new Error(`chunk ${chunkIndex} of ${blobId} is ${kind}`),
    });
  }

  /** The version is gone, or the blob was compacted into another one. */
  async #isReplaced(blobId: string): Promise<boolean> {
    const manifest = await this.#body.reread();
    if (manifest === undefined) return true;
    return isNamed(blobId, this.#manifest) && !isNamed(blobId, manifest);
  }

  close(): void {
    this.#dropAhead();
    this.#lease.close();
  }
}

/** Whether codec threads open it while the client reads what comes before: chunks of which much is read. */
function isOpenedAhead([run, ...others]: readonly ChunkRun[]): boolean {
  if (run === undefined || others.length > 0 || run.use.storage !== 'chunks') return false;
  return run.toBytes - run.fromBytes > LIMITS.codecInlineBytesMax;
}

function positionOf({ use, chunkIndex, isLastChunk, chunkBytes }: ChunkRun): ChunkPosition {
  return {
    blobId: use.blobId,
    chunkIndex,
    isLastChunk,
    sizeBytes: chunkBytes,
    blockBytes: BLOCK_BYTES,
  };
}

/** The seal blocks that have bytes of the run. */
function blocksOf({ fromBytes, toBytes }: ChunkRun): BlockRange {
  return { fromBlock: Math.floor(fromBytes / BLOCK_BYTES), toBlock: Math.ceil(toBytes / BLOCK_BYTES) };
}

/** What was fetched for the run; undefined: the whole chunk. */
function heldOf(run: ChunkRun, bytes: Uint8Array): BlockRange | undefined {
  return bytes.length === sealedBytes(positionOf(run)) ? undefined : blocksOf(run);
}

/** Chunks of the store are buffers of their own; rows may be shared. */
function freeChunks({ runs, bytes }: Fetched): void {
  if (runs[0]?.use.storage === 'chunks') for (const chunk of bytes) freeMemory(chunk);
}

function isNamed(blobId: string, manifest: Manifest): boolean {
  return ownBody(manifest)?.uses.some((use) => use.blobId === blobId) ?? false;
}

/** Of a segment with the use of its blob. */
const SEGMENT_MEMORY_BYTES = 512;
/** So few count nothing. */
const UNCOUNTED_SEGMENTS_MAX = 64;

function memoryOf(segmentCount: number): number {
  return segmentCount > UNCOUNTED_SEGMENTS_MAX ? segmentCount * SEGMENT_MEMORY_BYTES : 0;
}

const GONE = new Error('the version was replaced while it was read');

type BytesToFind = Pick<BodyToRead, 'calls' | 'manifest' | 'range'> & { onPage(page: ManifestPage): void };

/** The fetches, in order: chunks one by one, adjacent small bodies together. */
async function* runsToFetch({ calls, manifest, range, onPage }: BytesToFind): AsyncGenerator<ChunkRun[]> {
  for await (const located of locateBlobRuns(calls, manifest, range, onPage)) {
    let bodies: ChunkRun[] = [];
    for (const run of chunkRuns(located)) {
      if (bodies.length > 0 && !joins(bodies, run)) {
        yield bodies;
        bodies = [];
      }
      if (run.use.storage === 'inline') bodies.push(run);
      else yield [run];
    }
    if (bodies.length > 0) yield bodies;
  }
}

function joins(bodies: readonly ChunkRun[], { use, chunkBytes }: ChunkRun): boolean {
  const [first] = bodies;
  return (
    use.storage === 'inline' &&
    first !== undefined &&
    homeShardOf(use.blobId) === homeShardOf(first.use.blobId) &&
    bodies.length < LIMITS.bodiesPerCallMax &&
    chunkBytesOf(bodies) + chunkBytes <= LIMITS.bodiesPerCallBytesMax
  );
}

function chunkBytesOf(runs: readonly ChunkRun[]): number {
  return runs.reduce((sum, { chunkBytes }) => sum + chunkBytes, 0);
}

/** The plaintext of an inline body that came with its version: the shortest path, without waiting. */
export function openWholeInline(
  path: DataPath,
  body: Pick<BodyToRead, 'kek' | 'manifest' | 'range'> & { inlineBody: Uint8Array },
): Buffer {
  const { manifest, range } = body;
  const use = must(manifest.kind === 'direct' ? manifest.uses[0] : undefined, 'one inline blob');
  const dataKey = path.keys.openDataKey(body.kek, use);
  const { blobId, sizeBytes } = use;
  const position = { blobId, chunkIndex: 0, isLastChunk: true, sizeBytes, blockBytes: BLOCK_BYTES };
  const plaintext = openBlock({ dataKey, position, chunk: body.inlineBody, block: 0 });
  if (plaintext === undefined) {
    path.log.error({ blobId }, 'inline-body-does-not-open');
    throw new AppError('InternalError', { cause: new Error(`the inline body of ${blobId}`) });
  }
  return plaintext.subarray(range.offsetBytes, range.offsetBytes + range.sizeBytes);
}
