// holdfast cluster run: a whole cluster on this machine, of real processes, to try and to test: etcd, metadata nodes,
// storage nodes, gateways. It keeps its data for the next start, and looks after its processes as a service manager would.
// Tests start it in their own process and do harm to its parts by name (tests/support/cluster/start-cluster.ts).
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { must } from '../../src/base/assert.ts';
import { toHex } from '../../src/base/bytes/bytes.ts';
import { Refusal } from '../../src/base/refusal.ts';
import { loadConfig } from '../../src/config/load.ts';
import { writeDurableFile } from '../../src/platform/disk/durable-file.ts';
import { makeFolder } from '../../src/platform/disk/make-folder.ts';
import { type EtcdProcess, type EtcdTls, startEtcd } from '../../src/platform/etcd/etcd-process.ts';
import { bringEtcd } from '../../src/platform/etcd/etcd-program.ts';
import { systemClock, systemRandom } from '../../src/platform/system-clock.ts';
import { refuseTaken, writeEndpointFile } from '../listening.ts';
import { processSettings } from '../process-settings.ts';
import { onSignals } from '../signals.ts';
import { endLeftEtcd, makeEtcdCertificates, noteEtcd } from './dev-etcd.ts';
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
  /** Default: this process's own. */
  env?: Readonly<Record<string, string | undefined>>;
  /** More arguments of one process, `metadata-1` say, and where it finds etcd if not at `etcdEndpoint`. */
  reach?(name: string, etcdEndpoint: string): { args: readonly string[]; etcdEndpoint: string };
}

type Role = 'metadata' | 'storage' | 'gateway';

interface Part {
  name: string;
  role: Role;
  args: string[];
  child: ChildProcess | undefined;
  /** Resolves when the child of now is gone. */
  exited: Promise<void>;
}

/** The name under which etcd is started and stopped here. */
export const ETCD = 'etcd';

/** A parent that ends early must not leave them behind. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Runs until it is stopped; resolves with the exit code. */
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

export class DevCluster {
  readonly #options: DevClusterOptions;
  readonly #print: (line: string) => void;
  readonly #folder: string;
  readonly #parts: Part[] = [];
  #etcdProgram = '';
  #etcd: EtcdProcess | undefined;
  #etcdTls: EtcdTls | undefined;
  #isEtcdGone = false;
  #secret = '';
  #isStopping = false;

  constructor(options: DevClusterOptions, print: (line: string) => void) {
    this.#options = options;
    this.#print = print;
    this.#folder = resolve(options.dataDir);
  }

