// kill -9 at random moments under a load of every mutating operation: after each restart nothing acknowledged is lost,
// nothing unacknowledged is half visible, and fsck finds nothing. A day later, when the background has settled, neither
// does it with every byte read, and no chunk is without its blob; at the end nothing stays that nothing refers to.
// By hand as many rounds as one likes: HOLDFAST_TEST_KILL_ROUNDS=200 npm test -- tests/faults/kill.test.ts
// The seed on the first line repeats the requests, not the moments of the kernel and the disk.
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import type { CliContext } from '../../src/cli/connect.ts';
import { runFsck } from '../../src/cli/fsck-command.ts';
import { UNSET_BUCKET_CONFIGURATIONS } from '../../src/gateway/s3/buckets/unset-configurations.ts';
import { OPERATIONS } from '../../src/gateway/s3/registry.ts';
import { seededBytes, seededNumbers } from '../support/clients/tree.ts';
import { createLoad } from '../support/load/load.ts';
import { countRows } from '../support/metadata/databases.ts';
import { amountOf } from '../support/run/long-form.ts';
import { type Access, send } from '../support/servers/raw-s3.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const ROUNDS = amountOf({ short: 2, long: 100, byHand: process.env.HOLDFAST_TEST_KILL_ROUNDS });
const SEED = process.env.HOLDFAST_TEST_SEED ?? String(Date.now());
const LOAD_MS_MAX = 1200;
/** Longer than anything unlinked may stay: late commits are refused after a day (protocol R25, R32). */
const AHEAD_MS = 25 * 3600 * 1000;
const LATER_CLOCK = new URL('../support/servers/later-clock.ts', import.meta.url).href;
/** An object that stays, whose data lives by a copy in another bucket alone. */
const KEPT_CHUNKS = 5;
const KEPT = seededBytes('kept', KEPT_CHUNKS * 1024 * 1024);
const SETTINGS = { shards: '4', 'storage.readingGrace': '1s' };
/** Some ten seconds on an idle machine; the more kinds there are, the longer. */
const WARM_UP_MS_MAX = 180_000;
const SETTLED_WITHIN_MS = 180_000;
/** They look like changes, and there is nothing that they could change. */
const UNSET: readonly string[] = UNSET_BUCKET_CONFIGURATIONS.map(({ name }) => name);
/** All that change something, of the registry: a new one must come into the load. */
const MUTATING = OPERATIONS.filter(({ match }) => !['GET', 'HEAD', 'OPTIONS'].includes(match.method))
  .map(({ name }) => name)
  .filter((name) => !UNSET.includes(name));
/** What the names of operations do not tell apart, and what the operator changes. */
const KINDS = [
  'put small',
  'put chunked',
  'put version',
  'multipart',
  'part copy',
  'tag',
  'delete',
  'delete many',
  'create bucket',
  'delete bucket',
  'set versioning',
  'copy',
  'copy onto itself',
  'copy version onto itself',
  'delete marker',
  'delete version',
  'delete versions',
  'abandoned upload',
  'upload into a passing bucket',
  'create account',
  'change account',
  'delete account',
  'rotate keys',
  'append',
  'compose',
  'move',
  'prefix move',
  'repeat a prefix move',
  'prefix move of versions',
  'repeat a prefix move of versions',
  'post form',
  'put object acl',
  'put bucket acl',
  'put object lock',
  'put retention',
  'put legal hold',
  'put bucket compliance',
  'put object compliance',
  'put policy',
  'delete policy',
  'put rules',
  'delete rules',
  'rename bucket',
  'force delete',
];

const folder = await mkdtemp(join(tmpdir(), 'holdfast-kill-'));
const dataDir = join(folder, 'data');
const load = createLoad({ seed: SEED, workerCount: 8 });
let server: TestServer | undefined;

afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

type Report = Awaited<ReturnType<typeof fsck>>;

