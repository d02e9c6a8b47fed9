// Whether a page of a listing costs more when the bucket holds more: pages of 1,000 keys from random places in a small
// bucket, a large one, and one whose keys have many old versions, in turn on one server. Run: npx node bench/listing.ts
// [--keys N] [--versions N] [--pages N]; filling the large bucket takes most of the time.
import { Command } from 'commander';
import { formatCount } from '../src/cli/format.ts';
import { describeEnvironment } from './environment.ts';
import { LoadClient, succeed } from './load/client.ts';
import type { Target } from './load/spec.ts';
import { listPage, PAGE_KEYS, preparedPath } from './load/workloads.ts';
import { addEndpointOptions, type EndpointOptions, openServer } from './measured-server.ts';
import { quantity } from './quantity.ts';
import { toPage, toTable } from './report.ts';

const ROUNDS = 3;
const FILL_IN_FLIGHT = 96;
const TELL_EVERY = 1000;
const EMPTY = Buffer.alloc(0);
const ENABLE_VERSIONING = Buffer.from(
  '<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Enabled</Status></VersioningConfiguration>',
);

interface Options extends EndpointOptions {
  keys: number;
  versions: number;
  pages: number;
}

interface ListedBucket {
  bucket: string;
  preparedCount: number;
  /** Of each key, beside the current one. */
  oldVersionCount: number;
  /** One per round. */
  p50Ms: number[];
  p90Ms: number[];
}

const say = (text: string) => process.stderr.write(text);

const program = addEndpointOptions(new Command('listing'))
  .description('lists a small and a large bucket in turn, by default of a server of its own')
  .option('--keys <n>', 'of the large bucket', quantity({ kind: 'integer', min: 1000, max: 1e8 }), 1_000_000)
  .option(
    '--versions <n>',
    'old versions of each key of the third bucket; 0: no such bucket',
    quantity({ kind: 'integer', min: 0, max: 1e5 }),
    100,
  )
  .option('--pages <n>', 'pages a figure', quantity({ kind: 'integer', min: 1, max: 1e6 }), 400);

async function main(options: Options): Promise<void> {
  const buckets = bucketsOf(options);
  const server = await openServer(options);
  try {
    for (const listed of buckets) await fill(server.target, listed);
    // What runs first would pay for code that is not compiled yet.
    for (const listed of buckets) await measure(server.target, listed, options.pages);
    for (let round = 1; round <= ROUNDS; round++) {
      for (const listed of buckets) {
        const { p50Ms, p90Ms } = await measure(server.target, listed, options.pages);
        listed.p50Ms.push(p50Ms);
        listed.p90Ms.push(p90Ms);
        say(`round ${round}, ${describe(listed)}: ${p50Ms.toFixed(1)}, ${p90Ms.toFixed(1)} ms\n`);
      }
    }
  } finally {
    await server.stop();
  }
  const environment = await describeEnvironment('npx node bench/listing.ts');
  process.stdout.write(toPage({ table: tableOf(buckets), environment, bounds: undefined }));
}

function bucketsOf({ keys, versions }: Options): ListedBucket[] {
  const open = (name: string, preparedCount: number, oldVersionCount = 0): ListedBucket => ({
    bucket: `bench-${process.pid}-${name}`,
    preparedCount,
    oldVersionCount,
    p50Ms: [],
    p90Ms: [],
  });
  const buckets = [open('small', PAGE_KEYS), open('large', keys)];
  return versions === 0 ? buckets : [...buckets, open('versions', PAGE_KEYS, versions)];
}

/** Key by key and then again from the first, so that requests in flight meet on no key. */
async function fill(target: Target, listed: ListedBucket): Promise<void> {
  const { bucket, preparedCount, oldVersionCount } = listed;
  const clients = Array.from({ length: FILL_IN_FLIGHT }, () => new LoadClient(target));
  const [first] = clients as [LoadClient];
  await succeed(first, { method: 'PUT', path: `/${bucket}` });
  if (oldVersionCount > 0) {
    await succeed(first, {
      method: 'PUT',
      path: `/${bucket}`,
      query: 'versioning=',
      body: ENABLE_VERSIONING,
    });
  }
  const putCount = preparedCount * (1 + oldVersionCount);
  let next = 0;
  const work = async (client: LoadClient) => {
    while (next < putCount) {
      const index = next++;
      await succeed(client, {
        method: 'PUT',
        path: preparedPath(listed, index % preparedCount),
        body: EMPTY,
      });
      if (index % TELL_EVERY === 0) say(`\r${describe(listed)}: ${formatCount(index)} written   `);
    }
    await client.close();
  };
  await Promise.all(clients.map(work));
  say(`\r${describe(listed)}: all written        \n`);
}

async function measure(
  target: Target,
  listed: ListedBucket,
  pageCount: number,
): Promise<{ p50Ms: number; p90Ms: number }> {
  const client = new LoadClient(target);
  const tookMs: number[] = [];
  for (let page = 0; page < pageCount; page++) {
    const startedAt = performance.now();
    await listPage(client, listed);
    tookMs.push(performance.now() - startedAt);
  }
  await client.close();
  tookMs.sort((a, b) => a - b);
  const at = (share: number) => tookMs[Math.floor(share * tookMs.length)] ?? Number.NaN;
  return { p50Ms: at(0.5), p90Ms: at(0.9) };
}

function describe({ preparedCount, oldVersionCount }: ListedBucket): string {
  const keys = `${formatCount(preparedCount)} keys`;
  return oldVersionCount === 0 ? keys : `${keys}, ${formatCount(oldVersionCount)} old versions of each`;
}

function tableOf(buckets: readonly ListedBucket[]): string {
  const show = (tookMs: readonly number[]) => `${tookMs.map((ms) => ms.toFixed(1)).join(', ')} ms`;
  const lines = buckets.map((listed) => [describe(listed), show(listed.p50Ms), show(listed.p90Ms)]);
  return toTable(['bucket', 'p50', 'p90'], lines);
}

await main(program.parse().opts<Options>());
