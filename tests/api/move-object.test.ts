// MOVE of objects and prefixes (service 4.2, 7; extensions 2.1): what is renamed, and every refusal, which changes
// nothing. Versions, and all else that a key has: move-versions.test.ts. The answer: move-result.test.ts.
import { beforeEach, describe, expect, test } from 'vitest';
import { childrenOf, textOf } from '../../src/base/xml/parse-xml.ts';
import type { ErrorCode } from '../../src/types/errors.ts';
import { ownServerTest } from '../support/servers/own-server-test.ts';
import { type Access, pathOf, sendBare, signedHeaders } from '../support/servers/raw-s3.ts';
import { headOf, openSocket } from '../support/servers/raw-socket.ts';
import { expectError, expectStatus, fieldsOf, useApi, xmlOf } from '../support/servers/s3-api.ts';

const api = useApi();
let bucket: string;
beforeEach(async () => {
  bucket = await api.makeBucket();
});

type Headers = Record<string, string>;

function move(from: string, destination: string | undefined, headers: Headers = {}, as?: Access) {
  const wanted = { ...headers, ...(destination !== undefined && { destination }) };
  return api.send({ method: 'MOVE', path: pathOf(bucket, from), headers: wanted }, as);
}

type Answer = Awaited<ReturnType<typeof move>>;

/** Each entry: source, destination, and version id or error where there is one; and MoveCount behind them. */
function resultOf(answer: Answer): (string | number)[][] {
  const root = xmlOf(answer);
  expect(root.name).toBe('MoveObjectResult');
  const entries = childrenOf(root, 'MoveObject').map((entry) => {
    const [error] = childrenOf(entry, 'Error');
    return [
      textOf(entry, 'SourceKey'),
      textOf(entry, 'DestinationKey'),
      textOf(entry, 'VersionId'),
      error && textOf(error, 'Code'),
    ].filter((text) => text !== undefined);
  });
  return [...entries, [Number(textOf(root, 'MoveCount'))]];
}

const expectRefusal = (answer: Answer, status: number, code: ErrorCode, fields: Headers = {}) =>
  expectError(answer, { ...fields, status, code });

const prefixed = (headers: Headers = {}): Headers => ({ 'x-svc-prefix': 'true', ...headers });

async function bodyOf(key: string): Promise<string> {
  const answer = await api.send({ method: 'GET', path: pathOf(bucket, key) });
  expectStatus(answer, 200);
  return answer.body.toString();
}

