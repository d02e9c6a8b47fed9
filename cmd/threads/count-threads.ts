// How many threads a process has, by its settings and processors.
import { availableParallelism } from 'node:os';
import type { Config } from '../../src/config/schema.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { sharesPorts } from '../listening.ts';

/** Below it, threads would have to share a processor. */
const PROCESSORS_MIN = 4;

export interface ThreadCounts {
  /** Threads that serve clients; 1 without metadata threads: the main thread. */
  readonly gateway: number;
  /** Threads that have the shards; 0: the main thread. */
  readonly metadata: number;
}

export async function countThreads(config: Config): Promise<ThreadCounts> {
  const gateway = await countGatewayThreads(config);
  const { threads } = config.metadata;
  const byProcessors = gateway === 1 ? 0 : Math.floor(availableParallelism() / 4);
  const metadata = Math.min(threads === 'auto' ? byProcessors : threads, LIMITS.metadataThreadsMax);
  return { gateway, metadata };
}

/** How many threads serve clients. 1: the main thread, or one beside metadata threads. */
export async function countGatewayThreads(config: Config): Promise<number> {
  const { threads } = config.gateway;
  const processors = availableParallelism();
  const byMemory = Math.floor(config.memory.bodyBufferBytes / LIMITS.threadBodyBufferBytesMin);
  const byProcessors = processors < PROCESSORS_MIN ? 1 : Math.floor(processors / 2);
  const wanted = threads === 'auto' ? Math.min(byProcessors, byMemory, LIMITS.gatewayThreadsMax) : threads;
  return wanted > 1 && (await sharesPorts(config)) ? wanted : 1;
}
