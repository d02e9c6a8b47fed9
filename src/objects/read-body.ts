// The bytes of a version, piece by piece: located, fetched ahead of a reader that is fast enough to need it, checked,
// unsealed. A piece that it gives is right; where it cannot, it throws, and never ends early as if whole (R33).
import { must } from '../lib/assert.ts';
import { freeMemory } from '../lib/free-memory.ts';
import { openPiece } from '../lib/seal.ts';
import { AppError } from '../model/errors.ts';
import { LIMITS } from '../model/limits.ts';
import { homeShardOf } from '../model/names.ts';
import type { Manifest } from '../model/version.ts';
import type { BodyLease } from './body-budget.ts';
import type { DataPath } from './data-path.ts';
import { type ChunkRun, chunkRuns, locateBlobRuns, MissingPage } from './locate-runs.ts';
import type { ByteRange, MetadataCalls } from './object-store.ts';

const PIECE = LIMITS.sealPieceBytes;

export interface BodyToRead {
  calls: MetadataCalls;
  kek: Uint8Array;
  manifest: Manifest;
  range: ByteRange;
  /** Sealed bytes, when they came with the version. */
  inlineBody?: Uint8Array;
  /** Reads the version again: whether it still stands for this data (R33). */
  isStillThere(): Promise<boolean>;
  /** The reader stands still while others wait for memory. */
  onEvicted(error: AppError): void;
}

/** Plaintext of the range in order, each piece in memory of its own, at most LIMITS.sealPieceBytes long. */
export async function* readPieces(path: DataPath, body: BodyToRead): AsyncGenerator<Buffer> {
  const reader = new ChunkReader(path, body);
  try {
    for (;;) {
      const fetched = await reader.next();
      if (fetched === undefined) return;
      const { run } = fetched;
      const brokenAtBytes = yield* reader.open(fetched);
      if (brokenAtBytes !== undefined) {
        const rest = { ...run, fromBytes: Math.max(brokenAtBytes, run.fromBytes) };
        yield* reader.open({ run: rest, bytes: await reader.fetchSound(run) }, { isLast: true });
      }
      reader.release(run);
    }
  } finally {
    reader.close();
  }
}

interface Fetch {
  run: ChunkRun;
  bytes: Promise<Uint8Array>;
  isDone: boolean;
}

class ChunkReader {
  readonly #path: DataPath;
  readonly #body: BodyToRead;
  readonly #lease: BodyLease;
  readonly #runs: AsyncGenerator<ChunkRun>;
  /** Of the blob that is read now. */
  #dataKey: { blobId: string; bytes: Uint8Array } | undefined;
  /** In order; the first is wanted next. */
  readonly #ahead: Fetch[] = [];
  /** How many may be under way: grows when the reader had to wait. Who reads slowly holds little. */
  #window = 1;
  /** Of the range, not yet begun to be fetched. */
  #leftBytes: number;
  /** Held for what is on its way to the client, once it has begun. */
  readonly #toSendBytes: number;
  #hasBegun = false;
  #validatedAtMs: number;

