// What accounts may have and have used, in a cluster. A quota whose buckets are in many shards: many writers through two
// gateways, and the busiest metadata node killed among them, never get one byte beyond it (docs/quotas.md). What requests count
// for: a metadata node that is killed makes nothing count twice, a gateway that is killed loses no more than it had not written
// down, and one that ends in good order loses nothing (docs/accounts.md).
import { afterAll, beforeAll, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { busiestNode } from '../support/cluster/endure.ts';
import { startCluster, type TestCluster } from '../support/cluster/start-cluster.ts';
import { createSeededRandom } from '../support/run/simulated.ts';
import { pathOf, send } from '../support/servers/raw-s3.ts';
import { callOperator, createAccount } from '../support/servers/s3-api.ts';
import type { TestServer } from '../support/servers/start-server.ts';

const WRITERS = 64;
const BUCKETS = 8;
const HARD_BYTES = 60_000;
const COUNTED = 'counted';
/** Until an answer comes that says what became of it, or until all is counted. */
const WITHIN = { timeout: 120_000, interval: 500 };

let cluster: TestCluster;
beforeAll(async () => {
  const settings = { 'metering.flushInterval': '3s' };
  cluster = await startCluster({ metadata: 3, storage: 1, gateways: 2, shards: 4, settings });
}, 300_000);
afterAll(() => cluster?.stop());

const gateway = (index: number) => must(cluster.gateways[index % 2], 'a gateway');
const operator = (index: number) => gateway(index) as unknown as TestServer;

test('a quota: 64 writers, and a metadata node killed among them', { timeout: 300_000 }, async () => {
  const account = await createAccount(operator(0));
  const as = (index: number) => ({ ...account, endpoint: gateway(index).endpoint });
  const buckets = Array.from({ length: BUCKETS }, (_, index) => `quota-${index}`);
  for (const bucket of buckets)
    expect((await send(as(0), { method: 'PUT', path: `/${bucket}` })).status).toBe(200);
  const path = `/accounts/${account.id}/quota`;
  await callOperator(operator(0), 'PUT', path, { hardBytes: HARD_BYTES });

  /** The same object again and again, until it is stored or refused for good. */
  async function put(index: number, key: string, sizeBytes: number): Promise<number> {
    const target = pathOf(must(buckets[index % BUCKETS], 'a bucket'), key);
    const body = Buffer.alloc(sizeBytes, 'x');
    let status = 0;
    const ask = async () => {
      ({ status } = await send(as(index), { method: 'PUT', path: target, body }).catch(() => ({
        status: 0,
      })));
      return status;
    };
    await expect.poll(ask, WITHIN).toSatisfy((got) => got === 200 || got === 403);
    return status;
  }

  const random = createSeededRandom(11);
  const victim = await busiestNode(cluster);
  const writing = Promise.all(
    Array.from({ length: WRITERS }, async (_, writer) => {
      const statuses: number[] = [];
      for (let turn = 0; turn < 4; turn++) {
        const [chance = 0] = random.bytes(1);
        statuses.push(await put(writer + turn, `${writer}-${turn}`, 100 + 2 * chance));
      }
      return statuses;
    }),
  );
  await cluster.kill(victim);
  await cluster.run(victim);
  const statuses = new Set((await writing).flat());
  expect(statuses).toEqual(new Set([200, 403]));
  await cluster.untilHealthy();

  const { heldBytes } = (await callOperator(operator(0), 'PUT', path, { hardBytes: HARD_BYTES })) as {
    heldBytes: number;
  };
  expect(heldBytes).toBeLessThanOrEqual(HARD_BYTES);
  const left = HARD_BYTES - heldBytes;
  if (left > 0) expect(await put(5, 'last', left)).toBe(200);
  expect(await put(6, 'beyond', 1)).toBe(403);
  let listed = 0;
  for (const bucket of buckets) {
    const answer = await send(as(0), { method: 'GET', path: `/${bucket}` });
    for (const [, size] of answer.body.toString().matchAll(/<Size>(\d+)<\/Size>/g)) listed += Number(size);
  }
  expect(listed).toBe(HARD_BYTES);
});

test('what requests count for: nothing counts twice, and a crash loses at most what was not written down', {
  timeout: 400_000,
}, async () => {
  const account = await createAccount(operator(0));
  const as = (index: number) => ({ ...account, endpoint: gateway(index).endpoint });
  expect((await send(as(0), { method: 'PUT', path: `/${COUNTED}` })).status).toBe(200);

  async function counted(index: number): Promise<number> {
    const asked = { account: account.id, bucket: COUNTED };
    const { days } = (await callOperator(operator(index), 'POST', '/usage/find', asked)) as {
      days: { headCalls: number }[];
    };
    return days.reduce((sum, { headCalls }) => sum + headCalls, 0);
  }
  /** How many of so many requests were answered. Answers of 500 and more are no calls. */
  async function ask(index: number, count: number): Promise<number> {
    let answered = 0;
    for (let at = 0; at < count; at++) {
      const { status } = await send(as(index), { method: 'HEAD', path: pathOf(COUNTED, `k${at}`) });
      expect(status === 404 || status >= 500, `status ${status}`).toBe(true);
      if (status === 404) answered++;
    }
    return answered;
  }

  // Flushes go on while the primary changes.
  const victim = await busiestNode(cluster);
  const asking = Promise.all([ask(0, 150), ask(1, 150)]);
  await cluster.kill(victim);
  await cluster.run(victim);
  const answered = (await asking).reduce((sum, count) => sum + count, 0);
  await cluster.untilHealthy();
  await expect.poll(() => counted(1), WITHIN).toBe(answered);

  const more = await ask(0, 30);
  await cluster.kill('gateway-1');
  const left = await counted(1);
  expect(left).toBeGreaterThanOrEqual(answered);
  expect(left).toBeLessThanOrEqual(answered + more);
  await cluster.run('gateway-1');

  const last = await ask(1, 30);
  await cluster.end('gateway-2');
  // The other one may be starting still.
  await expect.poll(() => counted(0).catch(() => 'no answer'), WITHIN).toBe(left + last);
  await cluster.run('gateway-2');
});
