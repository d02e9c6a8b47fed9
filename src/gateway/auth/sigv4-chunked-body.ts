// Takes the aws-chunked framing off a body as it flows: chunk headers, their signatures, the trailer. Data is passed on
// as slices of what arrived, small chunks together, before its signature is known to be right: who consumes it must not
// keep anything of a stream that ends in an error.

import { BufferQueue } from '../../base/async/buffer-queue.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import type { ChunkSignatures } from './chunk-signatures.ts';

export interface ChunkedBodyOptions {
  /** The next piece as it arrived; undefined at the end. */
  read(): Promise<Buffer | undefined>;
  /** Resolves when it is its turn to have the thread for some ms. */
  turn(): Promise<void>;
  /** x-amz-decoded-content-length. */
  readonly sizeBytes: number;
  /** Absent: chunks carry no signatures. */
  readonly signatures?: ChunkSignatures;
  /** Lower-case name of the header that x-amz-trailer announces, if any. */
  readonly trailerName?: string;
}

export interface ChunkedBody {
  readonly stream: AsyncIterable<Buffer>;
  /** Value of the announced trailer; undefined until the stream has ended. */
  trailer(): string | undefined;
}

const CHUNK_HEADER = /^([0-9a-fA-F]{1,9})(?:;chunk-signature=([0-9a-f]{64}))?$/;
/**
 * A small chunk costs as much as any (5 to 20 µs). After so many of them a body waits for its turn.
 */
const SMALL_CHUNKS_PER_TURN = 250;
const SMALL_CHUNK_BYTES = 4096;
const TRAILER_SIGNATURE = 'x-amz-trailer-signature';
const LF = 0x0a;
const CR = 0x0d;

/** The stream throws IncompleteBody, SignatureDoesNotMatch, MalformedTrailerError, InvalidChunkSizeError. */
export function openChunkedBody(options: ChunkedBodyOptions): ChunkedBody {
  const { signatures } = options;
  const cursor = new BufferCursor(options.read);
  let trailer: string | undefined;

  async function* decode(): AsyncGenerator<Buffer, void> {
    const ready = new BufferQueue();
    let leftBytes = options.sizeBytes;
    let tinyChunks = 0;
    let smallChunks = 0;
    for (;;) {
      if (cursor.isSpent || ready.sizeBytes >= LIMITS.streamBufferBytes) yield* ready.takeAll();
      const header = parseChunkHeader(
        await cursor.line(LIMITS.chunkHeaderBytesMax),
        signatures !== undefined,
      );
      leftBytes -= header.sizeBytes;
      if (leftBytes < 0) throw incompleteBody();
      if (header.sizeBytes < LIMITS.tinyChunkBytes && ++tinyChunks > LIMITS.tinyChunksMax)
        throw tooManyChunks();
      if (header.sizeBytes < SMALL_CHUNK_BYTES && ++smallChunks % SMALL_CHUNKS_PER_TURN === 0) {
        await options.turn();
      }
      signatures?.startChunk(header);
      for (let chunkLeft = header.sizeBytes; chunkLeft > 0; ) {
        const buffer = await cursor.take(chunkLeft);
        chunkLeft -= buffer.length;
        signatures?.update(buffer);
        ready.add(buffer);
        if (cursor.isSpent) yield* ready.takeAll();
      }
      if (header.sizeBytes > 0) await cursor.lineEnd();
      signatures?.endChunk();
      if (header.sizeBytes === 0) break;
    }
    yield* ready.takeAll();
    if (leftBytes > 0) throw incompleteBody();
    trailer = readTrailer(await readTrailerLines(cursor), options);
    if (!(await cursor.isAtEnd())) throw incompleteBody();
  }

  return { stream: { [Symbol.asyncIterator]: decode }, trailer: () => trailer };
}

function parseChunkHeader(line: string, isSigned: boolean): { sizeBytes: number; signature: string } {
  const match = CHUNK_HEADER.exec(line);
  const sizeBytes = Number.parseInt(match?.[1] ?? '', 16);
  const signature = match?.[2];
  if (match === null || (signature !== undefined) !== isSigned) throw incompleteBody();
  // A signed chunk is passed on before it is known to be right: by so much at most.
  if (isSigned && sizeBytes > LIMITS.signedChunkBytesMax) throw new AppError('EntityTooLarge');
  return { sizeBytes, signature: signature ?? '' };
}

