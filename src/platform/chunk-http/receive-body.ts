// Bodies of requests to a storage node. Over a bare connection the kernel writes a body into the memory that it stays in; over TLS
// it is laid there as it was read. Node's parser, which would make a copy of each piece, only counts the bytes.
import type { IncomingMessage, Server } from 'node:http';
import { Socket } from 'node:net';
import { asBuffer, copyBytes } from '../../base/bytes/bytes.ts';
import { freeMemory } from '../../base/free-memory.ts';
import { type BodyParser, countBody } from '../../base/http-parser.ts';

const READ_BYTES = 64 * 1024;

interface NodeParser extends BodyParser {
  incoming: IncomingMessage | null;
}

type Parse = (bytes: Buffer) => void;
type Accept = (this: Server, socket: Socket) => void;
type SocketOfParser = Socket & { parser?: NodeParser | null };
/** As Node's server makes it, and counts it. */
type Accepted = Socket & { _handle: object | null; _server: object | null };

interface BodyPlace {
  request: IncomingMessage;
  bytes: Buffer;
  atBytes: number;
}

/** Of bodies that are coming. */
const places = new WeakMap<Socket, BodyPlace>();
/** Takes heads, and what comes with them: it is read and parsed within one turn. */
const scratch = Buffer.allocUnsafeSlow(READ_BYTES);

/** Before it listens. Bodies are then taken by {@link receiveBody}. */
export function takeBodiesAsRead(
  server: Server,
  how: {
    isTls: boolean;
    /** Asked of each bare connection. False: it has ended. */
    mayTake(socket: Socket): boolean;
  },
): void {
  if (how.isTls) {
    server.on('secureConnection', (socket: Socket) => void takeOver(socket));
    return;
  }
  const [accept] = server.listeners('connection') as Accept[];
  if (accept === undefined) throw new Error('Node serves what a server has accepted');
  server.off('connection', accept);
  server.on('connection', (accepted: Accepted) => {
    // Asked for the first place while it is made.
    let taken: { socket: Socket; feed: Parse } | undefined;
    const socket = readByUs(accepted, {
      buffer: () => (taken && placeOf(taken.socket)) ?? scratch,
      callback: (sizeBytes, bytes) => {
        taken?.feed(asBuffer(bytes).subarray(0, sizeBytes));
        return true;
      },
    });
    if (!how.mayTake(socket)) return;
    accept.call(server, socket);
    taken = { socket, feed: takeOver(socket) };
  });
}

/** The same connection, read into memory that is asked for: a server makes its sockets without that choice. */
function readByUs(
  accepted: Accepted,
  onread: { buffer(): Uint8Array; callback(sizeBytes: number, bytes: Uint8Array): boolean },
): Socket {
  const { _handle: handle, _server: counter } = accepted;
  const socket = new Socket({ handle, onread, allowHalfOpen: true } as object) as Accepted;
  accepted._handle = null;
  accepted._server = null;
  socket._server = counter;
  return socket;
}

/** Has what comes given to the function that is returned, instead of Node's parser. */
function takeOver(socket: SocketOfParser): Parse {
  const [parse] = socket.listeners('data') as Parse[];
  if (parse === undefined) throw new Error('Node parses what a socket gives as data');
  const feed = (bytes: Buffer) => {
    const rest = bytes.subarray(takeAsRead(socket, bytes, parse));
    if (rest.length === 0 || socket.destroyed || !socket.parser) return;
    // By Node, which parses no further while too many answers are unsent.
    if (socket.isPaused()) socket.unshift(Buffer.from(rest));
    else parse(rest);
  };
  socket.off('data', parse);
  // With a listener of somebody else's the parser does not read the socket by itself any more (net.Socket, "data").
  socket.on('data', (bytes: Buffer) => {
    feed(bytes);
    freeMemory(bytes);
  });
  return feed;
}

/** Where the next bytes of a body belong; undefined: what comes next is for the parser. */
function placeOf(socket: SocketOfParser): Buffer | undefined {
  const place = places.get(socket);
  if (place === undefined || place.atBytes === place.bytes.length) return undefined;
  if (socket.parser?.incoming !== place.request) return undefined;
  // What was parsed before comes first.
  if (place.request.readableLength > 0 || place.request.isPaused()) return undefined;
  return place.bytes.subarray(place.atBytes);
}

/** How many of the bytes are of a body with a place. */
function takeAsRead(socket: SocketOfParser, bytes: Buffer, parse: Parse): number {
  const place = places.get(socket);
  const into = placeOf(socket);
  const { parser } = socket;
  if (place === undefined || into === undefined || !parser) return 0;
  const part = bytes.subarray(0, into.length);
  const isThere = part.buffer === into.buffer && part.byteOffset === into.byteOffset;
  if (!isThere) copyBytes(into, part);
  place.atBytes += part.length;
  countBody(parser, part, parse);
  return part.length;
}

/**
 * Fills `bytes`, exactly: their length is the one that was announced. False: the body has ended early, and its connection with
 * it. Nothing writes to them any more when it resolves.
 */
export function receiveBody(request: IncomingMessage, bytes: Uint8Array): Promise<boolean> {
  if (request.destroyed) return Promise.resolve(false);
  const { socket } = request;
  const place = { request, bytes: asBuffer(bytes), atBytes: 0 };
  places.set(socket, place);
  return new Promise((resolve) => {
    const end = () => {
      if (places.get(socket) !== place) return;
      places.delete(socket);
      request.off('data', take);
      const isWhole = place.atBytes === bytes.length;
      // The next read may be meant for them.
      if (!isWhole) socket.destroy();
      resolve(isWhole);
    };
    const take = (piece: Buffer) => {
      // Never more: the parser ends a body at its announced length.
      place.bytes.set(piece, place.atBytes);
      place.atBytes += piece.length;
      freeMemory(piece);
    };
    request.on('data', take);
    request.once('end', end);
    request.once('error', end);
    request.once('close', end);
  });
}
