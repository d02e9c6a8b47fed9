// What requests count for survives in a cluster: a metadata node that is killed makes nothing count twice, a gateway that is
// killed loses no more than it had not written down, and one that ends in good order loses nothing (docs/accounts.md).
import { afterAll, beforeAll, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { busiestNode } from '../support/cluster/endure.ts';
import { startCluster, type TestCluster } from '../support/cluster/start-cluster.ts';
import { pathOf, send } from '../support/servers/raw-s3.ts';
import { callOperator, createAccount } from '../support/servers/s3-api.ts';
import type { TestServer } from '../support/servers/start-server.ts';

const WITHIN = { timeout: 120_000, interval: 500 };
const BUCKET = 'counted';

let cluster: TestCluster;
beforeAll(async () => {
  const settings = { 'metering.flushInterval': '3s' };
  cluster = await startCluster({ metadata: 3, storage: 1, gateways: 2, shards: 2, settings });
}, 300_000);
afterAll(() => cluster?.stop());

const gateway = (index: number) => must(cluster.gateways[index], 'a gateway');

test('nothing counts twice, and a crash loses at most what was not written down', {
  timeout: 400_000,
}, async () => {
  const account = await createAccount(gateway(0) as unknown as TestServer);
  const as = (index: number) => ({ ...account, endpoint: gateway(index).endpoint });
  expect((await send(as(0), { method: 'PUT', path: `/${BUCKET}` })).status).toBe(200);

  async function counted(index: number): Promise<number> {
    const asked = { account: account.id, bucket: BUCKET };
    const { days } = (await callOperator(
      gateway(index) as unknown as TestServer,
      'POST',
      '/usage/find',
      asked,
    )) as {
      days: { headCalls: number }[];
    };
    return days.reduce((sum, { headCalls }) => sum + headCalls, 0);
  }
  /** How many of so many requests were answered. Answers of 500 and more are no calls. */
  async function ask(index: number, count: number): Promise<number> {
    let answered = 0;
    for (let at = 0; at < count; at++) {
      const { status } = await send(as(index), { method: 'HEAD', path: pathOf(BUCKET, `k${at}`) });
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