/** What `holdfast fsck` says. */
async function fsck(access: Access, options: { readData?: boolean } = {}) {
  const printed: string[] = [];
  const nowMs = access.nowMs ?? Date.now;
  const context: CliContext = { env: {}, print: (line) => void printed.push(line), nowMs, sleep };
  await runFsck(context, { dataDir, json: true, ...options });
  return JSON.parse(printed.join('')) as {
    findings: object[];
    pending: object[];
    progress: { chunkCount: number; readBytes: number };
  };
}

/** Finds nothing at any moment; in the end nothing waits for its turn, no chunk without its blob either. */
async function settled(access: Access, options: { readData?: boolean }): Promise<Report> {
  const endMs = Date.now() + SETTLED_WITHIN_MS;
  for (;;) {
    const report = await fsck(access, options);
    expect(report.findings).toEqual([]);
    if (report.pending.length === 0) return report;
    expect(Date.now() < endMs, JSON.stringify(report.pending)).toBe(true);
    await sleep(500);
  }
}

async function prepare(access: Access): Promise<void> {
  await load.prepare(access);
  await send(access, { method: 'PUT', path: '/load-one/original', body: KEPT });
  const headers = { 'x-amz-copy-source': '/load-one/original' };
  expect((await send(access, { method: 'PUT', path: '/load-two/kept', headers })).status).toBe(200);
  await send(access, { method: 'DELETE', path: '/load-one/original' });
}

test(`keeps every promise over ${ROUNDS} kills, seed ${SEED}`, {
  timeout: WARM_UP_MS_MAX + 120_000 + ROUNDS * 60_000,
}, async () => {
  const random = seededNumbers(`kill:${SEED}`);
  const done = new Set<unknown>();
  const noteDone = () => {
    for (const { event, operation, errorCode } of server?.logs() ?? []) {
      if (event === 'request' && errorCode === undefined) done.add(operation);
    }
  };
  // A server that is killed takes the last lines of its log with it.
  const lacking = () => {
    noteDone();
    const kinds = KINDS.filter((kind) => !load.acknowledged.has(kind));
    return [...kinds, ...MUTATING.filter((name) => !done.has(name))];
  };
  for (let round = 1; round <= ROUNDS; round++) {
    // By turns with large chunks in extents and in the database: what is there is read wherever it lies.
    const settings = { ...SETTINGS, 'storage.separateFrom': round % 2 === 1 ? '64KiB' : 'never' };
    server = await startServer({ child: true, dataDir, settings });
    if (round === 1) await prepare(server);
    expect(await load.verify(server), `after ${round - 1} kills`).toEqual([]);
    expect((await fsck(server)).findings, `after ${round - 1} kills`).toEqual([]);
    const running = load.run(server);
    // The first time until each kind has succeeded once, and is in the log; then it is killed in the middle of whatever it does.
    if (round === 1) await expect.poll(lacking, { timeout: WARM_UP_MS_MAX, interval: 100 }).toEqual([]);
    await sleep(100 + random() * LOAD_MS_MAX);
    await server.kill('SIGKILL');
    const failures = server.logs().filter(({ level }) => level === 'error');
    expect([await running, failures], `in round ${round}`).toEqual([[], []]);
    noteDone();
  }
  const cut = [...load.begun].map(([kind, count]) => [kind, count - (load.acknowledged.get(kind) ?? 0)]);
  console.log('acknowledged', Object.fromEntries(load.acknowledged), 'cut short', Object.fromEntries(cut));
  expect(MUTATING.filter((name) => !done.has(name))).toEqual([]);
});

test('a day later the sweep removes everything without references, and nothing else', {
  timeout: 600_000,
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
  const before = await settled(access, { readData: true });
  expect(before.progress.readBytes).toBeGreaterThan(0);
  await load.clear(access);
  await settled(access, {});
  const kept = await send(access, { method: 'GET', path: '/load-two/kept' });
  expect(kept.body.equals(KEPT)).toBe(true);
  expect((await settled(access, { readData: true })).progress).toMatchObject({ chunkCount: KEPT_CHUNKS });
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