  /** Resolves when every gateway is ready. */
  async start(): Promise<void> {
    // Otherwise a foreign process there would be taken for a ready gateway.
    for (const { host, port } of this.#addresses) await refuseTaken({ host, port });
    await makeFolder(join(this.#folder, 'logs'), 0o700);
    this.#secret = await this.#readSecret();
    this.#etcdTls = await makeEtcdCertificates(join(this.#folder, 'etcd-keys'));
    await endLeftEtcd(this.#etcdPidFile, this.#etcdFolder);
    this.#etcdProgram = await bringEtcd({ cacheFolder: CACHE, mayFetch: true, print: this.#print });
    await this.#startEtcd();
    await this.#init();
    this.#addParts();
    for (const part of this.#parts) this.#spawn(part);
    await this.#untilReady();
    // For `holdfast account` and the like, with --data-dir of the keys. No gateway does: they share that folder.
    await writeEndpointFile(this.#keys, must(this.endpoints[0], 'a gateway'));
    await this.#printStatus();
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    // Those that others need go last.
    for (const role of ['gateway', 'storage', 'metadata'] as const)
      await Promise.all(this.#parts.filter((part) => part.role === role).map((part) => end(part)));
    await this.#etcd?.stop();
  }

  /** Of the gateways, in order. */
  get endpoints(): readonly string[] {
    return this.#addresses.map(({ host, port }) => `http://${host}:${port}`);
  }

  get #addresses(): { host: string; port: number }[] {
    const { host, port } = this.#listen;
    return Array.from({ length: this.#options.gateways }, (_, index) => ({ host, port: port + index }));
  }

  get etcdEndpoint(): string {
    return must(this.#etcd, 'etcd has been started').endpoint;
  }

  get #etcdFolder(): string {
    return join(this.#folder, 'etcd');
  }

  get #etcdPidFile(): string {
    return join(this.#folder, 'etcd.pid');
  }

  /** By which etcd lets somebody in, by key of the setting. */
  get etcdSettings(): Readonly<Record<'etcd.ca' | 'etcd.cert' | 'etcd.key', string>> {
    const { ca, cert, key } = must(this.#etcdTls, 'etcd has been started');
    return { 'etcd.ca': ca, 'etcd.cert': cert, 'etcd.key': key };
  }

  /** The same as options of a command. */
  get etcdFlags(): readonly string[] {
    const { ca, cert, key } = must(this.#etcdTls, 'etcd has been started');
    return ['--etcd-ca', ca, '--etcd-cert', cert, '--etcd-key', key];
  }

  /** What its processes have in common. */
  get secret(): string {
    return this.#secret;
  }

  /** Of the root account. */
  async credentials(): Promise<{ accessKey: string; secretKey: string }> {
    return JSON.parse(await readFile(join(this.#keys, 'root-credentials.json'), 'utf8'));
  }

  /** undefined: it does not run. */
  processId(name: string): number | undefined {
    if (name === ETCD) return this.#isEtcdGone ? undefined : this.#etcd?.pid;
    return this.#part(name).child?.pid;
  }

  /** Sends a signal to a process by its name, {@link ETCD} too. False when it does not run. */
  signal(name: string, signal: NodeJS.Signals): boolean {
    if (name !== ETCD) return this.#part(name).child?.kill(signal) === true;
    this.#etcd?.signal(signal);
    return true;
  }

  /** As a crash does. Resolves when it is gone. */
  async kill(name: string): Promise<void> {
    if (name === ETCD) await this.#etcd?.kill();
    else {
      const part = this.#part(name);
      part.child?.kill('SIGKILL');
      await part.exited;
    }
  }

  /** Gracefully. */
  async end(name: string): Promise<void> {
    if (name === ETCD) await this.#etcd?.stop();
    else await end(this.#part(name));
  }

  /** Starts one that has ended, with what it had. Etcd serves when this resolves. */
  async run(name: string): Promise<void> {
    if (name === ETCD) await this.#startEtcd();
    else if (this.#part(name).child === undefined) this.#spawn(this.#part(name));
  }

  #part(name: string): Part {
    return must(
      this.#parts.find((part) => part.name === name),
      `a process called ${name}`,
    );
  }

  get #listen(): { host: string; port: number } {
    const { listen } = this.#options;
    const at = listen.lastIndexOf(':');
    return { host: listen.slice(0, at), port: Number(listen.slice(at + 1)) };
  }

  async #startEtcd(): Promise<void> {
    const etcd = await startEtcd({
      path: this.#etcdProgram,
      dataDir: this.#etcdFolder,
      clock: systemClock,
      ...(this.#etcdTls && { tls: this.#etcdTls }),
      // Where its clients look for it.
      ...(this.#etcd && { clientPort: this.#etcd.clientPort }),
    });
    this.#etcd = etcd;
    this.#isEtcdGone = false;
    await noteEtcd(this.#etcdPidFile, etcd.pid);
    void etcd.exited.then(({ code, signal }) => {
      this.#isEtcdGone = true;
      if (this.#isStopping) return;
      this.#print(`${ETCD} has ended (${signal ?? code})`);
      if (this.#options.restarts) void this.#restartEtcd();
    });
  }

  async #restartEtcd(): Promise<void> {
    while (!this.#isStopping) {
      await sleep(RESTART_AFTER_MS);
      if (this.#isStopping) return;
      try {
        await this.#startEtcd();
        this.#print(`${ETCD} runs again as process ${this.#etcd?.pid}`);
        return;
      } catch (error) {
        this.#print(`${ETCD} does not start: ${(error as Error).message}`);
      }
    }
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
    const config = loadConfig({
      flags: { join: this.etcdEndpoint, ...this.etcdSettings },
      env: rootCredentials(),
    });
    const counts = {
      shardCount: shards,
      replicaCount: Math.min(3, metadata),
      chunkCopies: Math.min(3, storage),
    };
    try {
      await initCluster(config, { out: this.#keys, ...counts });
    } catch (error) {
      // Of an earlier start: its data is here.
      if (!(error instanceof Refusal) || !/already/.test(error.message)) throw error;
    }
  }

  #addParts(): void {
    const { metadata, storage, gateways } = this.#options;
    const { host, port } = this.#listen;
    const add = (role: Role, number: number, args: string[]) =>
      this.#parts.push({
        name: `${role}-${number}`,
        role,
        args,
        child: undefined,
        exited: Promise.resolve(),
      });
    for (let number = 1; number <= metadata; number++)
      add('metadata', number, ['--node-zone', `zone-${number}`]);
    for (let number = 1; number <= storage; number++)
      add('storage', number, ['--node-zone', `zone-${number}`]);
    for (let number = 1; number <= gateways; number++)
      add('gateway', number, ['--listen', `${host}:${port + number - 1}`, '--cluster-keys', this.#keys]);
  }

  #spawn(part: Part): void {
    const { reach, env, logLevel } = this.#options;
    const log = openSync(join(this.#folder, 'logs', `${part.name}.log`), 'a', 0o600);
    const { args: more, etcdEndpoint } = reach?.(part.name, this.etcdEndpoint) ?? {
      args: [],
      etcdEndpoint: this.etcdEndpoint,
    };
    const { flags, environment } = processSettings(part.role);
    const args = [
      ...[...flags, MAIN, part.role, '--join', etcdEndpoint, ...this.etcdFlags, '--log-level', logLevel],
      ...['--data-dir', join(this.#folder, part.name), ...part.args, ...more],
    ];
    const child = spawn(process.execPath, args, {
      // By the channel it notices that this process has gone (cmd/end-with-parent.ts).
      stdio: ['ignore', log, log, 'ipc'],
      env: {
        ...environment,
        ...(env ?? process.env),
        HOLDFAST_CLUSTER_SECRET: this.#secret,
      },
    });
    closeSync(log);
    child.channel?.unref();
    running.add(child);
    part.child = child;
    part.exited = new Promise((resolve) => {
      child.on('exit', (code, signal) => {
        running.delete(child);
        part.child = undefined;
        resolve();
        if (this.#isStopping) return;
        this.#print(`${part.name} has ended (${signal ?? code})`);
        if (this.#options.restarts) void this.#restart(part);
      });
    });
  }

  async #restart(part: Part): Promise<void> {
    await sleep(RESTART_AFTER_MS);
    if (this.#isStopping || part.child !== undefined) return;
    this.#spawn(part);
    this.#print(`${part.name} runs again as process ${this.processId(part.name)}`);
  }

  async #untilReady(): Promise<void> {
    const readyByMs = performance.now() + READY_MAX_MS;
    for (const endpoint of this.endpoints) {
      while (!(await isReady(endpoint))) {
        if (performance.now() > readyByMs || this.#isStopping)
          throw new Refusal(`${endpoint} is not ready; see ${join(this.#folder, 'logs')}`);
        await sleep(200);
      }
    }
  }

  /** For commands about the cluster: where etcd is, and what it and the nodes want to see. Returns the file. */
  async #writeOperatorSettings(): Promise<string> {
    const path = join(this.#folder, 'operator.json');
    const settings = {
      join: this.etcdEndpoint,
      etcd: this.#etcdTls,
      cluster: { secret: this.#secret },
    };
    await writeDurableFile(path, `${JSON.stringify(settings, undefined, 2)}\n`);
    return path;
  }

  async #printStatus(): Promise<void> {
    const { accessKey } = await this.credentials();
    this.#print(`endpoints: ${this.endpoints.join(' ')}`);
    this.#print(`access key: ${accessKey}`);
    this.#print(`secret key: in ${join(this.#keys, 'root-credentials.json')}`);
    this.#print(`etcd: ${this.etcdEndpoint} (process ${this.#etcd?.pid})`);
    for (const { name, child } of this.#parts) this.#print(`${name}: process ${child?.pid}`);
    this.#print(`status: npx holdfast cluster status --config ${await this.#writeOperatorSettings()}`);
    this.#print('ready');
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

async function end({ child, exited }: Part): Promise<void> {
  if (child === undefined) return;
  child.kill('SIGTERM');
  // One that was stopped could not go.
  child.kill('SIGCONT');
  const late = new AbortController();
  const isLate = sleep(STOP_MAX_MS, undefined, { signal: late.signal }).catch(() => {});
  await Promise.race([exited, isLate]);
  late.abort();
  child.kill('SIGKILL');
  await exited;
}
