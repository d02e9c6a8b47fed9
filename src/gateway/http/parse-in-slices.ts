// What one read of a socket may cost. Node's parser makes all of a read before anything else runs, and a read of 64 KiB holds
// ten thousand chunks of a byte (RFC 9112 7.1), which take it 20 ms. So heads and chunked bodies are handed to it in slices.
// Slices with many chunks use up the turn of the event loop as reads of bodies do (base/async/read-turns.ts): what is left
// of a read goes back into the socket until it is the tenant's turn. A body of known length is one piece, however much
// of it was read, and is never cut.
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { freeMemory } from '../../base/free-memory.ts';
import { ParsedRequest, parsedPieceCount } from './parsed-request.ts';

/** Most heads fit; chunks of a byte take 1.4 ms. */
const SLICE_BYTES = 4096;
/** A slice with no more chunks costs what a slice costs. */
const FEW_PIECES = 8;

/**
 * So many pieces of bodies have been parsed of what has come on a socket. False: it is to wait; `goOn` is called when it is
 * its turn.
 */
export type MayParseOn = (socket: Socket, pieceCount: number, goOn: () => void) => boolean;

export interface SlicedParsing {
  /** Node's HTTP server has taken the socket, and is to parse it in slices. */
  begin(socket: Socket): void;
  /** Whatever comes on it from here on is dropped: its bytes make no sense any more. */
  end(socket: Socket): void;
}

type Parse = (bytes: Buffer) => void;
type SocketOfParser = Socket & { parser?: { incoming: IncomingMessage | null } | null };

export function createSlicedParsing(mayParseOn: MayParseOn): SlicedParsing {
  const ended = new WeakSet<Socket>();

  function begin(socket: SocketOfParser): void {
    const parse = takeOver(socket, feed);
    /** It is not its turn. */
    let waits = false;
    /** Somebody wants more when it is. */
    let isWanted = false;

    function feed(bytes: Buffer): void {
      if (waits) {
        isWanted = true;
        putBack(bytes);
        return;
      }
      for (let from = 0; from < bytes.length; ) {
        if (isAtEnd(socket)) return;
        const to = Math.min(bytes.length, from + Math.max(SLICE_BYTES, restBytesOf(socket)));
        const before = parsedPieceCount();
        parse(bytes.subarray(from, to));
        from = to;
        takeTurn(parsedPieceCount() - before);
        // By us, by whoever reads the body, or by Node, which parses no further while too many answers are unsent.
        if (from < bytes.length && socket.isPaused()) {
          giveGathered(socket);
          putBack(bytes.subarray(from));
          return;
        }
      }
      giveGathered(socket);
      freeMemory(bytes);
    }

    function takeTurn(pieceCount: number): void {
      if (pieceCount <= FEW_PIECES || mayParseOn(socket, pieceCount, goOn)) return;
      waits = true;
      isWanted = !socket.isPaused();
      socket.pause();
    }

    function goOn(): void {
      waits = false;
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
    end: (socket) => void ended.add(socket),
  };
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

function restBytesOf({ parser }: SocketOfParser): number {
  return parser?.incoming instanceof ParsedRequest ? parser.incoming.restBytes : 0;
}

function giveGathered({ parser }: SocketOfParser): void {
  if (parser?.incoming instanceof ParsedRequest) parser.incoming.giveGathered();
}
