// The answers to clients where a version is protected (extensions 2.1, 2.5; service 3, 7): 403 AccessDenied, for MOVE in
// its entry, and nothing has changed. Nothing in the product protects versions yet, so the rule is the test's own;
// everything from the shard's answer on is the product's.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createProtectedVersions } from '../../../tests/support/metadata/protected-versions.ts';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { CHUNK_BYTES } from '../../../tests/support/objects/object-world.ts';
import { type RawAnswer, send } from '../../../tests/support/servers/raw-s3.ts';
import { expectError, expectStatus, xmlOf } from '../../../tests/support/servers/s3-api.ts';
import { must } from '../../base/assert.ts';
import { childOf, childrenOf, textOf } from '../../base/xml/parse-xml.ts';
import { createMetadataMachine } from '../../metadata/state-machine.ts';
import type { BucketName } from '../../types/names.ts';

const kept = createProtectedVersions();
const KEPT = 'has to stay';
const DENIED = { status: 403, code: 'AccessDenied' } as const;

let world: GatewayWorld;
let bucket: string;
let counter = 0;
beforeAll(async () => {
  world = await openGatewayWorld({ machine: createMetadataMachine(kept.rules) });
});
afterAll(async () => {
  await world.close();
  expect(world.faults()).toEqual([]);
});
beforeEach(async () => {
  kept.letGo();
  bucket = `kept-${counter++}`;
  expectStatus(await request('PUT', ''), 200);
});

function request(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string | Buffer,
): Promise<RawAnswer> {
  const access = { endpoint: world.endpoint, ...world.root };
  const sent = body === undefined ? {} : { body: Buffer.from(body) };
  return send(access, { method, path: `/${bucket}${path}`, headers, ...sent });
}

async function put(key: string, body = `of ${key}`): Promise<string> {
  const answer = await request('PUT', `/${key}`, {}, body);
  expectStatus(answer, 200);
  return String(answer.headers['x-amz-version-id']);
}

/** An object that has to stay; its version id. */
async function putProtected(key: string): Promise<string> {
  const versionId = await put(key, KEPT);
  kept.keep(createHash('md5').update(KEPT).digest('hex'));
  return versionId;
}

async function setVersioning(versioning: 'enabled' | 'suspended'): Promise<void> {
  const { record } = await world.metadata.query('find-name', { name: bucket as BucketName });
  const { bucketId, homeShard } = must(record, 'the bucket is there');
  await world.metadata.execute(
    'set-bucket-config',
    { bucketId, kind: 'versioning', document: { status: versioning } },
    homeShard,
  );
}

/** What is listed of each version and marker, and what the versions hold. */
async function everything(): Promise<unknown> {
  const listed = xmlOf(await request('GET', '?versions'));
  const bodies = childrenOf(listed, 'Version').map(async (version) => {
    const path = `/${textOf(version, 'Key')}?versionId=${textOf(version, 'VersionId')}`;
    return (await request('GET', path)).body.toString();
  });
  return { children: listed.children, bodies: await Promise.all(bodies) };
}

/** Key, version id and error code of each entry, and the number of those that moved. */
function moveResult(answer: RawAnswer) {
  const root = xmlOf(answer);
  const entries = childrenOf(root, 'MoveObject').map((entry) => {
    const error = childOf(entry, 'Error');
    return [textOf(entry, 'SourceKey'), textOf(entry, 'VersionId'), error && textOf(error, 'Code')];
  });
  return { name: root.name, entries, count: textOf(root, 'MoveCount') };
}

