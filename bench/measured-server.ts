// The server that a benchmark measures: one of its own with a temporary data folder, with --cluster a whole cluster on
// this machine, or what --endpoint names.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { DevCluster, ETCD } from '../cmd/cluster/dev-cluster.ts';
import { must } from '../src/base/assert.ts';
import { freePorts } from '../tests/support/cluster/free-ports.ts';
import { settingVariables, startServer } from '../tests/support/servers/start-server.ts';
import type { Target } from './load/spec.ts';

export interface EndpointOptions {
  endpoint?: string;
  cluster?: true;
  accessKey?: string;
  secretKey?: string;
  region: string;
  threads?: string;
  metadataThreads?: string;
}

/** Adds what {@link openServer} takes. */
export function addEndpointOptions(program: Command): Command {
  return program
    .option('--endpoint <url>', 'measure this, several by comma (with --access-key and --secret-key)')
    .option('--cluster', 'measure a cluster: etcd, 3 metadata nodes, 3 storage nodes, 2 gateways')
    .option('--threads <n>', 'gateway.threads of a single server of our own')
    .option('--metadata-threads <n>', 'metadata.threads likewise')
    .option('--access-key <key>')
    .option('--secret-key <key>')
    .option('--region <name>', 'region in signatures', 'us-east');
}

export interface MeasuredServer {
  target: Target;
  /** By role, of what runs here: its CPU time and memory are told. */
  pids: Readonly<Record<string, readonly number[]>>;
  /** Of a single server of our own. */
  child?: { pid: number; dataDir: string };
  stop(): Promise<void>;
}

export async function openServer(options: EndpointOptions): Promise<MeasuredServer> {
  const { endpoint, accessKey = '', secretKey = '', region } = options;
  if (endpoint !== undefined)
    return { target: { endpoint, accessKey, secretKey, region }, pids: {}, stop: async () => {} };
  if (options.cluster) return openCluster(region);
  const { threads, metadataThreads } = options;
  const settings = {
    'log.level': 'warn',
    ...(threads !== undefined && { 'gateway.threads': threads }),
    ...(metadataThreads !== undefined && { 'metadata.threads': metadataThreads }),
  };
  const server = await startServer({ child: true, settings });
  const pid = must(server.pid, 'a child has a pid');
  return {
    target: {
      endpoint: server.endpoint,
      accessKey: server.accessKey,
      secretKey: server.secretKey,
      region,
    },
    pids: { server: [pid] },
    child: { pid, dataDir: server.dataDir },
    stop: async () => void (await server.stop()),
  };
}

const CLUSTER = { metadata: 3, storage: 3, gateway: 2 } as const;

async function openCluster(region: string): Promise<MeasuredServer> {
  const { cluster, stop } = await startOwnCluster(CLUSTER);
  const pidsOf = (role: string, count: number) =>
    Array.from({ length: count }, (_, index) =>
      must(cluster.processId(`${role}-${index + 1}`), 'a process that runs'),
    );
  const pids = Object.entries(CLUSTER).map(([role, count]) => [role, pidsOf(role, count)] as const);
  return {
    target: { endpoint: cluster.endpoints.join(','), ...(await cluster.credentials()), region },
    pids: { ...Object.fromEntries(pids), [ETCD]: [must(cluster.processId(ETCD), 'etcd runs')] },
    stop,
  };
}

export interface OwnCluster {
  cluster: DevCluster;
  dataDir: string;
  /** Removes its data, too. */
  stop(): Promise<void>;
}

/** With a temporary data folder. `settings`: of every process, by key. */
export async function startOwnCluster(
  counts: { metadata: number; storage: number; gateway: number },
  settings: Readonly<Record<string, string>> = {},
): Promise<OwnCluster> {
  const dataDir = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
  const [port] = await freePorts(counts.gateway);
  const cluster = new DevCluster(
    {
      metadata: counts.metadata,
      storage: counts.storage,
      gateways: counts.gateway,
      shards: 16,
      dataDir,
      listen: `127.0.0.1:${port}`,
      restarts: false,
      logLevel: 'warn',
      env: { ...process.env, ...settingVariables(settings) },
    },
    () => {},
  );
  const stop = async () => {
    await cluster.stop();
    await rm(dataDir, { recursive: true, force: true });
  };
  try {
    await cluster.start();
    return { cluster, dataDir, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The most that a process has had since its start. */
export async function peakRssMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
}
