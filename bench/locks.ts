// What object lock costs: PUTs of 4 KiB with lock headers, and extensions of retention, against PUTs without, all in one bucket
// that has a lock. In turn and in short rounds, so that each meets the same machine; where the server runs here, its processor
// time counts. Run: npx node bench/locks.ts [--rounds N] [--clients N] [--endpoint URL]
import { randomBytes } from 'node:crypto';
import { Command } from 'commander';
import { must } from '../src/base/assert.ts';
import { describeEnvironment } from './environment.ts';
import { LoadClient, type LoadRequest, succeed } from './load/client.ts';
import { addEndpointOptions, type EndpointOptions, openServer } from './measured-server.ts';
import { quantity } from './quantity.ts';
import { toPage, toTable } from './report.ts';
import { cpuSecondsOf, percentile } from './timing.ts';

const BODY = randomBytes(4096);
const DAY_MS = 86_400_000;
const ROUND_MS = 1500;
/** Objects whose retention is extended in turn, of each client. */
const LOCKED_KEYS = 64;
/** An end that is later than all that were given before. */
const firstEndMs = Date.now() + DAY_MS;

interface Options extends EndpointOptions {
  rounds: number;
  clients: number;
}

const count = (max: number) => quantity({ kind: 'integer', min: 1, max });
const program = addEndpointOptions(new Command('locks'))
  .description('PUTs with lock headers and extensions of retention, against PUTs without')
  .option('--rounds <n>', 'of each workload', count(1000), 8)
  .option('--clients <n>', 'at once', count(1000), 16);

type Work = (worker: number, step: number) => LoadRequest;

function lockHeaders(untilMs: number): Record<string, string> {
  return {
    'x-amz-object-lock-mode': 'GOVERNANCE',
    'x-amz-object-lock-retain-until-date': new Date(untilMs).toISOString(),
    'x-amz-object-lock-legal-hold': 'OFF',
  };
}

const lockedPath = (bucket: string, worker: number, step: number) =>
  `/${bucket}/locked/${worker}/${step % LOCKED_KEYS}`;

/** By name; the first is what the others are held against. */
function workloads(bucket: string): ReadonlyMap<string, Work> {
  return new Map<string, Work>([
    [
      'PUT 4 KiB',
      (worker, step) => ({ method: 'PUT', path: `/${bucket}/plain/${worker}/${step % 64}`, body: BODY }),
    ],
    [
      'PUT 4 KiB with lock headers',
      (worker, step) => ({
        method: 'PUT',
        path: `/${bucket}/put/${worker}/${step % 64}`,
        headers: lockHeaders(firstEndMs),
        body: BODY,
      }),
    ],
    [
      'PutObjectRetention, a later date',
      (worker, step) => {
        const untilMs = firstEndMs + DAY_MS + 1000 * step;
        const body = `<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>${new Date(untilMs).toISOString()}</RetainUntilDate></Retention>`;
        const path = lockedPath(bucket, worker, step);
        return { method: 'PUT', path, query: 'retention=', body: Buffer.from(body) };
      },
    ],
  ]);
}

interface Round {
  perSecond: number;
  /** Of the server, for one request, us. */
  cpuUs: number;
}

async function main(options: Options): Promise<void> {
  const server = await openServer(options);
  const pids = Object.values(server.pids).flat();
  const endpoints = server.target.endpoint.split(',');
  const clients = Array.from(
    { length: options.clients },
    (_, at) =>
      new LoadClient({ ...server.target, endpoint: must(endpoints[at % endpoints.length], 'an endpoint') }),
  );
  const bucket = `bench-${process.pid}-locks`;
  try {
    const headers = { 'x-amz-bucket-object-lock-enabled': 'true' };
    await succeed(must(clients[0], 'a client'), { method: 'PUT', path: `/${bucket}`, headers });
    await Promise.all(
      clients.map(async (client, worker) => {
        for (let step = 0; step < LOCKED_KEYS; step++)
          await succeed(client, {
            method: 'PUT',
            path: lockedPath(bucket, worker, step),
            headers: lockHeaders(firstEndMs),
            body: BODY,
          });
      }),
    );
    const lines = linesOf(await measureAll(clients, workloads(bucket), { pids, rounds: options.rounds }));
    const table = toTable(['workload', 'requests/s', 'server CPU, us', 'CPU of that of PUT'], lines);
    const environment = await describeEnvironment('npx node bench/locks.ts');
    process.stdout.write(toPage({ table, environment, bounds: undefined }));
  } finally {
    for (const client of clients) await client.close();
    await server.stop();
  }
}

async function measureAll(
  clients: readonly LoadClient[],
  works: ReadonlyMap<string, Work>,
  { pids, rounds }: { pids: readonly number[]; rounds: number },
): Promise<ReadonlyMap<string, Round[]>> {
  const measured = new Map<string, Round[]>([...works.keys()].map((name) => [name, []]));
  const steps = new Map<string, number>();
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const [name, work] of works) {
      const from = steps.get(name) ?? 0;
      const { requestCount, stepCount, seconds, cpuSeconds } = await runRound(clients, work, { from, pids });
      steps.set(name, from + stepCount);
      if (round === 0) continue;
      const perSecond = requestCount / seconds;
      measured.get(name)?.push({ perSecond, cpuUs: (1e6 * cpuSeconds) / requestCount });
    }
  }
  return measured;
}

async function runRound(
  clients: readonly LoadClient[],
  work: Work,
  { from, pids }: { from: number; pids: readonly number[] },
) {
  const cpu = () => pids.reduce((sum, pid) => sum + cpuSecondsOf(pid), 0);
  const cpuBefore = cpu();
  const startedAt = performance.now();
  const stepsOf = await Promise.all(
    clients.map(async (client, worker) => {
      let step = from;
      while (performance.now() - startedAt < ROUND_MS) await succeed(client, work(worker, step++));
      return step - from;
    }),
  );
  return {
    requestCount: stepsOf.reduce((sum, steps) => sum + steps, 0),
    stepCount: Math.max(...stepsOf),
    seconds: (performance.now() - startedAt) / 1000,
    cpuSeconds: cpu() - cpuBefore,
  };
}

const median = (values: readonly number[]) => percentile(values, 50);

/** Of each round its ratio counts, and of those the median. */
function linesOf(measured: ReadonlyMap<string, Round[]>): string[][] {
  const [plain = []] = measured.values();
  return [...measured].map(([name, rounds]) => {
    const ratios = rounds.map(({ cpuUs }, at) => cpuUs / (plain[at]?.cpuUs ?? 1));
    const perSecond = median(rounds.map((round) => round.perSecond)).toFixed(0);
    const cpuUs = median(rounds.map((round) => round.cpuUs)).toFixed(0);
    return [name, perSecond, cpuUs, `${(100 * median(ratios)).toFixed(1)} %`];
  });
}

await main(program.parse().opts<Options>());