describe('MOVE reports the error in the entry', () => {
  test('of an object: 403 with a MoveObjectResult, and the request is logged with its error', async () => {
    await putProtected('a');
    const before = await everything();
    const answer = await request('MOVE', '/a', { destination: 'b' });
    expectStatus(answer, 403);
    expect(moveResult(answer)).toEqual({
      name: 'MoveObjectResult',
      count: '0',
      entries: [['a', 'null', 'AccessDenied']],
    });
    expect(world.requests().at(-1)).toMatchObject({ operation: 'MoveObject', errorCode: 'AccessDenied' });
    expect(await everything()).toEqual(before);
  });

  test('quiet, and of an older version: the version is named', async () => {
    await setVersioning('enabled');
    const versionId = await putProtected('a');
    await put('a');
    const before = await everything();
    const answer = await request('MOVE', '/a', { destination: 'b', 'x-svc-quiet': 'true' });
    expectStatus(answer, 403);
    expect(moveResult(answer).entries).toEqual([['a', versionId, 'AccessDenied']]);
    expect(await everything()).toEqual(before);
  });

  test('with Overwrite, onto a protected object', async () => {
    await put('a');
    await putProtected('b');
    const before = await everything();
    const answer = await request('MOVE', '/a', { destination: 'b', overwrite: 'true' });
    expectStatus(answer, 403);
    expect(moveResult(answer)).toMatchObject({ count: '0', entries: [['a', 'null', 'AccessDenied']] });
    expect(await everything()).toEqual(before);
  });

  test('of a prefix: 200, one entry with its error, and the others move', async () => {
    for (const name of ['1', '3']) await put(`p/${name}`);
    await putProtected('p/2');
    const answer = await request('MOVE', '/p/', { destination: 'q/', 'x-svc-prefix': 'true' });
    expectStatus(answer, 200);
    expect(moveResult(answer)).toEqual({
      name: 'MoveObjectResult',
      count: '2',
      entries: [
        ['p/1', undefined, undefined],
        ['p/2', 'null', 'AccessDenied'],
        ['p/3', undefined, undefined],
      ],
    });
    expect((await request('GET', '/p/2')).body.toString()).toBe(KEPT);
    expect((await request('GET', '/q/3')).body.toString()).toBe('of p/3');
    expectStatus(await request('GET', '/q/2'), 404);
  });
});

/** What would replace the object `a`, whose components and parts are there. */
const REPLACING: Record<string, () => Promise<RawAnswer>> = {
  PUT: () => request('PUT', '/a', {}, 'new'),
  'PUT of chunks': () => request('PUT', '/a', {}, Buffer.alloc(CHUNK_BYTES, 'n')),
  copy: () => request('PUT', '/a', { 'x-amz-copy-source': `/${bucket}/b` }),
  'copy onto itself': () =>
    request('PUT', '/a', { 'x-amz-copy-source': `/${bucket}/a`, 'x-amz-metadata-directive': 'REPLACE' }),
  compose: () => request('PUT', '/a?compose', {}, composeOf('b', 'b')),
  'compose of itself': () => request('PUT', '/a?compose', {}, composeOf('a', 'b')),
  append: () => request('PUT', '/a?append', {}, 'more'),
  'append of chunks': () => request('PUT', '/a?append', {}, Buffer.alloc(CHUNK_BYTES, 'n')),
  'append at an offset': () =>
    request('PUT', '/a', { 'x-amz-write-offset-bytes': String(KEPT.length) }, 'more'),
  DELETE: () => request('DELETE', '/a'),
};

const composeOf = (...keys: string[]) =>
  `<ComposeRequest>${keys.map((key) => `<Component><Key>${key}</Key></Component>`).join('')}</ComposeRequest>`;

describe.each(Object.keys(REPLACING))('%s of what has to stay', (name) => {
  test.each(['unversioned', 'suspended'] as const)(
    '%s: 403 AccessDenied, and it is as it was',
    async (state) => {
      if (state === 'suspended') await setVersioning(state);
      await put('b');
      await putProtected('a');
      const [before, chunkCount] = [await everything(), await world.chunkCount()];
      const replace = REPLACING[name] as () => Promise<RawAnswer>;
      expectError(await replace(), DENIED);
      expect(await everything()).toEqual(before);
      // What came in the body is not left behind.
      expect(await world.chunkCount()).toBe(chunkCount);
      kept.letGo();
      expect((await replace()).status).toBeLessThan(300);
    },
  );
});

test('compose and append make a protected object an older version where versions are kept', async () => {
  await setVersioning('enabled');
  const versionId = await putProtected('a');
  expectStatus(await request('PUT', '/a?append', {}, '!'), 200);
  expectStatus(await request('PUT', '/a?compose', {}, composeOf('a', 'a')), 200);
  expect((await request('GET', '/a')).body.toString()).toBe(`${KEPT}!`.repeat(2));
  expect((await request('GET', `/a?versionId=${versionId}`)).body.toString()).toBe(KEPT);
  expectError(await request('DELETE', `/a?versionId=${versionId}`), DENIED);
});

test('forced deletion is refused completely while one version is protected', async () => {
  await setVersioning('enabled');
  for (const name of ['1', '2', '3']) await put(name);
  await putProtected('2');
  await put('2');
  await request('DELETE', '/2');
  const before = await everything();
  const refused = await request('DELETE', '?force_delete=true');
  expectError(refused, DENIED);
  expect(refused.body.toString()).toContain('Nothing was deleted');
  expect(await everything()).toEqual(before);
  await put('4');
  kept.letGo();
  expectStatus(await request('DELETE', '?force_delete=true'), 204);
  expectStatus(await request('HEAD', ''), 404);
});
