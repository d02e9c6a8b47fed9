// A gateway that has cached a bucket, which is then renamed elsewhere, and another created under the old name (A13): the
// home refuses the outdated belief, and each request is authorised again for the bucket that has its name now (R43, R45).
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { type Access, type RawAnswer, send } from '../../../tests/support/servers/raw-s3.ts';
import { must } from '../../base/assert.ts';
import { SYSTEM_SHARD } from '../../ports/metadata/port.ts';
import type { BucketName } from '../../types/names.ts';

let one: GatewayWorld;
let two: GatewayWorld;
let ann: { one: Access; two: Access };
let bob: { one: Access; two: Access };
beforeAll(async () => {
  one = await openGatewayWorld();
  two = await openGatewayWorld({
    deps: { metadata: one.metadata.shards, objects: one.store, keyring: one.keyring },
  });
  [ann, bob] = [await account('ann'), await account('bob')];
});
afterAll(async () => {
  await Promise.all([one.close(), two.close()]);
  expect([...one.faults(), ...two.faults()]).toEqual([]);
});

let testCount = 0;
let red: string;
let blue: string;
beforeEach(async () => {
  testCount++;
  [red, blue] = [`red-${testCount}`, `blue-${testCount}`];
  expect(await statusOf(ann.one, `PUT /${red}`)).toBe(200);
  // The second gateway has the bucket in its cache from now on.
  expect(await statusOf(ann.two, `PUT /${red}/k`, 'of ann')).toBe(200);
});

async function account(name: string): Promise<{ one: Access; two: Access }> {
  const keys = await one.makeAccount(name);
  return { one: { ...keys, endpoint: one.endpoint }, two: { ...keys, endpoint: two.endpoint } };
}

const ask = async (access: Access, line: string, body?: string): Promise<RawAnswer> => {
  const [method = '', path = ''] = line.split(' ');
  return send(access, { method, path, ...(body !== undefined && { body: Buffer.from(body) }) });
};
const statusOf = async (access: Access, line: string, body?: string) =>
  (await ask(access, line, body)).status;
const textOf = async (access: Access, line: string) => (await ask(access, line)).body.toString();

/** The steps of a rename, from the first to the last or only so many. */
async function rename(from: string, to: string, steps = 3): Promise<void> {
  const { metadata } = one;
  const names = { from: from as BucketName, to: to as BucketName };
  const found = await metadata.query('find-name', { name: names.from }, SYSTEM_SHARD);
  const { bucketId, homeShard } = must(found.record ?? undefined, 'a name');
  const { bucket } = await metadata.query('get-bucket', { bucketId }, homeShard);
  const { nameEpoch } = must(bucket ?? undefined, 'a bucket');
  const begun = await metadata.execute('begin-rename', { bucketId, ...names, nameEpoch }, SYSTEM_SHARD);
  if (begun.kind !== 'begun') throw new Error(begun.kind);
  if (steps === 1) return;
  const { kind: verdict } = await metadata.execute(
    'rename-bucket',
    { bucketId, ...names, nameEpoch },
    homeShard,
  );
  if (steps === 2) return;
  const end = { bucketId, ...names, itemId: begun.itemId, verdict };
  await metadata.execute('end-rename', end, SYSTEM_SHARD);
}

test('between the steps each gateway serves the one current name of the bucket', async () => {
  await rename(red, blue, 1);
  for (const access of [ann.one, ann.two]) {
    expect(await textOf(access, `GET /${red}/k`)).toBe('of ann');
    expect(await statusOf(access, `GET /${blue}/k`)).toBe(404);
  }
  expect(await statusOf(bob.one, `PUT /${blue}`)).toBe(409);
  await rename(red, blue, 2);
  for (const access of [ann.one, ann.two]) {
    expect(await statusOf(access, `GET /${red}/k`)).toBe(404);
    expect(await statusOf(access, `PUT /${red}/k`, 'x')).toBe(404);
    expect(await statusOf(access, `GET /${red}`)).toBe(404);
    expect(await textOf(access, `GET /${blue}/k`)).toBe('of ann');
  }
  expect(await statusOf(bob.one, `PUT /${red}`)).toBe(409);
});

test('the old name belongs to another account: the old owner is refused, and writes into neither bucket', async () => {
  await rename(red, blue);
  expect(await statusOf(bob.one, `PUT /${red}`)).toBe(200);
  // The body is on its way by the time that the home refuses: for the client to try again.
  expect(await statusOf(ann.two, `PUT /${red}/k`, 'stale')).toBe(503);
  expect(await statusOf(ann.two, `PUT /${red}/k`, 'again')).toBe(403);
  expect(await statusOf(ann.two, `GET /${red}/k`)).toBe(403);
  expect(await textOf(ann.two, `GET /${blue}/k`)).toBe('of ann');
  expect(await textOf(bob.one, `GET /${red}`)).not.toContain('<Key>');
});

test.each(['GET /RED/k', 'GET /RED', 'DELETE /RED/k', 'GET /RED?uploads'])(
  'a request without a body is judged by the new bucket at once: %s',
  async (line) => {
    await rename(red, blue);
    expect(await statusOf(bob.one, `PUT /${red}`)).toBe(200);
    expect(await statusOf(ann.two, line.replace('RED', red))).toBe(403);
    expect(await textOf(ann.two, `GET /${blue}/k`)).toBe('of ann');
  },
);

test('the new owner is admitted by a gateway that knows only the old bucket', async () => {
  await rename(red, blue);
  expect(await statusOf(bob.one, `PUT /${red}`)).toBe(200);
  expect(await statusOf(bob.two, `PUT /${red}/k`, 'of bob')).toBe(200);
  expect(await textOf(bob.one, `GET /${red}/k`)).toBe('of bob');
  expect(await textOf(ann.one, `GET /${blue}/k`)).toBe('of ann');
});

test('both belong to one owner: writes go to the bucket that has the name now', async () => {
  await rename(red, blue);
  expect(await statusOf(ann.one, `PUT /${red}`)).toBe(200);
  expect(await statusOf(ann.two, `GET /${red}/k`)).toBe(404);
  expect(await statusOf(ann.two, `PUT /${red}/k`, 'anew')).toBe(200);
  expect(await textOf(ann.two, `GET /${blue}/k`)).toBe('of ann');
  expect(await textOf(ann.one, `GET /${red}/k`)).toBe('anew');
});

test('a bucket renamed back is served by a gateway that has seen neither rename', async () => {
  await rename(red, blue);
  await rename(blue, red);
  expect(await textOf(ann.two, `GET /${red}/k`)).toBe('of ann');
  expect(await statusOf(ann.two, `GET /${blue}/k`)).toBe(404);
});
