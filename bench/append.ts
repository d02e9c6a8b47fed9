// What appends cost, and what they leave: the rate of appends of 1 KiB against PUTs of 1 KiB, compositions of two of them,
// and reads of an object of 1,023 appended pieces against a plain one of its size. Ends with exit code 1 when reads take
// more than twice as long. Run: npx node bench/append.ts [--seconds N] [--clients N] [--reads N] [--endpoint URL] [--cluster]
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { must } from '../src/base/assert.ts';
import { describeEnvironment } from './environment.ts';
import { LoadClient, type LoadRequest, succeed } from './load/client.ts';
import { addEndpointOptions, type EndpointOptions, openServer } from './measured-server.ts';
import { quantity } from './quantity.ts';
import { toPage, toTable } from './report.ts';
import { percentile, timed } from './timing.ts';

const KiB = 1024;
const APPENDS = 1023;
const READS_AIM = 2;
const ROUND_SECONDS = 1.5;
/** Until small pieces are folded, behind the last answer. */
const COMPACTED_AFTER_MS = 3000;

interface Options extends EndpointOptions {
  seconds: number;
  clients: number;
  reads: number;
}

const count = (max: number) => quantity({ kind: 'integer', min: 1, max });
const program = addEndpointOptions(new Command('append'))
  .description('appends and compositions against small PUTs, and what reads of appended objects take')
  .option('--seconds <n>', 'of each workload', count(3600), 10)
  .option('--clients <n>', 'at once', count(1000), 16)
  .option('--reads <n>', 'of each object', count(100_000), 300);

async function main(options: Options): Promise<void> {
  const server = await openServer(options);
  const [endpoint = ''] = server.target.endpoint.split(',');
  const target = { ...server.target, endpoint };
  const clients = Array.from({ length: options.clients }, () => new LoadClient(target));
  const bucket = `bench-${process.pid}-append`;
  try {
    await succeed(must(clients[0], 'a client'), { method: 'PUT', path: `/${bucket}` });
    const rates = await rateAll(clients, bucket, options.seconds);
    const reads = await readAll(must(clients[0], 'a client'), bucket, options.reads);
    const table = [
      toTable(['workload', 'requests/s', 'of PUT'], rates),
      toTable(['object', 'written, ms each', 'median ms', 'p99 ms'], reads.lines),
    ].join('\n');
    const environment = await describeEnvironment('npx node bench/append.ts');
    process.stdout.write(toPage({ table, environment, bounds: undefined }));
    process.exitCode = reads.ratio > READS_AIM ? 1 : 0;
  } finally {
    for (const client of clients) await client.close();
    await server.stop();
  }
}

/** In turn and in short rounds, so that each meets the same machine: of each round its ratio counts, and of those the median. */
async function rateAll(clients: LoadClient[], bucket: string, seconds: number): Promise<string[][]> {
  const body = randomBytes(KiB);
  const composition = Buffer.from(
    '<ComposeRequest><Component><Key>a</Key></Component><Component><Key>b</Key></Component></ComposeRequest>',
  );
  for (const key of ['a', 'b'])
    await succeed(must(clients[0], 'a client'), { method: 'PUT', path: `/${bucket}/${key}`, body });
  const workloads: [name: string, requestOf: (client: number, at: number) => LoadRequest][] = [
    ['PUT 1 KiB', (client, at) => ({ method: 'PUT', path: `/${bucket}/put-${client}-${at}`, body })],
    ['append 1 KiB', (client, at) => appendOf(`/${bucket}/log-${client}-${Math.floor(at / 200)}`, at, body)],
    [
      'compose of two',
      (client, at) => ({
        method: 'PUT',
        path: `/${bucket}/composed-${client}-${at}`,
        query: 'compose=',
        body: composition,
      }),
    ],
  ];
  const rates = workloads.map((): number[] => []);
  const roundCount = Math.ceil(seconds / ROUND_SECONDS);
  // One more: the first is for the compiler.
  for (let round = 0; round <= roundCount; round++) {
    for (const [index, [, requestOf]] of workloads.entries()) {
      const untilMs = performance.now() + ROUND_SECONDS * 1000;
      const done = await Promise.all(
        clients.map(async (client, at) => {
          let sent = 0;
          // Each round has objects of its own.
          for (; performance.now() < untilMs; sent++)
            await succeed(client, requestOf(at + 10_000 * round, sent));
          return sent;
        }),
      );
      if (round > 0) rates[index]?.push(done.reduce((sum, one) => sum + one, 0) / ROUND_SECONDS);
    }
  }
  const [puts = []] = rates;
  return workloads.map(([name], index) => {
    const own = rates[index] ?? [];
    const ratios = own.map((rate, round) => rate / must(puts[round], 'a rate'));
    return [name, percentile(own, 50).toFixed(0), percentile(ratios, 50).toFixed(2)];
  });
}

/** 200 appends to each object, the first request of which makes it. */
function appendOf(path: string, at: number, body: Buffer): LoadRequest {
  return { method: 'PUT', path, body, ...(at % 200 > 0 && { query: 'append=' }) };
}

async function readAll(client: LoadClient, bucket: string, reads: number) {
  const plain = `/${bucket}/plain`;
  const appended = `/${bucket}/appended`;
  const plainMs = await timed(() =>
    succeed(client, { method: 'PUT', path: plain, body: randomBytes(KiB * (APPENDS + 1)) }),
  );
  await succeed(client, { method: 'PUT', path: appended, body: randomBytes(KiB) });
  const appendedMs = await timed(async () => {
    for (let at = 0; at < APPENDS; at++)
      await succeed(client, { method: 'PUT', path: appended, query: 'append=', body: randomBytes(KiB) });
  });
  await sleep(COMPACTED_AFTER_MS);
  const tookMs = { [plain]: [] as number[], [appended]: [] as number[] };
  for (let at = 0; at < reads; at++) {
    for (const [path, took] of Object.entries(tookMs))
      took.push(await timed(() => succeed(client, { method: 'GET', path })));
  }
  const [one = [], other = []] = [tookMs[plain], tookMs[appended]];
  const line = (name: string, writtenMs: number, took: number[]) =>
    [name, writtenMs, percentile(took, 50), percentile(took, 99)].map((cell) =>
      typeof cell === 'number' ? cell.toFixed(2) : cell,
    );
  const lines = [
    line('1 MiB, in one PUT', plainMs, one),
    line(`1 MiB, in ${APPENDS} appends`, appendedMs / APPENDS, other),
  ];
  return { lines, ratio: percentile(other, 50) / percentile(one, 50) };
}

await main(program.parse().opts<Options>());
