// The load generator: a process of its own, told by one JSON argument, telling by JSON lines. A closed loop: each worker
// sends its next request when the answer to the last one is read, so latency and rate belong together.
import { build } from 'hdr-histogram-js';
import { cpuSecondsOf, threadCpuSecondsOf } from '../timing.ts';
import { LoadClient, succeed } from './client.ts';
import type { LatencyMs, LoadMessage, LoadResult, LoadSpec } from './spec.ts';
import { bucketOf, NoneLeft, Payload, preparedPath, WORKLOAD_TABLE } from './workloads.ts';

const PROGRESS_MS = 1000;
const PREPARE_WORKERS = 32;
const ERRORS_SHOWN = 5;
const MICROSECONDS_MAX = 600_000_000;

const tell = (message: LoadMessage) => process.stdout.write(`${JSON.stringify(message)}\n`);

function connect({ target }: LoadSpec, worker: number): LoadClient {
  const endpoints = target.endpoint.split(',');
  return new LoadClient({ ...target, endpoint: endpoints[worker % endpoints.length] ?? '' });
}

async function prepare(spec: LoadSpec, payload: Payload): Promise<void> {
  const client = connect(spec, 0);
  for (let index = 0; index < (spec.bucketCount ?? 1); index++) {
    const created = await client.send({ method: 'PUT', path: `/${bucketOf(spec, index)}` });
    if (created.status >= 300 && created.status !== 409) throw new Error(`CreateBucket: ${created.status}`);
  }
  await client.close();
  if (!WORKLOAD_TABLE[spec.workload].needsObjects || spec.isPrepared) return;
  const startedAt = performance.now();
  let next = 0;
  let told = startedAt;
  const worker = async (_: unknown, number: number) => {
    const own = connect(spec, number);
    while (next < spec.preparedCount) {
      await succeed(own, { method: 'PUT', path: preparedPath(spec, next++), ...payload.asBody() });
      if (performance.now() - told > PROGRESS_MS) {
        told = performance.now();
        tell({
          kind: 'progress',
          phase: 'prepare',
          operationCount: next,
          errorCount: 0,
          seconds: (told - startedAt) / 1000,
        });
      }
    }
    await own.close();
  };
  const workerCount = Math.min(PREPARE_WORKERS, Math.max(1, Math.floor(256e6 / Math.max(spec.sizeBytes, 1))));
  await Promise.all(Array.from({ length: workerCount }, worker));
}

function cpuByRole({ serverPids = {} }: LoadSpec): Record<string, number> {
  const sum = (pids: readonly number[]) => pids.reduce((seconds, pid) => seconds + cpuSecondsOf(pid), 0);
  return Object.fromEntries(Object.entries(serverPids).map(([role, pids]) => [role, sum(pids)]));
}

function cpuByThread({ serverPids = {} }: LoadSpec): Record<string, number> {
  const threads = Object.entries(serverPids).flatMap(([role, pids]) =>
    pids.flatMap((pid) =>
      [...threadCpuSecondsOf(pid)].map(([name, seconds]) => [`${role} ${name}`, seconds]),
    ),
  );
  return Object.fromEntries(threads);
}

/** What has been used since; what was not there then has used nothing. */
function used(now: Record<string, number>, from: Record<string, number>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(now).map(([name, seconds]) => [name, seconds - (from[name] ?? 0)]),
  );
}

class Meter {
  readonly histogram = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: MICROSECONDS_MAX,
    numberOfSignificantValueDigits: 3,
  });
  operationCount = 0;
  errorCount = 0;
  bytes = 0;
  keys = 0;
  readonly errors: string[] = [];

  fail(error: unknown): void {
    this.errorCount++;
    if (this.errors.length < ERRORS_SHOWN)
      this.errors.push(error instanceof Error ? error.message : String(error));
  }

  latency(): LatencyMs {
    const at = (percentile: number) => this.histogram.getValueAtPercentile(percentile) / 1000;
    return {
      mean: this.histogram.mean / 1000,
      p50: at(50),
      p90: at(90),
      p99: at(99),
      p999: at(99.9),
      max: this.histogram.maxValue / 1000,
    };
  }
}

async function measure(spec: LoadSpec, payload: Payload): Promise<LoadResult> {
  const workload = WORKLOAD_TABLE[spec.workload];
  const startedAt = performance.now();
  const measureFrom = startedAt + spec.warmupMs;
  const until = measureFrom + spec.durationMs;
  const meter = new Meter();
  let cpuFrom = process.cpuUsage();
  let serverCpuFrom = cpuByRole(spec);
  let threadCpuFrom = cpuByThread(spec);
  let endedAt = measureFrom;
  const warm = setTimeout(() => {
    cpuFrom = process.cpuUsage();
    serverCpuFrom = cpuByRole(spec);
    threadCpuFrom = cpuByThread(spec);
  }, spec.warmupMs);
  const progress = setInterval(() => {
    const seconds = (performance.now() - startedAt) / 1000;
    const phase = performance.now() < measureFrom ? 'warm-up' : 'measure';
    tell({
      kind: 'progress',
      phase,
      operationCount: meter.operationCount,
      errorCount: meter.errorCount,
      seconds,
    });
  }, PROGRESS_MS);
  const run = async (worker: number) => {
    const client = connect(spec, worker);
    for (let step = 0, now = performance.now(); now < until; step++) {
      const from = now;
      try {
        const moved = await workload.run({ spec, client, worker, step, payload });
        now = performance.now();
        // Only what lies wholly within the measured time counts.
        if (from >= measureFrom && now <= until) {
          meter.operationCount++;
          meter.bytes += moved.bytes;
          meter.keys += moved.keys;
          meter.histogram.recordValue(Math.max(1, Math.round((now - from) * 1000)));
          endedAt = Math.max(endedAt, now);
        }
      } catch (error) {
        if (error instanceof NoneLeft) break;
        now = performance.now();
        meter.fail(error);
      }
    }
    await client.close();
  };
  await Promise.all(Array.from({ length: spec.concurrency }, (_, worker) => run(worker)));
  clearTimeout(warm);
  clearInterval(progress);
  const cpu = process.cpuUsage(cpuFrom);
  const serverCpuSeconds = used(cpuByRole(spec), serverCpuFrom);
  const threadCpuSeconds = used(cpuByThread(spec), threadCpuFrom);
  return {
    workload: spec.workload,
    sizeBytes: spec.sizeBytes,
    concurrency: spec.concurrency,
    seconds: Math.max(0.001, (endedAt - measureFrom) / 1000),
    operationCount: meter.operationCount,
    errorCount: meter.errorCount,
    errors: meter.errors,
    bytes: meter.bytes,
    keys: meter.keys,
    latencyMs: meter.latency(),
    clientCpuSeconds: (cpu.user + cpu.system) / 1e6,
    ...(Object.keys(serverCpuSeconds).length > 0 && { serverCpuSeconds, threadCpuSeconds }),
  };
}

const spec = JSON.parse(process.argv[2] ?? '{}') as LoadSpec;
const payload = new Payload(spec);
if (!spec.workload.startsWith('plain-')) await prepare(spec, payload);
tell({ kind: 'result', result: await measure(spec, payload) });
