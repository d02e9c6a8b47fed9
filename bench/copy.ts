// Does a copy depend on the size of what is copied? Objects of 1 KiB to 5 GiB, copied into buckets of other shards of a
// cluster, one after the other. Its own cluster on this machine, or the one of --endpoint. The large ones are made of part copies,
// so that no bytes are needed. Ends with exit code 1 when a median is not below the aim. Run:
// npx node bench/copy.ts [--rounds N] [--buckets N] [--endpoint URL]
import { randomBytes } from 'node:crypto';
import { Command } from 'commander';
import { must } from '../src/base/assert.ts';
import { formatBytes } from '../src/cli/format.ts';
import { describeEnvironment } from './environment.ts';
import { LoadClient, succeed } from './load/client.ts';
import type { Target } from './load/spec.ts';
import { uploadByCopies } from './load/upload.ts';
import { addEndpointOptions, type EndpointOptions, openServer } from './measured-server.ts';
import { quantity } from './quantity.ts';
import { toPage, toTable } from './report.ts';
import { percentile } from './timing.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const AIM_MS = 10;
const WARM_UP_ROUNDS = 10;
/** What the large ones are made of. */
const PART_BYTES = 64 * MiB;
const SIZES = [KiB, 64 * KiB, MiB, PART_BYTES, 1024 * MiB, 5 * 1024 * MiB] as const;

interface Options extends EndpointOptions {
  rounds: number;
  buckets: number;
}

interface Run {
  target: Target;
  client: LoadClient;
  from: string;
  /** A bucket lies in the shard that its random id says: most of them in others than the source. */
  to: readonly string[];
}

const program = addEndpointOptions(new Command('copy'))
  .description('copies objects of all sizes across the shards of a cluster, by default one of its own')
  .option('--rounds <n>', 'copies of each size', quantity({ kind: 'integer', min: 1, max: 100_000 }), 200)
  .option(
    '--buckets <n>',
    'that are copied into, in turn',
    quantity({ kind: 'integer', min: 1, max: 500 }),
    8,
  );

async function main(options: Options): Promise<void> {
  const server = await openServer({ ...options, cluster: true });
  const { target } = server;
  // One gateway, so that the figures are of the copies and not of who is asked.
  const [endpoint = ''] = target.endpoint.split(',');
  const own = { ...target, endpoint };
  const client = new LoadClient(own);
  const name = `bench-${process.pid}-copy`;
  const to = Array.from({ length: options.buckets }, (_, index) => `${name}-to-${index}`);
  const run: Run = { target: own, client, from: `${name}-from`, to };
  try {
    await prepare(run);
    const tookMs = await copyAll(run, options.rounds);
    const table = toTable(
      ['object', 'median ms', 'p99 ms', 'max ms', 'slowest bucket, median ms'],
      tookMs.map(lineOf),
    );
    const environment = await describeEnvironment('npx node bench/copy.ts');
    process.stdout.write(toPage({ table, environment, bounds: undefined }));
    const isAimMissed = tookMs.some((perBucket) => percentile(perBucket.flat(), 50) >= AIM_MS);
    process.exitCode = isAimMissed ? 1 : 0;
  } finally {
    await client.close();
    await server.stop();
  }
}

async function prepare({ target, client, from, to }: Run): Promise<void> {
  for (const bucket of [from, ...to]) await succeed(client, { method: 'PUT', path: `/${bucket}` });
  for (const sizeBytes of SIZES) {
    const path = pathOf(from, sizeBytes);
    if (sizeBytes <= PART_BYTES) await succeed(client, { method: 'PUT', path, body: randomBytes(sizeBytes) });
    else {
      const parts = Array<Record<string, string>>(sizeBytes / PART_BYTES).fill({});
      await uploadByCopies(target, { path, source: pathOf(from, PART_BYTES), parts });
    }
  }
}

const pathOf = (bucket: string, sizeBytes: number) => `/${bucket}/${sizeBytes}`;

/** Of each size, of each bucket: what each copy took. Sizes alternate, so that drift of the machine hits all of them. */
async function copyAll({ client, from, to }: Run, rounds: number): Promise<number[][][]> {
  const tookMs = SIZES.map(() => to.map((): number[] => []));
  for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
    const at = (round + WARM_UP_ROUNDS) % to.length;
    for (const [sizeAt, sizeBytes] of SIZES.entries()) {
      const headers = { 'x-amz-copy-source': pathOf(from, sizeBytes) };
      const startedAt = performance.now();
      await succeed(client, { method: 'PUT', path: pathOf(must(to[at], 'a bucket'), sizeBytes), headers });
      if (round >= 0) tookMs[sizeAt]?.[at]?.push(performance.now() - startedAt);
    }
  }
  return tookMs;
}

function lineOf(perBucket: readonly number[][], sizeAt: number): string[] {
  const all = perBucket.flat();
  const slowest = Math.max(...perBucket.map((tookMs) => (tookMs.length === 0 ? 0 : percentile(tookMs, 50))));
  const figures = [percentile(all, 50), percentile(all, 99), percentile(all, 100), slowest];
  return [formatBytes(must(SIZES[sizeAt], 'a size')), ...figures.map((ms) => ms.toFixed(1))];
}

/** The smallest value that `share` of a hundred values do not exceed. */
await main(program.parse().opts<Options>());
