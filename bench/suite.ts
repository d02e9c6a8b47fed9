// The rows of the benchmark: which workloads, at which size and concurrency, and which bound of the machine each is
// held against.
import type { WorkloadName } from './load/spec.ts';

const KiB = 1024;
const MiB = 1024 * KiB;

export interface SuiteRow {
  name: string;
  workload: WorkloadName;
  sizeBytes: number;
  concurrency: number;
  preparedCount: number;
  /** What the figure counts. */
  unit: 'op/s' | 'MiB/s' | 'keys/s';
  /** The bound of machine.ts that it is a share of. */
  bound: 'http' | 'http-put' | 'http-get' | 'md5' | 'kv-small' | 'kv-large';
}

/** Short names, as `--only` takes them. */
export const SUITE: readonly SuiteRow[] = [
  {
    name: 'PUT 4 KiB x16',
    workload: 'put',
    sizeBytes: 4 * KiB,
    concurrency: 16,
    preparedCount: 0,
    unit: 'op/s',
    bound: 'kv-small',
  },
  {
    name: 'PUT 1 MiB x8',
    workload: 'put',
    sizeBytes: MiB,
    concurrency: 8,
    preparedCount: 0,
    unit: 'MiB/s',
    bound: 'kv-large',
  },
  {
    name: 'PUT 64 MiB x4',
    workload: 'put',
    sizeBytes: 64 * MiB,
    concurrency: 4,
    preparedCount: 0,
    unit: 'MiB/s',
    bound: 'kv-large',
  },
  {
    name: 'GET 4 KiB x16',
    workload: 'get',
    sizeBytes: 4 * KiB,
    concurrency: 16,
    preparedCount: 1000,
    unit: 'op/s',
    bound: 'http',
  },
  {
    name: 'GET 1 MiB x8',
    workload: 'get',
    sizeBytes: MiB,
    concurrency: 8,
    preparedCount: 64,
    unit: 'MiB/s',
    bound: 'http-get',
  },
  {
    name: 'GET 64 MiB x4',
    workload: 'get',
    sizeBytes: 64 * MiB,
    concurrency: 4,
    preparedCount: 4,
    unit: 'MiB/s',
    bound: 'http-get',
  },
  {
    name: 'HEAD x16',
    workload: 'head',
    sizeBytes: 4 * KiB,
    concurrency: 16,
    preparedCount: 1000,
    unit: 'op/s',
    bound: 'http',
  },
  {
    name: 'LIST 1000 x8',
    workload: 'list',
    sizeBytes: KiB,
    concurrency: 8,
    preparedCount: 10_000,
    unit: 'keys/s',
    bound: 'http',
  },
  {
    name: 'COPY 64 MiB x16',
    workload: 'copy',
    sizeBytes: 64 * MiB,
    concurrency: 16,
    preparedCount: 2,
    unit: 'op/s',
    bound: 'kv-small',
  },
  {
    name: 'DELETE x16',
    workload: 'delete',
    sizeBytes: KiB,
    concurrency: 16,
    preparedCount: 20_000,
    unit: 'op/s',
    bound: 'kv-small',
  },
  {
    name: 'DeleteObjects 1000 x4',
    workload: 'delete-objects',
    sizeBytes: KiB,
    concurrency: 4,
    preparedCount: 40_000,
    unit: 'keys/s',
    bound: 'kv-small',
  },
  {
    name: 'multipart 4 x 8 MiB x4',
    workload: 'multipart',
    sizeBytes: 8 * MiB,
    concurrency: 4,
    preparedCount: 0,
    unit: 'MiB/s',
    bound: 'kv-large',
  },
  {
    name: 'mixed 64 KiB x16',
    workload: 'mixed',
    sizeBytes: 64 * KiB,
    concurrency: 16,
    preparedCount: 1000,
    unit: 'op/s',
    bound: 'http',
  },
];
