// What one read of a socket may cost. Node's parser makes all of a read before anything else runs, and a read of 64 KiB holds
// ten thousand chunks of a byte (RFC 9112 7.1), which take it 20 ms. So heads and chunked bodies are handed to it in slices.
// Slices with many chunks, or with much that only frames them (extensions, leading zeros, trailers), use up the turn of the
// event loop as reads of bodies do (base/async/read-turns.ts): what is left of a read goes back into the socket until it is the
// tenant's turn. A body of known length is one piece, however much of it was read, is never cut, and goes to its reader without
// the parser's copy.
// One turn of the loop reads from every socket that has something. So before anything of a head is parsed it is asked whether
// this turn still has room for it: of a crowd whose heads come at the same moment each waits for its turn.
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { freeMemory } from '../../base/free-memory.ts';
import { type BodyParser, countBody } from '../../base/http-parser.ts';
import { LIMITS } from '../../types/limits.ts';
import { ParsedRequest, parsedBodyBytes, parsedPieceCount, parsedRequestCount } from './parsed-request.ts';

/** Most heads fit; chunks of a byte take 1.4 ms. */
const SLICE_BYTES = 4096;
/** A slice with no more chunks costs what a slice costs. */
const FEW_PIECES = 8;
/** What frames chunks is nobody's body, so no reader counts it: so much of it costs as much as a chunk. */
const FRAMING_OF_PIECE_BYTES = 1024;

/** To parse a head takes as long as to read so many times its bytes, or more where it is short. */
const HEAD_COST_FACTOR = 2;
const HEAD_COST_BYTES_MIN = 4096;
/** A shorter part of a body is copied: memory that it shared with a head would stay as long as it does. */
const AS_READ_BYTES_MIN = 4096;

/** Lines of a head, as Node's parser gives them away before the head is complete. */
const LINES_GIVEN_AT_ONCE = 32;
/** An empty line, however its lines end: the parser judges it. */
const HEAD_END = /\n\r?\n/;
/** Its beginning may have come before. */
const UNSEEN_BYTES = 2;

/** What was no request is answered and logged at once. */
const REFUSAL_COST_BYTES = 32 * 1024;

/**
 * So many pieces of bodies, or framing that costs as much, have been parsed of what has come on a socket. False: it is to wait;
 * `goOn` is called when it is its turn.
 */
export type MayParseOn = (socket: Socket, pieceCount: number, goOn: () => void) => boolean;

/**
 * A part of a head is about to be parsed, or was, which costs as much as so many bytes. False: the socket is to wait; `goOn` is
 * called when it is its turn.
 */
export type MayParseHead = (socket: Socket, costBytes: number, goOn: () => void) => boolean;

export interface ParsingTurns {
  readonly mayParseOn: MayParseOn;
  readonly mayParseHead: MayParseHead;
}

export interface SlicedParsing {
  /** Node's HTTP server has taken the socket, and is to parse it in slices. */
  begin(socket: Socket): void;
  /** A body has begun on it whose end has not come. */
  isInBody(socket: Socket): boolean;
  /** Whatever comes on it from here on is dropped: its bytes make no sense any more. */
  end(socket: Socket): void;
}

/** Of bodies. */
interface ParsedSlice {
  pieceCount: number;
  framingBytes: number;
}

type Parse = (bytes: Buffer) => void;
type NodeParser = BodyParser & { incoming: IncomingMessage | null; _headers?: unknown[] };
type SocketOfParser = Socket & { parser?: NodeParser | null };

