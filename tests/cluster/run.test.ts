// `holdfast cluster run` as its user has it: processes that die are back with what they had, the whole cluster is back at
// the next start, and what does not belong to it is refused. One process of each role, so that nobody stands in.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { runFsck } from '../../src/cli/fsck-command.ts';
import { freePort } from '../support/cluster/free-ports.ts';
import { COMPILE_CACHE, ROOT } from '../support/run/root.ts';
import { type Access, send } from '../support/servers/raw-s3.ts';
import { cleanEnvironment } from '../support/servers/start-server.ts';

const MAIN = join(ROOT, 'cmd', 'main.ts');
const ENV = { ...cleanEnvironment(), NODE_COMPILE_CACHE: COMPILE_CACHE };
const BACK_WITHIN_MS = 180_000;
const SMALL = randomBytes(1000);
const LARGE = randomBytes(3 * 1024 * 1024);

let folder: string;
let access: Access;
let etcd: string;
let child: ChildProcess;
let lines: string[] = [];
const pidOf = (name: string) =>
  Number(must(/(\d+)\)?$/.exec(lines.findLast((line) => line.startsWith(name)) ?? '')?.[1], name));

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-run-'));
  const port = await freePort();
  await start(port);
  const root = JSON.parse(await readFile(join(folder, 'keys', 'root-credentials.json'), 'utf8'));
  access = { endpoint: `http://127.0.0.1:${port}`, ...root };
  expect((await send(access, { method: 'PUT', path: '/kept' })).status).toBe(200);
  expect((await send(access, { method: 'PUT', path: '/kept/small', body: SMALL })).status).toBe(200);
  expect((await send(access, { method: 'PUT', path: '/kept/large', body: LARGE })).status).toBe(200);
});
afterAll(async () => {
  if (child.exitCode === null) await stop();
  await rm(folder, { recursive: true, force: true });
});

