// The order of refusals: a bucket that is not there, then who may not, and only then what is wrong with the body, of
// which nothing was read until then (s3-behaviour 11 and 16).
import { beforeAll, describe, expect, test } from 'vitest';
import type { Access } from '../support/servers/raw-s3.ts';
import { headOf, openSocket } from '../support/servers/raw-socket.ts';
import { expectError, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
let bucket: string;
let stranger: Access;
beforeAll(async () => {
  bucket = await api.makeBucket();
  await api.put(bucket, 'key', 'x');
  stranger = await api.makeAccount();
});

/** Every operation that takes a document, and a stream. */
const BODIES = [
  ['POST', '?delete'],
  ['PUT', '?versioning'],
  ['POST', `/key?uploadId=${'0'.repeat(44)}`],
  ['PUT', '/key'],
  ['PUT', '/key?compose'],
  ['PUT', '/key?append'],
] as const;
const MALFORMED = '<Delete><';

/** The head of a request, unsigned. */
function anonymousHead(method: string, path: string, headers: Record<string, string>): string {
  const lines = Object.entries({ host: new URL(api.server.endpoint).host, ...headers });
  return `${method} ${path} HTTP/1.1\r\n${lines.map((pair) => `${pair.join(': ')}\r\n`).join('')}\r\n`;
}

describe.each(BODIES)('%s %s', (method, rest) => {
  const continued = { 'content-length': String(MALFORMED.length), expect: '100-continue' };

  test('s3-behaviour 11: a missing bucket is reported before permissions and before the body', async () => {
    const path = `/no-such-bucket-here${rest}`;
    for (const as of [undefined, stranger]) {
      const socket = await openSocket(api.server);
      socket.write(
        as === undefined
          ? anonymousHead(method, path, continued)
          : headOf(as, { method, path, headers: continued }),
      );
      const answer = await socket.answer();
      expect([answer?.status, /<Code>(\w+)/.exec(answer?.body ?? '')?.[1]]).toEqual([404, 'NoSuchBucket']);
      socket.destroy();
    }
  });

  test('s3-behaviour 16: a caller without permission is refused before the body is requested, and the connection ends', async () => {
    const path = `/${bucket}${rest}`;
    for (const as of [undefined, stranger]) {
      const socket = await openSocket(api.server);
      socket.write(
        as === undefined
          ? anonymousHead(method, path, continued)
          : headOf(as, { method, path, headers: continued }),
      );
      const answer = await socket.answer();
      expect([answer?.status, /<Code>(\w+)/.exec(answer?.body ?? '')?.[1]]).toEqual([403, 'AccessDenied']);
      expect(answer?.headers.get('connection')).toBe('close');
      socket.destroy();
    }
  });

  test('errors of a body are reported only to permitted callers', async () => {
    const path = `/${bucket}${rest}`;
    const body = Buffer.from(MALFORMED);
    expectError(await api.send({ method, path, body }, stranger), { status: 403, code: 'AccessDenied' });
    expectError(await api.send({ method, path, body: Buffer.alloc(0) }, stranger), {
      status: 403,
      code: 'AccessDenied',
    });
  });
});

test('creating a bucket needs an authenticated caller before its document is read', async () => {
  const socket = await openSocket(api.server);
  socket.write(
    anonymousHead('PUT', '/a-bucket-of-nobody', { 'content-length': '5', expect: '100-continue' }),
  );
  const answer = await socket.answer();
  expect([answer?.status, answer?.headers.get('connection')]).toEqual([403, 'close']);
  socket.destroy();
});

test.each(['via', 'forwarded', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-real-ip'])(
  'behind a proxy (%s) a refused body may come all the same: it becomes no request',
  async (mark) => {
    const socket = await openSocket(api.server);
    const path = `/smuggled-by-${mark}`;
    const smuggled = headOf(api.server, { method: 'PUT', path });
    const headers = { 'content-length': String(smuggled.length), expect: '100-continue', [mark]: 'x' };
    socket.write(anonymousHead('PUT', `/${bucket}/key`, headers));
    const answer = await socket.answer();
    expect([answer?.status, answer?.headers.get('connection')]).toEqual([403, 'close']);
    socket.write(smuggled);
    await socket.closed;
    expect((await api.send({ method: 'HEAD', path })).status).toBe(404);
  },
);
