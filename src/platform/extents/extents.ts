// Append-only files of large values beside a database that has a row for each: key-value separation, as in WiscKey (Lu et al.,
// FAST 2016). A value is written once. What no row names is free space: a file without live bytes is used again, and sparse ones
// are copied forward (separated-kv.ts). After a start, writing begins in a file without live bytes, so a torn record of the
// life before is never continued.
import { assert, must } from '../../base/assert.ts';
import { equalBytes } from '../../base/bytes/bytes.ts';
import { Corruption } from '../../base/corruption.ts';
import { crc32 } from '../../base/crypto/crc32.ts';
import type { KvPart } from '../../ports/kv.ts';
import type { AlignedMemory, AlignedPiece, PieceMemory } from './aligned-memory.ts';
import type { ExtentFile, ExtentIo } from './extent-io.ts';
import {
  BLOCK_BYTES,
  type RecordHead,
  type RecordPlace,
  readHead,
  recordBytes,
  writeHead,
} from './extent-record.ts';
import { FirstReads } from './first-reads.ts';
import type { RecordMemory } from './record-memory.ts';

export interface NewRecord {
  key: Uint8Array;
  body: Uint8Array;
  /** Of the body; absent: it is taken here. */
  bodyCrc32?: number;
}

export interface FoundRecord {
  head: RecordHead;
  offset: number;
  body: Buffer;
}

interface File {
  id: number;
  io: ExtentFile;
  liveBytes: number;
  /** Where the next record goes; of a file that is full, or of an earlier life: what was ever written. */
  endOffset: number;
  /** Records that are being written or read: the file is not used again before they end. */
  userCount: number;
  /** Of its present use: what has a lower one was there before, and is overwritten sooner or later. */
  firstSequence: number;
  /** Rows that cannot be read may name any of it: all of it counts as live, and stays. */
  isHeld: boolean;
  /** Nothing is written to it: told to the file system once. */
  isSealed: boolean;
  state: 'current' | 'full' | 'spare';
}

interface Waiting {
  place: RecordPlace;
  file: File;
  piece: AlignedPiece;
  done: PromiseWithResolvers<void>;
}

/** Bytes of one write, as far as records that are ready reach. */
const WRITE_BYTES_MAX = 1024 * 1024;
/** Writes under way at once, where nothing else is said. */
const WRITES_MAX = 4;
/**
 * Files without live bytes that are kept for use, where so much is written: a write into one changes no metadata of the file
 * system, and takes half the time and CPU (docs/internals/performance.md).
 */
const SPARE_FILES_MAX = 4;
/** Read at a time where a file is looked through. */
const SCAN_BYTES = 64 * 1024;

interface ExtentParts {
  io: ExtentIo;
  memory: PieceMemory;
  /** Bodies that have arrived in it are written without a copy. */
  received?: Pick<RecordMemory, 'recordOf'>;
  /** Where records that are read for the first time lie meanwhile; while it is full, and without it, they are read as others. */
  readMemory?: Pick<AlignedMemory, 'takeNow'>;
  fileBytes: number;
  /** Under way at once: each holds a thread of the process, for as long as the drive does not answer. */
  writesMax?: number;
}

export class Extents {
  readonly #io: ExtentIo;
  readonly #memory: PieceMemory;
  readonly #received: ExtentParts['received'];
  readonly #readMemory: ExtentParts['readMemory'];
  readonly #firstReads = new FirstReads();
  readonly #fileBytes: number;
  readonly #writesMax: number;
  readonly #files = new Map<number, File>();
  readonly #queue: Waiting[] = [];
  readonly #failure = Promise.withResolvers<Error>();
  readonly #writing = new Set<Promise<void>>();
  /** Files that are being taken away. */
  readonly #removing = new Set<Promise<void>>();
  #current: File | undefined;
  #spareFilesMax = 0;
  #nextId: number;
  #nextSequence: number;
  #hasFailed = false;
  /** Of live records: their heads, and what fills up blocks. */
  #overheadBytes = 0;

  /** Resolves with the error of a write: final. */
  readonly failed = this.#failure.promise;

