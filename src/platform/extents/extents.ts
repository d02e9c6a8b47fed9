// Append-only files of large values beside a database that has a row for each: key-value separation, as in WiscKey (Lu et al.,
// FAST 2016). A value is written once. What no row names is free space: a file without live bytes is used again, and sparse ones
// are copied forward (separated-kv.ts). After a start, writing begins in a file without live bytes, so a torn record of the
// life before is never continued.
import { crc32 } from 'node:zlib';
import { assert, must } from '../../base/assert.ts';
import { equalBytes } from '../../base/bytes/bytes.ts';
import { Corruption } from '../../base/corruption.ts';
import type { AlignedMemory, AlignedPiece } from './aligned-memory.ts';
import type { ExtentFile, ExtentIo } from './extent-io.ts';
import {
  BLOCK_BYTES,
  type RecordHead,
  type RecordPlace,
  readHead,
  recordBytes,
  writeHead,
} from './extent-record.ts';

export interface NewRecord {
  key: Uint8Array;
  body: Uint8Array;
}

interface File {
  id: number;
  io: ExtentFile;
  liveBytes: number;
  /** Where the next record goes; of a file that is full, or of an earlier life: its end, as far as is known. */
  endOffset: number;
  /** Records that are being written or read: the file is not used again before they end. */
  users: number;
}

interface Waiting {
  place: RecordPlace;
  file: File;
  piece: AlignedPiece;
  done: PromiseWithResolvers<void>;
}

/** Bytes of one write, as far as records that are ready reach. */
const WRITE_BYTES_MAX = 1024 * 1024;
/** Writes under way at once. */
const WRITES_MAX = 4;
/** Files without live bytes that are kept for use: a write into one changes no metadata of the file system. */
const SPARE_FILES_MAX = 4;

export class Extents {
  readonly #io: ExtentIo;
  readonly #memory: AlignedMemory;
  readonly #fileBytes: number;
  readonly #files = new Map<number, File>();
  readonly #spare: File[] = [];
  readonly #queue: Waiting[] = [];
  readonly #failure = Promise.withResolvers<Error>();
  #current: File | undefined;
  #opening: Promise<File> | undefined;
  #nextId: number;
  #nextSequence: number;
  #writes = 0;
  #hasFailed = false;

  /** Resolves with the error of a write or of a file: final. */
  readonly failed = this.#failure.promise;

  private constructor(
    parts: { io: ExtentIo; memory: AlignedMemory; fileBytes: number },
    first: { id: number; sequence: number },
  ) {
    this.#io = parts.io;
    this.#memory = parts.memory;
    this.#fileBytes = parts.fileBytes;
    this.#nextId = first.id;
    this.#nextSequence = first.sequence;
  }

  /** `live`: all places that rows name. */
  static async open(options: {
    io: ExtentIo;
    memory: AlignedMemory;
    fileBytes: number;
    live: AsyncIterable<RecordPlace> | Iterable<RecordPlace>;
  }): Promise<Extents> {
    const { io, live } = options;
    const ids = await io.list();
    const bytes = new Map<number, { live: number; end: number }>(ids.map((id) => [id, { live: 0, end: 0 }]));
    let last = 0;
    for await (const { fileId, offset, bodyBytes, sequence } of live) {
      const of = bytes.get(fileId) ?? { live: 0, end: 0 };
      of.live += recordBytes(bodyBytes);
      of.end = Math.max(of.end, offset + recordBytes(bodyBytes));
      bytes.set(fileId, of);
      last = Math.max(last, sequence);
    }
    const extents = new Extents(options, { id: (ids.at(-1) ?? 0) + 1, sequence: last + 1 });
    for (const id of ids) {
      const { live: liveBytes, end } = must(bytes.get(id), 'a file that is listed');
      const file = { id, io: await io.open(id), liveBytes, endOffset: end, users: 0 };
      extents.#files.set(id, file);
      extents.#mayFree(file);
    }
    return extents;
  }

  /** Bytes that rows name, and bytes of files that none does. */
  usage(): { liveBytes: number; deadBytes: number } {
    let liveBytes = 0;
    let deadBytes = 0;
    for (const file of this.#files.values()) {
      liveBytes += file.liveBytes;
      deadBytes += Math.max(0, file.endOffset - file.liveBytes);
    }
    return { liveBytes, deadBytes };
  }

