// What the gateway makes of answers of shards about compliance, and of digests: which are kept with the object when it is put,
// which are computed when somebody asks, and that an answer which takes long begins before it is known.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../../tests/support/objects/gateway-world.ts';
import { CHUNK_BYTES } from '../../../../tests/support/objects/object-world.ts';
import { type RawAnswer, send } from '../../../../tests/support/servers/raw-s3.ts';
import { expectError, expectStatus, fieldsOf } from '../../../../tests/support/servers/s3-api.ts';
import { must } from '../../../base/assert.ts';
import { CHUNK_COLUMNS } from '../../../chunks/disk/keyspace.ts';
import { systemClock } from '../../../platform/system-clock.ts';
import type { CommandName, MetadataPort } from '../../../ports/metadata/port.ts';
import type { BucketName, ObjectKey } from '../../../types/names.ts';

let world: GatewayWorld;
let bucket: string;
let counter = 0;
/** Before a command goes to its shard; what it gives back stands for the shard's outcome. */
let onCommand: (name: CommandName, command: unknown) => Promise<object | undefined>;
/** Changes of what protects versions that were sent. */
let changes: unknown[];

function intercept(shards: MetadataPort): MetadataPort {
  return {
    ...shards,
    shardCount: shards.shardCount,
    query: (target, name, query) => shards.query(target, name, query),
    async execute(target, name, command) {
      if (name === 'set-protection') changes.push((command as { change: unknown }).change);
      const outcome = await onCommand(name, command);
      if (outcome === undefined) return shards.execute(target, name, command);
      return { kind: 'done', value: outcome as never, timeMs: systemClock.wallMs() };
    },
  };
}

beforeAll(async () => {
  const sleep = (_ms: number, signal?: AbortSignal) => systemClock.sleep(10, signal);
  world = await openGatewayWorld({ intercept, deps: { clock: { ...systemClock, sleep } } });
});
afterAll(() => world.close());
beforeEach(async () => {
  changes = [];
  onCommand = async () => undefined;
  bucket = `kept-${counter++}`;
  expectStatus(await request('PUT', ''), 200);
  expectStatus(await enable(), 200);
});

function request(
  method: string,
  rest: string,
  headers: Record<string, string> = {},
  body?: Buffer,
): Promise<RawAnswer> {
  const access = { endpoint: world.endpoint, ...world.root };
  return send(access, { method, path: `/${bucket}${rest}`, headers, ...(body && { body }) });
}

const enable = (status = 'enabled') =>
  request(
    'PUT',
    '?compliance',
    {},
    Buffer.from(
      `<BucketComplianceConfiguration><Status>${status}</Status><RetentionDays>0</RetentionDays></BucketComplianceConfiguration>`,
    ),
  );
const sha256Of = (bytes: Buffer) => createHash('sha256').update(bytes);
const ask = (key: string) => request('GET', `/${key}?compliance`);

async function keptOf(key: string): Promise<string | undefined> {
  const { record } = await world.metadata.query('find-name', { name: bucket as BucketName });
  const { bucketId, homeShard } = must(record, 'the bucket is there');
  const query = { bucketId, key: key as ObjectKey, includeBody: false };
  const found = await world.metadata.query('get-version', query, homeShard);
  return found.kind === 'found' ? found.version.protection?.compliance?.sha256 : undefined;
}

test('a digest that the request proved is kept with the object', async () => {
  const body = Buffer.alloc(2 * CHUNK_BYTES, 'abc');
  const hex = sha256Of(body).digest('hex');
  const checksum = { 'x-amz-checksum-sha256': Buffer.from(hex, 'hex').toString('base64') };
  await request('PUT', '/signed', { 'x-amz-content-sha256': hex }, body);
  await request('PUT', '/checksum', checksum, body);
  await request('PUT', '/unsigned', {}, body);
  expect([await keptOf('signed'), await keptOf('checksum'), await keptOf('unsigned')]).toEqual([
    hex,
    hex,
    undefined,
  ]);
  expect(fieldsOf(await ask('signed')).SHA256).toBe(hex);
  expect(changes).toEqual([]);
});

