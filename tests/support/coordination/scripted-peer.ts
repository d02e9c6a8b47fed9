// A server of TCP or TLS connections that says exactly what a test wants, byte by byte, and tells what it was sent.
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { createDial } from '../../../src/platform/chunk-http/dial.ts';
import type { PeerRequest } from '../../../src/platform/chunk-http/peer-connection.ts';
import { PeerPool } from '../../../src/platform/chunk-http/peer-pool.ts';
import {
  type PeerCertificates,
  type PeerCredentials,
  tlsOptions,
} from '../../../src/platform/chunk-http/peer-proof.ts';
import { systemClock } from '../../../src/platform/system-clock.ts';
import type { ClockPort } from '../../../src/ports/clock.ts';

export interface PeerSide {
  readonly socket: Socket;
  /** From 1, in the order of connecting. */
  readonly number: number;
  /** All that has come so far. */
  received(): Buffer;
  /** Resolves when so many bytes have come, or heads of so many requests. */
  until(what: { bytes?: number; heads?: number }): Promise<void>;
  /** Resolves when it has been sent on its way alone, as a packet of its own. */
  say(what: string | Buffer): Promise<void>;
  readonly closed: Promise<void>;
}

export interface ScriptedPeer {
  readonly address: string;
  readonly sides: PeerSide[];
  close(): Promise<void>;
}

export async function openPeer(
  script: (side: PeerSide) => Promise<void>,
  certificates?: PeerCertificates,
): Promise<ScriptedPeer> {
  const sides: PeerSide[] = [];
  const take = (socket: Socket) => {
    const side = sideOf(socket, sides.length + 1);
    sides.push(side);
    void script(side);
  };
  const server =
    certificates === undefined
      ? createServer({ noDelay: true }, take)
      : createTlsServer({ ...tlsOptions(certificates), requestCert: true, noDelay: true }, take);
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    sides,
    async close() {
      for (const { socket } of sides) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function sideOf(socket: Socket, number: number): PeerSide {
  const pieces: Buffer[] = [];
  let receivedBytes = 0;
  let wake = () => {};
  socket.on('data', (piece: Buffer) => {
    pieces.push(piece);
    receivedBytes += piece.length;
    wake();
  });
  socket.on('error', () => {});
  const received = () => Buffer.concat(pieces);
  return {
    socket,
    number,
    received,
    async until({ bytes = 0, heads = 0 }) {
      const isThere = () =>
        receivedBytes >= bytes &&
        (heads === 0 || received().toString('latin1').split('\r\n\r\n').length > heads);
      while (!isThere()) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    async say(what) {
      await new Promise((resolve) => socket.write(what, resolve));
      // The other end lives on the same loop: by then it has read it.
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    },
    closed: new Promise((resolve) => socket.once('close', () => resolve())),
  };
}

/** One answer on the wire. */
export function answer(body: string | Buffer = '', more = ''): Buffer {
  const head = `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n${more}\r\n`;
  return Buffer.concat([Buffer.from(head), Buffer.from(body)]);
}

export function question(instead: Partial<PeerRequest> = {}): PeerRequest {
  return {
    head: () => 'GET / HTTP/1.1\r\nhost: peer\r\n\r\n',
    body: undefined,
    isAnswerBare: false,
    answerBytesMax: 4 * 1024 * 1024,
    problemOf: () => undefined,
    ...instead,
  };
}

/** A pool whose connections lead to a peer that follows the script. */
export async function askPeer(
  script: (side: PeerSide) => Promise<void>,
  options: { clock?: ClockPort; credentials?: PeerCredentials; peer?: PeerCertificates } = {},
): Promise<{ peer: ScriptedPeer; pool: PeerPool; ask: PeerPool['request']; close(): Promise<void> }> {
  const { clock = systemClock, credentials = { kind: 'secret', secret: 'of a made-up cluster' } } = options;
  const peer = await openPeer(script, options.peer);
  const pool = new PeerPool(peer.address, { dial: createDial(credentials), clock });
  return {
    peer,
    pool,
    ask: (request, patience) => pool.request(request, patience),
    async close() {
      pool.close();
      await peer.close();
    },
  };
}
