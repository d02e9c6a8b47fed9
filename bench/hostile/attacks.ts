// What one account, or somebody without any, does to stop a server for everybody else. Each attack is bounded: so many
// connections, until it is told to stop.
import { createHash } from 'node:crypto';
import type { Access } from '../../tests/support/servers/raw-s3.ts';
import { send } from '../../tests/support/servers/raw-s3.ts';
import { headOf } from '../../tests/support/servers/raw-socket.ts';
import { presign } from '../../tests/support/servers/s3-client.ts';
import type { Crowd, Manners } from './crowd.ts';

export const BUCKET = 'hostile';
const MiB = 1024 * 1024;

export interface AttackWorld {
  readonly crowd: Crowd;
  /** The attacker's account, with its bucket (`prepare`). */
  readonly account: Access;
  /** Times the usual number of connections. */
  readonly scale: number;
}

export interface Attack {
  readonly name: string;
  /** For whom: somebody without an account, or a customer. */
  readonly by: 'anybody' | 'account';
  /** Resolves when it is under way. It goes on until the crowd stops. */
  begin(world: AttackWorld): Promise<void>;
}

/** What attacks of an account need in its bucket. */
export async function prepare(account: Access, keys: number): Promise<void> {
  await must(send(account, { method: 'PUT', path: `/${BUCKET}` }));
  await must(send(account, { method: 'PUT', path: `/${BUCKET}/large`, body: Buffer.alloc(64 * MiB, 7) }));
  await must(send(account, { method: 'PUT', path: `/${BUCKET}/small`, body: Buffer.alloc(4096, 7) }));
  let key = 0;
  const putSome = async () => {
    for (let at = key++; at < keys; at = key++) {
      await must(send(account, { method: 'PUT', path: `/${BUCKET}/list/${at}`, body: Buffer.from('x') }));
    }
  };
  await Promise.all(Array.from({ length: 16 }, putSome));
  for (let at = 0; at < Math.min(1000, keys); at++) {
    const name = `${'é'.repeat(480)}${at}`;
    await must(send(account, { method: 'PUT', path: `/${BUCKET}/long/${encodeURIComponent(name)}` }));
  }
  const uploads = Array.from({ length: Math.min(200, keys) }, (_, at) =>
    must(send(account, { method: 'POST', path: `/${BUCKET}/upload-${at}?uploads=` })),
  );
  await Promise.all(uploads);
}

async function must(answered: Promise<{ status: number; body: Buffer }>): Promise<void> {
  const { status, body } = await answered;
  if (status >= 300) throw new Error(`${status} ${body.toString().slice(0, 300)}`);
}

/** A request without an Authorization header. */
const bare = (
  { endpoint }: Pick<Access, 'endpoint'>,
  method: string,
  path: string,
  headers: Record<string, string> = {},
) =>
  Buffer.from(
    `${method} ${path} HTTP/1.1\r\nHost: ${new URL(endpoint).host}\r\n${Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')}\r\n`,
  );

const signed = (account: Access, method: string, path: string, headers: Record<string, string> = {}) =>
  Buffer.from(headOf(account, { method, path, headers }), 'latin1');

/** A signed request with a document. */
function withDocument(account: Access, method: string, path: string, text: string): Buffer {
  const md5 = createHash('md5').update(text).digest('base64');
  const headers = { 'content-md5': md5, 'content-length': String(Buffer.byteLength(text)) };
  return Buffer.concat([signed(account, method, path, headers), Buffer.from(text)]);
}

/** The URI that a stranger has been handed; good for an hour. */
function presigned(account: Access, uri: string, method = 'GET'): string {
  const { endpoint, accessKey, secretKey, nowMs = Date.now } = account;
  const headers = { host: new URL(endpoint).host };
  const credentials = { accessKey, secretKey };
  return presign({ method, uri, headers, credentials, nowMs: nowMs(), expiresSeconds: 3600 });
}

/** An upload of 16 MiB, whose body comes as fast as it is taken. */
function floodOf(account: Access, head: typeof signed): Manners {
  const [blockBytes, times] = [128 * 1024, 128];
  return {
    opening: head(account, 'PUT', `/${BUCKET}/flood`, { 'Content-Length': String(blockBytes * times) }),
    flood: { bytes: Buffer.alloc(blockBytes, 120), times },
  };
}

const tagging = (text: string) => `<Tagging>${text}</Tagging>`;
const attributes = (bytes: number) =>
  `<Delete ${Array.from({ length: bytes / 10 }, (_, at) => `a${at.toString(36).padStart(5, '0')}=""`).join(' ')}></Delete>`;