test('none is kept in a bucket without compliance', async () => {
  expectStatus(await enable('disabled'), 200);
  const body = Buffer.from('bytes');
  await request('PUT', '/k', { 'x-amz-content-sha256': sha256Of(body).digest('hex') }, body);
  expect(await keptOf('k')).toBeUndefined();
});

test('another one is computed when somebody asks first, and kept', async () => {
  const body = Buffer.alloc(3 * CHUNK_BYTES + 1, 'abc');
  await request('PUT', '/k', {}, body);
  const hex = sha256Of(body).digest('hex');
  expect(fieldsOf(await ask('k')).SHA256).toBe(hex);
  expect(await keptOf('k')).toBe(hex);
  expect(fieldsOf(await ask('k')).SHA256).toBe(hex);
  expect(changes).toHaveLength(1);
});

test('one that cannot be kept is told all the same', async () => {
  const body = Buffer.from('bytes');
  await request('PUT', '/k', {}, body);
  onCommand = async (name) => (name === 'set-protection' ? { kind: 'other-version' } : undefined);
  expect(fieldsOf(await ask('k')).SHA256).toBe(sha256Of(body).digest('hex'));
  expect(await keptOf('k')).toBeUndefined();
});

test('an answer that takes long begins with white space', async () => {
  const body = Buffer.alloc(CHUNK_BYTES + 1, 'abc');
  await request('PUT', '/k', {}, body);
  const isAsked = Promise.withResolvers<void>();
  const mayGoOn = Promise.withResolvers<undefined>();
  onCommand = async (name) => {
    if (name !== 'set-protection') return undefined;
    isAsked.resolve();
    return await mayGoOn.promise;
  };
  const answer = ask('k');
  await isAsked.promise;
  // Long after everything that is waited for is over.
  await systemClock.sleep(100);
  mayGoOn.resolve(undefined);
  const { status, body: text } = await answer;
  expect(status).toBe(200);
  expect(text.toString()).toMatch(/^<\?xml[^>]*\?>\s{3,}<ObjectComplianceConfiguration/);
  expect(text.toString()).toContain(`<SHA256>${sha256Of(body).digest('hex')}</SHA256>`);
});

test('two are computed at a time for the buckets of an account, and no more', async () => {
  for (const key of ['a', 'b', 'c']) await request('PUT', `/${key}`, {}, Buffer.from(key));
  const areAsked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const mayGoOn = Promise.withResolvers<undefined>();
  let askedCount = 0;
  onCommand = async (name) => {
    if (name !== 'set-protection') return undefined;
    areAsked[askedCount++]?.resolve();
    return await mayGoOn.promise;
  };
  const answers = [ask('a'), ask('b')];
  await Promise.all(areAsked.map(({ promise }) => promise));
  expectError(await ask('c'), { status: 503, code: 'SlowDown' });
  mayGoOn.resolve(undefined);
  for (const answer of answers) expectStatus(await answer, 200);
  expect(fieldsOf(await ask('c')).SHA256).toBe(sha256Of(Buffer.from('c')).digest('hex'));
});

test('a document that does not fit to what goes on in the bucket is refused for now', async () => {
  onCommand = async (name) =>
    name === 'set-bucket-config' ? { kind: 'refused', because: 'keys-are-moving' } : undefined;
  expectError(await enable(), { status: 503, code: 'ServiceUnavailable', BucketName: bucket });
});

test('a bucket with object lock takes none', async () => {
  onCommand = async (name) =>
    name === 'set-bucket-config' ? { kind: 'refused', because: 'has-object-lock' } : undefined;
  expectError(await enable(), { status: 409, code: 'InvalidBucketState', BucketName: bucket });
});

test('an object whose bytes cannot be read has no digest, and an error', async () => {
  await request('PUT', '/k', {}, Buffer.alloc(2 * CHUNK_BYTES, 'abc'));
  for (const column of CHUNK_COLUMNS)
    await world.chunkKv.clear({ column, gte: Uint8Array.of(), lt: new Uint8Array(64).fill(255) });
  expectStatus(await ask('k'), 503);
  expect(await keptOf('k')).toBeUndefined();
});
