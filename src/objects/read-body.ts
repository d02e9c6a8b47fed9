// The bytes of a version, piece by piece: located, fetched ahead of a reader that is fast enough to need it, checked,
// unsealed. A piece that it gives is right; where it cannot, it throws, and never ends early as if whole (R33).
import { must } from '../base/assert.ts';
import { openPiece } from '../base/crypto/seal.ts';
import { freeMemory } from '../base/free-memory.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import { homeShardOf } from '../types/names.ts';
import { decodePiece, type PieceRecord } from '../types/records/piece-record.ts';
import type { Tenant } from '../types/tenant.ts';
import { type Manifest, ownBody } from '../types/version.ts';
import type { BodyLease } from './body-budget.ts';
import type { DataPath } from './data-path.ts';
import { type ChunkRun, chunkRuns, locateBlobRuns, MissingPage } from './locate-runs.ts';
import type { ByteRange, MetadataCalls } from './object-store.ts';

const PIECE = LIMITS.sealPieceBytes;

export interface BodyToRead {
  /** Whose memory it takes. */
  tenant: Tenant;
  calls: MetadataCalls;
  kek: Uint8Array;
  manifest: Manifest;
  range: ByteRange;
  /** Sealed bytes, when they came with the version. */
  inlineBody?: Uint8Array;
  /** Reads the version again: its manifest, where it still has these bytes (R33); they may have been folded meanwhile. */
  reread(): Promise<Manifest | undefined>;
  /** Whose bytes they are, for the log of the operator. */
  name?: { bucket: string; key: string; version: string };
  /** The reader stands still while others wait for memory. */
  onEvicted(error: AppError): void;
}

/**
 * Plaintext of the range in order, each piece in memory of its own, at most LIMITS.sealPieceBytes long. A reader that
 * stands still while others wait for memory keeps the piece that it was given; the rest of its chunk is fetched again.
 */
export async function* readPieces(path: DataPath, body: BodyToRead): AsyncGenerator<Buffer> {
  const reader = new ChunkReader(path, body);
  try {
    for (;;) {
      const fetched = await reader.next();
      if (fetched === undefined) return;
      for await (const piece of openFetched(reader, fetched)) {
        reader.give(piece);
        yield piece;
        if (!reader.goOn(fetched)) break;
      }
      reader.release(fetched);
    }
  } finally {
    reader.close();
  }
}

async function* openFetched(reader: ChunkReader, fetched: Fetched): AsyncGenerator<Buffer> {
  const [run] = fetched.runs;
  if (run?.use.storage === 'pieces') yield reader.openGrown(run, fetched.bytes);
  else if (fetched.runs.length > 1) yield reader.openTogether(fetched);
  else yield* openSingle(reader, fetched);
}

/** A chunk whose tags are wrong is fetched again. */
async function* openSingle(reader: ChunkReader, fetched: Fetched): AsyncGenerator<Buffer> {
  const [run] = fetched.runs;
  const [chunk] = fetched.bytes;
  if (run === undefined || chunk === undefined) return;
  const brokenAtBytes = yield* reader.open({ run, bytes: chunk });
  if (brokenAtBytes === undefined) return;
  const rest = { ...run, fromBytes: Math.max(brokenAtBytes, run.fromBytes) };
  fetched.bytes = [await reader.fetchSound(run)];
  yield* reader.open({ run: rest, bytes: fetched.bytes[0] as Uint8Array }, { isLast: true });
}

/**
 * What is fetched at once: a run of one chunk, several of small bodies that lie in one shard, or one of a blob of pieces, with
 * the rows of these as bytes.
 */
interface Fetched {
  runs: readonly ChunkRun[];
  bytes: readonly Uint8Array[];
  /** What it held was given back before all of it was read. */
  isDropped: boolean;
}

interface Fetch {
  runs: readonly ChunkRun[];
  bytes: Promise<Uint8Array[]>;
  isDone: boolean;
}

