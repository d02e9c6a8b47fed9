// Real processes: one storage node takes connections and answers nothing, and with another one gone nobody else can take the
// second copy of a new chunk. Writes are refused soon, and at once while it is known; the state is told; it is over when the
// node goes on.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { seededBytes } from '../support/clients/tree.ts';
import { startCluster, type TestCluster } from '../support/cluster/start-cluster.ts';
import { type RawRequest, send } from '../support/servers/raw-s3.ts';

const MiB = 1024 * 1024;
const WITHIN = { timeout: 180_000, interval: 300 };
/** On a machine that others use as well. */
const SLACK_MS = 3000;
const AT_ONCE_MS = LIMITS.abandonWaitMaxMs + SLACK_MS;

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await startCluster({ metadata: 1, gateways: 1, shards: 1 });
});
afterAll(() => cluster?.stop());

async function ask(wanted: RawRequest): Promise<{ status: number; tookMs: number; text: string }> {
  const beganMs = performance.now();
  const { status, body } = await send(must(cluster.gateways[0], 'a gateway'), wanted);
  return { status, tookMs: performance.now() - beganMs, text: body.toString() };
}

let count = 0;
const put = (sizeBytes = MiB) =>
  ask({ method: 'PUT', path: `/hung/${count++}`, body: seededBytes(`object ${count}`, sizeBytes) });

async function isTold(isRefused: boolean): Promise<boolean> {
  const { alarms } = await cluster.status();
  const { endpoint } = must(cluster.gateways[0], 'a gateway');
  const metrics = await (await fetch(`${endpoint}/metrics`)).text();
  const isAlarm = alarms.some((alarm) =>
    alarm.startsWith('new chunks are refused: of 2 storage nodes that they need 1 takes them'),
  );
  return isAlarm === isRefused && metrics.includes(`\nholdfast_chunk_writes_refused ${Number(isRefused)}\n`);
}

test('a storage node that hangs while it is needed', async () => {
  expect((await ask({ method: 'PUT', path: '/hung' })).status).toBe(200);
  expect((await put()).status).toBe(200);
  await expect.poll(() => isTold(false), WITHIN).toBe(true);
  await cluster.kill('storage-3');
  expect((await put()).status).toBe(200);

  cluster.pause('storage-2');
  try {
    // Of several chunks.
    const first = await Promise.all([put(4 * MiB), put(4 * MiB), put()]);
    for (const { status, tookMs } of first) {
      expect(status).toBe(503);
      expect(tookMs).toBeLessThan(LIMITS.copySilentMaxMs + LIMITS.copyLateMs + SLACK_MS);
    }
    // One of them may be the one that tries it.
    const next = await Promise.all(Array.from({ length: 6 }, () => put()));
    expect(next.map(({ status }) => status)).toEqual(next.map(() => 503));
    const slowCount = next.filter(({ tookMs }) => tookMs > AT_ONCE_MS).length;
    expect(slowCount).toBeLessThanOrEqual(1);
    const shown = (answers: { tookMs: number }[]) =>
      answers.map(({ tookMs }) => Math.round(tookMs)).join(' ');
    console.log(`refused after ${shown(first)} ms, then after ${shown(next)} ms`);
    await expect.poll(() => isTold(true), WITHIN).toBe(true);
  } finally {
    cluster.resume('storage-2');
  }
  await expect.poll(async () => (await put()).status, WITHIN).toBe(200);
  await expect.poll(() => isTold(false), WITHIN).toBe(true);
  await cluster.run('storage-3');
  await cluster.untilHealthy();
});