/** Each by itself. */
const KINDS: readonly Attack[] = [
  {
    name: '64 operator requests whose bodies trickle, without credentials',
    by: 'anybody',
    begin: ({ crowd, account }) =>
      crowd.hold(64, {
        opening: bare(account, 'POST', '/holdfast-admin/v1/accounts', { 'Content-Length': '65536' }),
        drip: { bytes: Buffer.from(' '), everyMs: 2000 },
      }),
  },
  {
    name: '2,100 health requests whose bodies never come',
    by: 'anybody',
    begin: ({ crowd, account, scale }) =>
      crowd.hold(2100 * scale, {
        opening: bare(account, 'GET', '/health/live', { 'Content-Length': '1000' }),
      }),
  },
  {
    name: '2,100 uploads without a signature whose bodies never come',
    by: 'anybody',
    begin: ({ crowd, account, scale }) =>
      crowd.hold(2100 * scale, {
        opening: bare(account, 'PUT', `/${BUCKET}/x`, { 'Content-Length': '1000' }),
      }),
  },
  {
    name: '2,000 halves of heads',
    by: 'anybody',
    begin: ({ crowd, scale }) =>
      crowd.hold(2000 * scale, { opening: Buffer.from('GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ') }),
  },
  {
    name: '2,000 halves of heads of 750 lines',
    by: 'anybody',
    begin: ({ crowd, scale }) =>
      crowd.hold(2000 * scale, {
        opening: Buffer.from(
          `GET / HTTP/1.1\r\n${'x-name: of so many bytes that all take 30 KB\r\n'.repeat(750)}`,
        ),
      }),
  },
  {
    name: 'pipelined requests of 18 bytes, 64 KiB on each of 256 connections',
    by: 'anybody',
    begin: ({ crowd }) => crowd.hold(256, { opening: Buffer.from('GET / HTTP/1.1\r\n\r\n'.repeat(3600)) }),
  },
  {
    name: 'connections opened and cut in the middle of a head, 64 at a time',
    by: 'anybody',
    begin: ({ crowd }) => crowd.churn(64, Buffer.from('PUT /x/y HTTP/1.1\r\nHost: 127.0')),
  },
  {
    name: 'tunnels that are reset, 64 at a time',
    by: 'anybody',
    begin: ({ crowd }) => crowd.churn(64, Buffer.from('CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n')),
  },
  {
    name: 'uploads without a signature in HTTP chunks of one byte, 16 at a time',
    by: 'anybody',
    begin: ({ crowd, account }) =>
      crowd.hold(16, {
        opening: bare(account, 'PUT', `/${BUCKET}/x`, { 'Transfer-Encoding': 'chunked' }),
        drip: { bytes: Buffer.from('1\r\nx\r\n'.repeat(MiB / 8)), everyMs: 100 },
      }),
  },
  {
    name: 'uploads in HTTP chunks of one byte, 16 at a time',
    by: 'account',
    begin: ({ crowd, account }) =>
      crowd.hold(16, {
        opening: signed(account, 'PUT', `/${BUCKET}/x`, { 'Transfer-Encoding': 'chunked' }),
        drip: { bytes: Buffer.from('1\r\nx\r\n'.repeat(MiB / 8)), everyMs: 100 },
      }),
  },
  {
    name: 'uploads in HTTP chunks of one byte with extensions of 4 KB, 64 at a time',
    by: 'account',
    begin: ({ crowd, account }) =>
      crowd.hold(64, {
        opening: signed(account, 'PUT', `/${BUCKET}/x`, { 'Transfer-Encoding': 'chunked' }),
        flood: { bytes: Buffer.from(`1;${'a'.repeat(4084)}\r\nx\r\n`.repeat(16)), times: 100_000 },
      }),
  },
  {
    name: 'uploads of 16 MiB at full speed without a signature, 200 at a time',
    by: 'anybody',
    begin: ({ crowd, account }) => crowd.hold(200, floodOf(account, bare)),
  },
  {
    name: 'uploads of 16 MiB at full speed, 200 at a time',
    by: 'account',
    begin: ({ crowd, account }) => crowd.hold(200, floodOf(account, signed)),
  },
  {
    name: 'uploads in aws-chunked chunks of 64 bytes, 100 at a time',
    by: 'account',
    begin: ({ crowd, account }) => {
      const chunk = `40\r\n${'x'.repeat(64)}\r\n`;
      const count = MiB / 64;
      const headers = {
        'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
        'x-amz-decoded-content-length': String(MiB),
        'content-length': String(count * chunk.length + 5),
      };
      const head = signed(account, 'PUT', `/${BUCKET}/chunks`, headers);
      return crowd.loop(100, Buffer.concat([head, Buffer.from(`${chunk.repeat(count)}0\r\n\r\n`)]));
    },
  },
  {
    name: 'listings of 1,000 keys of 1 KiB, 32 at a time',
    by: 'account',
    begin: ({ crowd, account }) =>
      crowd.loop(32, signed(account, 'GET', `/${BUCKET}?list-type=2&prefix=long%2F&encoding-type=url`)),
  },
  {
    name: '/metrics, 32 at a time',
    by: 'anybody',
    begin: ({ crowd, account }) => crowd.loop(32, bare(account, 'GET', '/metrics')),
  },
  {
    name: 'wrong signatures with heads of 29 KB, 16 at a time',
    by: 'anybody',
    begin: ({ crowd, account }) =>
      crowd.loop(
        16,
        signed({ ...account, secretKey: 'wrong' }, 'GET', `/${BUCKET}?prefix=${'x'.repeat(8000)}`, {
          'x-amz-meta-a': 'y'.repeat(20_000),
        }),
      ),
  },
  {
    name: 'heads of 700 lines, 64 at a time',
    by: 'anybody',
    begin: ({ crowd, account }) => {
      const lines = Array.from({ length: 700 }, (_, at) => [`x-amz-meta-${at.toString(36)}`, 'y'.repeat(20)]);
      return crowd.loop(64, bare(account, 'GET', `/${BUCKET}/small`, Object.fromEntries(lines)));
    },
  },
  {
    name: 'small GETs, 256 at a time',
    by: 'account',
    begin: ({ crowd, account }) => crowd.loop(256, signed(account, 'GET', `/${BUCKET}/small`)),
  },
  {
    name: '500 connections with 32 pipelined GETs each, read by nobody',
    by: 'account',
    begin: ({ crowd, account, scale }) => {
      const get = signed(account, 'GET', `/${BUCKET}/large`);
      const opening = Buffer.concat(Array.from({ length: 32 }, () => get));
      return crowd.hold(500 * scale, { opening, reads: { bytes: 1024, everyMs: 10_000 } });
    },
  },
  {
    name: 'tag documents of 1 MiB of ampersands, 24 at a time',
    by: 'account',
    begin: ({ crowd, account }) =>
      crowd.loop(
        24,
        withDocument(account, 'PUT', `/${BUCKET}/small?tagging=`, tagging('&'.repeat(MiB - 40))),
      ),
  },
  {
    name: 'documents of 4 MiB of ampersands for uploads that do not exist, 8 at a time',
    by: 'account',
    begin: ({ crowd, account }) =>
      crowd.loop(
        8,
        withDocument(
          account,
          'POST',
          `/${BUCKET}/small?uploadId=none`,
          `<CompleteMultipartUpload>${'&'.repeat(4 * MiB - 80)}</CompleteMultipartUpload>`,
        ),
      ),
  },
  {
    name: 'documents of 2 MiB of attributes, 24 at a time',
    by: 'account',
    begin: ({ crowd, account }) =>
      crowd.loop(24, withDocument(account, 'POST', `/${BUCKET}?delete=`, attributes(2 * MiB - 4096))),
  },
  {
    name: 'part lists of 4 MiB in chunks of one byte, 8 at a time',
    by: 'account',
    begin: ({ crowd, account }) => {
      const headers = {
        'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
        'x-amz-decoded-content-length': String(4 * MiB),
        'content-length': String(6 * 4 * MiB + 5),
      };
      const head = signed(account, 'POST', `/${BUCKET}/small?uploadId=none`, headers);
      const body = Buffer.from(`${'1\r\n \r\n'.repeat(4 * MiB)}0\r\n\r\n`);
      return crowd.loop(8, Buffer.concat([head, body]));
    },
  },
  {
    name: 'deletes of 1,000 missing keys, 16 at a time',
    by: 'account',
    begin: ({ crowd, account }) => {
      const keys = Array.from({ length: 1000 }, (_, at) => `<Object><Key>none/${at}</Key></Object>`);
      return crowd.loop(
        16,
        withDocument(account, 'POST', `/${BUCKET}?delete=`, `<Delete>${keys.join('')}</Delete>`),
      );
    },
  },
  {
    name: '1,000 slow readers of 64 MiB',
    by: 'account',
    begin: ({ crowd, account, scale }) =>
      crowd.hold(1000 * scale, {
        opening: signed(account, 'GET', `/${BUCKET}/large`),
        reads: { bytes: 2048, everyMs: 2000 },
      }),
  },
  {
    name: '200 readers of 64 MiB that take 64 KiB five times a second',
    by: 'account',
    begin: ({ crowd, account, scale }) =>
      crowd.hold(200 * scale, {
        opening: signed(account, 'GET', `/${BUCKET}/large`),
        reads: { bytes: 64 * 1024, everyMs: 200 },
      }),
  },
  {
    name: '1,000 slow readers with one presigned URL',
    by: 'anybody',
    begin: ({ crowd, account, scale }) =>
      crowd.hold(1000 * scale, {
        opening: bare(account, 'GET', presigned(account, `/${BUCKET}/large`)),
        reads: { bytes: 2048, everyMs: 2000 },
      }),
  },
  {
    name: 'small ranges, pipelined GETs, PUTs that trickle and GETs that are cut, all by presigned URLs',
    by: 'anybody',
    begin: async ({ crowd, account, scale }) => {
      const get = presigned(account, `/${BUCKET}/large`);
      for (let at = 0; at < 24; at++) {
        const range = `bytes=${at * 262_144 + 1}-${at * 262_144 + 3}`;
        await crowd.loop(8, bare(account, 'GET', get, { range }));
      }
      const whole = bare(account, 'GET', get, { range: 'bytes=1-' });
      await crowd.hold(200 * scale, {
        opening: Buffer.concat(Array.from({ length: 30 }, () => whole)),
        reads: { bytes: 1024, everyMs: 3000 },
      });
      const put = presigned(account, `/${BUCKET}/strange`, 'PUT');
      await crowd.hold(300 * scale, {
        opening: bare(account, 'PUT', put, { 'content-length': String(32 * MiB) }),
        drip: { bytes: Buffer.alloc(65_000), everyMs: 300 },
      });
      await crowd.churn(16, bare(account, 'GET', get));
    },
  },
  {
    name: '2,200 uploads of 64 MiB that trickle',
    by: 'account',
    begin: ({ crowd, account, scale }) =>
      crowd.hold(2200 * scale, {
        opening: Buffer.concat([
          signed(account, 'PUT', `/${BUCKET}/trickle`, { 'content-length': String(64 * MiB) }),
          Buffer.alloc(16 * 1024),
        ]),
        drip: { bytes: Buffer.alloc(512), everyMs: 1000 },
      }),
  },
  {
    name: 'listings of 1,000 keys, 32 at a time',
    by: 'account',
    begin: ({ crowd, account }) =>
      crowd.loop(32, signed(account, 'GET', `/${BUCKET}?list-type=2&prefix=list%2F`)),
  },
  {
    name: 'lists of uploads, 32 at a time',
    by: 'account',
    begin: ({ crowd, account }) => crowd.loop(32, signed(account, 'GET', `/${BUCKET}?uploads=`)),
  },
  {
    name: 'forms with a line of 20,000 blanks and a bare line feed, 16 at a time',
    by: 'anybody',
    begin: ({ crowd, account }) => {
      const form = `--b\r\nX:${' '.repeat(20_000)}\nx\r\n\r\n`;
      const type = 'multipart/form-data; boundary=b';
      const head = bare(account, 'POST', `/${BUCKET}`, {
        'Content-Type': type,
        'Content-Length': `${form.length}`,
      });
      return crowd.loop(16, Buffer.concat([head, Buffer.from(form)]));
    },
  },
  {
    name: 'copies of 64 MiB with a checksum that the source has not, 64 at a time',
    by: 'account',
    begin: ({ crowd, account }) =>
      crowd.loop(
        64,
        signed(account, 'PUT', `/${BUCKET}/copy`, {
          'x-amz-copy-source': `/${BUCKET}/large`,
          'x-amz-checksum-algorithm': 'SHA256',
        }),
      ),
  },
  {
    name: 'appends of 16 KB to 16 keys, 256 at a time',
    by: 'account',
    begin: async ({ crowd, account }) => {
      const bytes = Buffer.alloc(16_000, 7);
      for (let key = 0; key < 16; key++) {
        const path = `/${BUCKET}/appended-${key}`;
        await must(send(account, { method: 'PUT', path, body: Buffer.from('x') }));
        const head = signed(account, 'PUT', `${path}?append`, { 'Content-Length': String(bytes.length) });
        await crowd.loop(16, Buffer.concat([head, bytes]));
      }
    },
  },
  {
    name: 'prefix MOVEs of 1,000 keys to names that are too long, 64 at a time',
    by: 'account',
    begin: ({ crowd, account }) =>
      crowd.loop(
        64,
        signed(account, 'MOVE', `/${BUCKET}/long/`, {
          destination: 'n'.repeat(1000),
          'x-svc-prefix': 'true',
        }),
      ),
  },
];

/** The attacks, in the order in which they are run. */
export const ATTACKS: readonly Attack[] = [
  ...KINDS,
  {
    name: 'all of the above that take no account and no URL, at once',
    by: 'anybody',
    async begin(world) {
      const kinds = KINDS.filter(({ by, name }) => by === 'anybody' && !name.includes('URL'));
      await Promise.all(kinds.map((kind) => kind.begin(world)));
    },
  },
];