/** Name and value of each line up to the empty one. Some clients end these lines with a bare line feed. */
async function readTrailerLines(cursor: BufferCursor): Promise<[name: string, value: string][]> {
  const lines: [string, string][] = [];
  for (let leftBytes: number = LIMITS.trailerBytesMax; ; ) {
    // A body may end with its last chunk where no trailer is announced.
    if (lines.length === 0 && (await cursor.isAtEnd())) return lines;
    const line = await cursor.line(leftBytes, { mayEndInLineFeed: true });
    if (line === '') return lines;
    leftBytes -= line.length;
    const colon = line.indexOf(':');
    if (colon <= 0) throw malformedTrailer();
    lines.push([line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()]);
  }
}

/** The value of the announced trailer, once its signature is right. */
function readTrailer(
  lines: readonly (readonly [name: string, value: string])[],
  options: ChunkedBodyOptions,
): string | undefined {
  const { signatures, trailerName } = options;
  const announced = lines.filter(([name]) => name === trailerName);
  const signature = lines.find(([name]) => name === TRAILER_SIGNATURE)?.[1];
  const isSigned = signatures !== undefined && lines.length > 0;
  const knownCount = announced.length + (signature === undefined ? 0 : 1);
  if (knownCount !== lines.length || announced.length !== (trailerName === undefined ? 0 : 1)) {
    throw malformedTrailer();
  }
  if (isSigned !== (signature !== undefined)) throw malformedTrailer();
  if (signature !== undefined) {
    const canonical = announced.map(([name, value]) => `${name}:${value}\n`).join('');
    signatures?.checkTrailer(canonical, signature);
  }
  return announced[0]?.[1];
}

function incompleteBody(): AppError {
  return new AppError('IncompleteBody', { message: 'The request body terminated unexpectedly' });
}

/** AWS refuses every chunk below 8 KiB but the last one; clients that write smaller ones are served, up to a number. */
function tooManyChunks(): AppError {
  return new AppError('InvalidChunkSizeError');
}

function malformedTrailer(): AppError {
  return new AppError('MalformedTrailerError');
}

/** A position in the pieces of a body. Slices share the memory of the pieces. */
class BufferCursor {
  readonly #read: () => Promise<Buffer | undefined>;
  #buffer: Buffer = Buffer.alloc(0);
  #at = 0;

  constructor(read: () => Promise<Buffer | undefined>) {
    this.#read = read;
  }

  /** All that has arrived is taken: the next call may wait for the client. */
  get isSpent(): boolean {
    return this.#at === this.#buffer.length;
  }

  /** What has arrived, up to `bytesMax` of it; waits for at least one byte. */
  async take(bytesMax: number): Promise<Buffer> {
    if (this.#at === this.#buffer.length) await this.#next();
    const buffer = this.#buffer.subarray(this.#at, this.#at + bytesMax);
    this.#at += buffer.length;
    return buffer;
  }

  /** The text up to the next CR LF, which it passes. */
  async line(bytesMax: number, options = { mayEndInLineFeed: false }): Promise<string> {
    let text = '';
    for (;;) {
      if (this.#at === this.#buffer.length) await this.#next();
      const end = this.#buffer.indexOf(LF, this.#at);
      const stop = end === -1 ? this.#buffer.length : end;
      if (text.length + stop - this.#at > bytesMax) throw incompleteBody();
      text += this.#buffer.toString('latin1', this.#at, stop);
      this.#at = end === -1 ? stop : stop + 1;
      if (end === -1) continue;
      if (text.endsWith('\r')) return text.slice(0, -1);
      if (options.mayEndInLineFeed) return text;
      throw incompleteBody();
    }
  }

  /** Passes the CR LF behind a chunk. */
  async lineEnd(): Promise<void> {
    for (const expected of [CR, LF]) {
      if (this.#at === this.#buffer.length) await this.#next();
      if (this.#buffer[this.#at] !== expected) throw incompleteBody();
      this.#at += 1;
    }
  }

  async isAtEnd(): Promise<boolean> {
    while (this.#at === this.#buffer.length) {
      const buffer = await this.#read();
      if (buffer === undefined) return true;
      this.#buffer = buffer;
      this.#at = 0;
    }
    return false;
  }

  async #next(): Promise<void> {
    if (await this.isAtEnd()) throw incompleteBody();
  }
}