describe('service 4.2: one object', () => {
  test('it gets the other key, with its body, ETag and headers', async () => {
    const etag = await api.put(bucket, 'a b', 'body', { 'x-amz-meta-colour': 'blue' });
    const answer = await move('a b', encodeURIComponent('c/ä&'));
    expectStatus(answer, 200);
    expect(answer.headers['content-length']).toBe(String(answer.body.length));
    expect(resultOf(answer)).toEqual([['a b', 'c/ä&'], [1]]);
    expect(await api.keysOf(bucket)).toEqual(['c/ä&']);
    const head = await api.send({ method: 'HEAD', path: pathOf(bucket, 'c/ä&') });
    expect(head.headers).toMatchObject({ etag: `"${etag}"`, 'x-amz-meta-colour': 'blue' });
    expect(await bodyOf('c/ä&')).toBe('body');
  });

  test('MOVE rule 3: only the exact key, not those that begin with it', async () => {
    for (const key of ['a', 'ab', 'a/x']) await api.put(bucket, key, key);
    const answer = await move('a', 'b', { 'X-Svc-Prefix': 'false', Overwrite: 'false' });
    expectStatus(answer, 200);
    expect(resultOf(answer)).toEqual([['a', 'b'], [1]]);
    expect(await api.keysOf(bucket)).toEqual(['a/x', 'ab', 'b']);
    expect(await bodyOf('b')).toBe('a');
  });

  test('MOVE rule 5: quiet lists errors only', async () => {
    await api.put(bucket, 'a', 'x');
    const answer = await move('a', 'b', { 'X-Svc-Quiet': 'True' });
    expectStatus(answer, 200);
    expect(resultOf(answer)).toEqual([[1]]);
  });

  test('MOVE rule 4, service 7.1, 7.2: a destination in use is an error, and the source stays', async () => {
    await api.put(bucket, 'a', 'A');
    await api.put(bucket, 'b', 'B');
    const answer = await move('a', 'b', { 'x-svc-quiet': 'true' });
    expectStatus(answer, 409);
    expect(resultOf(answer)).toEqual([['a', 'b', 'ObjectAlreadyExists'], [0]]);
    expect([await bodyOf('a'), await bodyOf('b')]).toEqual(['A', 'B']);
  });

  test('MOVE rule 4: Overwrite true replaces it', async () => {
    await api.put(bucket, 'a', 'A');
    await api.put(bucket, 'b', 'B');
    expectStatus(await move('a', 'b', { Overwrite: 'TRUE' }), 200);
    expect(await api.keysOf(bucket)).toEqual(['b']);
    expect(await bodyOf('b')).toBe('A');
  });

  test('a missing source', async () => {
    expectRefusal(await move('a', 'b'), 404, 'NoSuchKey');
  });

  test('conditions: If-Match and If-None-Match are about the source, X-Svc-Destination-* about the destination', async () => {
    const etag = await api.put(bucket, 'a', 'A');
    const other = await api.put(bucket, 'b', 'B');
    for (const [to, headers, Condition] of [
      ['c', { 'if-match': `"${other}"` }, 'If-Match'],
      ['c', { 'if-none-match': '*' }, 'If-None-Match'],
      ['b', { 'x-svc-destination-if-match': `"${etag}"` }, 'X-Svc-Destination-If-Match'],
      ['c', { 'x-wasabi-destination-if-match': '*' }, 'X-Svc-Destination-If-Match'],
      ['b', { 'x-svc-destination-if-none-match': '*' }, 'X-Svc-Destination-If-None-Match'],
    ] as const) {
      expectRefusal(await move('a', to, headers), 412, 'PreconditionFailed', { Condition });
    }
    expectRefusal(await move('a', 'c', { 'if-match': 'x y' }), 400, 'InvalidArgument');
    expect([await bodyOf('a'), await bodyOf('b')]).toEqual(['A', 'B']);
    const headers = { 'if-match': etag, 'x-svc-destination-if-match': other, overwrite: 'true' };
    expectStatus(await move('a', 'b', headers), 200);
    expect(await bodyOf('b')).toBe('A');
  });

  test('the Destination may be percent-encoded, and begin with its own bucket', async () => {
    await api.put(bucket, 'a', 'x');
    expectStatus(await move('a', 'b%20c%2Fd'), 200);
    expectStatus(await move('b c/d', `/${bucket}/e`), 200);
    expectStatus(await move('e', '100%'), 200);
    expect(await api.keysOf(bucket)).toEqual(['100%']);
  });

  test('extensions 2.1: a leading slash is followed by the bucket, so a key with one comes after it', async () => {
    await api.put(bucket, 'a', 'x');
    expectStatus(await move('a', `/${bucket}//x`), 200);
    expect(await api.keysOf(bucket)).toEqual(['/x']);
    const Message = 'The Destination is in another bucket.';
    expectRefusal(await move('/x', '/y'), 400, 'InvalidArgument', { Message });
    expectRefusal(await move('/x', `/${bucket}/`), 400, 'InvalidArgument');
    expect(await api.keysOf(bucket)).toEqual(['/x']);
  });

  test('several Destination headers are refused, though joined they name a key', async () => {
    await api.put(bucket, 'a', 'x');
    const wanted = { method: 'MOVE', path: pathOf(bucket, 'a'), headers: { destination: 'b,c' } };
    const socket = await openSocket(api.server);
    // The signature is that of both, so that nothing but their number is wrong.
    socket.write(headOf(api.server, wanted).replace('b,c', 'b\r\ndestination: c'));
    const answer = await socket.answer();
    socket.destroy();
    expect(answer?.status).toBe(400);
    expect(fieldsOf({ body: Buffer.from(answer?.body ?? '') })).toMatchObject({
      Code: 'InvalidArgument',
      ArgumentName: 'destination',
      Message: 'The header destination may be sent once only.',
    });
    expect(await api.keysOf(bucket)).toEqual(['a']);
  });

  test.each(['x-svc', 'x-wasabi'])('extensions 2.1: %s headers may be unsigned', async (vendor) => {
    for (const key of ['a/1', 'a/2', 'b/1']) await api.put(bucket, key, key);
    const wanted = { method: 'MOVE', path: pathOf(bucket, 'a/') };
    const headers = {
      ...signedHeaders(api.server, wanted),
      destination: 'b/',
      overwrite: 'true',
      [`${vendor}-prefix`]: 'true',
      [`${vendor}-quiet`]: 'true',
    };
    const answer = await sendBare(api.server, { ...wanted, headers });
    expectStatus(answer, 200);
    expect(resultOf(answer)).toEqual([[2]]);
    expect(await api.keysOf(bucket)).toEqual(['b/1', 'b/2']);
    expect(await bodyOf('b/1')).toBe('a/1');
  });

  test.each([
    ['no Destination', undefined, {}, 'InvalidArgument'],
    ['an empty one', '', {}, 'InvalidArgument'],
    ['an empty one of a prefix', '', { 'x-svc-prefix': 'true' }, 'InvalidArgument'],
    ['another bucket', '/another/key', {}, 'InvalidArgument'],
    ['no UTF-8', '%ff', {}, 'InvalidArgument'],
    ['NUL', 'a%00', {}, 'InvalidArgument'],
    ['too long', 'k'.repeat(1025), {}, 'KeyTooLongError'],
    ['the same key', 'a', {}, 'InvalidRequest'],
    ['the same prefix', 'a', { 'x-svc-prefix': 'true' }, 'InvalidRequest'],
    ['Overwrite yes', 'b', { overwrite: 'yes' }, 'InvalidArgument'],
    ['X-Svc-Quiet empty', 'b', { 'x-svc-quiet': '' }, 'InvalidArgument'],
    ['X-Svc-Prefix 1', 'b', { 'x-wasabi-prefix': '1' }, 'InvalidArgument'],
    ['conditions on a prefix', 'b', { 'x-svc-prefix': 'true', 'if-match': '*' }, 'InvalidRequest'],
    ['a token of nothing', 'b', { 'x-svc-idempotency-token': '' }, 'InvalidArgument'],
    ['a token too long', 'b', { 'x-svc-idempotency-token': 't'.repeat(65) }, 'InvalidArgument'],
  ] as const)('refused: %s', async (_, destination, headers, code) => {
    await api.put(bucket, 'a', 'x');
    expectRefusal(await move('a', destination, headers), 400, code);
    expect(await api.keysOf(bucket)).toEqual(['a']);
  });

  test.each([
    'x-amz-rename-source-if-match',
    'x-amz-rename-source-if-unmodified-since',
    'x-amz-client-token',
    'x-amz-copy-source-if-match',
    'x-amz-if-match-size',
    'if-unmodified-since',
    'x-svc-source-if-match',
    'x-svc-anything',
  ])('%s, which it does not know, is refused instead of passed over', async (name) => {
    await api.put(bucket, 'a', 'x');
    expectRefusal(await move('a', 'b', { [name]: '1' }), 501, 'NotImplemented', { Header: name });
    expect(await api.keysOf(bucket)).toEqual(['a']);
  });

  test('a token: the answer is repeated, not the move', async () => {
    await api.put(bucket, 'a', '1');
    const token = { 'x-svc-idempotency-token': 'once' };
    const first = await move('a', 'b', token);
    await api.put(bucket, 'a', '2');
    const again = await move('a', 'b', token);
    expect([again.status, again.body]).toEqual([first.status, first.body]);
    expect(await bodyOf('a')).toBe('2');
    expectRefusal(await move('a', 'c', token), 400, 'IdempotencyParameterMismatch');
  });

  test('a token: X-Svc-Quiet may differ, other options and conditions may not', async () => {
    const etag = await api.put(bucket, 'a', '1');
    const token = { 'x-svc-idempotency-token': 'once' };
    expectStatus(await move('a', 'b', token), 200);
    const quiet = await move('a', 'b', { ...token, 'x-svc-quiet': 'true', overwrite: 'false' });
    expectStatus(quiet, 200);
    expect(resultOf(quiet)).toEqual([[1]]);
    for (const other of [
      { overwrite: 'true' },
      { 'x-svc-prefix': 'true' },
      { 'if-match': etag },
      { 'x-svc-destination-if-none-match': '*' },
    ]) {
      const answer = await move('a', 'b', { ...token, ...other });
      expectRefusal(answer, 400, 'IdempotencyParameterMismatch');
    }
  });

  test('MOVE rule 1: a caller that may not write may not move', async () => {
    await api.put(bucket, 'a', 'x');
    const stranger = await api.makeAccount();
    expectRefusal(await move('a', 'b', {}, stranger), 403, 'AccessDenied');
    expectRefusal(
      await api.sendAnonymous({ method: 'MOVE', path: `/${bucket}/a`, headers: { destination: 'b' } }),
      403,
      'AccessDenied',
    );
    expect(await api.keysOf(bucket)).toEqual(['a']);
  });
});

