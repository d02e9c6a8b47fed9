// The server that a benchmark measures: one of its own with a temporary data folder, or the one that --endpoint names.
import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { must } from '../src/lib/assert.ts';
import { startServer } from '../tests/support/start-server.ts';
import type { Target } from './load/spec.ts';

export interface EndpointOptions {
  endpoint?: string;
  accessKey?: string;
  secretKey?: string;
  region: string;
}

/** Adds what {@link openServer} takes. */
export function addEndpointOptions(program: Command): Command {
  return program
    .option('--endpoint <url>', 'measure this endpoint (with --access-key and --secret-key)')
    .option('--access-key <key>')
    .option('--secret-key <key>')
    .option('--region <name>', 'region in signatures', 'us-east');
}

export interface MeasuredServer {
  target: Target;
  /** Of a server of our own. */
  child?: { pid: number; dataDir: string };
  stop(): Promise<void>;
}

export async function openServer(options: EndpointOptions): Promise<MeasuredServer> {
  const { endpoint, accessKey = '', secretKey = '', region } = options;
  if (endpoint !== undefined)
    return { target: { endpoint, accessKey, secretKey, region }, stop: async () => {} };
  const server = await startServer({ child: true, settings: { 'log.level': 'warn' } });
  return {
    target: {
      endpoint: server.endpoint,
      accessKey: server.accessKey,
      secretKey: server.secretKey,
      region,
    },
    child: { pid: must(server.pid, 'a child has a pid'), dataDir: server.dataDir },
    stop: async () => void (await server.stop()),
  };
}

/** The most that a process has had since its start. */
export async function peakRssMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
}