export function createSlicedParsing({ mayParseOn, mayParseHead }: ParsingTurns): SlicedParsing {
  const ended = new WeakSet<Socket>();

  function begin(socket: SocketOfParser): void {
    const parse = takeOver(socket, feed);
    /** It is not its turn. */
    let waits = false;
    /** It has waited for this one. */
    let isItsTurn = false;
    /** Somebody wants more when it is. */
    let isWanted = false;
    const longHead = new LongHead(socket);

    function feed(read: Buffer): void {
      if (waits) {
        isWanted = true;
        putBack(read);
        return;
      }
      // To look for its end takes a turn, as parsing does.
      if (longHead.isHeld && !mayBegin(read.length)) {
        isWanted = true;
        putBack(read);
        return;
      }
      const bytes = longHead.take(read);
      if (bytes === undefined) return;
      let isGiven = false;
      for (let from = 0; from < bytes.length; ) {
        if (isAtEnd(socket)) return;
        if (longHead.hold(bytes.subarray(from))) {
          if (!isGiven) freeMemory(bytes);
          return;
        }
        const to = Math.min(bytes.length, from + Math.max(SLICE_BYTES, restBytesOf(socket)));
        if (!mayBegin(to - from)) {
          isWanted = true;
          giveGathered(socket);
          putBack(bytes.subarray(from));
          return;
        }
        const before = {
          bytes: parsedBodyBytes(),
          pieces: parsedPieceCount(),
          requests: parsedRequestCount(),
        };
        // The rest of a slice with a head was counted with it.
        const countsFraming = isInBody(socket);
        if (takeAsRead(socket, bytes.subarray(from, to), parse)) isGiven = true;
        else {
          parse(bytes.subarray(from, to));
          longHead.parsed(bytes.subarray(from, to));
        }
        const framingBytes = countsFraming ? to - from - (parsedBodyBytes() - before.bytes) : 0;
        from = to;
        const pieceCount = parsedPieceCount() - before.pieces;
        takeTurn({ pieceCount, framingBytes }, parsedRequestCount() - before.requests);
        // By us, by whoever reads the body, or by Node, which parses no further while too many answers are unsent.
        if (from < bytes.length && socket.isPaused()) {
          giveGathered(socket);
          putBack(bytes.subarray(from));
          return;
        }
      }
      giveGathered(socket);
      if (!isGiven) freeMemory(bytes);
    }

    /** A part of a body needs no turn here: whoever reads bodies takes it. */
    function mayBegin(sizeBytes: number): boolean {
      if (isInBody(socket) || isItsTurn) {
        isItsTurn = false;
        return true;
      }
      const costBytes = Math.max(HEAD_COST_BYTES_MIN, HEAD_COST_FACTOR * sizeBytes);
      waits = !mayParseHead(socket, costBytes, goOn);
      return !waits;
    }

    function takeTurn({ pieceCount, framingBytes }: ParsedSlice, requestCount: number): void {
      const framings = Math.floor(framingBytes / FRAMING_OF_PIECE_BYTES);
      const isCheap = pieceCount <= FEW_PIECES && framings === 0;
      const hasRoom =
        (isCheap || mayParseOn(socket, Math.max(pieceCount, framings), goOn)) && mayGoOnBehind(requestCount);
      if (hasRoom) return;
      waits = true;
      isWanted = !socket.isPaused();
      socket.pause();
    }

    /** One request was counted before it was parsed. */
    function mayGoOnBehind(requestCount: number): boolean {
      const refusalBytes = ended.has(socket) ? REFUSAL_COST_BYTES : 0;
      const costBytes = refusalBytes + Math.max(0, requestCount - 1) * HEAD_COST_BYTES_MIN;
      return costBytes === 0 || mayParseHead(socket, costBytes, goOn);
    }

    function goOn(): void {
      waits = false;
      isItsTurn = isWanted;
      if (isWanted) socket.resume();
    }

    function putBack(bytes: Buffer): void {
      socket.pause();
      socket.unshift(bytes);
    }
  }

  function isAtEnd(socket: SocketOfParser): boolean {
    return socket.destroyed || socket.writableEnded || !socket.parser || ended.has(socket);
  }

  return {
    begin,
    isInBody: (socket) => !ended.has(socket) && isInBody(socket),
    end: (socket) => void ended.add(socket),
  };
}

/**
 * What has come of a head of many lines, and is not parsed before its end is there: as lines in a list it would take three times
 * the memory, and all of it V8's, where it outlives a connection that ends meanwhile.
 */
class LongHead {
  readonly #socket: SocketOfParser;
  /** What is held is in the first bytes of it. */
  #memory: Buffer | undefined;
  #heldBytes = 0;
  #parsedBytes = 0;
  /** The last bytes that have come, parsed or held. */
  #last = '';
  /** Its end has come, or it is too long, which the parser says: it is parsed as it comes. */
  #isOver = false;
  #isWatched = false;

  constructor(socket: SocketOfParser) {
    this.#socket = socket;
  }

  get #isOne(): boolean {
    const { parser } = this.#socket;
    return (parser?._headers?.length ?? 0) >= 2 * LINES_GIVEN_AT_ONCE && !isInBody(this.#socket);
  }

  get isHeld(): boolean {
    return this.#heldBytes > 0;
  }

