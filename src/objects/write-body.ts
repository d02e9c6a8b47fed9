// Takes in the bytes of one body: splits, digests, seals, stores. The result belongs to nobody yet: a commit makes a
// version or part of it (write-object.ts), or it is abandoned. Memory is bounded per body and over all bodies. It does not
// verify digests, and never reads faster than it can store.
import { assert, must } from '../base/assert.ts';
import { BufferQueue } from '../base/async/buffer-queue.ts';
import type { Patience } from '../base/async/patience.ts';
import { within } from '../base/async/within.ts';
import { EMPTY_BYTES } from '../base/bytes/bytes.ts';
import type { ChunkCrcs, PlainChunk } from '../base/crypto/body-sealer.ts';
import { type CrcAlgorithm, crcCombine, crcOf } from '../base/crypto/crc.ts';
import { layPlaintext, sealedBytes } from '../base/crypto/seal.ts';
import { freeMemory } from '../base/free-memory.ts';
import type { ChunkHolders, ChunkId } from '../ports/chunks.ts';
import type { BodySealer } from '../ports/codec-pool.ts';
import type { NewBlob } from '../ports/metadata/blobs.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import { type BlobId, type LinkId, makeBlobId, makeLinkId } from '../types/names.ts';
import { gatherPlaces } from '../types/repair-entries.ts';
import type { Tenant } from '../types/tenant.ts';
import type { BlobLayout, BlobUse, ManifestBody } from '../types/version.ts';
import type { BodyLease } from './body-budget.ts';
import { BufferSource } from './buffer-source.ts';
import type { ChunkMemory } from './chunk-buffers.ts';
import { chunkSizeOf, type DataPath } from './data-path.ts';
import type { BodyDigests, WantedDigests } from './digests.ts';
import type { SignedPieces } from './object-store.ts';

const BLOCK_BYTES = LIMITS.sealBlockBytes;

export interface BodyToWrite {
  /** The tenant whose memory it takes. */
  tenant: Tenant;
  /** Of its request. */
  patience?: Patience;
  stream: AsyncIterable<Buffer>;
  /** Undefined: unknown; the stream fails when it is too long. */
  sizeBytes: number | undefined;
  /** Of a body in signed pieces: they are checked before it is written. */
  pieces?: SignedPieces;
  wanted: WantedDigests;
  /** The shard of the future version or part: the blob's home. */
  shard: number;
  /** That shard's time. */
  timeMs: number;
  kek: Uint8Array;
  /**
   * An append up to this size becomes a piece of a growing blob (metadata/blobs/grow-blob.ts), with a derived key. Default:
   * none.
   */
  grownPieceBytesMax?: number;
  signal: AbortSignal;
}

export interface WrittenBody extends BodyDigests {
  sizeBytes: number;
  births: NewBlob[];
  data: ManifestBody;
  /**
   * Drops what was stored, best effort; the sweep finds the rest (R32). Never call it when a commit may have used the data.
   */
  abandon(): Promise<void>;
}

/**
 * The result of `use`, which commits what was written: so long its inline body counts in the memory for bodies, for a commit may
 * wait for a locked key. Rejects as `use` and the stream do, with IncompleteBody, SlowDown or InsufficientStorage. Of a body
 * that was not taken in nothing is left, except on disks that do not answer soon.
 */
export async function writeBody<T>(
  path: DataPath,
  body: BodyToWrite,
  use: (written: WrittenBody) => Promise<T>,
): Promise<T> {
  const writer = new BodyWriter(path, body);
  try {
    return await use(await writer.takeIn());
  } finally {
    writer.close();
  }
}

