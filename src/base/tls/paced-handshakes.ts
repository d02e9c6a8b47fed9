// Hands that a TLS server shakes, one after the other. The answer to the first bytes of a client is signed, which takes as long as
// dozens of requests and costs the client nothing, and a client's certificates have to be checked: each step of a handshake waits
// for its turn (tls-records.ts). Whose turn it is, is for the server to say.
import { type RecordTurns, type SocketEnds, type TakenSocket, TlsRecords } from './tls-records.ts';

/** As RecordTurns, for a socket that was taken or the one that is secured since. */
export interface HandshakeTurns<S extends TakenSocket> {
  mayShakeHands(socket: S, goOn: () => void): boolean;
  mayDecrypt?(socket: S, recordCount: number, goOn: () => void): boolean;
  holdRecords(socket: S, sizeBytes: number): ReturnType<RecordTurns['hold']>;
  readonly certificateBytesMax?: number;
  onSecured?(socket: S): void;
  /** How long a client may say nothing at first, and how long its first turn may take. */
  readonly helloMaxMs: number;
}

/** Of Node's `tls`, or what is made of it. */
interface TlsServer {
  listeners(event: string): unknown[];
  off(event: string, listener: Listener): unknown;
  prependListener(event: string, listener: Listener): unknown;
}

type Listener = (...given: unknown[]) => void;
type Secured = TakenSocket & {
  _handle?: { _parentWrap?: { stream?: unknown } } | null;
  getCipher(): { standardName?: string } | undefined;
};

/**
 * The server begins with no connection by itself any more. Gives what is to be called with each that is taken. To be called behind
 * all listeners of connections that the server is made with, and before its own users listen for secured ones.
 */
export function paceHandshakes<S extends TakenSocket>(
  server: TlsServer,
  turns: HandshakeTurns<S>,
): (socket: S) => void {
  const begin = server.listeners('connection') as Listener[];
  if (begin.length === 0) throw new Error('Node shakes hands with what connects');
  for (const listener of begin) server.off('connection', listener);
  server.prependListener('secureConnection', (given) => {
    const secured = given as Secured;
    const records = recordsOf(secured);
    if (records === undefined) throw new Error('Node reads the records that it was given');
    showEnds(secured, records.ends);
    records.secure(secured);
  });
  // Node tells no keys of connections that begin before somebody listens.
  if (turns.certificateBytesMax !== undefined) {
    server.prependListener('keylog', (line, given) => {
      const secured = given as Secured;
      const records = recordsOf(secured);
      records?.learnKeys(String(line), secured.getCipher()?.standardName ?? '');
      // Who is refused for its certificates has none by the time that this is told.
      if (records !== undefined) showEnds(secured, records.ends);
    });
  }
  server.prependListener('tlsClientError', (_error, secured) => {
    const records = recordsOf(secured as Secured);
    if (records !== undefined) showEnds(secured as Secured, records.ends);
  });
  return (socket) => {
    awaitHello(socket, turns, () => {
      const records = new TlsRecords(
        socket,
        recordTurns(socket, turns, () => records.secured as S),
      );
      for (const listener of begin) listener.call(server, records);
    });
  };
}

function recordTurns<S extends TakenSocket>(
  socket: S,
  turns: HandshakeTurns<S>,
  secured: () => S | undefined,
): RecordTurns {
  /** The first read has waited for its turn in the socket. */
  let isFirst = true;
  const { mayDecrypt, certificateBytesMax } = turns;
  return {
    mayShakeHands(goOn) {
      const hasTurn = isFirst;
      isFirst = false;
      return hasTurn || turns.mayShakeHands(socket, goOn);
    },
    ...(mayDecrypt && {
      mayDecrypt: (count, goOn) => mayDecrypt.call(turns, secured() ?? socket, count, goOn),
    }),
    onSecured: () => turns.onSecured?.(socket),
    hold: (sizeBytes) => turns.holdRecords(secured() ?? socket, sizeBytes),
    ...(certificateBytesMax !== undefined && { certificateBytesMax }),
  };
}

function recordsOf({ _handle }: Secured): TlsRecords | undefined {
  const stream = _handle?._parentWrap?.stream;
  return stream instanceof TlsRecords ? stream : undefined;
}

/** Of a stream that is no socket Node's TLS knows no address. */
function showEnds(secured: Secured, ends: SocketEnds): void {
  if (Object.hasOwn(secured, 'remoteAddress')) return;
  for (const [name, value] of Object.entries(ends)) Object.defineProperty(secured, name, { value });
}

/** What has come until its turn waits in the socket, one read at most. */
function awaitHello<S extends TakenSocket>(
  socket: S,
  { mayShakeHands, helloMaxMs }: HandshakeTurns<S>,
  shakeHands: () => void,
): void {
  const giveUp = () => void socket.destroy();
  const begin = () => {
    socket.setTimeout(0);
    socket.off('timeout', giveUp);
    if (!socket.destroyed) shakeHands();
  };
  socket.setTimeout(helloMaxMs, giveUp);
  socket.on('error', giveUp);
  socket.once('readable', () => {
    // The client has closed its half, and said nothing.
    if (socket.readableLength === 0) giveUp();
    else if (mayShakeHands(socket, begin)) begin();
  });
}
