// A request as Node's parser hands it over: what keeps the parser from making more of one read than is wanted.
// - The parser can be told to stop. One read holds thousands of small requests, and the parser makes them all before anything
//   else runs, also when their connection has ended at the first. Where a request is a tunnel the parser stops behind its
//   head, for other bytes than HTTP follow: so one that is not to be served says that it is a tunnel, and nothing behind it
//   becomes a request.
// - A body of known length is taken as it was read (parse-in-slices.ts). Node's parser counts its bytes, and would copy them.
// - The chunks of a body (RFC 9112 7.1) are gathered until what was read is parsed (parse-in-slices.ts): one read may hold ten
//   thousand of a byte.
import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { freeMemory } from '../../base/free-memory.ts';
import { LIMITS } from '../../types/limits.ts';

/** Chunks below this many bytes are small. */
const SMALL_CHUNK_BYTES = 512;
/** A body that has had more of them is one of small chunks. */
const SMALL_CHUNKS_MAX = 256;

/** Of the bodies of all requests, since the start. */
let pieceCount = 0;

/** Pieces of bodies that Node's parser has made until now. */
export function parsedPieceCount(): number {
  return pieceCount;
}

let bodyBytes = 0;

/** Of the bodies of all requests, without what frames their chunks. What nobody will read may be missing. */
export function parsedBodyBytes(): number {
  return bodyBytes;
}

let requestCount = 0;

/** Requests that Node's parser has made until now. */
export function parsedRequestCount(): number {
  return requestCount;
}

export class ParsedRequest extends IncomingMessage {
  /** Its body comes in small chunks, many of them. */
  isInSmallChunks = false;

  #endsParsing: boolean | undefined;
  #parsedBytes = 0;
  #smallChunkCount = 0;
  #gathered: Buffer[] = [];
  /** A part of a body of known length that the parser is counting. */
  #asRead: Buffer | undefined;

  constructor(socket: Socket) {
    super(socket);
    requestCount++;
  }

  /** Asked by Node when the head is there, before there is a response; what was said once stays. */
  get upgrade(): boolean {
    this.#endsParsing ??= this.method === 'CONNECT' || hasTooManyLines(this) || isOnEndedSocket(this);
    return this.#endsParsing;
  }

  // What Node makes of the headers Upgrade and Connection: nothing is upgraded here.
  set upgrade(_wanted: boolean | null) {}

  /** Bytes of a body of known length that are still to be parsed; 0 where nobody knows. */
  get restBytes(): number {
    if (this.complete || this.#isChunked) return 0;
    return Math.max(0, Number(this.headers['content-length'] ?? 0) - this.#parsedBytes);
  }

  get #isChunked(): boolean {
    return this.headers['transfer-encoding'] !== undefined;
  }

  /** Called by Node's parser for each piece of the body, and with null at its end. False: the socket is not to be read. */
  override push(piece: Buffer | null, encoding?: BufferEncoding): boolean {
    if (piece === null) {
      this.#giveAsRead();
      this.giveGathered();
      return super.push(null);
    }
    this.#countPiece(piece);
    // Who pauses on a piece wants no further one: what the socket still holds stays there.
    if (!this.#isChunked) return super.push(piece, encoding) && !this.isPaused();
    if (piece.length < SMALL_CHUNK_BYTES && ++this.#smallChunkCount > SMALL_CHUNKS_MAX) {
      this.isInSmallChunks = true;
    }
    this.#gathered.push(piece);
    return true;
  }

  #countPiece({ length }: Buffer): void {
    pieceCount++;
    bodyBytes += length;
    this.#parsedBytes += length;
  }

  /**
   * Gives a part of the body as it was read, no longer than `restBytes`. `count` has the parser count it: it may call `push` with
   * null, and with nothing else.
   */
  takeAsRead(part: Buffer, count: (part: Buffer) => void): void {
    this.#asRead = part;
    count(part);
    this.#giveAsRead();
  }

  #giveAsRead(): void {
    const part = this.#asRead;
    if (part === undefined) return;
    this.#asRead = undefined;
    this.#countPiece(part);
    // Nobody will read it: the answer is out.
    if ((this as { _dumped?: boolean })._dumped === true) {
      freeMemory(part);
      return;
    }
    if (!super.push(part) || this.isPaused()) this.socket.pause();
  }

  /** What was read is parsed, or the rest of it has to wait. */
  giveGathered(): void {
    const [first, ...others] = this.#gathered;
    if (first === undefined) return;
    const bytes = others.length === 0 ? first : Buffer.concat(this.#gathered);
    this.#gathered = [];
    if (!super.push(bytes) || this.isPaused()) this.socket.pause();
  }
}

/** Node has dropped some of its lines, or would have: none of them may be believed. */
export function hasTooManyLines({ rawHeaders }: IncomingMessage): boolean {
  return rawHeaders.length > 2 * LIMITS.headerLinesMax;
}

function isOnEndedSocket({ socket }: IncomingMessage): boolean {
  return socket.destroyed || socket.writableEnded;
}
