// holdfast cluster run: a whole cluster on this machine, of real processes, to try and to test: etcd, metadata nodes,
// storage nodes, gateways. It keeps its data for the next start, and looks after its processes as a service manager would.
import { type ChildProcess, spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type EtcdProcess, startEtcd } from '../../src/adapters/etcd-process.ts';
import { bringEtcd } from '../../src/adapters/etcd-program.ts';
import { systemClock, systemRandom } from '../../src/adapters/system-clock.ts';
import { loadConfig } from '../../src/config/load.ts';
import { toHex } from '../../src/lib/bytes.ts';
import { Refusal } from '../../src/lib/refusal.ts';
import { onSignals } from '../signals.ts';
import { initCluster } from './init.ts';

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/etcd', import.meta.url));
const SECRET_BYTES = 32;
const RESTART_AFTER_MS = 5000;
const READY_MAX_MS = 60_000;
const STOP_MAX_MS = 40_000;

export interface DevClusterOptions {
  metadata: number;
  storage: number;
  gateways: number;
  shards: number;
  dataDir: string;
  /** HOST:PORT of the first gateway. */
  listen: string;
  restarts: boolean;
  logLevel: string;
}

type Role = 'metadata' | 'storage' | 'gateway';

interface Part {
  name: string;
  role: Role;
  args: string[];
  child: ChildProcess | undefined;
}

/** Runs until it is told to stop; resolves with the exit code. */
export async function runDevCluster(
  options: DevClusterOptions,
  print: (line: string) => void,
): Promise<number> {
  const cluster = new DevCluster(options, print);
  const stop = Promise.withResolvers<void>();
  const release = onSignals({ drain: stop.resolve, stopNow: () => process.exit(130), reload() {} });
  try {
    await Promise.race([cluster.start(), stop.promise]);
    await stop.promise;
    return 0;
  } finally {
    await cluster.stop();
    release();
  }
}

class DevCluster {
  readonly #options: DevClusterOptions;
  readonly #print: (line: string) => void;
  readonly #folder: string;
  readonly #parts: Part[] = [];
  #etcd: EtcdProcess | undefined;
  #secret = '';
  #isStopping = false;

  constructor(options: DevClusterOptions, print: (line: string) => void) {
    this.#options = options;
    this.#print = print;
    this.#folder = resolve(options.dataDir);
  }