describe('service 4.2: a prefix', () => {
  test('MOVE rule 2: every key that begins with it, a plain replacement of text', async () => {
    for (const key of ['a', 'ab', 'ab/c', 'ab/d/e', 'b']) await api.put(bucket, key, key);
    const answer = await move('ab', 'x/', prefixed());
    expectStatus(answer, 200);
    expect(resultOf(answer)).toEqual([['ab', 'x/'], ['ab/c', 'x//c'], ['ab/d/e', 'x//d/e'], [3]]);
    const root = xmlOf(answer);
    expect([textOf(root, 'SourcePrefix'), textOf(root, 'DestinationPrefix')]).toEqual(['ab', 'x/']);
    expect(await api.keysOf(bucket)).toEqual(['a', 'b', 'x/', 'x//c', 'x//d/e']);
  });

  test.each([
    ['into itself', 'a/', 'a/b/', ['a/b/b/c', 'a/b/x', 'a/b/y', 'a/b/']],
    ['out of itself', 'a/b/', 'a/', ['a/c', 'a/x', 'a/y']],
  ])('%s: nothing is met twice', async (_, from, to, keysAfter) => {
    const keys = from === 'a/' ? ['a/', 'a/b/c', 'a/x', 'a/y'] : ['a/b/c', 'a/b/x', 'a/y'];
    for (const key of keys) await api.put(bucket, key, key);
    expectStatus(await move(from, to, prefixed()), 200);
    expect(await api.keysOf(bucket)).toEqual([...keysAfter].sort());
  });

  test('service 7.2: conflicts are entries, and all other keys move', async () => {
    for (const key of ['a/1', 'a/2', 'b/2']) await api.put(bucket, key, key);
    const answer = await move('a/', 'b/', prefixed({ 'x-svc-quiet': 'true' }));
    expectStatus(answer, 200);
    expect(resultOf(answer)).toEqual([['a/2', 'b/2', 'ObjectAlreadyExists'], [1]]);
    expect(await api.keysOf(bucket)).toEqual(['a/2', 'b/1', 'b/2']);
    expectStatus(await move('a/', 'b/', prefixed({ overwrite: 'true' })), 200);
    expect(await bodyOf('b/2')).toBe('a/2');
  });

  test('extensions 2.1: 200 also where nothing begins with it', async () => {
    await api.put(bucket, 'a', 'x');
    const answer = await move('a/', 'b/', prefixed());
    expectStatus(answer, 200);
    expect(resultOf(answer)).toEqual([[0]]);
    expect(await api.keysOf(bucket)).toEqual(['a']);
  });

  test('a key that would become too long stays', async () => {
    const long = `a/${'k'.repeat(1000)}`;
    await api.put(bucket, long, 'x');
    await api.put(bucket, 'a/1', 'x');
    const answer = await move('a/', `${'b'.repeat(40)}/`, prefixed({ 'x-svc-quiet': 'true' }));
    expectStatus(answer, 200);
    expect(resultOf(answer)).toEqual([
      [long, `${'b'.repeat(40)}/${'k'.repeat(1000)}`, 'KeyTooLongError'],
      [1],
    ]);
    expect(await api.keysOf(bucket)).toContain(long);
  });

  // In a cluster move-versions has several steps, and mass-rename many.
  ownServerTest('more keys than one step moves', async () => {
    const keys = Array.from({ length: 1100 }, (_, at) => `a/${String(at).padStart(4, '0')}`);
    for (let at = 0; at < keys.length; at += 50) {
      await Promise.all(keys.slice(at, at + 50).map((key) => api.put(bucket, key, '')));
    }
    const answer = await move('a/', 'b/', prefixed());
    expectStatus(answer, 200);
    const result = resultOf(answer);
    expect(result.at(-1)).toEqual([1100]);
    expect(result.slice(0, -1)).toEqual(keys.map((key) => [key, key.replace('a/', 'b/')]));
  });

  test('a token: the job of the first request answers, with its errors and its count', async () => {
    for (const key of ['a/1', 'a/2', 'b/2']) await api.put(bucket, key, key);
    const headers = prefixed({ 'x-svc-idempotency-token': 'once' });
    expectStatus(await move('a/', 'b/', headers), 200);
    await api.put(bucket, 'a/3', 'new');
    for (const quiet of ['false', 'true']) {
      const again = await move('a/', 'b/', { ...headers, 'x-svc-quiet': quiet });
      expectStatus(again, 200);
      expect(resultOf(again)).toEqual([['a/2', 'b/2', 'ObjectAlreadyExists'], [1]]);
    }
    expect(await api.keysOf(bucket)).toEqual(['a/2', 'a/3', 'b/1', 'b/2']);
    expectRefusal(await move('a/', 'c/', headers), 400, 'IdempotencyParameterMismatch');
    const overwriting = { ...headers, overwrite: 'true' };
    expectRefusal(await move('a/', 'b/', overwriting), 400, 'IdempotencyParameterMismatch');
  });
});
