// Metadata nodes that die, and that come and go, under gateways of two threads each. What accounts may have and have used, while nodes are killed: a quota whose
// buckets are in many shards. Many writers through two gateways, and the busiest metadata node killed among them, never get one
// byte beyond it (docs/quotas.md). What requests count for: a metadata node that is killed makes nothing count twice, a gateway
// that is killed loses no more than it had not written down, and one that ends in good order loses nothing (docs/accounts.md).
// Then by the operator's commands of docs/operations.md: a node that is lost for good gives its place to a new one, and one that
// works is drained, stopped and forgotten.
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { signRequest } from '../../src/cli/sign-request.ts';
import { seededBytes } from '../support/clients/tree.ts';
import { busiestNode } from '../support/cluster/endure.ts';
import { type KindOfRequest, prepareRequests } from '../support/cluster/every-request.ts';
import { freePort } from '../support/cluster/free-ports.ts';
import { sendAgain } from '../support/cluster/send-again.ts';
import { ETCD, startCluster, type TestCluster } from '../support/cluster/start-cluster.ts';
import { commandsOf } from '../support/run/runbook.ts';
import { createSeededRandom } from '../support/run/simulated.ts';
import { callIam } from '../support/servers/iam-api.ts';
import { endGracefully, ranToEnd } from '../support/servers/process-ends.ts';
import { type Access, pathOf, send } from '../support/servers/raw-s3.ts';
import { callOperator, createAccount } from '../support/servers/s3-api.ts';
import type { LogLine, TestServer } from '../support/servers/start-server.ts';

const WRITERS = 64;
const BUCKETS = 8;
const HARD_BYTES = 60_000;
const COUNTED = 'counted';
/** Until an answer comes that says what became of it, or until all is counted. */
const ANSWERED_WITHIN = { timeout: 120_000, interval: 500 };
const WITHIN = { timeout: 180_000, interval: 800 };
/** What cannot be answered is given up after 10 s (docs/reliability.md); the machine may be busy. */
const ANSWERED_MAX_MS = 15_000;
/** In the metadata, and in chunks. */
const BODIES = [seededBytes('small', 1000), seededBytes('large', 300_000)];

let cluster: TestCluster;
const started: ChildProcess[] = [];

beforeAll(async () => {
  const settings = { 'metering.flushInterval': '3s', 'gateway.threads': '2' };
  cluster = await startCluster({ metadata: 3, storage: 1, gateways: 2, shards: 4, settings });
});
afterAll(async () => {
  for (const child of started) await endGracefully(child);
  await cluster?.stop();
});

const gateway = (index: number) => must(cluster.gateways[index % 2], 'a gateway');
const operator = (index: number) => gateway(index) as unknown as TestServer;

test('a gateway process with two threads: both serve, neither takes a revoked key, and metrics are of both', {
  timeout: 120_000,
}, async () => {
  // Each is known by itself: one that starts ends the lease of who was there before it.
  const instances = async () => {
    const { members } = await cluster.status();
    return new Set(members.flatMap(({ role, instance }) => (role === 'gateway' ? [instance] : []))).size;
  };
  await expect.poll(instances, { timeout: 60_000 }).toBe(4);
  const account = await createAccount(operator(0));
  const as = { ...account, endpoint: gateway(0).endpoint };
  /** A connection to each thread: the kernel deals them out by chance. */
  const byThread = new Map<unknown, Agent>();
  let headCount = 0;
  while (byThread.size < 2) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const path = pathOf(COUNTED, `find-${headCount++}`);
    await send(as, { method: 'HEAD', path, agent });
    const isOurs = ({ event, key }: LogLine) => event === 'request' && pathOf(COUNTED, String(key)) === path;
    const thread = await vi.waitFor(
      async () => must((await cluster.logOf('gateway-1')).find(isOurs), 'its line').thread,
      ANSWERED_WITHIN,
    );
    if (byThread.has(thread)) agent.destroy();
    else byThread.set(thread, agent);
  }
  const agents = [...byThread.values()];
  const statuses = () =>
    Promise.all(agents.map(async (agent) => (await send(as, { method: 'GET', path: '/', agent })).status));
  expect(await statuses()).toEqual([200, 200]);
  for (const agent of agents) {
    const { body } = await send(as, { method: 'GET', path: '/metrics', agent });
    const counted = /^holdfast_s3_requests_total\{operation="HeadObject",outcome="client-error"\} (\d+)$/m;
    expect(counted.exec(String(body))?.[1]).toBe(String(headCount));
  }
  await callOperator(operator(1), 'DELETE', `/accounts/${account.id}/keys/${account.accessKey}`, {});
  // Revocations are in force everywhere when they are answered (R46).
  expect(await statuses()).toEqual([403, 403]);
  for (const agent of agents) agent.destroy();
});

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
    await expect.poll(ask, ANSWERED_WITHIN).toSatisfy((got) => got === 200 || got === 403);
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