async function start(port: number): Promise<void> {
  lines = [];
  const counts = ['--metadata', '1', '--storage', '1', '--gateways', '1', '--metadata-shards', '2'];
  const where = ['--data-dir', folder, '--listen', `127.0.0.1:${port}`];
  child = spawn(process.execPath, [MAIN, 'cluster', 'run', ...counts, ...where], {
    env: ENV,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  createInterface({ input: must(child.stdout, 'a pipe') }).on('line', (line) => lines.push(line));
  await vi.waitFor(() => expect(lines.at(-1)).toBe('ready'), { timeout: 180_000, interval: 200 });
  etcd = must(/^etcd: (\S+)/m.exec(lines.join('\n'))?.[1], 'the address of etcd');
}

async function stop(): Promise<number | null> {
  const exited = once(child, 'exit');
  child.kill('SIGINT');
  await exited;
  return child.exitCode;
}

/** A command of the program, in an environment that knows the cluster's secret unless told otherwise. */
async function run(args: readonly string[], env: Record<string, string> = secret()) {
  const command = spawn(process.execPath, [MAIN, ...args], { env: { ...ENV, ...env }, timeout: 180_000 });
  const said: Buffer[] = [];
  for (const stream of [command.stdout, command.stderr])
    stream.on('data', (bytes: Buffer) => said.push(bytes));
  const [code] = (await once(command, 'close')) as [number | null];
  return { code, said: Buffer.concat(said).toString() };
}
const secret = () => ({ HOLDFAST_CLUSTER_SECRET_FILE: join(folder, 'cluster-secret') });
/** By which etcd lets a command in. */
const etcdFlags = () =>
  ['ca', 'cert', 'key'].flatMap((what) => [
    `--etcd-${what}`,
    join(folder, 'etcd-keys', what === 'ca' ? 'ca-cert.pem' : `etcd-${what}.pem`),
  ]);

/** Everything that was acknowledged; within the time that a process takes to be back. */
async function untilAllIsThere(): Promise<void> {
  const read = async (key: string) => {
    const { status, body } = await send(access, { method: 'GET', path: `/kept/${key}` }).catch(() => ({
      status: 0,
      body: Buffer.alloc(0),
    }));
    return status === 200 ? body : undefined;
  };
  const patience = { timeout: BACK_WITHIN_MS, interval: 200 };
  await expect.poll(async () => (await read('small'))?.equals(SMALL), patience).toBe(true);
  await expect.poll(async () => (await read('large'))?.equals(LARGE), patience).toBe(true);
  await expect
    .poll(
      async () => (await send(access, { method: 'PUT', path: '/kept/new', body: LARGE })).status,
      patience,
    )
    .toBe(200);
}

const NAMES = ['etcd', 'metadata-1', 'storage-1', 'gateway-1'];

test('processes that are killed at once are started again, with their data', async () => {
  for (const name of NAMES) process.kill(pidOf(name), 'SIGKILL');
  for (const name of NAMES)
    await expect.poll(() => lines.join('\n'), { timeout: 180_000 }).toContain(`${name} runs again`);
  await untilAllIsThere();
});

test('the whole cluster is back with all data at the next start, and nothing of it runs in between', async () => {
  const pids = NAMES.map(pidOf);
  expect(await stop()).toBe(0);
  for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  await start(Number(new URL(access.endpoint).port));
  await untilAllIsThere();
  const context = { env: {}, print() {}, nowMs: Date.now, sleep };
  expect(await runFsck(context, { dataDir: join(folder, 'keys'), readData: true, fullSpeed: true })).toBe(0);
});

test('a killed launcher takes its nodes along, and the next start stops the etcd that is left', async () => {
  const pids = NAMES.map(pidOf);
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
  const runs = (pid: number | undefined) => {
    try {
      return process.kill(must(pid, 'a process id'), 0);
    } catch {
      return false;
    }
  };
  for (const pid of pids.slice(1)) await expect.poll(() => runs(pid), { timeout: 180_000 }).toBe(false);
  await start(Number(new URL(access.endpoint).port));
  expect(runs(pids[0])).toBe(false);
  await untilAllIsThere();
});

test('it writes settings of an operator, and etcd admits nobody without a certificate', async () => {
  const { said } = await run(['cluster', 'status', '--config', join(folder, 'operator.json')], {});
  expect(said).toMatch(/^Cluster [0-9a-f]{32}\n/);
  expect((await stat(join(folder, 'operator.json'))).mode & 0o777).toBe(0o600);
  const stranger = await run(['cluster', 'disks', '--join', etcd], secret());
  expect(stranger.code).toBe(1);
  expect(stranger.said).toContain('etcd does not answer');
});

test('foreign folders are refused with a message', async () => {
  const joined = ['--join', etcd, ...etcdFlags()];
  const refused = async (args: string[], why: string | RegExp, env?: Record<string, string>) => {
    const { code, said } = await run([...args, ...joined], env);
    expect(said).toMatch(why);
    expect(said).not.toMatch(/^ +at /m);
    expect(code).toBe(1);
  };
  const inUse = ['--node-listen', new URL(access.endpoint).host];
  const stranger = join(folder, 'stranger');
  await refused(['cluster', 'init', '--out', stranger], 'there is a cluster already');
  await refused(['cluster', 'status'], 'a node needs certificates', {});
  await refused(['cluster', 'status'], 'must have at least 32', { HOLDFAST_CLUSTER_SECRET: 'short' });
  const wrong = await run(['cluster', 'status', ...joined], {
    HOLDFAST_CLUSTER_SECRET: 'another secret than that of this cluster',
  });
  expect(wrong.said).toMatch(/no metadata node is reached from here: UNAUTHENTICATED: .*secret/);
  await refused(['storage', '--data-dir', join(folder, 'storage-1')], 'in use by another');
  await refused(['storage', '--data-dir', stranger, ...inUse], 'another program listens there');
  expect(existsSync(stranger)).toBe(false);
  await mkdir(stranger);
  for (const name of ['format.json', 'node.json'])
    await copyFile(join(folder, 'storage-1', name), join(stranger, name));
  await refused(['metadata', '--data-dir', stranger], 'is the folder of a storage node');
  await refused(
    ['server', '--data-dir', stranger, '--listen', '127.0.0.1:0'],
    'start it by `holdfast storage`',
  );
  const disk = join(folder, 'metadata-1');
  await refused(
    ['storage', '--data-dir', join(folder, 'storage-2'), '--storage-disks', disk],
    'is the data folder of a metadata node',
  );
  await refused(['gateway', '--cluster-keys', stranger, '--listen', '127.0.0.1:0'], 'is missing');
});