  async start(): Promise<void> {
    await mkdir(join(this.#folder, 'logs'), { recursive: true, mode: 0o700 });
    this.#secret = await this.#readSecret();
    const path = await bringEtcd({ cacheFolder: CACHE, mayFetch: true, say: this.#print });
    await this.#startEtcd(path);
    await this.#init();
    this.#addParts();
    for (const part of this.#parts) this.#spawn(part);
    await this.#tell();
  }

  /** Later starts take the port of the first: the others know it. */
  async #startEtcd(path: string): Promise<void> {
    const clientPort = this.#etcd?.clientPort;
    const etcd = await startEtcd({
      ...{ path, dataDir: join(this.#folder, 'etcd'), clock: systemClock },
      ...(clientPort !== undefined && { clientPort }),
    });
    this.#etcd = etcd;
    void etcd.exited.then(async ({ signal, code }) => {
      if (this.#isStopping) return;
      this.#print(`etcd has ended (${signal ?? code})`);
      if (this.#options.restarts) await this.#restartEtcd(path);
    });
  }

  async #restartEtcd(path: string): Promise<void> {
    while (!this.#isStopping) {
      await sleep(RESTART_AFTER_MS);
      if (this.#isStopping) return;
      try {
        await this.#startEtcd(path);
        if (this.#isStopping) await this.#etcd?.stop();
        else this.#print(`etcd runs again as process ${this.#etcd?.pid}`);
        return;
      } catch (error) {
        this.#print(`etcd does not start: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    // Those that others need go last.
    for (const role of ['gateway', 'storage', 'metadata'] as const)
      await Promise.all(this.#parts.filter((part) => part.role === role).map((part) => end(part)));
    await this.#etcd?.stop();
  }

  async #readSecret(): Promise<string> {
    const path = join(this.#folder, 'cluster-secret');
    try {
      return (await readFile(path, 'utf8')).trim();
    } catch {
      const secret = toHex(systemRandom.bytes(SECRET_BYTES));
      await writeFile(path, `${secret}\n`, { mode: 0o600 });
      await chmod(path, 0o600);
      return secret;
    }
  }

  get #keys(): string {
    return join(this.#folder, 'keys');
  }

  async #init(): Promise<void> {
    const { metadata, storage, shards } = this.#options;
    const config = loadConfig({ flags: { join: this.#etcd?.endpoint ?? '' }, env: rootCredentials() });
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const counts = {
      shardCount: shards,
      replicaCount: Math.min(3, metadata),
      chunkCopies: Math.min(3, storage),
    };
    try {
      await initCluster({ config, log }, { out: this.#keys, ...counts });
    } catch (error) {
      // Of an earlier start: its data is here.
      if (!(error instanceof Refusal) || !/already/.test(error.message)) throw error;
    }
  }

  #addParts(): void {
    const { metadata, storage, gateways, listen } = this.#options;
    const at = listen.lastIndexOf(':');
    const [host, port] = [listen.slice(0, at), Number(listen.slice(at + 1))];
    const add = (role: Role, number: number, args: string[]) =>
      this.#parts.push({ name: `${role}-${number}`, role, args, child: undefined });
    for (let number = 1; number <= metadata; number++)
      add('metadata', number, ['--node-zone', `zone-${number}`]);
    for (let number = 1; number <= storage; number++)
      add('storage', number, ['--node-zone', `zone-${number}`]);
    for (let number = 1; number <= gateways; number++)
      add('gateway', number, ['--listen', `${host}:${port + number - 1}`, '--cluster-keys', this.#keys]);
  }

  #spawn(part: Part): void {
    const log = openSync(join(this.#folder, 'logs', `${part.name}.log`), 'a', 0o600);
    const args = [
      ...[MAIN, part.role, '--join', this.#etcd?.endpoint ?? '', '--log-level', this.#options.logLevel],
      ...['--data-dir', join(this.#folder, part.name), ...part.args],
    ];
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', log, log],
      env: { ...process.env, HOLDFAST_CLUSTER_SECRET: this.#secret },
    });
    part.child = child;
    child.on('exit', (code, signal) => {
      part.child = undefined;
      if (this.#isStopping) return;
      this.#print(`${part.name} has ended (${signal ?? code})`);
      if (this.#options.restarts) void this.#restart(part);
    });
  }

  async #restart(part: Part): Promise<void> {
    await sleep(RESTART_AFTER_MS);
    if (this.#isStopping) return;
    this.#spawn(part);
    this.#print(`${part.name} runs again as process ${part.child?.pid}`);
  }

  async #tell(): Promise<void> {
    const endpoints = this.#endpoints();
    const readyByMs = performance.now() + READY_MAX_MS;
    for (const endpoint of endpoints) {
      while (!(await isReady(endpoint))) {
        if (performance.now() > readyByMs || this.#isStopping)
          throw new Refusal(`${endpoint} is not ready; see ${join(this.#folder, 'logs')}`);
        await sleep(200);
      }
    }
    const credentials = JSON.parse(await readFile(join(this.#keys, 'root-credentials.json'), 'utf8'));
    this.#print(`endpoints: ${endpoints.join(' ')}`);
    this.#print(`access key: ${credentials.accessKey}`);
    this.#print(`secret key: in ${join(this.#keys, 'root-credentials.json')}`);
    this.#print(`etcd: ${this.#etcd?.endpoint} (process ${this.#etcd?.pid})`);
    for (const { name, child } of this.#parts) this.#print(`${name}: process ${child?.pid}`);
    this.#print(
      `status: HOLDFAST_CLUSTER_SECRET_FILE=${join(this.#folder, 'cluster-secret')} npx holdfast cluster status --join ${this.#etcd?.endpoint}`,
    );
    this.#print('ready');
  }

  #endpoints(): string[] {
    const { listen, gateways } = this.#options;
    const at = listen.lastIndexOf(':');
    return Array.from(
      { length: gateways },
      (_, index) => `http://${listen.slice(0, at)}:${Number(listen.slice(at + 1)) + index}`,
    );
  }
}

/** Given ones are taken over, as the server does. */
function rootCredentials(): Record<string, string | undefined> {
  const { HOLDFAST_ROOT_ACCESS_KEY, HOLDFAST_ROOT_SECRET_KEY } = process.env;
  return { HOLDFAST_ROOT_ACCESS_KEY, HOLDFAST_ROOT_SECRET_KEY };
}

async function isReady(endpoint: string): Promise<boolean> {
  try {
    return (await fetch(`${endpoint}/health/ready`)).ok;
  } catch {
    return false;
  }
}

async function end(part: Part): Promise<void> {
  const { child } = part;
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const late = new AbortController();
  await Promise.race([ended, sleep(STOP_MAX_MS, undefined, { signal: late.signal }).catch(() => {})]);
  late.abort();
  if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
}
