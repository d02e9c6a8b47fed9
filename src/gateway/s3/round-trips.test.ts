// How many questions a request asks of shards and of the chunk store: the table of design "Round trips". In a cluster each
// is a round trip, so one more is a decision and not an accident.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { CHUNK_BYTES } from '../../../tests/support/objects/object-world.ts';
import { type RawAnswer, send } from '../../../tests/support/servers/raw-s3.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';

const SMALL = Buffer.alloc(100, 1);
const LARGE = Buffer.alloc(2 * CHUNK_BYTES, 2);

let shards: GatewayWorld;
let asked: string[] = [];
let world: GatewayWorld;

/** The feed asks each second, and uses of keys are noted a second after the first of them, whatever requests do meanwhile. */
const BY_THE_WAY = ['identity-changes', 'note-key-uses'];

function note(name: string): void {
  if (!BY_THE_WAY.includes(name)) asked.push(name);
}

function watched(metadata: MetadataPort): MetadataPort {
  return {
    shardCount: metadata.shardCount,
    execute(envelope, name, command) {
      note(name);
      return metadata.execute(envelope, name, command);
    },
    query(envelope, name, query) {
      note(name);
      return metadata.query(envelope, name, query);
    },
  };
}

/** As the product wires it: the data path learns from all answers. */
function asGatewaysAsk(): MetadataPort {
  return shards.times.learnFrom(watched(shards.metadata.shards));
}

beforeAll(async () => {
  shards = await openGatewayWorld();
  const { chunks, store, keyring } = shards;
  const put = chunks.put.bind(chunks);
  const get = chunks.get.bind(chunks);
  chunks.put = (...chunk) => {
    note('chunk put');
    return put(...chunk);
  };
  chunks.get = (...chunk) => {
    note('chunk get');
    return get(...chunk);
  };
  world = await openGatewayWorld({
    deps: { metadata: asGatewaysAsk(), objects: store, keyring },
  });
  await ask('PUT /bucket');
});
afterAll(async () => {
  await Promise.all([world.close(), shards.close()]);
});
beforeEach(async () => {
  await ask('PUT /bucket/small', SMALL);
  await ask('PUT /bucket/large', LARGE);
  asked = [];
});

async function ask(line: string, body?: Buffer, headers: Record<string, string> = {}): Promise<RawAnswer> {
  const [method = '', path = ''] = line.split(' ');
  const access = { ...shards.root, endpoint: world.endpoint };
  const answer = await send(access, { method, path, headers, ...(body && { body }) });
  expect(answer.status, `${line}: ${answer.body}`).toBeLessThan(300);
  return answer;
}

test.each<[string, Buffer | undefined, string[]]>([
  ['PUT /bucket/small', SMALL, ['commit-version']],
  ['PUT /bucket/large', LARGE, ['chunk put', 'chunk put', 'commit-version']],
  ['GET /bucket/small', undefined, ['get-version']],
  ['GET /bucket/large', undefined, ['get-version', 'chunk get', 'chunk get']],
  ['HEAD /bucket/large', undefined, ['get-version']],
  ['GET /bucket?list-type=2&max-keys=1000', undefined, ['list-objects']],
  ['DELETE /bucket/small', undefined, ['delete-versions']],
])('%s', async (line, body, expected) => {
  await ask(line, body);
  expect(asked).toEqual(expected);
});

test('a part reads its upload, a copy its source', async () => {
  const { body } = await ask('POST /bucket/parts?uploads');
  const uploadId = /<UploadId>([^<]+)/.exec(String(body))?.[1];
  asked = [];
  await ask(`PUT /bucket/parts?partNumber=1&uploadId=${uploadId}`, SMALL);
  expect(asked).toEqual(['get-upload', 'commit-part']);
  asked = [];
  await ask('PUT /bucket/copy', undefined, { 'x-amz-copy-source': '/bucket/small' });
  expect(asked).toEqual(['get-version', 'commit-version']);
});

test('a composition reads all components at once, an append its object only the first time', async () => {
  const components = ['small', 'large', 'small'].map((key) => `<Component><Key>${key}</Key></Component>`);
  await ask(
    'PUT /bucket/whole?compose',
    Buffer.from(`<ComposeRequest>${components.join('')}</ComposeRequest>`),
  );
  expect(asked).toEqual(['get-versions', 'compose-version']);
  asked = [];
  await ask('PUT /bucket/whole?append', SMALL);
  await ask('PUT /bucket/whole?append', SMALL);
  expect(asked).toEqual(['get-version', 'append-version', 'append-version']);
});

test('a gateway without a recent time of a shard asks for it first (R24)', async () => {
  shards.metadata.clock.advance(LIMITS.shardTimeKeptMs - 1);
  await ask('PUT /bucket/small', SMALL);
  expect(asked).toEqual(['commit-version']);
  asked = [];
  shards.metadata.clock.advance(LIMITS.shardTimeKeptMs);
  await ask('PUT /bucket/small', SMALL);
  expect(asked).toEqual(['get-blobs', 'commit-version']);
});

test('every answer of a shard carries its time', async () => {
  shards.metadata.clock.advance(LIMITS.shardTimeKeptMs);
  await ask('GET /bucket/small');
  await ask('PUT /bucket/small', SMALL);
  expect(asked).toEqual(['get-version', 'commit-version']);
});

test('a new gateway reads identity, bucket and shard first', async () => {
  const { store, keyring } = shards;
  shards.metadata.clock.advance(LIMITS.shardTimeKeptMs);
  const fresh = await openGatewayWorld({ deps: { metadata: asGatewaysAsk(), objects: store, keyring } });
  await send({ ...shards.root, endpoint: fresh.endpoint }, { method: 'GET', path: '/bucket/small' });
  expect(asked).toEqual(['get-access-key', 'find-name', 'get-bucket', 'get-version']);
  asked = [];
  await send(
    { ...shards.root, endpoint: fresh.endpoint },
    { method: 'PUT', path: '/bucket/small', body: SMALL },
  );
  expect(asked).toEqual(['commit-version']);
  await fresh.close();
});
