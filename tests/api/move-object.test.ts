// MOVE of objects and prefixes (service.txt 2.6, 4.2, 7; extensions.md 2.1): what is renamed, what the answer lists, and
// every refusal, which changes nothing.
import { beforeEach, describe, expect, test } from 'vitest';
import { childrenOf, textOf } from '../../src/lib/xml.ts';
import { ERRORS, type ErrorCode } from '../../src/model/errors.ts';
import { type Access, pathOf } from '../support/raw-s3.ts';
import { expectError, expectStatus, useApi, xmlOf } from '../support/s3-api.ts';

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

const expectRefusal = (answer: Answer, code: ErrorCode) =>
  expectError(answer, { status: ERRORS[code].status, code });

const prefixed = (headers: Headers = {}): Headers => ({ 'x-svc-prefix': 'true', ...headers });

async function bodyOf(key: string): Promise<string> {
  const answer = await api.send({ method: 'GET', path: pathOf(bucket, key) });
  expectStatus(answer, 200);
  return answer.body.toString();
}

async function enableVersioning(status = 'Enabled'): Promise<void> {
  const body = `<VersioningConfiguration><Status>${status}</Status></VersioningConfiguration>`;
  expectStatus(
    await api.send({ method: 'PUT', path: `/${bucket}?versioning`, body: Buffer.from(body) }),
    200,
  );
}

/** Key and version id of each, "*" the latest, "-" a delete marker. */
async function versionsOf(): Promise<string[][]> {
  const answer = await api.send({ method: 'GET', path: `/${bucket}?versions` });
  return xmlOf(answer).children.flatMap((child) =>
    child.name === 'Version' || child.name === 'DeleteMarker'
      ? [
          [
            child.name,
            textOf(child, 'Key') ?? '',
            textOf(child, 'VersionId') ?? '',
            textOf(child, 'IsLatest') ?? '',
          ],
        ]
      : [],
  );
}