class BodyWriter {
  readonly #path: DataPath;
  readonly #body: BodyToWrite;
  readonly #source: BufferSource;
  readonly #lease: BodyLease;
  readonly #blobId: BlobId;
  readonly #linkId: LinkId;
  /** Made with the first chunk, when the kind of storage is known. */
  #sealing: { sealer: BodySealer; wrappedDataKey: Uint8Array } | undefined;
  /** Plaintext bytes of each chunk but the last. */
  readonly #chunkSizeBytes: number;
  readonly #buffers = new BufferQueue();
  readonly #crcs: ChunkCrcs[] = [];
  /** By chunk: where it was stored. */
  readonly #places: (ChunkHolders | undefined)[] = [];
  readonly #inFlight = new Set<Promise<void>>();
  #receivedBytes = 0;
  #hasEnded = false;
  #sealedBytes = 0;
  #inlineBody: Uint8Array | undefined;
  #storedChunks = 0;
  /** Monotonic ms at which it had memory to begin with: its client sends since. */
  #beganMs: number | undefined;
  /** How long each chunk may wait for disks: what its request had left then. */
  #chunkWaitMaxMs: number | undefined;
  /** The longest wait since then, for memory or for a disk that was late: what came of the others shows that it gets on. */
  #waitedMs = 0;
  #failure: Error | undefined;
  readonly #onAbort = () => this.#fail(new AppError('RequestTimeout'));