  private constructor(parts: ExtentParts, first: { id: number; sequence: number }) {
    this.#io = parts.io;
    this.#memory = parts.memory;
    this.#received = parts.received;
    this.#readMemory = parts.readMemory;
    this.#fileBytes = parts.fileBytes;
    this.#writesMax = parts.writesMax ?? WRITES_MAX;
    this.#nextId = first.id;
    this.#nextSequence = first.sequence;
  }

  /** `live`: all places that rows name; `lost` for rows that cannot be read: no file that is there is used again then. */
  static async open(
    options: ExtentParts & { live: AsyncIterable<RecordPlace | 'lost'> | Iterable<RecordPlace | 'lost'> },
  ): Promise<Extents> {
    const { io } = options;
    const listed = await io.list();
    const bytes = new Map(listed.map(({ id, sizeBytes }) => [id, { live: 0, end: sizeBytes }]));
    let last = 0;
    let overheadBytes = 0;
    let isHeld = false;
    for await (const place of options.live) {
      if (place === 'lost') {
        isHeld = true;
        continue;
      }
      const { fileId, offset, bodyBytes, sequence } = place;
      overheadBytes += recordBytes(bodyBytes) - bodyBytes;
      const of = bytes.get(fileId) ?? { live: 0, end: 0 };
      of.live += recordBytes(bodyBytes);
      of.end = Math.max(of.end, offset + recordBytes(bodyBytes));
      bytes.set(fileId, of);
      last = Math.max(last, sequence);
    }
    // Sequences of the life before that no row has may be higher, and lie in files that are used again: a head is told by its
    // place as well, and a rebuild takes the highest of a key.
    // A file that is missing has its id as long as rows name it.
    const lastId = [...bytes.keys()].reduce((highest, id) => Math.max(highest, id), 0);
    const extents = new Extents(options, { id: lastId + 1, sequence: last + SEQUENCES_OF_A_LIFE });
    if (!isHeld) extents.#overheadBytes = overheadBytes;
    for (const [id, { live, end: endOffset }] of bytes) {
      const opened = { id, io: io.file(id), userCount: 0, firstSequence: 0, isHeld, isSealed: true };
      const file: File = { ...opened, liveBytes: isHeld ? endOffset : live, endOffset, state: 'full' };
      extents.#files.set(id, file);
      extents.#mayFree(file);
    }
    return extents;
  }

