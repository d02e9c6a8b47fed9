// The error for a client when a shard does not do what is asked: try again, and whether anything may have happened.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { type RawAnswer, send } from '../../../tests/support/servers/raw-s3.ts';
import type { MetadataPort, Reply } from '../../ports/metadata/port.ts';

let world: GatewayWorld;
let unready: GatewayWorld;
/** What the shards say of commands and queries about objects; undefined: what they are asked for is done. */
let said: Reply<never> | undefined;
let ask: (line: string) => Promise<RawAnswer>;

beforeAll(async () => {
  world = await openGatewayWorld();
  const { shards } = world.metadata;
  const metadata: MetadataPort = {
    shardCount: shards.shardCount,
    execute: async (envelope, ...rest) => said ?? shards.execute(envelope, ...rest),
    query: async (envelope, name, query) =>
      (name === 'get-version' || name === 'list-names' ? said : undefined) ??
      shards.query(envelope, name, query),
  };
  unready = await openGatewayWorld({ deps: { metadata, objects: world.store, keyring: world.keyring } });
  const owner = { ...(await world.makeAccount('owner')), endpoint: unready.endpoint };
  ask = (line) => {
    const [method = '', path = ''] = line.split(' ');
    return send(owner, {
      method,
      path,
      ...(path.endsWith('key') && method === 'PUT' && { body: Buffer.from('x') }),
    });
  };
  expect((await ask('PUT /bucket')).status).toBe(200);
});
afterAll(() => Promise.all([world.close(), unready.close()]));

describe.each<[Reply<never>, number, string]>([
  [{ kind: 'busy' }, 503, 'SlowDown'],
  [{ kind: 'full' }, 507, 'InsufficientStorage'],
  [{ kind: 'unknown' }, 503, 'ServiceUnavailable'],
])('%j is %i %s', (reply, status, code) => {
  test.each(['GET /', 'GET /bucket/key', 'PUT /bucket/key', 'DELETE /bucket/key', 'PUT /another'])(
    '%s',
    async (line) => {
      said = reply;
      const answer = await ask(line);
      expect([answer.status, /<Code>(\w+)/.exec(answer.body.toString())?.[1]]).toEqual([status, code]);
      said = undefined;
      expect((await ask('GET /bucket/key')).status).toBe(404);
    },
  );
});