class ChunkReader {
  readonly #path: DataPath;
  readonly #body: BodyToRead;
  readonly #lease: BodyLease;
  #manifest: Manifest;
  #runs: AsyncGenerator<ChunkRun[]>;
  /** Of the blob that is read now. */
  #dataKey: { blobId: string; bytes: Uint8Array } | undefined;
  /** In order; the first is wanted next. */
  readonly #ahead: Fetch[] = [];
  /** How many may be under way: grows when the reader had to wait. Who reads slowly holds little. */
  #window = 1;
  /** Of the range, not yet begun to be fetched. */
  #leftBytes: number;
  /** Of the range, given to the reader. */
  #givenBytes = 0;
  /** What is being read now. */
  #current: Fetched | undefined;
  /** Held for the piece that is on its way to the client, once it has begun. */
  readonly #toSendBytes: number;
  #hasBegun = false;
  #validatedAtMs: number;

  constructor(path: DataPath, body: BodyToRead) {
    this.#path = path;
    this.#body = body;
    this.#leftBytes = body.range.sizeBytes;
    this.#toSendBytes = Math.min(body.range.sizeBytes, PIECE);
    this.#lease = path.budget.open({
      tenant: body.tenant,
      onShrink: () => this.#shrink(),
      needBytes: path.settings.chunkSizeBytes + this.#toSendBytes,
      onEvicted: (error) => body.onEvicted(error),
    });
    this.#manifest = body.manifest;
    this.#runs = runsToFetch(body);
    this.#validatedAtMs = path.clock.monotonicMs();
  }

  async next(): Promise<Fetched | undefined> {
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
    // While the bytes were waited for, nobody was idle: it is still the first.
    this.#ahead.shift();
    this.#current = { runs: first.runs, bytes, isDropped: false };
    return this.#current;
  }

  /** The reader is about to have a piece: what follows waits for its client. */
  give(piece: Buffer): void {
    this.#givenBytes += piece.length;
    this.#lease.idle();
  }

  /** The client has taken its piece. False when the rest of what was fetched has been given back meanwhile. */
  goOn(fetched: Fetched): boolean {
    this.#lease.busy();
    this.#lease.progress();
    return !fetched.isDropped;
  }

  /** Gives back all but the piece that the client has yet to take; what follows it is located and fetched again. */
  #shrink(): void {
    const { calls, range } = this.#body;
    if (this.#current !== undefined) this.#drop(this.#current);
    this.#dropAhead();
    this.#window = 1;
    this.#leftBytes = range.sizeBytes - this.#givenBytes;
    const offsetBytes = range.offsetBytes + this.#givenBytes;
    const rest = { offsetBytes, sizeBytes: this.#leftBytes };
    this.#runs = runsToFetch({ calls, manifest: this.#manifest, range: rest });
  }

  #drop(fetched: Fetched): void {
    if (fetched.isDropped) return;
    fetched.isDropped = true;
    freeChunks(fetched);
    this.#lease.release(chunkBytesOf(fetched.runs));
  }

  #dropAhead(): void {
    for (const { runs, bytes } of this.#ahead.splice(0)) {
      const drop = (come: readonly Uint8Array[]) => this.#drop({ runs, bytes: come, isDropped: false });
      bytes.then(drop, () => drop([]));
    }
  }

  /** Begins to fetch the next run, if there is one. */
  async #begin(): Promise<void> {
    const next = await this.#nextRun();
    if (next.done === true) {
      this.#leftBytes = 0;
      return;
    }
    const runs = next.value;
    this.#leftBytes -= runs.reduce((sum, run) => sum + run.toBytes - run.fromBytes, 0);
    this.#lease.hold(chunkBytesOf(runs));
    const fetch: Fetch = { runs, bytes: this.#fetch(runs), isDone: false };
    const settle = () => {
      fetch.isDone = true;
    };
    fetch.bytes.then(settle, settle);
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

  async #fetch(runs: readonly ChunkRun[]): Promise<Uint8Array[]> {
    const [run] = runs;
    if (run?.use.storage === 'inline') return this.#fetchBodies(runs);
    if (run?.use.storage === 'pieces') return this.#fetchPieces(run);
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

  /** Of what the version has of them: others have come behind since. */
  async #fetchPieces(run: ChunkRun): Promise<Uint8Array[]> {
    const { blobId, grown } = run.use;
    const { pieceCount } = must(grown, 'pieces tell how many they are');
    const shard = homeShardOf(blobId);
    const { value } = await this.#body.calls.query({ shard }, 'get-pieces', { blobId, pieceCount });
    return value.pieces ?? this.#fail(run, 'missing');
  }

  async #fetchChunk(run: ChunkRun): Promise<Uint8Array> {
    const { blobId } = run.use;
    // Each piece is proven by its tag before it is given on.
    const read = await this.#path.chunks.get({ blobId, index: run.chunkIndex }, { isProven: true });
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

  /** The plaintext of several small bodies, in memory of its own. */
  openTogether({ runs, bytes }: Fetched): Buffer {
    const pieces = runs.flatMap((run, index) => [
      ...this.open({ run, bytes: must(bytes[index], 'bytes of each run') }),
    ]);
    return Buffer.concat(pieces);
  }

  /** The plaintext of the range of a blob of pieces, in memory of its own. */
  openGrown({ use, fromBytes, toBytes }: ChunkRun, rows: readonly Uint8Array[]): Buffer {
    const pieces = this.#decodePieces(use.blobId, rows);
    const sizeBytes = pieces.reduce((sum, piece) => sum + piece.sizeBytes, 0);
    // R23: in the place of one that was forgotten another one may have come.
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
    const position = { blobId: pieceId, chunkIndex: 0, isLastChunk: true, sizeBytes, pieceBytes: PIECE };
    const plaintext = openPiece({ dataKey, position, chunk: sealed, piece: 0 });
    if (plaintext === undefined) throw this.#unsound(pieceId, 'piece-does-not-open');
    return plaintext;
  }

  #unsound(blobId: string, event: string): AppError {
    this.#path.log.error({ blobId }, event);
    return new AppError('InternalError', { cause: new Error(`pieces of ${blobId}`) });
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
      yield plaintext.subarray(Math.max(fromBytes - startBytes, 0), toBytes - startBytes);
    }
    return undefined;
  }

  release(fetched: Fetched): void {
    this.#drop(fetched);
    this.#current = undefined;
  }

  async #revalidate(): Promise<void> {
    const nowMs = this.#path.clock.monotonicMs();
    if (nowMs - this.#validatedAtMs < LIMITS.readerRevalidateMs) return;
    const manifest = await this.#body.reread();
    if (manifest === undefined) throw new AppError('ServiceUnavailable', { cause: GONE });
    this.#validatedAtMs = nowMs;
    // What was folded since is found in its new place; what is on its way already comes from the old one.
    const { calls, range } = this.#body;
    const offsetBytes = range.offsetBytes + range.sizeBytes - this.#leftBytes;
    this.#manifest = manifest;
    this.#runs = runsToFetch({ calls, manifest, range: { offsetBytes, sizeBytes: this.#leftBytes } });
  }

  /** Why there are no bytes: the version has gone, which may happen, or data is lost, which is an alarm (R33, R37). */
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

  /** The version has gone, or the blob was folded into another one. */
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

/** Chunks of the store's are memory of their own; rows may be others' too. */
function freeChunks({ runs, bytes }: Fetched): void {
  if (runs[0]?.use.storage === 'chunks') for (const chunk of bytes) freeMemory(chunk);
}

function isNamed(blobId: string, manifest: Manifest): boolean {
  return ownBody(manifest)?.uses.some((use) => use.blobId === blobId) ?? false;
}

const GONE = new Error('the version was replaced while it was read');

type BytesToFind = Pick<BodyToRead, 'calls' | 'manifest' | 'range'>;

/** What to fetch, in order: chunks one by one, small bodies that lie behind each other together. */
async function* runsToFetch({ calls, manifest, range }: BytesToFind): AsyncGenerator<ChunkRun[]> {
  for await (const located of locateBlobRuns(calls, manifest, range)) {
    let bodies: ChunkRun[] = [];
    for (const run of located.flatMap(chunkRuns)) {
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