  constructor(path: DataPath, body: BodyToWrite) {
    this.#path = path;
    this.#body = body;
    this.#source = new BufferSource(body.stream);
    this.#chunkSizeBytes = chunkSizeOf(path.settings, body.sizeBytes);
    const { tenant, sizeBytes, shard, timeMs } = body;
    const needBytes = this.#fullBytes();
    this.#lease = path.budget.open({
      tenant,
      patience: body.patience,
      needBytes: sizeBytes === undefined ? needBytes : Math.min(sizeBytes, needBytes),
      onEvicted: (error) => this.#fail(error),
    });
    body.signal.addEventListener('abort', this.#onAbort);
    this.#blobId = makeBlobId({ timeMs, homeShard: shard, random: path.random.bytes(8) });
    this.#linkId = makeLinkId({ timeMs, random: path.random.bytes(10) });
  }

  /** The body's size, or the bytes so far where it is unknown. */
  get #sizeBytes(): number {
    return this.#body.sizeBytes ?? this.#receivedBytes;
  }

  get #isInline(): boolean {
    return this.#sizeBytes <= this.#path.settings.inlineBodyBytesMax;
  }

  /**
   * Bytes that complete a chunk. The seal marks the last chunk, so with an unknown size one more byte is needed to know it.
   */
  #fullBytes(): number {
    return this.#body.sizeBytes === undefined ? this.#chunkSizeBytes + 1 : this.#chunkSizeBytes;
  }

  /** When the first chunk is sealed, a body of unknown size is complete, or too large for anything that depends on size. */
  #startSealing(): { sealer: BodySealer; wrappedDataKey: Uint8Array } {
    if (this.#sealing !== undefined) return this.#sealing;
    const { codecs, keys } = this.#path;
    const { kek, wanted, grownPieceBytesMax } = this.#body;
    const blobId = this.#blobId;
    const sizeBytes = this.#sizeBytes;
    const isGrownPiece = grownPieceBytesMax !== undefined && sizeBytes <= grownPieceBytesMax;
    const { dataKey, wrapped } = isGrownPiece
      ? { dataKey: keys.pieceKey(kek, blobId), wrapped: EMPTY_BYTES }
      : keys.newDataKey(kek, blobId);
    const isKnown = this.#body.sizeBytes !== undefined || this.#hasEnded;
    const forBytes = isKnown ? sizeBytes : LIMITS.putBytesMax;
    const sealer = codecs.open({ blobId, dataKey, blockBytes: BLOCK_BYTES, sizeBytes: forBytes, ...wanted });
    this.#sealing = { sealer, wrappedDataKey: wrapped };
    return this.#sealing;
  }

  async takeIn(): Promise<WrittenBody> {
    try {
      for await (const buffer of this.#receive()) {
        const inFlight = this.#take(buffer);
        if (inFlight !== undefined) await inFlight;
      }
      const written = await this.#finish();
      this.#lease.keep(this.#inlineBody?.length ?? 0);
      this.#noteWork();
      return written;
    } catch (error) {
      await this.abandon();
      throw error;
    } finally {
      this.#end();
    }
  }

  /** The source's buffers, each requested when there is room for it. */
  async *#receive(): AsyncGenerator<Buffer> {
    try {
      for (;;) {
        // All bytes have arrived: do not wait for memory to read the end, which releases memory.
        const { sizeBytes } = this.#body;
        const isWhole = sizeBytes !== undefined && this.#receivedBytes >= sizeBytes;
        const room = isWhole ? undefined : this.#lease.admit(this.#bytesToReserve());
        if (room !== undefined) await this.#waitFor(room);
        this.#noteBegin();
        this.#lease.idle();
        const next = await this.#source.next();
        this.#lease.busy();
        if (next.done === true) return;
        yield next.value;
      }
    } finally {
      this.#source.close();
    }
  }

  #noteBegin(): void {
    if (this.#beganMs !== undefined) return;
    this.#beganMs = this.#path.clock.monotonicMs();
    const leftMs = this.#body.patience?.leftMs() ?? Number.POSITIVE_INFINITY;
    this.#chunkWaitMaxMs = Math.max(LIMITS.chunkWaitLeastMs, leftMs);
  }

  async #waitFor(room: Promise<void>): Promise<void> {
    const fromMs = this.#path.clock.monotonicMs();
    await room;
    if (this.#beganMs !== undefined) this.#noteWait(fromMs);
  }

  #noteWait(fromMs: number): void {
    this.#waitedMs = Math.max(this.#waitedMs, this.#path.clock.monotonicMs() - fromMs);
  }

  /** What its client took, and its disks: its commit waits on its own account. */
  #noteWork(): void {
    const nowMs = this.#path.clock.monotonicMs();
    this.#body.patience?.worked(nowMs - (this.#beganMs ?? nowMs) - this.#waitedMs);
  }

  /**
   * What may become an inline body is let in as a whole, and never to its end by a grant: it holds its memory as long as the
   * commit waits.
   */
  #bytesToReserve(): number | undefined {
    if (this.#receivedBytes > 0 || !this.#isInline) return undefined;
    return this.#body.sizeBytes ?? Math.max(this.#path.settings.inlineBodyBytesMax, LIMITS.chunkBytesMin);
  }

  /** Takes over a buffer. Await the promise if there is one: enough chunks are in flight. */
  #take(buffer: Buffer): Promise<void> | undefined {
    this.#receivedBytes += buffer.length;
    if (this.#receivedBytes > this.#sizeBytes) throw new AppError('IncompleteBody');
    this.#lease.hold(buffer.length);
    this.#noteProgress(buffer.length);
    this.#buffers.add(buffer);
    this.#countPieces();
    return this.#buffers.sizeBytes >= this.#fullBytes() && !this.#isInline
      ? this.#sealWholeChunks()
      : undefined;
  }

  /** A body in small signed pieces holds as much for their signatures as for its bytes. */
  #countPieces(): void {
    const { pieces } = this.#body;
    if (pieces !== undefined) this.#lease.holdBeside(pieces.heldBytes());
  }

  /** What would be a chunk of another body is progress in a larger one, too: else who sends it must be as many times as fast. */
  #noteProgress(newBytes: number): void {
    const { chunkSizeBytes } = this.#path.settings;
    if (this.#receivedBytes % chunkSizeBytes < newBytes) this.#lease.progress();
  }

  async #sealWholeChunks(): Promise<void> {
    const chunkSizeBytes = this.#chunkSizeBytes;
    while (this.#buffers.sizeBytes >= this.#fullBytes()) {
      const isLast = this.#sealedBytes + chunkSizeBytes === this.#body.sizeBytes;
      await this.#sealChunk(chunkSizeBytes, isLast);
    }
  }

  async #finish(): Promise<WrittenBody> {
    const sizeBytes = this.#sizeBytes;
    if (this.#receivedBytes < sizeBytes) throw new AppError('IncompleteBody');
    this.#hasEnded = true;
    if (sizeBytes === 0) return this.#result([]);
    if (this.#isInline) await this.#sealInline(sizeBytes);
    else if (this.#buffers.sizeBytes > 0) await this.#sealChunk(this.#buffers.sizeBytes, true);
    while (this.#inFlight.size > 0) await Promise.race(this.#inFlight);
    if (this.#failure !== undefined) throw this.#failure;
    assert(this.#body.pieces?.isDone() !== false, 'all signed pieces are checked');
    return this.#result([this.#newBlob(this.#use())]);
  }

  async #result(births: NewBlob[]): Promise<WrittenBody> {
    const sizeBytes = this.#sizeBytes;
    return {
      sizeBytes,
      births,
      data: {
        uses: births.map(({ use }) => use),
        segments: births.map(() => ({ use: 0, offsetBytes: 0, sizeBytes })),
      },
      hashes: await this.#startSealing().sealer.finish(),
      crcs: Object.fromEntries(
        this.#body.wanted.crcs.map((algorithm) => [algorithm, this.#wholeCrc(algorithm)]),
      ),
      abandon: () => this.abandon(),
    };
  }

  /** The use of the whole blob. */
  #use(): BlobUse {
    const sizeBytes = this.#sizeBytes;
    const layout: BlobLayout = this.#isInline
      ? { sizeBytes, storage: 'inline', chunkSizeBytes: sizeBytes }
      : { sizeBytes, storage: 'chunks', chunkSizeBytes: this.#chunkSizeBytes };
    const { wrappedDataKey } = this.#startSealing();
    return { ...layout, blobId: this.#blobId, linkId: this.#linkId, wrappedDataKey };
  }

  async #sealInline(sizeBytes: number): Promise<void> {
    // It goes into a row: memory of chunks is used again.
    const bytes = new Uint8Array(sealedBytes({ sizeBytes, blockBytes: BLOCK_BYTES }));
    this.#layOut(bytes, sizeBytes);
    const pieceEnds = this.#pieceEnds(sizeBytes);
    const sealed = await this.#startSealing().sealer.seal({ bytes, sizeBytes, isLast: true, ...pieceEnds });
    if (sealed.pieceSha256s !== undefined) await this.#body.pieces?.check(sealed.pieceSha256s);
    this.#crcs.push(sealed.crcs);
    this.#inlineBody = sealed.bytes;
  }

  /** Resolves when the next chunk may begin. */
  async #sealChunk(sizeBytes: number, isLast: boolean): Promise<void> {
    while (this.#inFlight.size >= LIMITS.chunksInFlightPerBody) await Promise.race(this.#inFlight);
    if (this.#failure !== undefined) throw this.#failure;
    const memory = this.#path.buffers.lease(sealedBytes({ sizeBytes, blockBytes: BLOCK_BYTES }));
    const heldBytes = memory.bytes.length;
    this.#layOut(memory.bytes, sizeBytes);
    // Replaces the memory of the buffers that were copied into it.
    this.#lease.hold(heldBytes - sizeBytes);
    this.#lease.progress();
    const pieceEnds = this.#pieceEnds(sizeBytes);
    this.#sealedBytes += sizeBytes;
    const stored = this.#store(this.#storedChunks++, memory, { sizeBytes, isLast, ...pieceEnds })
      .catch((error) => this.#fail(error))
      .finally(() => {
        this.#countPieces();
        this.#lease.release(heldBytes);
        this.#inFlight.delete(stored);
      });
    this.#inFlight.add(stored);
  }

  /** Where signed pieces end in the next chunk. Its bytes have arrived, so the heads of their pieces have. */
  #pieceEnds(sizeBytes: number): { pieceEnds?: readonly number[] } {
    const { pieces } = this.#body;
    if (pieces === undefined) return {};
    const startBytes = this.#sealedBytes;
    return { pieceEnds: pieces.takeEnds(startBytes + sizeBytes).map((end) => end - startBytes) };
  }

  #layOut(chunk: Uint8Array, sizeBytes: number): void {
    let offsetBytes = 0;
    for (const buffer of this.#buffers.take(sizeBytes)) {
      layPlaintext(chunk, buffer, { offsetBytes, blockBytes: BLOCK_BYTES });
      offsetBytes += buffer.length;
      freeMemory(buffer);
    }
  }

  async #store(index: number, memory: ChunkMemory, chunk: Omit<PlainChunk, 'bytes'>): Promise<void> {
    // Where it rejects a thread has failed, and may still write into the memory: nobody uses that again.
    const sealed = await this.#startSealing().sealer.seal({ ...chunk, bytes: memory.bytes });
    try {
      this.#crcs[index] = sealed.crcs;
      // After a failure nothing more is stored, because it would be dropped again.
      if (this.#failure !== undefined) return;
      const checked = sealed.pieceSha256s && this.#body.pieces?.check(sealed.pieceSha256s);
      if (checked !== undefined) await checked;
      const id = { blobId: this.#blobId, index };
      const beganMs = this.#path.clock.monotonicMs();
      const waitMaxMs = this.#chunkWaitMaxMs;
      this.#places[index] = await this.#path.chunks.put(id, sealed.bytes, sealed.sealedCrc32, waitMaxMs);
      if (this.#path.clock.monotonicMs() - beganMs > LIMITS.copyLateMs) this.#noteWait(beganMs);
    } finally {
      memory.release();
    }
  }

  #newBlob(use: BlobUse): NewBlob {
    const newBlob: NewBlob = { use, chunkCrc32: this.#chunkCrcs('CRC32') };
    if (this.#inlineBody !== undefined) newBlob.body = this.#inlineBody;
    const placed = gatherPlaces(this.#places);
    if (placed !== undefined) newBlob.placed = placed;
    const algorithm = this.#body.wanted.crcs.find((wanted) => wanted !== 'CRC32');
    if (algorithm !== undefined) newBlob.chunkCrcs = { algorithm, values: this.#chunkCrcs(algorithm) };
    return newBlob;
  }

  #chunkCrcs(algorithm: CrcAlgorithm): Uint8Array {
    return Buffer.concat(this.#crcs.map((crcs) => must(crcs[algorithm], 'as wanted')));
  }

  #wholeCrc(algorithm: CrcAlgorithm): Uint8Array {
    const sizeBytes = this.#sizeBytes;
    const chunkSizeBytes = this.#isInline ? sizeBytes : this.#chunkSizeBytes;
    let whole = crcOf(algorithm, EMPTY_BYTES);
    for (const [index, crcs] of this.#crcs.entries()) {
      const chunkBytes = Math.min(chunkSizeBytes, sizeBytes - index * chunkSizeBytes);
      whole = crcCombine(algorithm, whole, must(crcs[algorithm], 'as wanted'), chunkBytes);
    }
    return whole;
  }

  async abandon(): Promise<void> {
    this.#fail(new Error('the body was abandoned'));
    this.#sealing?.sealer.abandon();
    await Promise.allSettled(this.#inFlight);
    const blobId = this.#blobId;
    const ids = Array.from({ length: this.#storedChunks }, (_, index) => ({ blobId, index }));
    if (ids.length === 0) return;
    // Continues in the background if a disk does not answer: the caller need not wait for it.
    await within(this.#drop(ids), LIMITS.abandonWaitMaxMs, this.#path.clock);
  }

  async #drop(ids: readonly ChunkId[]): Promise<void> {
    const blobId = this.#blobId;
    try {
      await this.#path.chunks.drop(ids, this.#path.fenceOf(this.#body.shard));
    } catch (err) {
      this.#path.log.warn({ blobId, err }, 'abandoned-chunks-left');
    }
  }

  #end(): void {
    this.#body.signal.removeEventListener('abort', this.#onAbort);
    // The buffers are freed at once: many of them would wait for the garbage collector together.
    for (const buffer of this.#buffers.takeAll()) freeMemory(buffer);
    this.#sealing?.sealer.abandon();
  }

  close(): void {
    this.#lease.close();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#source.fail(this.#failure);
  }
}
