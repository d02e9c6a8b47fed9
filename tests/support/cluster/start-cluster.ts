// A cluster of real processes for a test: etcd, metadata nodes, storage nodes and gateways, each a process with its data
// in a temporary folder, on free loopback ports, in a network that can be cut. What `holdfast cluster run` starts, by the
// same code; here its processes can be killed, stopped, gone on and started again by name.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DevCluster, ETCD } from '../../../cmd/cluster/dev-cluster.ts';
import type { ClusterStatus } from '../../../src/admin/status/cluster-status.ts';
import { readClusterStatus } from '../../../src/admin/status/read-cluster.ts';
import { loadConfig } from '../../../src/config/load.ts';
import type { Config } from '../../../src/config/schema.ts';
import { COMPILE_CACHE, ROOT } from '../run/root.ts';
import { type Ran, ranToEnd } from '../servers/process-ends.ts';
import type { Access } from '../servers/raw-s3.ts';
import { cleanEnvironment, type LogLine, settingVariables } from '../servers/start-server.ts';
import { type ClusterNetwork, createClusterNetwork } from './cluster-network.ts';
import { freePort, freePorts } from './free-ports.ts';

export { ETCD };

const HOST = '127.0.0.1';
const MAIN = join(ROOT, 'cmd', 'main.ts');
/** A look at the whole cluster opens connections to all of it, and takes a fifth of a second of CPU time. */
const LOOK_AGAIN_MS = 1000;
/** On a machine that others use as well. */
const HEALTHY_WITHIN_MS = 240_000;
const STARTS_MAX = 5;

export interface ClusterOptions {
  metadata?: number;
  storage?: number;
  gateways?: number;
  shards?: number;
  /** Of every process, by key. */
  settings?: Readonly<Record<string, string>>;
  /** By name of a process: where its data folder is, if not in the cluster's. */
  folders?: Readonly<Record<string, string>>;
}

export interface TestCluster {
  /** Of everything; of a process its name in it, and `logs/NAME.log`. */
  readonly folder: string;
  /** Its gateways, as root. */
  readonly gateways: readonly Access[];
  readonly network: ClusterNetwork;
  /** Of somebody who looks at it. */
  readonly config: Config;
  /** All processes by name, etcd too. */
  readonly names: readonly string[];
  /** What the processes' starts and ends have been. */
  readonly events: readonly string[];
  processId(name: string): number | undefined;
  /** kill -9. Resolves when it is gone. */
  kill(name: string): Promise<void>;
  /** Ends it gracefully. */
  end(name: string): Promise<void>;
  /** Starts one that is gone. */
  run(name: string): Promise<void>;
  /** SIGSTOP and SIGCONT. */
  pause(name: string): void;
  resume(name: string): void;
  /** Takes back what a test that has failed left behind. Resolves when it is healthy. */
  mend(): Promise<void>;
  /** A command of the program, of this cluster: `('shard', 'confirm', '0-3')`. */
  command(...args: string[]): Promise<Ran>;
  /** Starts one that goes on: a node, say. Who starts it ends it. */
  spawn(...args: string[]): ChildProcessWithoutNullStreams;
  /** What `holdfast cluster status --json` says. Rejects while etcd is away. */
  status(): Promise<ClusterStatus>;
  /** Resolves when everybody is there and nothing is wrong. Rejects with what is. */
  untilHealthy(withinMs?: number): Promise<ClusterStatus>;
  /** The name of the process with this node id. */
  nameOf(nodeId: string): Promise<string>;
  /** Everything a process has logged, over all its starts. */
  logOf(name: string): Promise<LogLine[]>;
  /** Ends all and removes the folder. */
  stop(): Promise<void>;
}

/** Resolves when it is healthy. Where several clusters begin at once etcd may be too late for the first command. */
export async function startCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  for (let left = STARTS_MAX - 1; ; left--) {
    try {
      return await startOnce(options);
    } catch (error) {
      if (left === 0 || !String(error).includes('etcd does not answer')) throw error;
    }
    for (const target of Object.values(options.folders ?? {}))
      for (const name of await readdir(target)) await rm(join(target, name), { recursive: true });
  }
}

