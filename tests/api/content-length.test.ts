// How long a body is must be known before it comes: the refusals of requests that do not say, or say it wrongly.
import { beforeAll, expect, test } from 'vitest';
import type { RawAnswer } from '../support/raw-s3.ts';
import { headOf, openSocket } from '../support/raw-socket.ts';
import { expectError, expectStatus, useApi } from '../support/s3-api.ts';

const api = useApi();
let path: string;
beforeAll(async () => {
  path = `/${await api.makeBucket()}/key`;
});

/** A signed PUT with these headers and no others, its body as it stands. */
async function put(headers: Record<string, string>, body = '0123456789'): Promise<RawAnswer> {
  const connection = await openSocket(api.server);
  connection.write(headOf(api.server, { method: 'PUT', path, headers }) + body);
  const answer = await connection.answer();
  connection.destroy();
  expect(answer).toBeDefined();
  return {
    status: answer?.status ?? 0,
    headers: Object.fromEntries(answer?.headers ?? []),
    body: Buffer.from(answer?.body ?? ''),
  };
}

async function expectAbsent(): Promise<void> {
  expectStatus(await api.send({ method: 'HEAD', path }), 404);
}

test('no length', async () => {
  expectError(await put({}), { status: 411, code: 'MissingContentLength' });
  await expectAbsent();
});

test('chunks of HTTP instead of aws-chunked', async () => {
  const answer = await put({ 'transfer-encoding': 'chunked' }, 'a\r\n0123456789\r\n0\r\n\r\n');
  expectError(answer, { status: 501, code: 'NotImplemented' });
  await expectAbsent();
});

test.each(['-1', 'ten', '1e3', '10, 10', '10 10'])('Content-Length: %s', async (length) => {
  expectStatus(await put({ 'content-length': length }), 400);
  await expectAbsent();
});