/** One request of each kind to each bucket, and some to other services, through both gateways at once. */
async function askAll(
  account: Access,
  requests: readonly { bucket: string; all: readonly KindOfRequest[] }[],
): Promise<{ name: string; status: number; text: string; ms: number }[]> {
  const as = (index: number) => ({ ...account, endpoint: gateway(index).endpoint });
  const time = async (name: string, ask: () => Promise<{ status: number; text: string }>) => {
    const beganMs = performance.now();
    const answer = await ask().catch((error: Error) => ({ status: 0, text: error.message }));
    return { name, ...answer, ms: performance.now() - beganMs };
  };
  const ofS3: ReturnType<typeof time>[] = [];
  for (const [index, { all }] of requests.entries()) {
    for (const { name, ...wanted } of all) {
      const answered = time(name, async () => {
        const { status, body } = await send(as(index), wanted);
        return { status, text: body.toString('latin1') };
      });
      ofS3.push(answered);
      // It is on its way before the next one is signed: else the time of all signatures would count as waiting.
      await setImmediate();
    }
  }
  const iam = (index: number, Action: string) =>
    time(Action, async () => {
      const UserName = randomUUID();
      const named = Action === 'CreateUser' && { UserName };
      const { status, xml: text } = await callIam(as(index), { Action, Version: '2010-05-08', ...named });
      return { status, text };
    });
  const operate = (index: number, path: string) =>
    time(`operator API ${path}`, async () => {
      const wholePath = `/holdfast-admin/v1${path}`;
      const { endpoint, ...credentials } = gateway(index);
      const { host } = new URL(endpoint);
      const nowMs = Date.now();
      const signed = signRequest({ method: 'GET', host, path: wholePath, body: '', credentials, nowMs });
      const { host: _, ...headers } = signed;
      const answer = await fetch(endpoint + wholePath, { headers });
      return { status: answer.status, text: await answer.text() };
    });
  const others = [0, 1].flatMap((index) => [
    ...['ListUsers', 'GetAccountSummary', 'CreateUser'].map((action) => iam(index, action)),
    ...['/status', '/accounts', '/jobs'].map((path) => operate(index, path)),
  ]);
  return Promise.all([...ofS3, ...others]);
}

test('etcd and a primary away: each request of any kind ends within its bound, by its answer or by 503', {
  timeout: 400_000,
}, async () => {
  const account = await createAccount(operator(0));
  const access = { ...account, endpoint: gateway(0).endpoint };
  const names = Array.from({ length: BUCKETS }, (_, index) => `asked-${index}`);
  const prepared = await Promise.all(names.map((bucket) => prepareRequests(access, bucket, 4)));
  let round = 0;
  const ask = () => {
    const requests = prepared.map((of, at) => ({ bucket: names[at] ?? '', all: of(round) }));
    round++;
    return askAll(account, requests);
  };
  const askWhileAway = async (what: string) => {
    const answers = await ask();
    const isWrong = ({ status }: (typeof answers)[number]) =>
      status !== 503 && (status === 0 || status >= 500);
    expect(answers.filter(isWrong), what).toEqual([]);
    expect(
      answers.filter(({ ms }) => ms > ANSWERED_MAX_MS),
      what,
    ).toEqual([]);
    // Nobody takes the place of a primary while etcd is away.
    expect(answers.map(({ status }) => status)).toContain(503);
    const longest = Math.max(...answers.map(({ ms }) => ms));
    console.log(`${what}: ${answers.length} requests, the longest took ${Math.round(longest)} ms`);
  };
  const unwell = async () => (await ask()).filter(({ status }) => status === 0 || status >= 300);
  expect(await unwell()).toEqual([]);

  try {
    const killed = await busiestNode(cluster);
    await Promise.all([cluster.kill(ETCD), cluster.kill(killed)]);
    await askWhileAway('etcd and a primary killed');
    await Promise.all([cluster.run(ETCD), cluster.run(killed)]);
    await cluster.untilHealthy();

    const paused = await busiestNode(cluster);
    await cluster.kill(ETCD);
    for (const name of [paused, 'storage-1']) cluster.pause(name);
    await askWhileAway('etcd killed, a primary and a storage node stopped');
  } finally {
    await cluster.mend();
  }
  await expect.poll(async () => (await send(access, { method: 'GET', path: '/' })).status, WITHIN).toBe(200);
  expect(await unwell()).toEqual([]);
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
  await expect.poll(() => counted(1), ANSWERED_WITHIN).toBe(answered);

  const more = await ask(0, 30);
  await cluster.kill('gateway-1');
  const left = await counted(1);
  expect(left).toBeGreaterThanOrEqual(answered);
  expect(left).toBeLessThanOrEqual(answered + more);
  await cluster.run('gateway-1');

  const last = await ask(1, 30);
  await cluster.end('gateway-2');
  // The other one may be starting still.
  await expect.poll(() => counted(0).catch(() => 'no answer'), ANSWERED_WITHIN).toBe(left + last);
  await cluster.run('gateway-2');
});

