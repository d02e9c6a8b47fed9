// A single node with two gateway threads and two metadata threads, as a process: clients reach both, both refuse what was revoked, figures are of both,
// both drain, and a kill loses nothing that was acknowledged.
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { signRequest } from '../../src/cli/sign-request.ts';
import { answerOf, openRequest, send } from '../support/servers/raw-s3.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const MiB = 1024 * 1024;
const THREADS = 2;
const folder = mkdtempSync(join(tmpdir(), 'holdfast-threads-'));
const dataDir = join(folder, 'data');
const agents: Agent[] = [];
/** Of all tests, until one ends it. */
let server: TestServer | undefined;
let findCount = 0;

afterEach(() => {
  for (const agent of agents.splice(0)) agent.destroy();
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The one that runs, or else a new one with the same data. */
async function threaded(): Promise<TestServer> {
  if (server !== undefined) return server;
  server = await startServer({
    child: true,
    dataDir,
    settings: { 'gateway.threads': String(THREADS), 'metadata.threads': '2' },
  });
  void server.exited.then(() => {
    server = undefined;
  });
  await send(server, { method: 'PUT', path: '/threads' });
  return server;
}

/** A connection of its own. */
function connection(): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  agents.push(agent);
  return agent;
}

/** The log says of each request which thread has answered it. */
async function threadOf(running: TestServer, key: string): Promise<unknown> {
  for (;;) {
    const line = running.logs().find((candidate) => candidate.event === 'request' && candidate.key === key);
    if (line !== undefined) return line.thread;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Connections by the thread that serves them, one at least of each: the kernel deals them out by chance. */
async function connectToAll(running: TestServer): Promise<Map<unknown, Agent>> {
  const byThread = new Map<unknown, Agent>();
  while (byThread.size < THREADS) {
    const agent = connection();
    const key = `find-${findCount++}`;
    await send(running, { method: 'HEAD', path: `/threads/${key}`, agent });
    byThread.set(await threadOf(running, key), agent);
  }
  return byThread;
}

async function operate(
  running: TestServer,
  wanted: { method: string; path: string; body?: object; agent?: Agent },
) {
  const path = `/holdfast-admin/v1${wanted.path}`;
  const body = wanted.body === undefined ? '' : JSON.stringify(wanted.body);
  const { host } = new URL(running.endpoint);
  const { method } = wanted;
  const headers = signRequest({ method, host, path, body, credentials: running, nowMs: Date.now() });
  const answer = await fetch(running.endpoint + path, { method, headers, ...(body !== '' && { body }) });
  const text = await answer.text();
  expect([text, answer.status < 300]).toEqual([text, true]);
  return text === '' ? undefined : JSON.parse(text);
}

test('objects of all sizes are written by one thread and read by the other, and figures are of both', async () => {
  const running = await threaded();
  const byThread = await connectToAll(running);
  const [one, other] = [...byThread.values()];
  for (const sizeBytes of [10, 100_000, 5 * MiB]) {
    const path = `/threads/of-${sizeBytes}`;
    const body = Buffer.alloc(sizeBytes, `of ${sizeBytes} `);
    expect((await send(running, { method: 'PUT', path, body, ...(one && { agent: one }) })).status).toBe(200);
    const read = await send(running, { method: 'GET', path, ...(other && { agent: other }) });
    expect(read.body.equals(body)).toBe(true);
  }
  // Configuration that one thread has kept in memory is that of the bucket as the other one changes it (R45).
  const policy = { method: 'PUT', path: '/threads?versioning' } as const;
  const enabled = Buffer.from('<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>');
  await send(running, { ...policy, body: enabled, ...(one && { agent: one }) });
  const put = { method: 'PUT', path: '/threads/versioned', body: Buffer.from('a') };
  const written = await send(running, { ...put, ...(other && { agent: other }) });
  expect(written.headers['x-amz-version-id']).toMatch(/.{10}/);

  const scraped = await Promise.all(
    [...byThread.values()].map(async (agent) => {
      const { body } = await send(running, { method: 'GET', path: '/metrics', agent });
      return /^holdfast_s3_requests_total\{operation="HeadObject",outcome="client-error"\} (\d+)$/m.exec(
        String(body),
      )?.[1];
    }),
  );
  const headCount = running.logs().filter(({ operation }) => operation === 'HeadObject').length;
  expect(headCount).toBeGreaterThanOrEqual(THREADS);
  expect(scraped).toEqual(scraped.map(() => String(headCount)));
  const status = await operate(running, { method: 'GET', path: '/status' });
  expect(status).toMatchObject({
    endpoint: running.endpoint,
    objectCount: 4,
    bucketCount: 1,
    lastErrors: [],
  });
});

test('a key that was revoked is refused by all threads once the revocation is answered', async () => {
  const running = await threaded();
  const account = { name: 'guest', email: 'guest@example.org' };
  const key = await operate(running, { method: 'POST', path: '/accounts', body: account });
  const guest = { endpoint: running.endpoint, accessKey: key.accessKey, secretKey: key.secretKey };
  const byThread = await connectToAll(running);
  const ask = () =>
    Promise.all([...byThread.values()].map((agent) => send(guest, { method: 'GET', path: '/', agent })));
  // Both threads know the key now.
  expect((await ask()).map(({ status }) => status)).toEqual([200, 200]);
  await operate(running, { method: 'DELETE', path: `/accounts/guest/keys/${key.accessKey}` });
  for (const { status, body } of await ask()) {
    expect([status, String(body)]).toEqual([403, expect.stringContaining('InvalidAccessKeyId')]);
  }
});

test('a rotation of the master key reaches all threads', async () => {
  const running = await threaded();
  const byThread = await connectToAll(running);
  const write = async (name: string) => {
    for (const [thread, agent] of byThread)
      await send(running, {
        method: 'PUT',
        path: `/threads/${name}-${thread}`,
        body: Buffer.from(name),
        agent,
      });
  };
  await write('before');
  const begun = await operate(running, { method: 'POST', path: '/keys/rotate' });
  await write('after');
  const read = async () => {
    for (const name of ['before', 'after'])
      for (const thread of byThread.keys())
        for (const agent of byThread.values()) {
          const { status, body } = await send(running, {
            method: 'GET',
            path: `/threads/${name}-${thread}`,
            agent,
          });
          expect([status, String(body)]).toEqual([200, name]);
        }
  };
  await read();
  for (let keys = begun; keys.olderKeyIds.length > 0; ) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    keys = await operate(running, { method: 'GET', path: '/keys' });
  }
  await write('after');
  await read();
});

test('kill -9 loses nothing that was acknowledged', async () => {
  const running = await threaded();
  const byThread = await connectToAll(running);
  const acknowledged: string[] = [];
  const writers = [...byThread].map(async ([thread, agent]) => {
    for (let at = 0; ; at++) {
      const path = `/threads/${thread}-${at}`;
      const body = Buffer.alloc(at % 5 === 0 ? 300_000 : 1000, path);
      try {
        const { status } = await send(running, { method: 'PUT', path, body, agent });
        if (status === 200) acknowledged.push(path);
      } catch {
        return;
      }
      if (acknowledged.length === 60) process.kill(running.pid ?? 0, 'SIGKILL');
    }
  });
  await Promise.all(writers);
  await running.exited;
  const again = await threaded();
  expect(acknowledged.length).toBeGreaterThanOrEqual(60);
  for (const path of acknowledged) {
    const { status, body } = await send(again, { method: 'GET', path });
    expect([path, status, body.subarray(0, path.length).toString()]).toEqual([path, 200, path]);
  }
  const { id } = await operate(again, {
    method: 'POST',
    path: '/fsck',
    body: { readData: true, fullSpeed: true },
  });
  for (;;) {
    const report = await operate(again, { method: 'GET', path: `/fsck/${id}/0` });
    if (report.state === 'running') continue;
    expect(report).toMatchObject({ state: 'done', findings: [] });
    break;
  }
});

test('SIGTERM: what is in flight in any thread finishes, and the server exits with 0', async () => {
  const running = await threaded();
  const byThread = await connectToAll(running);
  const size = 200_000;
  const writing = [...byThread].map(([thread, agent]) => {
    const headers = { 'content-length': String(size) };
    const sent = openRequest(running, { method: 'PUT', path: `/threads/slow-${thread}`, headers, agent });
    const answered = answerOf(sent);
    sent.write(Buffer.alloc(size / 2, 'a'));
    return { sent, answered };
  });
  // Both have their first half: they have asked for it, and this request came behind it.
  await connectToAll(running);
  process.kill(running.pid ?? 0, 'SIGTERM');
  for (;;) {
    const isDraining = running.logs().some(({ event }) => event === 'draining');
    if (isDraining) break;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  for (const { sent, answered } of writing) {
    sent.end(Buffer.alloc(size / 2, 'b'));
    const answer = await answered;
    answer.resume();
    expect(answer.statusCode).toBe(200);
  }
  expect(await running.exited).toEqual({ code: 0, signal: null });
});
