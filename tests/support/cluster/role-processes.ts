// The processes of a small cluster for tests of disasters: started, ended and looked at one by one, with etcd and the data
// folders at the test's disposal. One storage node and one gateway: what matters here are the metadata nodes.
import { type ChildProcess, spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClusterStatus } from '../../../src/admin/status/cluster-status.ts';
import { readClusterStatus } from '../../../src/admin/status/read-cluster.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { COMPILE_CACHE, ROOT } from '../run/root.ts';
import { endGracefully, type Ran, ranToEnd } from '../servers/process-ends.ts';
import type { Access } from '../servers/raw-s3.ts';
import { startTestEtcd, type TestEtcd } from './etcd.ts';
import { freePort } from './free-ports.ts';

const MAIN = join(ROOT, 'cmd', 'main.ts');
const SECRET = 'a secret that only tests know, long enough';
const METADATA = ['metadata-1', 'metadata-2', 'metadata-3'];
/** A look is often a command, which takes a third of a second of CPU time. */
const LOOK_AGAIN_MS = 1500;
const PATIENCE_MS = 180_000;

export interface RoleProcesses {
  readonly etcd: TestEtcd;
  readonly access: Access;
  /** `metadata-N`, `storage-1`, `gateway-1`. */
  start(name: string, ...args: string[]): void;
  /** Everything, and waits until the gateway takes requests. */
  startAll(): Promise<void>;
  /** Of one that was started and has not ended. */
  processId(name: string): number | undefined;
  /** Of a process that was started, if it has ended by itself. */
  exitCode(name: string): number | undefined;
  /** Gracefully. */
  end(...names: string[]): Promise<void>;
  endAll(): Promise<void>;
  folderOf(name: string): string;
  /** Of a metadata node that has started. */
  nodeIdOf(name: string): Promise<string>;
  /** A command of the program, of this cluster. */
  run(...args: string[]): Promise<Ran>;
  status(): Promise<ClusterStatus>;
  /** `keysFolder`: where the credentials of `access` are; default the cluster's keys. */
  untilReady(keysFolder?: string): Promise<void>;
  /** Asks until it gives something. */
  until<T>(what: string, look: () => Promise<T | undefined>): Promise<T>;
  stop(): Promise<void>;
}

/** `shards`: of a new cluster. `keys`: the folder of those of one that is made otherwise, in `folderOf('')`. */
export async function openRoleProcesses(
  options: { shards: number } | { keys: string },
): Promise<RoleProcesses> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-roles-'));
  const etcd = await startTestEtcd();
  const port = await freePort();
  // Placement maps name addresses of disks.
  const storagePort = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const children = new Map<string, ChildProcess>();
  const keys = join(folder, 'keys' in options ? options.keys : 'keys');
  const env = {
    ...process.env,
    HOLDFAST_CLUSTER_SECRET: SECRET,
    XDG_CACHE_HOME: join(folder, 'cache'),
    NODE_COMPILE_CACHE: COMPILE_CACHE,
  };
  const folderOf = (name: string) => join(folder, name);
  const access = { endpoint, accessKey: '', secretKey: '' };

  const cluster: RoleProcesses = {
    etcd,
    access,
    folderOf,
    start(name, ...args) {
      const [role = ''] = name.split('-');
      const log = openSync(join(folder, `${name}.log`), 'a');
      const own =
        role === 'storage'
          ? ['--node-listen', `127.0.0.1:${storagePort}`]
          : role === 'gateway'
            ? ['--listen', `127.0.0.1:${port}`, '--cluster-keys', keys]
            : ['--node-zone', name];
      const all = [MAIN, role, '--join', etcd.endpoint, '--data-dir', folderOf(name), ...own, ...args];
      children.set(name, spawn(process.execPath, all, { cwd: ROOT, env, stdio: ['ignore', log, log] }));
    },
    async startAll() {
      for (const name of [...METADATA, 'storage-1', 'gateway-1'])
        if (!children.has(name)) cluster.start(name);
      await cluster.untilReady();
    },
    processId: (name) => (cluster.exitCode(name) === undefined ? children.get(name)?.pid : undefined),
    exitCode: (name) => children.get(name)?.exitCode ?? undefined,
    async end(...names) {
      await Promise.all(
        names.map(async (name) => {
          const child = children.get(name);
          if (child === undefined) return;
          await endGracefully(child);
          children.delete(name);
        }),
      );
    },
    async endAll() {
      await cluster.end('gateway-1', 'storage-1');
      await cluster.end(...children.keys());
    },
    async nodeIdOf(name) {
      const { nodeId } = JSON.parse(await readFile(join(folderOf(name), 'node.json'), 'utf8')) as {
        nodeId: string;
      };
      return nodeId;
    },
    run(...args) {
      const child = spawn(process.execPath, [MAIN, ...args, '--join', etcd.endpoint], { cwd: ROOT, env });
      return ranToEnd(child, `holdfast ${args.join(' ')}`);
    },
    // Not by the command, which would be a process each time: tests that wait ask several times a second.
    status() {
      const config = loadConfig({
        flags: { join: etcd.endpoint },
        env: { HOLDFAST_CLUSTER_SECRET: SECRET },
      });
      return readClusterStatus({ config, lastKnown: join(folder, 'known.json') });
    },
    async untilReady(keysFolder = keys) {
      await cluster.until('a gateway that is ready', async () => {
        const answer = await fetch(`${endpoint}/health/ready`).catch(() => undefined);
        return answer?.ok ? true : undefined;
      });
      const root = JSON.parse(await readFile(join(keysFolder, 'root-credentials.json'), 'utf8'));
      access.accessKey = root.accessKey;
      access.secretKey = root.secretKey;
    },
    async until(what, look) {
      const endsAtMs = performance.now() + PATIENCE_MS;
      while (performance.now() < endsAtMs) {
        const seen = await look();
        if (seen !== undefined) return seen;
        await sleep(LOOK_AGAIN_MS);
      }
      const logs = await Promise.all(
        [...children.keys()].map(async (name) => `${name}:\n${await logEnd(join(folder, `${name}.log`))}`),
      );
      throw new Error(`in vain: ${what}\n${logs.join('\n')}`);
    },
    async stop() {
      await cluster.endAll();
      await etcd.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
  if ('keys' in options) return cluster;
  const counts = ['--metadata-shards', String(options.shards), '--replicas', '3', '--copies', '1'];
  const made = await cluster.run('cluster', 'init', '--out', keys, ...counts);
  if (made.code !== 0) throw new Error(made.output);
  return cluster;
}

async function logEnd(path: string): Promise<string> {
  return (await readFile(path, 'utf8')).split('\n').slice(-8).join('\n');
}