async function ask(method: 'PUT' | 'GET', path: string, body?: Buffer): Promise<Buffer> {
  const answer = await sendAgain(() => must(cluster.gateways[0], 'a gateway'), {
    method,
    path,
    ...(body && { body }),
  });
  expect(answer.status).toBe(200);
  return answer.body;
}

/** Everything that was written before is read, and something is written. */
async function expectServing(turn: string): Promise<void> {
  for (const [index, body] of BODIES.entries()) {
    expect(await ask('GET', `/kept-${index}/object`)).toEqual(body);
    await ask('PUT', `/kept-${index}/${turn}`, body);
  }
}

/** As the document says; the node's folder is in the cluster's. Resolves with the node's id. */
async function addNode(name: string): Promise<string> {
  const [words] = commandsOf('Add a metadata node');
  const own: Record<string, string> = {
    '/var/lib/holdfast/metadata-1': join(cluster.folder, name),
    '192.0.2.14:7001': `127.0.0.1:${await freePort()}`,
    'rack-4': name,
  };
  const child = cluster.spawn(...must(words, 'the command').map((word) => own[word] ?? word));
  for (const stream of [child.stdout, child.stderr]) stream.resume();
  started.push(child);
  await expect.poll(() => nodeIdOf(name).catch(() => ''), WITHIN).not.toBe('');
  return nodeIdOf(name);
}

const nodeIdOf = async (name: string): Promise<string> =>
  JSON.parse(await readFile(join(cluster.folder, name, 'node.json'), 'utf8')).nodeId;

/** Nothing is wrong, and each shard has its voters on these nodes alone. */
async function untilVotersAre(...nodeIds: string[]): Promise<void> {
  const wanted = nodeIds.toSorted();
  const find = async () => {
    const { shards, alarms } = await cluster.status();
    return {
      voters: shards.map(({ voters }) => voters.map(({ nodeId }) => nodeId).sort()),
      alarms,
    };
  };
  await expect.poll(find, WITHIN).toEqual({ voters: Array(4).fill(wanted), alarms: [] });
}

async function run(change: 'drain' | 'remove', nodeId: string): Promise<string> {
  const { code, output } = await cluster.command('cluster', change, nodeId.slice(0, 8));
  return code === 0 ? output : `refused: ${output}`;
}

test('a node that is lost for good is replaced by a new one', async () => {
  for (const [index, body] of BODIES.entries()) {
    await ask('PUT', `/kept-${index}`);
    await ask('PUT', `/kept-${index}/object`, body);
  }
  const [first, second, lost] = await Promise.all(
    ['metadata-1', 'metadata-2', 'metadata-3'].map((name) => nodeIdOf(name)),
  );
  await cluster.kill('metadata-3');
  await rm(join(cluster.folder, 'metadata-3'), { recursive: true });
  await expect
    .poll(() => run('remove', must(lost, 'an id')), WITHIN)
    .toContain('2 other metadata nodes are there');
  const fourth = await addNode('metadata-4');
  await expect.poll(() => run('remove', must(lost, 'an id')), WITHIN).toContain('is removed: 4 shards');
  await untilVotersAre(must(first, 'an id'), must(second, 'an id'), fourth);
  await expectServing('after-loss');
});

test('a working node is drained, stopped and removed', async () => {
  const [leaving, staying] = [await nodeIdOf('metadata-1'), await nodeIdOf('metadata-2')];
  expect(await run('drain', leaving)).toContain('2 other metadata nodes are there');
  const [fourth, fifth] = [await nodeIdOf('metadata-4'), await addNode('metadata-5')];
  await expect.poll(() => run('drain', leaving), WITHIN).toContain('drains');
  await untilVotersAre(staying, fourth, fifth);
  const { leavingNodes } = await cluster.status();
  expect(leavingNodes).toEqual([{ nodeId: leaving, leave: 'draining', isThere: true, voterCount: 0 }]);
  expect(await run('remove', leaving)).toContain('refused: ');
  await cluster.end('metadata-1');
  await expect.poll(() => run('remove', leaving), WITHIN).toContain('is removed: no shard');
  // With the folder that it had it is the node that was removed.
  const again = cluster.spawn('metadata', '--data-dir', join(cluster.folder, 'metadata-1'));
  started.push(again);
  const refused = await ranToEnd(again, 'the node that was removed');
  expect(refused.code).toBe(1);
  expect(refused.output).toContain('which was removed from the cluster: `holdfast cluster undrain');
  await untilVotersAre(staying, fourth, fifth);
  expect((await cluster.status()).leavingNodes).toEqual([]);
  await expectServing('after-drain');
});
