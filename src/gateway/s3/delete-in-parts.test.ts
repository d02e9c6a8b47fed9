// DeleteObjects in several commits: the shard takes the first of the items only, or the keys are long. The answer is one.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { send } from '../../../tests/support/servers/raw-s3.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';

const ITEMS_MAX = 3;

let shards: GatewayWorld;
let world: GatewayWorld;
let commits = 0;
let commitsMax: number;
/** Bytes of the keys of each commit. */
let asked: number[] = [];

/** Its shards take few items of a delete, and are busy from one commit on. */
function takingFew(metadata: MetadataPort): MetadataPort {
  return {
    shardCount: metadata.shardCount,
    query: (envelope, name, query) => metadata.query(envelope, name, query),
    async execute(envelope, name, command) {
      if (name !== 'delete-versions') return metadata.execute(envelope, name, command);
      if (++commits > commitsMax) return { kind: 'busy' };
      const { items, ...rest } = command as { items: { key: string }[] };
      asked.push(items.reduce((sum, { key }) => sum + Buffer.byteLength(key), 0));
      return metadata.execute(envelope, name, { ...rest, items: items.slice(0, ITEMS_MAX) } as never);
    },
  };
}

beforeAll(async () => {
  shards = await openGatewayWorld();
  const { store, keyring, metadata } = shards;
  world = await openGatewayWorld({
    deps: { metadata: takingFew(metadata.shards), objects: store, keyring },
  });
  await ask('PUT /bucket');
});
afterAll(async () => {
  await Promise.all([world.close(), shards.close()]);
});

async function ask(line: string, body = '') {
  const [method = '', path = ''] = line.split(' ');
  const access = { ...shards.root, endpoint: world.endpoint };
  const headers = { 'content-md5': createHash('md5').update(body).digest('base64') };
  return send(access, { method, path, body: Buffer.from(body), headers });
}

async function removeTen() {
  const keys = Array.from({ length: 10 }, (_, at) => `k${at}`);
  for (const key of keys) await ask(`PUT /bucket/${key}`, 'x');
  commits = 0;
  const list = keys.map((key) => `<Object><Key>${key}</Key></Object>`).join('');
  const answer = await ask('POST /bucket?delete', `<Delete>${list}</Delete>`);
  const told = [...String(answer.body).matchAll(/<(Deleted|Error)><Key>([^<]*)/g)].map(
    ([, kind, key]) => `${kind} ${key}`,
  );
  return { status: answer.status, told, keys, text: String(answer.body) };
}

test('reports all keys in the requested order', async () => {
  commitsMax = Number.POSITIVE_INFINITY;
  const { status, told, keys } = await removeTen();
  expect(status).toBe(200);
  expect(told).toEqual(keys.map((key) => `Deleted ${key}`));
  expect(commits).toBe(4);
});

test('reports the refusal of a later commit key by key', async () => {
  commitsMax = 2;
  const { status, told, keys, text } = await removeTen();
  expect(status).toBe(200);
  expect(told).toEqual(keys.map((key, at) => `${at < 2 * ITEMS_MAX ? 'Deleted' : 'Error'} ${key}`));
  expect(text).toContain('<Code>SlowDown</Code>');
});

test('deletes nothing when the first commit is refused, and the request fails', async () => {
  commitsMax = 0;
  expect(await removeTen()).toMatchObject({ status: 503, told: [] });
});

test('long keys are deleted some at a time, so that no commit keeps the thread', async () => {
  commitsMax = Number.POSITIVE_INFINITY;
  asked = [];
  const keys = Array.from({ length: 1000 }, (_, at) => `${'ä'.repeat(450)}${at}`);
  const list = keys.map((key) => `<Object><Key>${key}</Key></Object>`).join('');
  const answer = await ask('POST /bucket?delete', `<Delete>${list}</Delete>`);
  const deleted = [...String(answer.body).matchAll(/<Deleted><Key>([^<]*)/g)].map(([, key]) => key);
  expect(deleted).toEqual(keys);
  expect(Math.max(...asked)).toBeLessThanOrEqual(LIMITS.deleteKeysBytesMax);
  expect(Math.max(...asked)).toBeGreaterThan(LIMITS.deleteKeysBytesMax / 2);
});

test('so are keys of a bucket with versions', async () => {
  commitsMax = Number.POSITIVE_INFINITY;
  await ask('PUT /versions');
  const enabled = '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>';
  expect((await ask('PUT /versions?versioning', enabled)).status).toBe(200);
  // From now on the gateway knows of it.
  await ask('DELETE /versions/a');
  asked = [];
  const keys = Array.from({ length: 1000 }, (_, at) => `${1000 + at}`);
  const list = keys.map((key) => `<Object><Key>${key}</Key></Object>`).join('');
  const answer = await ask('POST /versions?delete', `<Delete>${list}</Delete>`);
  const deleted = [...String(answer.body).matchAll(/<Deleted><Key>([^<]*)/g)].map(([, key]) => key);
  expect(deleted).toEqual(keys);
  expect(Math.max(...asked)).toBe(4 * LIMITS.deleteVersionedKeysMax);
});
