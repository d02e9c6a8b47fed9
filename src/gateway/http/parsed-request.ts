// A request as Node's parser hands it over: what keeps one read of a socket from holding the event loop.
// - The parser can be told to stop. One read holds thousands of small requests, and the parser makes them all before anything
//   else runs, also when their connection has ended at the first. Where a request is a tunnel the parser stops behind its
//   head, for other bytes than HTTP follow: so one that is not to be served says that it is a tunnel, and nothing behind it
//   becomes a request.
// - Small pieces of a body are gathered. One read may hold ten thousand chunks of a byte (RFC 9112 7.1), which take some 20 ms,
//   and 30 ms where each goes through the stream. Connections with such bodies are read one in a turn of the loop.
import { IncomingMessage } from 'node:http';
import { turnOfItsOwn } from '../../base/async/next-turn.ts';
import { LIMITS } from '../../types/limits.ts';

/** Pieces below this many bytes are small. */
const SMALL_BUFFER_BYTES = 512;
/** A body that has had more small pieces is gathered from there on. */
const SMALL_BUFFERS_MAX = 256;
/** What is gathered is given away at this many bytes at the latest. */
const GATHERED_BYTES_MAX = 16 * 1024;

export class ParsedRequest extends IncomingMessage {
  /** Its body has come in small pieces: each that a reader gets is what one read of the socket held, or a part of it. */
  isGathered = false;

  #endsParsing: boolean | undefined;
  #smallBuffers = 0;
  #gathered: Buffer | undefined;
  #gatheredBytes = 0;
  /** What is gathered waits for its turn, and the socket is not read. */
  #waitsForTurn = false;
  /** A reader wants more than is there. */
  #isWanted = false;

  /** Asked by Node when the head is there, before there is a response; what was said once stays. */
  get upgrade(): boolean {
    this.#endsParsing ??= this.method === 'CONNECT' || hasTooManyLines(this) || isOnEndedSocket(this);
    return this.#endsParsing;
  }

  // What Node makes of the headers Upgrade and Connection: nothing is upgraded here.
  set upgrade(_wanted: boolean | null) {}

  /** Called by Node's parser for each piece of the body, and with null at its end. False: the socket is not to be read. */
  override push(piece: Buffer | null, encoding?: BufferEncoding): boolean {
    if (piece === null) {
      this.#giveGathered();
      return super.push(null);
    }
    if (!this.isGathered) {
      if (piece.length < SMALL_BUFFER_BYTES) this.#smallBuffers++;
      this.isGathered = this.#smallBuffers > SMALL_BUFFERS_MAX;
      // Who pauses on a piece wants no further one: what the socket still holds stays there.
      return super.push(piece, encoding) && !this.isPaused();
    }
    if (this.#gatheredBytes + piece.length > GATHERED_BYTES_MAX) this.#giveGathered();
    if (piece.length > GATHERED_BYTES_MAX) super.push(piece, encoding);
    else this.#gather(piece);
    if (this.#waitsForTurn) return true;
    this.#waitsForTurn = true;
    void turnOfItsOwn().then(() => this.#endTurn());
    return false;
  }

  /** Called by the stream when a reader wants more: reads the socket again. */
  override _read(size: number): void {
    if (this.#waitsForTurn) this.#isWanted = true;
    else super._read(size);
  }

  #gather(piece: Buffer): void {
    this.#gathered ??= Buffer.allocUnsafe(GATHERED_BYTES_MAX);
    piece.copy(this.#gathered, this.#gatheredBytes);
    this.#gatheredBytes += piece.length;
  }

  #giveGathered(): void {
    if (this.#gathered === undefined) return;
    const piece = this.#gathered.subarray(0, this.#gatheredBytes);
    this.#gathered = undefined;
    this.#gatheredBytes = 0;
    super.push(piece);
  }

  #endTurn(): void {
    this.#waitsForTurn = false;
    if (!this.destroyed && !this.readableEnded) this.#giveGathered();
    if (!this.#isWanted) return;
    this.#isWanted = false;
    this._read(GATHERED_BYTES_MAX);
  }
}

/** Node has dropped some of its lines, or would have: none of them may be believed. */
export function hasTooManyLines({ rawHeaders }: IncomingMessage): boolean {
  return rawHeaders.length > 2 * LIMITS.headerLinesMax;
}

function isOnEndedSocket({ socket }: IncomingMessage): boolean {
  return socket.destroyed || socket.writableEnded;
}