  /** Resolves with the place once the bytes are durable. They are the caller's, and unchanged until then. */
  async append(record: NewRecord): Promise<RecordPlace> {
    const bodyBytes = record.body.length;
    const sizeBytes = recordBytes(bodyBytes);
    assert(sizeBytes <= this.#fileBytes, 'a record fits into a file');
    const piece = await this.#memory.take(sizeBytes);
    try {
      const bodyCrc32 = crc32(record.body);
      piece.bytes.set(record.body, BLOCK_BYTES);
      piece.bytes.fill(0, BLOCK_BYTES + bodyBytes, sizeBytes);
      const file = await this.#fileFor(sizeBytes);
      const sequence = this.#nextSequence++;
      const place = { fileId: file.id, offset: file.endOffset, bodyBytes, sequence, bodyCrc32 };
      writeHead(piece.bytes.subarray(0, BLOCK_BYTES), { key: record.key, bodyBytes, sequence, bodyCrc32 });
      file.endOffset += sizeBytes;
      // Counted before a row names it: the file is not taken for free meanwhile.
      file.liveBytes += sizeBytes;
      file.users++;
      const done = Promise.withResolvers<void>();
      this.#queue.push({ place, file, piece, done });
      this.#pump();
      await done.promise;
      return place;
    } finally {
      piece.release();
    }
  }

  /** The rows that named these places are gone, or were never written. */
  release(places: readonly RecordPlace[]): void {
    for (const { fileId, bodyBytes } of places) {
      const file = this.#files.get(fileId);
      if (file === undefined) continue;
      file.liveBytes -= recordBytes(bodyBytes);
      this.#mayFree(file);
    }
  }

  /**
   * The body, in memory of its own; undefined: something else lies there, because the row is gone since. Rejects with Corruption
   * where the head is damaged. The body is not compared with its CRC32.
   */
  async read(key: Uint8Array, place: RecordPlace): Promise<Buffer | undefined> {
    const file = this.#files.get(place.fileId);
    if (file === undefined) return undefined;
    file.users++;
    try {
      const bytes = Buffer.allocUnsafeSlow(BLOCK_BYTES + place.bodyBytes);
      const count = await file.io.read(bytes, place.offset);
      const head = count === bytes.length ? readHead(bytes) : undefined;
      if (head === undefined) throw new Corruption(`a record of file ${place.fileId} is damaged`);
      if (head.sequence !== place.sequence || !equalBytes(head.key, key)) return undefined;
      return bytes.subarray(BLOCK_BYTES);
    } finally {
      this.#left(file);
    }
  }

  /** The sealed file with the largest share of dead bytes above `share`; undefined: there is none. */
  sparsest(share: number): number | undefined {
    let found: { id: number; share: number } | undefined;
    for (const file of this.#files.values()) {
      if (file === this.#current || file.endOffset === 0 || this.#spare.includes(file)) continue;
      const dead = 1 - file.liveBytes / file.endOffset;
      if (dead > share && dead > (found?.share ?? 0)) found = { id: file.id, share: dead };
    }
    return found?.id;
  }

  /** The heads of a file from its beginning to where none follows: of live records and of dead ones. */
  async *heads(fileId: number): AsyncGenerator<{ head: RecordHead; offset: number }> {
    const file = this.#files.get(fileId);
    if (file === undefined) return;
    file.users++;
    try {
      const block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      for (let offset = 0; offset < this.#fileBytes; ) {
        const count = await file.io.read(block, offset);
        const head = count === BLOCK_BYTES ? readHead(block) : undefined;
        if (head === undefined) return;
        yield { head, offset };
        offset += recordBytes(head.bodyBytes);
      }
    } finally {
      this.#left(file);
    }
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#queue.map(({ done }) => done.promise));
    for (const file of this.#files.values()) await file.io.close();
    this.#files.clear();
  }

  /** The file that has room for the record, and takes it next. */
  async #fileFor(sizeBytes: number): Promise<File> {
    for (;;) {
      if (this.#hasFailed) throw await this.failed;
      const file = this.#current;
      if (file !== undefined && file.endOffset + sizeBytes <= this.#fileBytes) return file;
      this.#opening ??= this.#openNext().finally(() => {
        this.#opening = undefined;
      });
      await this.#opening;
    }
  }

  async #openNext(): Promise<File> {
    const full = this.#current;
    let next = this.#spare.shift();
    if (next === undefined) {
      const id = this.#nextId++;
      next = {
        id,
        io: await this.#io.open(id).catch((error) => this.#fail(error)),
        liveBytes: 0,
        endOffset: 0,
        users: 0,
      };
      this.#files.set(id, next);
    }
    next.endOffset = 0;
    this.#current = next;
    if (full !== undefined) this.#mayFree(full);
    return next;
  }

  /** Writes what is ready: records that lie one behind the other in one write. */
  #pump(): void {
    while (this.#writes < WRITES_MAX && this.#queue.length > 0) {
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
      const records = this.#queue.splice(0, count);
      this.#writes++;
      void this.#write(first, records);
    }
  }

  async #write({ file, place }: Waiting, records: readonly Waiting[]): Promise<void> {
    try {
      await file.io.write(
        records.map(({ place: { bodyBytes }, piece }) => piece.bytes.subarray(0, recordBytes(bodyBytes))),
        place.offset,
      );
      for (const { done } of records) done.resolve();
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error));
      this.#hasFailed = true;
      this.#failure.resolve(failure);
      for (const { done } of [...records, ...this.#queue.splice(0)]) done.reject(failure);
    } finally {
      this.#writes--;
      for (const record of records) this.#left(record.file);
      if (!this.#hasFailed) this.#pump();
    }
  }

  #fail(error: unknown): never {
    const failure = error instanceof Error ? error : new Error(String(error));
    this.#hasFailed = true;
    this.#failure.resolve(failure);
    throw failure;
  }

  #left(file: File): void {
    file.users--;
    this.#mayFree(file);
  }

  #mayFree(file: File): void {
    if (file === this.#current || file.liveBytes > 0 || file.users > 0 || this.#spare.includes(file)) return;
    assert(file.liveBytes === 0, 'a file has no fewer live bytes than none');
    if (this.#spare.length < SPARE_FILES_MAX) {
      file.endOffset = 0;
      this.#spare.push(file);
      return;
    }
    this.#files.delete(file.id);
    void file.io
      .close()
      .then(() => this.#io.remove(file.id))
      .catch((error: unknown) => {
        // It is found again at the next start.
        void error;
      });
  }
}
