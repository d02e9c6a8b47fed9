// The removal of a deleted sub-account, whose server is killed in the middle of it again and again: it goes on behind each restart,
// takes everything but what is protected, and takes that when it is due.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CliContext } from '../../src/cli/connect.ts';
import { createPartner } from '../../src/cli/control-commands.ts';
import { createSubAccount, deleteSubAccount } from '../../src/cli/sub-account-commands.ts';
import { type Access, pathOf, send } from '../support/servers/raw-s3.ts';
import { expectStatus } from '../support/servers/s3-api.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const HOUR_MS = 3600_000;
const LATER_CLOCK = new URL('../support/servers/later-clock.ts', import.meta.url).href;
/** One after another they take longer than a look at them. */
const BUCKETS = 24;
const FREE_VERSIONS = 50;
/** In the midst of the others, by name. */
const LOCKED = 'gone-15-locked';
const KILLED_AT = [2, 12];
const WITHIN = { timeout: 200_000, interval: 100 };

let folder: string;
let dataDir: string;
let server: TestServer | undefined;
let offsetMs = 0;
const printed: string[] = [];
const context: CliContext = {
  env: {},
  print: (line) => void printed.push(line),
  nowMs: () => Date.now() + offsetMs,
  sleep,
};
const answer = () => JSON.parse(printed.splice(0).join('\n'));
const asked = () => ({ dataDir, json: true });

async function start(): Promise<TestServer> {
  const env = { NODE_OPTIONS: `--import=${LATER_CLOCK}`, TEST_CLOCK_AHEAD_MS: String(offsetMs) };
  server = await startServer({ child: true, dataDir, ...(offsetMs > 0 && { env }) });
  return server;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-removal-'));
  dataDir = join(folder, 'data');
});
afterAll(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

interface Removal {
  removedBuckets: number;
  leftBuckets: number;
  keptBucketsCount: number;
  keptBuckets: { name: string; versionCount: number; keptUntil: string | null }[];
}

/** Undefined: nothing is left. */
async function removalOf(
  id: number,
  { endpoint, accessKey, secretKey }: TestServer,
): Promise<Removal | undefined> {
  const response = await fetch(`${endpoint}/api/v1/sub-accounts/${id}?includeDeleted=true`, {
    headers: { authorization: `Basic ${btoa(`${accessKey}:${secretKey}`)}` },
  });
  expect(response.status).toBe(200);
  return ((await response.json()) as { data: { removal?: Removal } }).data.removal;
}

async function store(as: Access, untilMs: number): Promise<void> {
  const put = async (path: string, headers: Record<string, string> = {}, body = Buffer.alloc(0)) =>
    expectStatus(await send(as, { method: 'PUT', path, headers, body }), 200);
  for (let at = 0; at < BUCKETS; at++) {
    const bucket = `gone-${String(at).padStart(2, '0')}`;
    await put(`/${bucket}`);
    for (const key of ['a', 'b']) await put(pathOf(bucket, key), {}, Buffer.from('x'));
  }
  await put(`/${LOCKED}`, { 'x-amz-bucket-object-lock-enabled': 'true' });
  for (let at = 0; at < FREE_VERSIONS; at++) await put(pathOf(LOCKED, `free ${at}`), {}, Buffer.from('x'));
  const lock = {
    'x-amz-object-lock-mode': 'COMPLIANCE',
    'x-amz-object-lock-retain-until-date': new Date(untilMs).toISOString(),
  };
  await put(pathOf(LOCKED, 'kept'), lock, Buffer.from('x'));
}

test('is complete behind kill -9 at any time, and leaves what is protected until it is due', async () => {
  let running = await start();
  await createPartner(context, { ...asked(), name: 'Reseller', email: 'r@example.com', level: 'control' });
  const customer = { control: String(answer().id), name: 'Bakery', email: 'b@example.com', paid: true };
  await createSubAccount(context, { ...asked(), ...customer, password: 'Lon3ly&Loaf' });
  const made = answer();
  const untilMs = Math.ceil(Date.now() / 1000 + 3600) * 1000;
  await store({ ...made, endpoint: running.endpoint }, untilMs);
  await deleteSubAccount(context, String(made.id), { ...asked(), withBuckets: true });
  answer();

  for (const count of KILLED_AT) {
    const seen = async () => (await removalOf(made.id, running))?.removedBuckets;
    await expect.poll(seen, { ...WITHIN, interval: 5 }).toBeGreaterThanOrEqual(count);
    expect((await removalOf(made.id, running))?.leftBuckets, 'it is in the middle').toBeGreaterThan(1);
    await running.kill('SIGKILL');
    running = await start();
  }
  const left = () => removalOf(made.id, running);
  // Counts of what is removed: of a bucket that went right before a kill nobody may have noted it.
  await expect.poll(async () => (await left())?.keptBucketsCount, WITHIN).toBe(1);
  const kept = { name: LOCKED, versionCount: 1, keptUntil: new Date(untilMs).toISOString() };
  await expect.poll(left, WITHIN).toMatchObject({ leftBuckets: 1, keptBucketsCount: 1, keptBuckets: [kept] });
  expect((await left())?.removedBuckets).toBeGreaterThanOrEqual(BUCKETS - KILLED_AT.length);
  const statusOf = async (bucket: string) =>
    (await send({ ...running, nowMs: context.nowMs }, { method: 'HEAD', path: `/${bucket}` })).status;
  for (const bucket of ['gone-00', 'gone-23']) await expect.poll(() => statusOf(bucket), WITHIN).toBe(404);
  expect(await statusOf(LOCKED)).toBe(403);
  const own = { ...made, endpoint: running.endpoint };
  expect((await send(own, { method: 'GET', path: '/' })).status).toBe(403);

  await running.stop();
  offsetMs = 2 * HOUR_MS;
  running = await start();
  await expect.poll(left, WITHIN).toBeUndefined();
  await expect.poll(() => statusOf(LOCKED), WITHIN).toBe(404);
});