  /** What is to be parsed of what was read: undefined where it is held, otherwise with all that was. */
  take(read: Buffer): Buffer | undefined {
    if (!this.isHeld) return read;
    const isHeld = this.#mayHold(read);
    this.#add(read);
    freeMemory(read);
    return isHeld ? undefined : this.#release();
  }

  /** Whether it is held, of which nothing is parsed yet. It is a copy. */
  hold(rest: Buffer): boolean {
    if (this.#isOver || !this.#isOne || !this.#mayHold(rest)) return false;
    if (!this.#isWatched) this.#socket.once('close', () => this.#free());
    this.#isWatched = true;
    this.#add(rest);
    return true;
  }

  /** To be called behind each slice that was parsed. */
  parsed(slice: Buffer): void {
    if (!this.#isOne) {
      this.#isOver = false;
      this.#parsedBytes = 0;
      this.#last = '';
    } else if (!this.#isOver) {
      this.#parsedBytes += slice.length;
      this.#last = (this.#last + slice.toString('latin1', Math.max(0, slice.length - UNSEEN_BYTES))).slice(
        -UNSEEN_BYTES,
      );
    }
  }

  #mayHold(more: Buffer): boolean {
    const text = this.#last + more.toString('latin1');
    const sizeBytes = this.#parsedBytes + this.#heldBytes + more.length;
    this.#isOver = sizeBytes > LIMITS.headerBytesMax || HEAD_END.test(text);
    this.#last = text.slice(-UNSEEN_BYTES);
    return !this.#isOver;
  }

  #add(more: Buffer): void {
    const sizeBytes = this.#heldBytes + more.length;
    if (sizeBytes > (this.#memory?.length ?? 0)) {
      // So that bytes that come one by one are not copied each time.
      const memory = Buffer.allocUnsafeSlow(Math.max(sizeBytes, 2 * this.#heldBytes));
      this.#memory?.copy(memory, 0, 0, this.#heldBytes);
      this.#free();
      this.#memory = memory;
    }
    this.#memory?.set(more, this.#heldBytes);
    this.#heldBytes = sizeBytes;
  }

  #release(): Buffer {
    const held = (this.#memory ?? Buffer.alloc(0)).subarray(0, this.#heldBytes);
    this.#memory = undefined;
    this.#heldBytes = 0;
    return held;
  }

  #free(): void {
    if (this.#memory !== undefined) freeMemory(this.#memory);
    this.#memory = undefined;
  }
}

/** Has `feed` called with what comes, instead of Node's parser. Gives what parses. */
function takeOver(socket: Socket, feed: Parse): Parse {
  const [parse] = socket.listeners('data') as Parse[];
  if (parse === undefined) throw new Error('Node parses what a socket gives as data');
  const pauses = (['pause', 'resume'] as const).map((name) => [name, socket.listeners(name)] as const);
  socket.off('data', parse);
  // With a listener of somebody else's Node's parser does not read by itself any more (net.Socket, "data").
  socket.on('data', feed);
  // Node has taken away those by which a pause stops the reading at once: without them a read more would come.
  for (const [name, listeners] of pauses) {
    for (const listener of listeners) {
      if (!socket.listeners(name).includes(listener)) socket.on(name, listener as () => void);
    }
  }
  return parse;
}

function isInBody({ parser }: SocketOfParser): boolean {
  const incoming = parser?.incoming;
  return incoming !== undefined && incoming !== null && !incoming.complete;
}

/** False: it is no part of a body of known length, or a short one. True: who reads the body has it, and its memory. */
function takeAsRead({ parser }: SocketOfParser, part: Buffer, parse: Parse): boolean {
  const incoming = parser?.incoming;
  if (!parser || !(incoming instanceof ParsedRequest) || part.length < AS_READ_BYTES_MIN) return false;
  // Not where the length is no number either: what is behind a body is never taken for a part of it.
  if (!(part.length <= incoming.restBytes)) return false;
  incoming.takeAsRead(part, (counted) => countBody(parser, counted, parse));
  return true;
}

function restBytesOf({ parser }: SocketOfParser): number {
  return parser?.incoming instanceof ParsedRequest ? parser.incoming.restBytes : 0;
}

function giveGathered({ parser }: SocketOfParser): void {
  if (parser?.incoming instanceof ParsedRequest) parser.incoming.giveGathered();
}
