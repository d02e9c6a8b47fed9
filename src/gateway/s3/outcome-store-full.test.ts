// Requests of which an outcome would be kept, where as much is kept of earlier ones as may be: 503 SlowDown with nothing
// done, over HTTP. What was kept before is answered, and what leaves nothing behind goes on.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type GatewayWorld, openGatewayWorld } from '../../../tests/support/objects/gateway-world.ts';
import { send } from '../../../tests/support/servers/raw-s3.ts';
import { parseXml, textOf } from '../../base/xml/parse-xml.ts';
import { counterKey } from '../../metadata/engine/counters.ts';
import { COUNTER } from '../../metadata/schema/counters.ts';
import { LIMITS } from '../../types/limits.ts';

let world: GatewayWorld;
/** Reasons for which requests were counted as shed. */
let shed: unknown[] = [];
beforeAll(async () => {
  const count = (name: string, labels?: object) => {
    if (name === 'holdfast_requests_shed_total') shed.push(labels);
  };
  world = await openGatewayWorld({ deps: { telemetry: { count, observe() {}, gauge() {}, gaugeAll() {} } } });
});
beforeEach(() => {
  shed = [];
});
afterAll(async () => {
  await world.close();
  expect(world.faults()).toEqual([]);
});

const COMPOSE = '<ComposeRequest><Component><Key>a/1</Key></Component></ComposeRequest>';
const REQUESTS: [name: string, line: string, headers: Record<string, string>, body?: string][] = [
  ['MOVE', 'MOVE a/1', { destination: 'c' }],
  ['MOVE of a prefix', 'MOVE a/', { destination: 'b/', 'x-svc-prefix': 'true' }],
  ['compose', 'PUT whole?compose', {}, COMPOSE],
  ['append', 'PUT a/2?append', {}, 'more'],
  ['append by its offset', 'PUT a/2', { 'x-amz-write-offset-bytes': '1' }, 'more'],
];

const TOKENS_MAX = LIMITS.storedOutcomesPerAccountBytesMax;

/** A bucket with two objects, of an account of which so much is kept in every shard. */
async function setUp(bucket: string, kept: { tokenBytes?: number; tokenlessBytes?: number }) {
  const owner = await world.makeAccount(`owner of ${bucket}`);
  const { kv, shards } = world.metadata;
  const counters: [name: string, bytes: number][] = [
    [COUNTER.accountOutcomeBytes(owner.accountId), kept.tokenBytes ?? 0],
    [COUNTER.accountTokenlessBytes(owner.accountId), kept.tokenlessBytes ?? 0],
  ];
  for (let shard = 0; shard < shards.shardCount; shard++) {
    for (const [name, bytes] of counters) {
      const value = Buffer.alloc(8);
      value.writeDoubleBE(bytes);
      await kv.commit([{ column: 'rows', key: counterKey(shard, name), value }]);
    }
  }
  const ask = async (line: string, headers: Record<string, string> = {}, text?: string) => {
    const [method = '', path = ''] = line.split(' ');
    const body = text === undefined ? {} : { body: Buffer.from(text) };
    const to = { ...owner, endpoint: world.endpoint };
    return send(to, { method, path: `/${bucket}${path === '' ? '' : `/${path}`}`, headers, ...body });
  };
  expect((await ask('PUT')).status).toBe(200);
  for (const key of ['a/1', 'a/2']) expect((await ask(`PUT ${key}`, {}, 'x')).status).toBe(200);
  const listed = async () => (await ask('GET ?list-type=2')).body.toString().match(/<(Key|Size)>.*?<\/\1>/g);
  return { ask, listed };
}

const withToken = (headers: Record<string, string>, token: string) => ({
  ...headers,
  'x-svc-idempotency-token': token,
});

function expectFull(answer: { status: number; body: Buffer }): void {
  const error = parseXml(answer.body, { depthMax: 4 });
  expect([answer.status, textOf(error, 'Code')]).toEqual([503, 'SlowDown']);
  expect(textOf(error, 'Message')).toContain('Nothing was done');
}

test.each(REQUESTS)('%s', async (name, line, headers, body) => {
  const bucket = `full-${REQUESTS.findIndex(([each]) => each === name)}`;
  const { ask, listed } = await setUp(bucket, { tokenBytes: TOKENS_MAX - 1 });
  const before = await listed();
  expect(before).toHaveLength(4);
  expectFull(await ask(line, withToken(headers, 'once'), body));
  expect(await listed()).toEqual(before);
  const plain = await ask(line, headers, body);
  expect(plain.status).toBe(200);
  expect(shed).toEqual([{ reason: 'kept' }]);
  expect(await listed()).not.toEqual(before);
});

test('MOVE of a prefix without a token is refused when its store is full; one with a token continues', async () => {
  const tokenlessBytes = LIMITS.tokenlessOutcomesPerAccountBytesMax - 1;
  const { ask, listed } = await setUp('full-tokenless', { tokenlessBytes });
  const before = await listed();
  const headers = { destination: 'b/', 'x-svc-prefix': 'true' };
  expectFull(await ask('MOVE a/', headers));
  expect(await listed()).toEqual(before);
  expect((await ask('MOVE a/', withToken(headers, 'once'))).status).toBe(200);
  expect(await listed()).not.toEqual(before);
  expect(shed).toEqual([{ reason: 'kept' }]);
});

test('stored outcomes are returned again, and another account has room of its own', async () => {
  const { ask } = await setUp('nearly-full', { tokenBytes: TOKENS_MAX - 400 });
  const first = withToken({ destination: 'c' }, 'first');
  const done = await ask('MOVE a/1', first);
  expect(done.status).toBe(200);
  expect((await ask('MOVE a/2', withToken({ destination: 'd' }, 'second'))).status).toBe(503);
  const again = await ask('MOVE a/1', first);
  expect([again.status, again.body.toString()]).toEqual([200, done.body.toString()]);
  const other = await setUp('of-another', {});
  expect((await other.ask('MOVE a/1', first)).status).toBe(200);
});
