// kill -9 at random moments under a load of every kind of write: after each restart nothing acknowledged is lost and
// nothing unacknowledged is half visible; at the end no chunk stays that nothing refers to.
// 10 rounds; by hand more: HOLDFAST_TEST_KILL_ROUNDS=200 npm test -- tests/faults/kill.test.ts
// The seed on the first line repeats the requests, not the moments of the kernel and the disk.
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { createOperatorClient } from '../../src/cli/operator-client.ts';
import { countRows } from '../support/databases.ts';
import { createLoad } from '../support/load.ts';
import { type Access, send } from '../support/raw-s3.ts';
import { startServer, type TestServer } from '../support/start-server.ts';
import { seededBytes, seededNumbers } from '../support/tree.ts';

const ROUNDS = Number(process.env.HOLDFAST_TEST_KILL_ROUNDS ?? 10);
const SEED = process.env.HOLDFAST_TEST_SEED ?? String(Date.now());
const LOAD_MS_MAX = 1200;
/** Longer than anything unlinked may stay: late commits are refused after a day (protocol R25, R32). */
const AHEAD_MS = 25 * 3600 * 1000;
const LATER_CLOCK = new URL('../support/later-clock.ts', import.meta.url).href;
/** An object that stays, whose data lives by a copy in another bucket alone. */
const KEPT_CHUNKS = 5;
const KEPT = seededBytes('kept', KEPT_CHUNKS * 1024 * 1024);
const SETTINGS = { 'storage.readingGrace': '1s' };

const folder = await mkdtemp(join(tmpdir(), 'holdfast-kill-'));
const dataDir = join(folder, 'data');
const load = createLoad({ seed: SEED, workerCount: 8 });
let server: TestServer | undefined;

afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function prepare(access: Access): Promise<void> {
  await load.prepare(access);
  await send(access, { method: 'PUT', path: '/load-one/original', body: KEPT });
  const headers = { 'x-amz-copy-source': '/load-one/original' };
  expect((await send(access, { method: 'PUT', path: '/load-two/kept', headers })).status).toBe(200);
  await send(access, { method: 'DELETE', path: '/load-one/original' });
}

test(`keeps every promise over ${ROUNDS} kills, seed ${SEED}`, {
  timeout: 60_000 + ROUNDS * 20_000,
}, async () => {
  const random = seededNumbers(`kill:${SEED}`);
  for (let round = 1; round <= ROUNDS; round++) {
    server = await startServer({ child: true, dataDir, settings: SETTINGS });
    if (round === 1) await prepare(server);
    expect(await load.verify(server), `after ${round - 1} kills`).toEqual([]);
    const running = load.run(server);
    await sleep(100 + random() * LOAD_MS_MAX);
    await server.kill('SIGKILL');
    const failures = server.logs().filter(({ level }) => level === 'error');
    expect([await running, failures], `in round ${round}`).toEqual([[], []]);
  }
  console.log('acknowledged', Object.fromEntries(load.acknowledged));
  const kinds = [
    'put small',
    'put chunked',
    'multipart',
    'copy',
    'delete',
    'delete many',
    'abandoned upload',
  ];
  expect([...load.begun.keys()]).toEqual(expect.arrayContaining(kinds));
});

test('a day later the sweep takes all that nothing refers to, and nothing else', {
  timeout: 120_000,
}, async () => {
  const started = await startServer({
    child: true,
    dataDir,
    settings: SETTINGS,
    env: { NODE_OPTIONS: `--import=${LATER_CLOCK}`, TEST_CLOCK_AHEAD_MS: String(AHEAD_MS) },
  });
  server = started;
  const access = { ...started, nowMs: () => Date.now() + AHEAD_MS };
  expect(await load.verify(access)).toEqual([]);
  await load.clear(access);
  const operator = createOperatorClient({
    endpoint: started.endpoint,
    credentials: { accessKey: started.accessKey, secretKey: started.secretKey },
    nowMs: access.nowMs,
  });
  let chunkCount = -1;
  for (let waits = 0; waits < 200 && chunkCount !== KEPT_CHUNKS; waits++) {
    await sleep(250);
    chunkCount = ((await operator.call('GET', '/status')) as { chunkCount: number }).chunkCount;
  }
  expect(chunkCount).toBe(KEPT_CHUNKS);
  const kept = await send(access, { method: 'GET', path: '/load-two/kept' });
  expect(kept.body.equals(KEPT)).toBe(true);
  await started.stop();
  // Of data, claims, messages and uploads only what the one object needs; the blob's home and the bucket may be one.
  const rows = await countRows(dataDir);
  const { blobs, links, foreign = 0 } = rows;
  expect({ blobs, links }).toEqual({ blobs: 1, links: 1 + foreign });
  const passing = [
    'bodies',
    'condemned',
    'endedLinks',
    'pendingClaims',
    'outbox',
    'uploads',
    'parts',
  ] as const;
  expect(passing.filter((table) => rows[table] !== undefined)).toEqual([]);
});