describe('one object', () => {
  test('it bears the other key, with its body, ETag and headers', async () => {
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

  test('many versions under long keys: the same document, sent as it is made', async () => {
    await enableVersioning();
    const [from, to] = [`a/${'&'.repeat(1000)}`, `b/${'"'.repeat(1000)}`];
    for (let at = 0; at < 30; at++) await api.put(bucket, from, '');
    const ids = (await versionsOf()).map(([, , id]) => id as string);
    const escaped = [from.replaceAll('&', '&amp;'), to.replaceAll('"', '&quot;')] as const;
    const document = ([source, destination]: readonly [string, string], prefixes = '') =>
      `<?xml version="1.0" encoding="UTF-8"?>\n<MoveObjectResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${prefixes}${ids
        .map(
          (id) =>
            `<MoveObject><SourceKey>${source}</SourceKey><DestinationKey>${destination}</DestinationKey><VersionId>${id}</VersionId></MoveObject>`,
        )
        .join('')}<MoveCount>30</MoveCount></MoveObjectResult>`;
    const token = { 'x-svc-idempotency-token': 'once' };
    for (const answer of [await move(from, to, token), await move(from, to, token)]) {
      expectStatus(answer, 200);
      expect(answer.headers).toMatchObject({
        'content-type': 'application/xml',
        'transfer-encoding': 'chunked',
      });
      expect(answer.body.toString()).toBe(document(escaped));
    }
    const quiet = await move(to, from, { 'x-svc-quiet': 'true' });
    expect(quiet.headers['content-length']).toBe(String(quiet.body.length));
    expect(resultOf(quiet)).toEqual([[30]]);
    const prefixes = '<SourcePrefix>a/</SourcePrefix><DestinationPrefix>c/</DestinationPrefix>';
    const inPrefix = await move('a/', 'c/', prefixed());
    expect(inPrefix.body.toString()).toBe(document([escaped[0], escaped[0].replace('a/', 'c/')], prefixes));
  });

  test('quiet: no entry but of errors', async () => {
    await api.put(bucket, 'a', 'x');
    expect(resultOf(await move('a', 'b', { 'X-Svc-Quiet': 'True' }))).toEqual([[1]]);
  });

  test('rule 4: a destination in use is an error, and the source stays', async () => {
    await api.put(bucket, 'a', 'A');
    await api.put(bucket, 'b', 'B');
    const answer = await move('a', 'b', { 'x-svc-quiet': 'true' });
    expectStatus(answer, 409);
    expect(resultOf(answer)).toEqual([['a', 'b', 'ObjectAlreadyExists'], [0]]);
    expect([await bodyOf('a'), await bodyOf('b')]).toEqual(['A', 'B']);
  });

  test('rule 4: Overwrite true replaces it', async () => {
    await api.put(bucket, 'a', 'A');
    await api.put(bucket, 'b', 'B');
    expectStatus(await move('a', 'b', { Overwrite: 'TRUE' }), 200);
    expect(await api.keysOf(bucket)).toEqual(['b']);
    expect(await bodyOf('b')).toBe('A');
  });

  test('rule 4: in a versioned bucket the older versions stay below', async () => {
    await enableVersioning();
    for (const [key, body] of [
      ['a', '1'],
      ['a', '2'],
      ['b', '3'],
    ] as const)
      await api.put(bucket, key, body);
    const before = new Map((await versionsOf()).map(([, key, id, isLatest]) => [`${key} ${isLatest}`, id]));
    expectStatus(await move('a', 'b'), 409);
    const answer = await move('a', 'b', { overwrite: 'true' });
    const [newest, older, own] = ['a true', 'a false', 'b true'].map((name) => before.get(name) ?? '');
    expect(resultOf(answer)).toEqual([['a', 'b', newest], ['a', 'b', older], [2]]);
    expect(await versionsOf()).toEqual([
      ['Version', 'b', newest, 'true'],
      ['Version', 'b', older, 'false'],
      ['Version', 'b', own, 'false'],
    ]);
    expect(await bodyOf('b')).toBe('2');
  });

  test('a key under a delete marker moves with it, and one under it is free', async () => {
    await enableVersioning();
    await api.put(bucket, 'a', '1');
    expectStatus(await api.send({ method: 'DELETE', path: `/${bucket}/a` }), 204);
    expectStatus(await move('a', 'b'), 200);
    expect((await versionsOf()).map(([kind, key]) => [kind, key])).toEqual([
      ['DeleteMarker', 'b'],
      ['Version', 'b'],
    ]);
    await api.put(bucket, 'c', '2');
    expectStatus(await move('c', 'b'), 200);
    expect(await bodyOf('b')).toBe('2');
  });

  test('what is not there', async () => {
    expectRefusal(await move('a', 'b'), 'NoSuchKey');
  });

  test('conditions: If-Match and If-None-Match are about the source, X-Svc-Destination-* about the destination', async () => {
    const etag = await api.put(bucket, 'a', 'A');
    const other = await api.put(bucket, 'b', 'B');
    expectRefusal(await move('a', 'c', { 'if-match': `"${other}"` }), 'PreconditionFailed');
    expectRefusal(await move('a', 'c', { 'if-none-match': '*' }), 'PreconditionFailed');
    expectRefusal(await move('a', 'b', { 'x-svc-destination-if-none-match': '*' }), 'PreconditionFailed');
    expectRefusal(await move('a', 'c', { 'x-wasabi-destination-if-match': '*' }), 'PreconditionFailed');
    expectRefusal(await move('a', 'c', { 'if-match': 'x y' }), 'InvalidArgument');
    const headers = { 'if-match': etag, 'x-svc-destination-if-match': other, overwrite: 'true' };
    expectStatus(await move('a', 'b', headers), 200);
    expect(await bodyOf('b')).toBe('A');
  });

  test('the Destination may be percent-encoded, and behind its own bucket', async () => {
    await api.put(bucket, 'a', 'x');
    expectStatus(await move('a', 'b%20c%2Fd'), 200);
    expectStatus(await move('b c/d', `/${bucket}/e`), 200);
    expectStatus(await move('e', '100%'), 200);
    expect(await api.keysOf(bucket)).toEqual(['100%']);
  });

  test.each([
    ['no Destination', undefined, {}, 'InvalidArgument'],
    ['an empty one', '', {}, 'InvalidArgument'],
    ['another bucket', '/another/key', {}, 'InvalidArgument'],
    ['no UTF-8', '%ff', {}, 'InvalidArgument'],
    ['NUL', 'a%00', {}, 'InvalidArgument'],
    ['too long', 'k'.repeat(1025), {}, 'KeyTooLongError'],
    ['the same key', 'a', {}, 'InvalidRequest'],
    ['Overwrite yes', 'b', { overwrite: 'yes' }, 'InvalidArgument'],
    ['X-Svc-Quiet empty', 'b', { 'x-svc-quiet': '' }, 'InvalidArgument'],
    ['X-Svc-Prefix 1', 'b', { 'x-wasabi-prefix': '1' }, 'InvalidArgument'],
    ['conditions on a prefix', 'b', { 'x-svc-prefix': 'true', 'if-match': '*' }, 'InvalidRequest'],
    ['a token of nothing', 'b', { 'x-svc-idempotency-token': '' }, 'InvalidArgument'],
    ['a token too long', 'b', { 'x-svc-idempotency-token': 't'.repeat(65) }, 'InvalidArgument'],
  ] as const)('refused: %s', async (_, destination, headers, code) => {
    await api.put(bucket, 'a', 'x');
    expectRefusal(await move('a', destination, headers), code);
    expect(await api.keysOf(bucket)).toEqual(['a']);
  });

  test('a token: the answer is repeated, not the deed', async () => {
    await api.put(bucket, 'a', '1');
    const token = { 'x-svc-idempotency-token': 'once' };
    const first = await move('a', 'b', token);
    await api.put(bucket, 'a', '2');
    const again = await move('a', 'b', token);
    expect([again.status, again.body]).toEqual([first.status, first.body]);
    expect(await bodyOf('a')).toBe('2');
    expectRefusal(await move('a', 'c', token), 'IdempotencyParameterMismatch');
  });

  test('rule 1: who may not write may not move', async () => {
    await api.put(bucket, 'a', 'x');
    const stranger = await api.makeAccount();
    expectRefusal(await move('a', 'b', {}, stranger), 'AccessDenied');
    expectRefusal(
      await api.sendAnonymous({ method: 'MOVE', path: `/${bucket}/a`, headers: { destination: 'b' } }),
      'AccessDenied',
    );
  });
});

describe('a prefix', () => {
  test('rule 2: every key that begins with it, a plain replacement of text', async () => {
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

  test('conflicts are entries, and everything else moves', async () => {
    for (const key of ['a/1', 'a/2', 'b/2']) await api.put(bucket, key, key);
    const answer = await move('a/', 'b/', prefixed({ 'x-svc-quiet': 'true' }));
    expectStatus(answer, 200);
    expect(resultOf(answer)).toEqual([['a/2', 'b/2', 'ObjectAlreadyExists'], [1]]);
    expect(await api.keysOf(bucket)).toEqual(['a/2', 'b/1', 'b/2']);
    expectStatus(await move('a/', 'b/', prefixed({ overwrite: 'true' })), 200);
    expect(await bodyOf('b/2')).toBe('a/2');
  });

  test('versions and delete markers, one entry each', async () => {
    await enableVersioning();
    for (const key of ['a/1', 'a/1', 'a/2']) await api.put(bucket, key, 'x');
    await api.send({ method: 'DELETE', path: `/${bucket}/a/2` });
    const before = await versionsOf();
    const answer = await move('a/', 'b/', prefixed());
    expect(resultOf(answer).at(-1)).toEqual([4]);
    expect(resultOf(answer).slice(0, -1)).toHaveLength(4);
    const renamed = before.map(([kind, key, ...rest]) => [kind, key?.replace('a/', 'b/'), ...rest]);
    expect(await versionsOf()).toEqual(renamed);
  });

  test('none: no entry', async () => {
    expect(resultOf(await move('a/', 'b/', prefixed()))).toEqual([[0]]);
  });

  test('a key that would be too long stays', async () => {
    const long = `a/${'k'.repeat(1000)}`;
    await api.put(bucket, long, 'x');
    await api.put(bucket, 'a/1', 'x');
    const answer = await move('a/', `${'b'.repeat(40)}/`, prefixed({ 'x-svc-quiet': 'true' }));
    expect(resultOf(answer)).toEqual([
      [long, `${'b'.repeat(40)}/${'k'.repeat(1000)}`, 'KeyTooLongError'],
      [1],
    ]);
    expect(await api.keysOf(bucket)).toContain(long);
  });

  test('more keys than one step moves', async () => {
    const keys = Array.from({ length: 1100 }, (_, at) => `a/${String(at).padStart(4, '0')}`);
    for (let at = 0; at < keys.length; at += 50) {
      await Promise.all(keys.slice(at, at + 50).map((key) => api.put(bucket, key, '')));
    }
    const answer = await move('a/', 'b/', prefixed());
    const result = resultOf(answer);
    expect(result.at(-1)).toEqual([1100]);
    expect(result.slice(0, -1)).toEqual(keys.map((key) => [key, key.replace('a/', 'b/')]));
  });

  test('a token: the job of the first request answers, with its errors and its count', async () => {
    for (const key of ['a/1', 'a/2', 'b/2']) await api.put(bucket, key, key);
    const headers = prefixed({ 'x-svc-idempotency-token': 'once' });
    await move('a/', 'b/', headers);
    await api.put(bucket, 'a/3', 'new');
    const again = await move('a/', 'b/', headers);
    expect(resultOf(again)).toEqual([['a/2', 'b/2', 'ObjectAlreadyExists'], [1]]);
    expect(await api.keysOf(bucket)).toEqual(['a/2', 'a/3', 'b/1', 'b/2']);
    expectRefusal(await move('a/', 'c/', headers), 'IdempotencyParameterMismatch');
  });
});
