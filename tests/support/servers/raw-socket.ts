// One connection on which a test writes what no HTTP client would, and reads answers one by one; over TLS, with whatever
// certificate, where the endpoint is HTTPS.
// Not here: signatures (raw-s3.ts).
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type Access, type RawRequest, signedHeaders } from './raw-s3.ts';
import { presign } from './s3-client.ts';

export interface SocketAnswer {
  status: number;
  /** Names in lower case. */
  headers: Map<string, string>;
  body: string;
}

export interface RawSocket {
  readonly socket: Socket;
  write(text: string | Buffer): void;
  /** The next answer, 100 included; undefined when the connection ends before it is whole. */
  answer(options?: { isHead?: boolean }): Promise<SocketAnswer | undefined>;
  /** Resolves when the server has ended the connection. */
  readonly closed: Promise<void>;
  /** Our half of the connection only. */
  end(): void;
  destroy(): void;
}

/** The head of a signed request as it goes over the wire, its blank line included. */
export function headOf(access: Access, wanted: Pick<RawRequest, 'method' | 'path' | 'headers'>): string {
  const headers = Object.entries(signedHeaders(access, wanted)).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return `${wanted.method} ${wanted.path} HTTP/1.1\r\n${headers.join('')}\r\n`;
}

/** The same by a presigned URL, its headers being those that its user sends besides. */
export function presignedHeadOf(
  access: Access,
  wanted: Pick<RawRequest, 'method' | 'path' | 'headers'>,
): string {
  const { host } = new URL(access.endpoint);
  const { method, path, headers = {} } = wanted;
  const nowMs = access.nowMs?.() ?? Date.now();
  const signing = { method, uri: path, headers: { host }, credentials: access, nowMs, expiresSeconds: 3600 };
  const lines = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${presign(signing)} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

/** `localAddress`: the client's, of this machine (any of 127.0.0.0/8). */
export async function openSocket(
  access: Pick<Access, 'endpoint'>,
  from: { localAddress?: string } = {},
): Promise<RawSocket> {
  const { protocol, hostname, port } = new URL(access.endpoint);
  const target = { host: hostname, port: Number(port), allowHalfOpen: true, ...from };
  const isSecure = protocol === 'https:';
  const socket = isSecure ? connectTls({ ...target, rejectUnauthorized: false }) : connect(target);
  await once(socket, isSecure ? 'secureConnect' : 'connect');
  let received = Buffer.alloc(0);
  let wake = () => {};
  let isEnded = false;
  const closed = new Promise<void>((resolve) => {
    const end = () => {
      isEnded = true;
      wake();
      resolve();
    };
    socket.on('end', end).on('error', end).on('close', end);
  });
  socket.on('data', (bytes) => {
    received = Buffer.concat([received, bytes]);
    wake();
  });

  /** Takes bytes off the front once `lengthOf` finds them complete; undefined when they never will be. */
  async function take(lengthOf: (bytes: Buffer) => number): Promise<Buffer | undefined> {
    for (;;) {
      const length = lengthOf(received);
      if (length >= 0 && received.length >= length) {
        const taken = received.subarray(0, length);
        received = received.subarray(length);
        return taken;
      }
      if (isEnded) return undefined;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }

  const endOf = (bytes: Buffer, mark: string) => {
    const at = bytes.indexOf(mark);
    return at < 0 ? -1 : at + mark.length;
  };

  async function readBody(headers: Map<string, string>): Promise<Buffer | undefined> {
    if (headers.get('transfer-encoding') !== 'chunked') {
      return take(() => Number(headers.get('content-length') ?? 0));
    }
    const pieces: Buffer[] = [];
    for (;;) {
      const line = await take((bytes) => endOf(bytes, '\r\n'));
      const sizeBytes = Number.parseInt(line?.toString() ?? '', 16);
      const piece = await take(() => sizeBytes + 2);
      if (piece === undefined || Number.isNaN(sizeBytes)) return undefined;
      if (sizeBytes === 0) return Buffer.concat(pieces);
      pieces.push(piece.subarray(0, -2));
    }
  }

  return {
    socket,
    closed,
    write: (text) => void socket.write(text),
    end: () => void socket.end(),
    destroy: () => void socket.destroy(),
    async answer({ isHead = false } = {}) {
      const head = await take((bytes) => endOf(bytes, '\r\n\r\n'));
      if (head === undefined) return undefined;
      const [first = '', ...lines] = head.toString('latin1').trim().split('\r\n');
      const headers = new Map(
        lines.map((line): [string, string] => {
          const colon = line.indexOf(':');
          return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
        }),
      );
      const status = Number(first.split(' ')[1]);
      const hasBody = !isHead && status >= 200 && status !== 204 && status !== 304;
      const body = hasBody ? await readBody(headers) : Buffer.alloc(0);
      return body === undefined ? undefined : { status, headers, body: body.toString() };
    },
  };
}