  /** Bytes that rows name, `overheadBytes` of which are no values, and bytes of files that none does. */
  usage(): { liveBytes: number; overheadBytes: number; deadBytes: number } {
    let liveBytes = 0;
    let deadBytes = 0;
    for (const file of this.#files.values()) {
      liveBytes += file.liveBytes;
      deadBytes += Math.max(0, file.endOffset - file.liveBytes);
    }
    return { liveBytes, overheadBytes: this.#overheadBytes, deadBytes };
  }

  /** Whether writes go past the page cache. */
  get isDirect(): boolean {
    return this.#io.isDirect;
  }

  /** What was begun first of what is not written yet. */
  underWay(): object | undefined {
    return this.#writing.values().next().value;
  }

  /** Resolves with the place once the bytes are durable. They are the caller's, and unchanged until then. */
  async append({ key, body, ...known }: NewRecord): Promise<RecordPlace> {
    const bodyBytes = body.length;
    const sizeBytes = recordBytes(bodyBytes);
    assert(sizeBytes <= this.#fileBytes, 'a record fits into a file');
    const arrived = this.#received?.recordOf(body);
    const piece = arrived ?? (await this.#memory.take(sizeBytes));
    try {
      if (this.#hasFailed) throw await this.failed;
      const { bodyCrc32 = crc32(body) } = known;
      if (arrived === undefined) piece.bytes.set(body, BLOCK_BYTES);
      piece.bytes.fill(0, BLOCK_BYTES + bodyBytes, sizeBytes);
      const { file, offset } = this.#reserve(sizeBytes);
      this.#overheadBytes += sizeBytes - bodyBytes;
      const sequence = this.#nextSequence++;
      const place = { fileId: file.id, offset, bodyBytes, sequence, bodyCrc32 };
      writeHead(piece.bytes.subarray(0, BLOCK_BYTES), { key, bodyBytes, sequence, bodyCrc32 });
      const done = Promise.withResolvers<void>();
      this.#queue.push({ place, file, piece, done });
      this.#pump();
      await done.promise;
      return place;
    } finally {
      piece.release();
    }
  }

  /** Room for a record. It counts as live before a row names it: the file is not taken for free meanwhile. */
  #reserve(sizeBytes: number): { file: File; offset: number } {
    let file = this.#current;
    if (file === undefined || file.endOffset + sizeBytes > this.#fileBytes) file = this.#next();
    const offset = file.endOffset;
    file.endOffset += sizeBytes;
    file.liveBytes += sizeBytes;
    file.userCount++;
    return { file, offset };
  }

  #next(): File {
    const full = this.#current;
    const spare = [...this.#files.values()].find(({ state }) => state === 'spare');
    const id = spare?.id ?? this.#nextId++;
    const next: File = spare ?? {
      id,
      io: this.#io.file(id),
      liveBytes: 0,
      endOffset: 0,
      userCount: 0,
      firstSequence: 0,
      isHeld: false,
      isSealed: false,
      state: 'current',
    };
    next.isSealed = false;
    next.firstSequence = this.#nextSequence;
    next.state = 'current';
    this.#files.set(id, next);
    this.#current = next;
    if (full !== undefined) {
      full.state = 'full';
      this.#mayFree(full);
    }
    return next;
  }

  /** No row names these places any more, nor will after a crash; or none ever did. */
  release(places: readonly RecordPlace[]): void {
    for (const { fileId, bodyBytes } of places) {
      const file = this.#files.get(fileId);
      if (file === undefined || file.isHeld) continue;
      file.liveBytes -= recordBytes(bodyBytes);
      this.#overheadBytes -= recordBytes(bodyBytes) - bodyBytes;
      assert(file.liveBytes >= 0, 'a place is released once');
      this.#mayFree(file);
    }
  }

  /**
   * The body, in memory of its own; undefined: something else may lie there, because the row is gone since. Rejects with
   * Corruption where the head is damaged. The body is not compared with its CRC32.
   */
  async read(key: Uint8Array, place: RecordPlace): Promise<Buffer | undefined> {
    const file = this.#files.get(place.fileId);
    // Of a file without live bytes, which may be written anew at any moment, no row names anything.
    if (file === undefined || file.state === 'spare') return undefined;
    // Its head may be there still, with bytes of another one behind it.
    if (place.sequence < file.firstSequence) return undefined;
    file.userCount++;
    try {
      // Not beside the head: who has read a body gives its memory back at once (freeMemory), which is for whole memory alone.
      const body = Buffer.allocUnsafeSlow(place.bodyBytes);
      const head = await this.#readInto(body, place, file.io);
      if (head === undefined) throw new Corruption(`a record of extent file ${place.fileId} is damaged`);
      if (head.sequence !== place.sequence || !equalBytes(head.key, key)) return undefined;
      return body;
    } finally {
      this.#left(file);
    }
  }

  /**
   * Bytes of the body, in memory of their own; undefined: something else may lie there, or they or the head are damaged. The bytes
   * are not compared with anything.
   */
  async readPart(
    key: Uint8Array,
    place: RecordPlace,
    { offsetBytes, sizeBytes }: KvPart,
  ): Promise<Buffer | undefined> {
    const file = this.#files.get(place.fileId);
    if (file === undefined || file.state === 'spare' || place.sequence < file.firstSequence) return undefined;
    if (offsetBytes + sizeBytes > place.bodyBytes) return undefined;
    file.userCount++;
    try {
      const block = Buffer.allocUnsafe(BLOCK_BYTES);
      const bytes = Buffer.allocUnsafeSlow(sizeBytes);
      const reads = [
        file.io.read([block], place.offset),
        file.io.read([bytes], place.offset + BLOCK_BYTES + offsetBytes),
      ];
      // Both have ended before the file may be used again.
      const [, count] = await Promise.all(reads).finally(() => Promise.allSettled(reads));
      const head = readHead(block);
      const isIt = head?.sequence === place.sequence && equalBytes(head.key, key);
      return isIt && count === sizeBytes ? bytes : undefined;
    } finally {
      this.#left(file);
    }
  }

  /** undefined: the record is not whole, or its head is damaged. */
  async #readInto(
    body: Buffer,
    { offset, sequence }: RecordPlace,
    io: ExtentFile,
  ): Promise<RecordHead | undefined> {
    const isFirst = this.#io.isDirect && this.#firstReads.isFirst(sequence);
    const piece = isFirst ? this.#readMemory?.takeNow(recordBytes(body.length)) : undefined;
    if (piece === undefined) {
      const block = Buffer.allocUnsafe(BLOCK_BYTES);
      const count = await io.read([block, body], offset);
      return count === block.length + body.length ? readHead(block) : undefined;
    }
    try {
      const count = await io.read([piece.bytes], offset, { isDirect: true });
      if (count < BLOCK_BYTES + body.length) return undefined;
      piece.bytes.copy(body, 0, BLOCK_BYTES);
      return readHead(piece.bytes);
    } finally {
      piece.release();
    }
  }

  /** The full file with the largest share of dead bytes above `share`, but for `others`; undefined: there is none. */
  sparsest(share: number, others: ReadonlySet<number>): number | undefined {
    let found: { id: number; share: number } | undefined;
    for (const { id, state, endOffset, liveBytes, isHeld } of this.#files.values()) {
      if (state !== 'full' || isHeld || endOffset === 0 || others.has(id)) continue;
      const dead = 1 - liveBytes / endOffset;
      if (dead > share && dead > (found?.share ?? 0)) found = { id, share: dead };
    }
    return found?.id;
  }

  /**
   * Gives back the room of files that are kept for use, but for as many as take `keepBytes`; of the present one, too, where it has
   * no live bytes and none are kept.
   */
  giveBack(keepBytes: number): void {
    this.#spareFilesMax = Math.min(SPARE_FILES_MAX, Math.ceil(keepBytes / this.#fileBytes));
    const spares = [...this.#files.values()].filter(({ state }) => state === 'spare');
    for (const file of spares.slice(this.#spareFilesMax)) this.#remove(file);
    if (this.#spareFilesMax === 0 && this.#current?.liveBytes === 0) this.#leaveCurrent();
  }

  /** Leaves the present file where more than `share` of it is dead. */
  tidy(share: number): void {
    const current = this.#current;
    if (current !== undefined && current.liveBytes < (1 - share) * current.endOffset) this.#leaveCurrent();
  }

  #leaveCurrent(): void {
    const current = must(this.#current, 'a present file');
    this.#current = undefined;
    current.state = 'full';
    this.#mayFree(current);
  }

  /** Whether rows could not be read when it was opened: no file of that time is used again. */
  get isHeld(): boolean {
    return [...this.#files.values()].some(({ isHeld }) => isHeld);
  }

  /** Ids of all files. */
  fileIds(): number[] {
    return [...this.#files.keys()];
  }

  /** The whole records of a file, live and dead ones, as recordsOf. */
  async *records(fileId: number): AsyncGenerator<FoundRecord> {
    const file = this.#files.get(fileId);
    if (file === undefined) return;
    file.userCount++;
    try {
      yield* recordsOf(file.io);
    } finally {
      this.#left(file);
    }
  }

  /** After all writes have ended. */
  async close(): Promise<void> {
    while (this.#writing.size > 0) await Promise.all(this.#writing);
    for (const file of this.#files.values()) await file.io.close();
    this.#files.clear();
    // Whoever opens the folder next may use the name again.
    await Promise.all(this.#removing);
  }

  /** Writes what is ready: records that lie one behind the other in one write. */
  #pump(): void {
    while (this.#writing.size < this.#writesMax && this.#queue.length > 0) {
      const first = must(this.#queue[0], 'a record');
      let sizeBytes = 0;
      let count = 0;
      for (const { file, place } of this.#queue) {
        const isNext = file === first.file && place.offset === first.place.offset + sizeBytes;
        const length = recordBytes(place.bodyBytes);
        if (!isNext || (count > 0 && sizeBytes + length > WRITE_BYTES_MAX)) break;
        sizeBytes += length;
        count++;
      }
      const writing = this.#write(first, this.#queue.splice(0, count)).finally(() => {
        this.#writing.delete(writing);
        if (!this.#hasFailed) this.#pump();
      });
      this.#writing.add(writing);
    }
  }

  async #write({ file, place }: Waiting, records: readonly Waiting[]): Promise<void> {
    try {
      const buffers = records.map(({ place: { bodyBytes }, piece }) =>
        piece.bytes.subarray(0, recordBytes(bodyBytes)),
      );
      await file.io.write(buffers, place.offset);
      for (const { done } of records) done.resolve();
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error));
      this.#hasFailed = true;
      this.#failure.resolve(failure);
      for (const { done } of [...records, ...this.#queue.splice(0)]) done.reject(failure);
    } finally {
      for (const record of records) this.#left(record.file);
    }
  }

  #left(file: File): void {
    file.userCount--;
    this.#mayFree(file);
  }

  /** A full file without live bytes is kept for use, or removed. */
  #mayFree(file: File): void {
    if (file.state !== 'full' || file.userCount > 0) return;
    if (file.isHeld) return;
    if (file.liveBytes > 0) {
      if (file.isSealed) return;
      file.isSealed = true;
      void file.io.seal().catch(() => {});
      return;
    }
    const spareCount = [...this.#files.values()].filter(({ state }) => state === 'spare').length;
    if (spareCount < this.#spareFilesMax) {
      file.endOffset = 0;
      file.state = 'spare';
      return;
    }
    this.#remove(file);
  }

  #remove(file: File): void {
    this.#files.delete(file.id);
    // One that could not be removed is found again at the next start.
    const removing = file.io
      .close()
      .then(() => this.#io.remove(file.id))
      .catch(() => {})
      .finally(() => this.#removing.delete(removing));
    this.#removing.add(removing);
  }
}

/** Between the last sequence that a row has and the first one of this life. */
const SEQUENCES_OF_A_LIFE = 2 ** 32;

/** A file is given up when so many of its blocks cannot be read: a drive takes seconds for each. */
const LOST_BLOCKS_MAX = 64;

/**
 * Behind what is no whole record, as where a write was torn, block after block is looked at for the next one. A head whose body is
 * not whole may be left from an earlier use of the file: records that came later may lie where its body was. Blocks that the disk
 * has lost are passed over; many of them end it with Corruption.
 */
export async function* recordsOf(io: ExtentFile): AsyncGenerator<FoundRecord> {
  const window = Buffer.allocUnsafeSlow(SCAN_BYTES);
  let [windowAt, windowBytes] = [0, 0];
  let lostCount = 0;
  for (let offset = 0; ; ) {
    if (offset < windowAt || offset + BLOCK_BYTES > windowAt + windowBytes) {
      const count =
        (await readOrLost(io, window, offset)) ??
        (await readOrLost(io, window.subarray(0, BLOCK_BYTES), offset));
      if (count === undefined) {
        if (++lostCount > LOST_BLOCKS_MAX) throw new Corruption('the disk has lost much of an extent file');
        offset += BLOCK_BYTES;
        continue;
      }
      [windowAt, windowBytes] = [offset, count];
      if (windowBytes < BLOCK_BYTES) return;
    }
    const head = readHead(window.subarray(offset - windowAt, offset - windowAt + BLOCK_BYTES));
    const body = head && (await wholeBody(io, head, offset));
    if (head !== undefined && body !== undefined) yield { head, offset, body };
    offset += head === undefined || body === undefined ? BLOCK_BYTES : recordBytes(head.bodyBytes);
  }
}

/** undefined: it is damaged, or not all there. */
async function wholeBody(io: ExtentFile, head: RecordHead, offset: number): Promise<Buffer | undefined> {
  const body = Buffer.allocUnsafeSlow(head.bodyBytes);
  const count = await readOrLost(io, body, offset + BLOCK_BYTES);
  return count === body.length && crc32(body) === head.bodyCrc32 ? body : undefined;
}

/** undefined: the disk has lost some of it. */
async function readOrLost(io: ExtentFile, into: Buffer, offset: number): Promise<number | undefined> {
  try {
    return await io.read([into], offset);
  } catch (error) {
    if (error instanceof Corruption) return undefined;
    throw error;
  }
}