async function startOnce(options: ClusterOptions): Promise<TestCluster> {
  const { metadata = 3, storage = 3, gateways = 2, shards = 4 } = options;
  // One thread also where there are many processors: each takes memory, and a test says how many it wants.
  const variables = settingVariables({ 'gateway.threads': '1', ...options.settings });
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-cluster-'));
  const numbered = (role: string, count: number) =>
    Array.from({ length: count }, (_, index) => `${role}-${index + 1}`);
  const nodes = [...numbered('metadata', metadata), ...numbered('storage', storage)];
  const names = [...nodes, ...numbered('gateway', gateways), ETCD];
  const processes = () =>
    new Map(
      names.flatMap((name) => {
        const pid = cluster.processId(name);
        return pid === undefined ? [] : [[name, pid] as const];
      }),
    );
  const network = createClusterNetwork(processes);
  let etcdPort = 0;
  const ways = new Map<string, string[]>();
  const etcdWays = new Map<string, number>();
  for (const name of nodes) {
    const port = await freePort();
    const proxyPort = await network.lead({ name, port: () => port });
    ways.set(name, ['--node-listen', `${HOST}:${port}`, '--node-advertise', `${HOST}:${proxyPort}`]);
  }
  for (const name of names) {
    etcdWays.set(name, await network.lead({ name: ETCD, from: name, port: () => etcdPort }));
  }
  for (const [name, target] of Object.entries(options.folders ?? {}))
    await symlink(target, join(folder, name));
  const events: string[] = [];
  const [listenPort = 0] = await freePorts(gateways);
  const cluster: DevCluster = new DevCluster(
    {
      metadata,
      storage,
      gateways,
      shards,
      dataDir: folder,
      restarts: false,
      logLevel: 'info',
      listen: `${HOST}:${listenPort}`,
      env: { ...cleanEnvironment(), NODE_COMPILE_CACHE: COMPILE_CACHE, ...variables },
      reach(name, etcdEndpoint) {
        etcdPort = Number(new URL(etcdEndpoint).port);
        return { args: ways.get(name) ?? [], etcdEndpoint: `https://localhost:${etcdWays.get(name)}` };
      },
    },
    (line) => events.push(line),
  );
  const stop = async () => {
    for (const name of names) if (cluster.processId(name) !== undefined) cluster.signal(name, 'SIGCONT');
    network.heal();
    await cluster.stop();
    await network.close();
    await rm(folder, { recursive: true, force: true });
  };
  const started = new RunningCluster({ folder, names, network, events, cluster, stop, nodes, gateways });
  try {
    await cluster.start();
    await started.open();
    return started;
  } catch (error) {
    const logs = await Promise.all(names.map((name) => started.logOf(name).then((lines) => lines.slice(-5))));
    await stop();
    throw new Error(`the cluster did not come up: ${JSON.stringify([events, logs])}`, { cause: error });
  }
}

interface Parts {
  folder: string;
  names: readonly string[];
  nodes: readonly string[];
  gateways: number;
  network: ClusterNetwork;
  events: readonly string[];
  cluster: DevCluster;
  stop(): Promise<void>;
}

class RunningCluster implements TestCluster {
  readonly folder: string;
  readonly names: readonly string[];
  readonly network: ClusterNetwork;
  readonly events: readonly string[];
  gateways: readonly Access[] = [];
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.folder = parts.folder;
    this.names = parts.names;
    this.network = parts.network;
    this.events = parts.events;
  }

  async open(): Promise<void> {
    const { cluster } = this.#parts;
    const credentials = await cluster.credentials();
    this.gateways = cluster.endpoints.map((endpoint) => ({ endpoint, ...credentials }));
    await this.untilHealthy();
  }

  processId(name: string): number | undefined {
    return this.#parts.cluster.processId(name);
  }

  kill(name: string): Promise<void> {
    return this.#parts.cluster.kill(name);
  }

  end(name: string): Promise<void> {
    return this.#parts.cluster.end(name);
  }

  run(name: string): Promise<void> {
    return this.#parts.cluster.run(name);
  }

  pause(name: string): void {
    this.#parts.cluster.signal(name, 'SIGSTOP');
  }

  resume(name: string): void {
    this.#parts.cluster.signal(name, 'SIGCONT');
  }

  async mend(): Promise<void> {
    this.network.heal();
    for (const name of [ETCD, ...this.names]) {
      if (this.processId(name) === undefined) await this.run(name);
      else this.resume(name);
    }
    await this.untilHealthy();
  }

  spawn(...args: string[]): ChildProcessWithoutNullStreams {
    const { cluster } = this.#parts;
    const secret = { HOLDFAST_CLUSTER_SECRET: cluster.secret };
    const env = { ...cleanEnvironment(), NODE_COMPILE_CACHE: COMPILE_CACHE, ...secret };
    const all = [MAIN, ...args, '--join', cluster.etcdEndpoint, ...cluster.etcdFlags];
    return spawn(process.execPath, all, { cwd: this.folder, env });
  }

  command(...args: string[]): Promise<Ran> {
    return ranToEnd(this.spawn(...args), `holdfast ${args.join(' ')}`);
  }

  get config(): Config {
    const { cluster } = this.#parts;
    return loadConfig({
      flags: { join: cluster.etcdEndpoint, ...cluster.etcdSettings },
      env: { HOLDFAST_CLUSTER_SECRET: cluster.secret },
    });
  }

  status(): Promise<ClusterStatus> {
    return readClusterStatus({ config: this.config });
  }

  async untilHealthy(withinMs = HEALTHY_WITHIN_MS): Promise<ClusterStatus> {
    const { nodes, gateways } = this.#parts;
    const endMs = performance.now() + withinMs;
    for (;;) {
      let problems: readonly string[];
      try {
        const status = await this.status();
        const missing = nodes.length + gateways - status.members.length;
        problems = missing > 0 ? [`${missing} members are missing`, ...status.alarms] : status.alarms;
        if (problems.length === 0) return status;
      } catch (error) {
        problems = [String(error)];
      }
      if (performance.now() > endMs) throw new Error(`not healthy: ${problems.join('; ')}`);
      await sleep(LOOK_AGAIN_MS);
    }
  }

  async nameOf(nodeId: string): Promise<string> {
    for (const name of this.#parts.nodes) {
      const { nodeId: id } = JSON.parse(await readFile(join(this.folder, name, 'node.json'), 'utf8'));
      if (id === nodeId) return name;
    }
    throw new Error(`no process has the node id ${nodeId}`);
  }

  async logOf(name: string): Promise<LogLine[]> {
    const text = await readFile(join(this.folder, 'logs', `${name}.log`), 'utf8').catch(() => '');
    return text.split('\n').flatMap((line) => {
      try {
        return [JSON.parse(line) as LogLine];
      } catch {
        return line === '' ? [] : [{ level: 'text', event: line }];
      }
    });
  }

  stop(): Promise<void> {
    return this.#parts.stop();
  }
}
