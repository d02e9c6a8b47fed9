// What listings take of the memory for bodies: so many are at work at a time, by tenant, and none waits behind another
// tenant's crowd. The operation of the test is asked by strangers, who are tenants by their addresses.
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { send } from '../../../tests/support/servers/raw-s3.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';
import { defineOperation } from './operation.ts';
import { OPERATIONS } from './registry.ts';

const MiB = 1024 * 1024;
/** Of one address, where each listing takes an eighth of the memory: its share has no room for more. */
const AT_ONCE = 7;
const CROWD = 300;

let world: GatewayWorld | undefined;
afterEach(() => world?.close());

test('a crowd of listings has its share of memory, another tenant is served meanwhile, and none is refused', async () => {
  let begun = 0;
  const full = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const listing = defineOperation({
    name: 'Listing',
    match: { method: 'GET', on: 'service' },
    logName: 'REST.GET.LISTING',
    body: 'none',
    auth: 'none',
    errors: [],
    parse: () => undefined,
    access: () => [],
    memoryBytes: () => 8 * MiB,
    async run(context) {
      if (context.record.remoteAddress === '127.0.0.2') {
        if (++begun === AT_ONCE) full.resolve();
        await end.promise;
      }
      return { status: 200, body: { kind: 'xml', text: '<A/>' } };
    },
  });
  world = await openGatewayWorld({ bodyBufferBytes: 16 * MiB, deps: { operations: [listing] } });
  const { endpoint } = world;
  const ask = async (localAddress: string) => {
    const [answer] = (await once(get(endpoint, { localAddress, agent: false }), 'response')) as [
      IncomingMessage,
    ];
    answer.resume();
    return answer.statusCode;
  };
  const crowd = Array.from({ length: CROWD }, () => ask('127.0.0.2'));
  await full.promise;
  expect(await ask('127.0.0.3')).toBe(200);
  expect(begun).toBe(AT_ONCE);
  end.resolve();
  expect(new Set(await Promise.all(crowd))).toEqual(new Set([200]));
  expect(world.heldBytes()).toBe(0);
});

test('a document counts until its operation is over: what it says may wait for locks and turns', async () => {
  const text = '<A/>'.padEnd(50_000);
  const begun = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const taking = defineOperation({
    name: 'Taking',
    match: { method: 'PUT', on: 'service' },
    logName: 'REST.PUT.TAKING',
    body: 'xml',
    auth: 'none',
    errors: [],
    parse: () => undefined,
    access: () => [],
    *parseDocument(document) {
      yield;
      return document.length;
    },
    async run(_context, _input, sizeBytes) {
      expect(sizeBytes).toBe(text.length);
      begun.resolve();
      await end.promise;
      return { status: 200, body: { kind: 'xml', text: '<A/>' } };
    },
  });
  world = await openGatewayWorld({ deps: { operations: [taking] } });
  const answered = fetch(world.endpoint, { method: 'PUT', body: text });
  await begun.promise;
  expect(world.heldBytes()).toBe(LIMITS.documentMemoryFactor * text.length);
  end.resolve();
  expect((await answered).status).toBe(200);
  expect(world.heldBytes()).toBe(0);
});

const copied = { 'x-amz-copy-source': '/bkt/source' };
const components = '<Component><Key>source</Key></Component>'.repeat(2);
const composition = Buffer.from(`<ComposeRequest>${components}</ComposeRequest>`);

test.each([
  ['a copy', 1, { method: 'PUT', path: '/bkt/copy', headers: copied }],
  ['a copied part', 1, { method: 'PUT', path: '/bkt/upload?partNumber=1&uploadId=UPLOAD', headers: copied }],
  ['a composition', 2, { method: 'PUT', path: '/bkt/composed?compose', body: composition }],
])('%s counts its sources before it looks at them, until it is over', async (_name, sources, wanted) => {
  let onLook: (() => void) | undefined;
  const intercept = (shards: MetadataPort): MetadataPort => ({
    ...shards,
    shardCount: shards.shardCount,
    execute: (target, name, command) => shards.execute(target, name, command),
    query(target, name, query) {
      if (name.startsWith('get-version')) onLook?.();
      return shards.query(target, name, query);
    },
  });
  world = await openGatewayWorld({ intercept });
  const { endpoint, makeAccount, heldBytes } = world;
  const access = { endpoint, ...(await makeAccount('owner')) };
  for (const path of ['/bkt', '/bkt/source'])
    expect(await send(access, { method: 'PUT', path })).toMatchObject({ status: 200 });
  const upload = await send(access, { method: 'POST', path: '/bkt/upload?uploads' });
  const uploadId = /<UploadId>([^<]+)/.exec(upload.body.toString())?.[1] ?? '';
  const counts: number[] = [];
  onLook = () => void counts.push(heldBytes());
  const answer = await send(access, { ...wanted, path: wanted.path.replace('UPLOAD', uploadId) });
  expect(answer).toMatchObject({ status: 200 });
  expect(Math.min(...counts)).toBeGreaterThanOrEqual(sources * LIMITS.sourceMemoryBytes);
  expect(heldBytes()).toBe(0);
});

test('all lists of what may be long, or many, count what they take', () => {
  const counted = OPERATIONS.filter(({ memoryBytes }) => memoryBytes !== undefined).map(({ name }) => name);
  expect(counted.sort()).toEqual([
    'GetBucketLifecycleConfiguration',
    'ListBuckets',
    'ListMultipartUploads',
    'ListObjectVersions',
    'ListObjects',
    'ListObjectsV2',
    'ListParts',
  ]);
});
