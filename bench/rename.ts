// What a rename of a prefix takes over HTTP, and what clients beside it notice: PUT and GET of 4 KiB with and without it;
// renames of single objects and of a bucket. Run: npx node bench/rename.ts [--keys N] [--seconds N] [--endpoint URL] [--cluster]
import { randomBytes } from 'node:crypto';
import { Command } from 'commander';
import { describeEnvironment } from './environment.ts';
import { LoadClient, type LoadRequest, succeed } from './load/client.ts';
import type { Target } from './load/spec.ts';
import { addEndpointOptions, type EndpointOptions, openServer } from './measured-server.ts';
import { quantity } from './quantity.ts';
import { toPage, toTable } from './report.ts';
import { percentile, timed } from './timing.ts';

const BODY = randomBytes(4096);
const WRITERS = 32;
const SINGLES = 2000;
const BUCKET_RENAMES = 50;

interface Options extends EndpointOptions {
  keys: number;
  seconds: number;
}

const count = (max: number) => quantity({ kind: 'integer', min: 1, max });
const program = addEndpointOptions(new Command('rename'))
  .description('renames of a prefix, of objects and of a bucket, and what clients beside the first notice')
  .option('--keys <n>', 'under the prefix', count(10_000_000), 50_000)
  .option('--seconds <n>', 'of the load without a rename', count(3600), 10);

async function main(options: Options): Promise<void> {
  const server = await openServer(options);
  const [endpoint = ''] = server.target.endpoint.split(',');
  const target = { ...server.target, endpoint };
  const bucket = `bench-${process.pid}-rename`;
  const client = new LoadClient(target);
  try {
    await succeed(client, { method: 'PUT', path: `/${bucket}` });
    await atOnce(target, options.keys, (at) => ({
      method: 'PUT',
      path: `/${bucket}/old/${at}`,
      body: BODY.subarray(0, 64),
    }));
    const before = await load(target, bucket, sleepFor(options.seconds));
    let tookMs = 0;
    const during = await load(target, bucket, async () => {
      tookMs = await timed(() =>
        succeed(client, move(`/${bucket}/old/`, 'new/', { 'x-svc-prefix': 'true', 'x-svc-quiet': 'true' })),
      );
    });
    const singles = await singleRates(target, bucket);
    const buckets = await renameBucket(client, bucket);
    const table = [
      toTable(
        ['what', ''],
        [
          [`${options.keys} keys of a prefix`, `${Math.round((1000 * options.keys) / tookMs)} keys/s`],
          ...singles,
          [
            'a bucket',
            `median ${percentile(buckets, 50).toFixed(1)} ms, p99 ${percentile(buckets, 99).toFixed(1)} ms`,
          ],
        ],
      ),
      toTable(
        ['4 KiB, 2 clients each', 'requests/s', 'p50 ms', 'p99 ms'],
        [
          ...lines('without a rename', before),
          ...lines('beside it', during),
          [
            'p99 beside : without',
            '',
            '',
            `PUT ${ratio(during.put, before.put)}, GET ${ratio(during.get, before.get)}`,
          ],
        ],
      ),
    ].join('\n');
    const environment = await describeEnvironment(
      `npx node bench/rename.ts --keys ${options.keys}${options.cluster ? ' --cluster' : ''}`,
    );
    process.stdout.write(toPage({ table, environment, bounds: undefined }));
  } finally {
    await client.close();
    await server.stop();
  }
}

function move(path: string, destination: string, headers: Record<string, string> = {}): LoadRequest {
  return { method: 'MOVE', path, headers: { destination, ...headers } };
}

const sleepFor = (seconds: number) => () =>
  new Promise<void>((resolve) => setTimeout(resolve, seconds * 1000));

/** So many requests over several connections; gives how many went in a second. */
async function atOnce(
  target: Target,
  total: number,
  requestOf: (at: number) => LoadRequest,
): Promise<number> {
  const clients = Array.from({ length: WRITERS }, () => new LoadClient(target));
  const indices = Array.from({ length: total }, (_, index) => index).values();
  const tookMs = await timed(() =>
    Promise.all(
      clients.map(async (client) => {
        for (const at of indices) await succeed(client, requestOf(at));
        await client.close();
      }),
    ),
  );
  return (1000 * total) / tookMs;
}

interface Latencies {
  put: number[];
  get: number[];
  tookMs: number;
}

/** Two clients that put and two that get, in the same bucket, until `work` is done. */
async function load(target: Target, bucket: string, work: () => Promise<unknown>): Promise<Latencies> {
  let hasEnded = false;
  const latencies: Latencies = { put: [], get: [], tookMs: 0 };
  const drive = async (into: number[], requestOf: (at: number) => LoadRequest) => {
    const client = new LoadClient(target);
    for (let at = 0; !hasEnded; at++) into.push(await timed(() => succeed(client, requestOf(at))));
    await client.close();
  };
  const path = (who: number, at: number) => `/${bucket}/load-${who}/${at % 100}`;
  for (const who of [0, 1]) for (let at = 0; at < 100; at++) await put(target, path(who, at));
  const drivers = [0, 1].flatMap((who) => [
    drive(latencies.put, (at) => ({ method: 'PUT', path: path(who, at), body: BODY })),
    drive(latencies.get, (at) => ({ method: 'GET', path: path(who, at) })),
  ]);
  latencies.tookMs = await timed(work);
  hasEnded = true;
  await Promise.all(drivers);
  return latencies;
}

async function put(target: Target, path: string): Promise<void> {
  const client = new LoadClient(target);
  await succeed(client, { method: 'PUT', path, body: BODY });
  await client.close();
}

async function singleRates(target: Target, bucket: string): Promise<string[][]> {
  const puts = await atOnce(target, SINGLES, (at) => ({
    method: 'PUT',
    path: `/${bucket}/one-${at}`,
    body: BODY.subarray(0, 1024),
  }));
  const moves = await atOnce(target, SINGLES, (at) => move(`/${bucket}/one-${at}`, `two-${at}`));
  return [
    ['PUT 1 KiB, 32 at once', `${Math.round(puts)}/s`],
    ['MOVE of one object, 32 at once', `${Math.round(moves)}/s`],
  ];
}

/** To and fro. */
async function renameBucket(client: LoadClient, bucket: string): Promise<number[]> {
  const took: number[] = [];
  for (let at = 0; at < BUCKET_RENAMES; at++) {
    const names = [bucket, `${bucket}-too`];
    const [from = '', to = ''] = at % 2 === 0 ? names : names.toReversed();
    took.push(await timed(() => succeed(client, move(`/${from}`, to))));
  }
  return took;
}

function lines(what: string, { put: puts, get: gets, tookMs }: Latencies): string[][] {
  return [['PUT', puts] as const, ['GET', gets] as const].map(([method, took]) => [
    `${method} ${what}`,
    String(Math.round((1000 * took.length) / tookMs)),
    percentile(took, 50).toFixed(1),
    percentile(took, 99).toFixed(1),
  ]);
}

function ratio(during: readonly number[], before: readonly number[]): string {
  return (percentile(during, 99) / percentile(before, 99)).toFixed(2);
}

await main(program.parse().opts<Options>());