  constructor(path: DataPath, body: BodyToRead) {
    this.#path = path;
    this.#body = body;
    this.#leftBytes = body.range.sizeBytes;
    this.#toSendBytes = Math.min(body.range.sizeBytes, LIMITS.piecesToSendMax * PIECE);
    this.#lease = path.budget.open({
      needBytes: path.settings.chunkSizeBytes + this.#toSendBytes,
      onEvicted: (error) => body.onEvicted(error),
    });
    this.#runs = allChunkRuns(body);
    this.#validatedAtMs = path.clock.monotonicMs();
  }

  async next(): Promise<{ run: ChunkRun; bytes: Uint8Array } | undefined> {
    await this.#revalidate();
    if (this.#ahead.length === 0) {
      // Who has been given all waits for nobody to hear of the end.
      if (this.#leftBytes === 0) return undefined;
      const toBeginBytes = this.#hasBegun ? 0 : this.#toSendBytes;
      const room = this.#lease.admit(this.#path.settings.chunkSizeBytes + toBeginBytes);
      if (room !== undefined) await room;
      if (!this.#hasBegun) {
        this.#hasBegun = true;
        this.#lease.hold(this.#toSendBytes);
      }
      await this.#begin();
    }
    const first = this.#ahead[0];
    if (first === undefined) return undefined;
    if (!first.isDone) this.#window = Math.min(this.#window + 1, 1 + LIMITS.readAheadChunks);
    while (this.#ahead.length < this.#window && this.#leftBytes > 0 && this.#lease.hasRoom())
      await this.#begin();
    const bytes = await first.bytes;
    this.#ahead.shift();
    return { run: first.run, bytes };
  }

  /** Begins to fetch the next run, if there is one. */
  async #begin(): Promise<void> {
    const next = await this.#nextRun();
    if (next.done === true) {
      this.#leftBytes = 0;
      return;
    }
    const run = next.value;
    this.#leftBytes -= run.toBytes - run.fromBytes;
    this.#lease.hold(run.chunkBytes);
    const fetch: Fetch = { run, bytes: this.#fetch(run), isDone: false };
    const settle = () => {
      fetch.isDone = true;
    };
    fetch.bytes.then(settle, settle);
    this.#ahead.push(fetch);
  }

  async #nextRun(): Promise<IteratorResult<ChunkRun>> {
    try {
      return await this.#runs.next();
    } catch (error) {
      if (error instanceof MissingPage && (await this.#body.isStillThere()))
        this.#path.log.error({ err: error.cause }, 'data-of-a-version-is-lost');
      throw error;
    }
  }

  async #fetch(run: ChunkRun): Promise<Uint8Array> {
    const { use, chunkIndex } = run;
    const { blobId } = use;
    if (use.storage === 'inline') {
      if (this.#body.inlineBody !== undefined) return this.#body.inlineBody;
      const { value } = await this.#body.calls.query({ shard: homeShardOf(blobId) }, 'get-bodies', {
        blobIds: [blobId],
      });
      return value.bodies[0] ?? this.#fail(run, 'missing');
    }
    // Each piece is proven by its tag before it is given on.
    const read = await this.#path.chunks.get({ blobId, index: chunkIndex }, { isProven: true });
    return read.kind === 'found' ? read.bytes : this.#fail(run, read.kind);
  }

  /** Again, of a chunk whose tags are wrong: a copy that is as it was stored, where there is one (R37). */
  async fetchSound(run: ChunkRun): Promise<Uint8Array> {
    const { blobId } = run.use;
    const read = await this.#path.chunks.get({ blobId, index: run.chunkIndex }, { isProven: false });
    return read.kind === 'found' ? read.bytes : this.#fail(run, read.kind);
  }

  /**
   * The pieces of a fetched chunk that the range covers, cut to it. A chunk of the store's is gone afterwards. Returns
   * where a piece begins that its tag does not prove, unless this is the last try.
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

  *#openAll({ run, bytes }: { run: ChunkRun; bytes: Uint8Array }): Generator<Buffer, number | undefined> {
    const { use, chunkIndex, chunkBytes, isLastChunk, fromBytes, toBytes } = run;
    const { blobId } = use;
    const position = { blobId, chunkIndex, isLastChunk, sizeBytes: chunkBytes, pieceBytes: PIECE };
    if (this.#dataKey?.blobId !== blobId)
      this.#dataKey = { blobId, bytes: this.#path.keys.openDataKey(this.#body.kek, use) };
    const dataKey = this.#dataKey.bytes;
    for (let piece = Math.floor(fromBytes / PIECE); piece * PIECE < toBytes; piece++) {
      const plaintext = openPiece({ dataKey, position, chunk: bytes, piece });
      if (plaintext === undefined) {
        this.#path.log.error({ blobId, chunkIndex, piece }, 'chunk-does-not-open');
        return piece * PIECE;
      }
      const startBytes = piece * PIECE;
      this.#lease.idle();
      yield plaintext.subarray(Math.max(fromBytes - startBytes, 0), toBytes - startBytes);
      this.#lease.busy();
    }
    return undefined;
  }

  release(run: ChunkRun): void {
    this.#lease.release(run.chunkBytes);
  }

  async #revalidate(): Promise<void> {
    const nowMs = this.#path.clock.monotonicMs();
    if (nowMs - this.#validatedAtMs < LIMITS.readerRevalidateMs) return;
    if (!(await this.#body.isStillThere())) throw new AppError('ServiceUnavailable', { cause: GONE });
    this.#validatedAtMs = nowMs;
  }

  /** Why there are no bytes: the version has gone, which may happen, or data is lost, which is an alarm (R33, R37). */
  async #fail({ use, chunkIndex }: ChunkRun, kind: 'missing' | 'damaged'): Promise<never> {
    const { blobId } = use;
    if (kind === 'missing' && !(await this.#body.isStillThere()))
      throw new AppError('ServiceUnavailable', { cause: GONE });
    this.#path.log.error({ blobId, chunkIndex, kind }, 'data-of-a-version-is-lost');
    throw new AppError(kind === 'missing' ? 'ServiceUnavailable' : 'InternalError', {
      cause: new Error(`chunk ${chunkIndex} of ${blobId} is ${kind}`),
    });
  }

  close(): void {
    this.#lease.close();
  }
}

const GONE = new Error('the version was replaced while it was read');

async function* allChunkRuns({ calls, manifest, range }: BodyToRead): AsyncGenerator<ChunkRun> {
  for await (const runs of locateBlobRuns(calls, manifest, range))
    for (const run of runs) yield* chunkRuns(run);
}

/** The plaintext of an inline body that came with its version: the shortest way, without waiting for anything. */
export function openWholeInline(
  path: DataPath,
  body: Pick<BodyToRead, 'kek' | 'manifest' | 'range'> & { inlineBody: Uint8Array },
): Buffer {
  const { manifest, range } = body;
  const use = must(manifest.kind === 'direct' ? manifest.uses[0] : undefined, 'one inline blob');
  const dataKey = path.keys.openDataKey(body.kek, use);
  const { blobId, sizeBytes } = use;
  const position = { blobId, chunkIndex: 0, isLastChunk: true, sizeBytes, pieceBytes: PIECE };
  const plaintext = openPiece({ dataKey, position, chunk: body.inlineBody, piece: 0 });
  if (plaintext === undefined) {
    path.log.error({ blobId }, 'inline-body-does-not-open');
    throw new AppError('InternalError', { cause: new Error(`the inline body of ${blobId}`) });
  }
  return plaintext.subarray(range.offsetBytes, range.offsetBytes + range.sizeBytes);
}
