// What the load generator is told and what it tells back: plain data between two processes.

export const WORKLOADS = [
  'put',
  'get',
  'head',
  'list',
  'delete',
  'delete-objects',
  'copy',
  'multipart',
  'mixed',
  'plain-put',
  'plain-get',
] as const;
export type WorkloadName = (typeof WORKLOADS)[number];

export interface Target {
  /** http://HOST:PORT; several by comma: the requests in flight are spread over them. */
  endpoint: string;
  accessKey: string;
  secretKey: string;
  region: string;
}

export interface LoadSpec {
  target: Target;
  workload: WorkloadName;
  bucket: string;
  /** Over so many buckets objects are spread: `bucket`, `bucket-1` and so on. Default 1; of listings always 1. */
  bucketCount?: number;
  /** Bytes of each object (for multipart: of each part). */
  sizeBytes: number;
  /** Requests in flight, each on a connection of its own. */
  concurrency: number;
  durationMs: number;
  warmupMs: number;
  /** Objects written beforehand for reads, lists and copies. */
  preparedCount: number;
  /** They are there already, of an earlier run with the same bucket. */
  isPrepared?: boolean;
  /** Each PUT has a key of its own: nothing that was written is given up. */
  keepsAll?: boolean;
  /** `signed`: x-amz-content-sha256 is the digest; `unsigned`: UNSIGNED-PAYLOAD. */
  payload: 'signed' | 'unsigned';
  /** Of the measured server by role, where it runs on this machine: its CPU time is told, too. */
  serverPids?: Record<string, readonly number[]>;
}

export interface LatencyMs {
  mean: number;
  p50: number;
  p90: number;
  p99: number;
  p999: number;
  max: number;
}

export interface LoadResult {
  workload: WorkloadName;
  sizeBytes: number;
  concurrency: number;
  seconds: number;
  /** Requests that ended well. */
  operationCount: number;
  errorCount: number;
  /** The first few errors, for people. */
  errors: string[];
  bytes: number;
  /** Keys listed or deleted, where a request carries many. */
  keys: number;
  latencyMs: LatencyMs;
  clientCpuSeconds: number;
  /** By role, of the measured time, user and system, all threads. */
  serverCpuSeconds?: Record<string, number>;
  /** The same by thread: its role, name and number. */
  threadCpuSeconds?: Record<string, number>;
}

/** Lines that the generator prints on stdout. */
export type LoadMessage =
  | {
      kind: 'progress';
      phase: 'prepare' | 'warm-up' | 'measure';
      operationCount: number;
      errorCount: number;
      seconds: number;
    }
  | { kind: 'result'; result: LoadResult };
