// `npm run bench`: measures every row of the suite, each with a server of its own (or --endpoint) and in a fresh generator
// process, and then the machine, whose writes would cost the first row a tenth of its CPU; with --against it alternates
// between the two endpoints, so that drift of the machine hits both. Prints a table, and with --out writes table, JSON and
// chart.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Command } from 'commander';
import { describeEnvironment } from './environment.ts';
import { generate } from './load/generate.ts';
import type { LoadSpec, Target } from './load/spec.ts';
import { type MachineBounds, measureMachine, startPlainRelay, startPlainServer } from './machine.ts';
import {
  addEndpointOptions,
  type EndpointOptions,
  type MeasuredServer,
  openServer,
  peakRssMiB,
} from './measured-server.ts';
import { asUser } from './measured-user.ts';
import { type ReportRow, threadLines, toMarkdown, toPage, toSvg } from './report.ts';
import { SUITE, type SuiteRow } from './suite.ts';

const MiB = 1024 * 1024;

interface Options extends EndpointOptions {
  user?: true;
  against?: string;
  againstAccessKey?: string;
  againstSecretKey?: string;
  only?: string;
  seconds: string;
  warmup: string;
  rounds: string;
  payload: 'signed' | 'unsigned';
  buckets: string;
  out?: string;
  machine: boolean;
}

const program = addEndpointOptions(new Command('bench'))
  .description('measures an S3 endpoint, by default a server of its own with a temporary data folder')
  .option(
    '--user',
    'measure as a user with ten policies of ten statements, which --access-key makes and removes',
  )
  .option('--against <url>', 'measure this endpoint in turn, and print ratios')
  .option('--against-access-key <key>', 'default: as --access-key')
  .option('--against-secret-key <key>')
  .option('--only <text>', 'only rows whose name contains this, without regard to case; several by comma')
  .option('--seconds <n>', 'measured seconds of a row', '6')
  .option('--warmup <n>', 'seconds before them', '2')
  .option('--rounds <n>', 'times each row is measured; the median is shown', '1')
  .option('--buckets <n>', 'buckets over which objects are spread, but those that are listed', '1')
  .option('--payload <kind>', 'signed or unsigned bodies', 'unsigned')
  .option('--out <folder>', 'write results.md, results.json and results.svg there')
  .option('--no-machine', "skip the machine's own bounds");

const say = (text: string) => process.stderr.write(text);

async function main(options: Options): Promise<void> {
  const rows = SUITE.filter(({ name }) => isWanted(name, options.only));
  const other = openOther(options);
  const report: ReportRow[] = [];
  for (const row of rows) {
    // Each row has a server to itself: what one leaves behind (memory, compactions) is not the next one's.
    const server = await openServer(options);
    const own = options.user ? await asUser(server) : server;
    try {
      report.push(await measureRow({ row, own, other, options }));
    } finally {
      await own.stop();
    }
  }
  const bounds = options.machine ? await measureMachine() : undefined;
  if (bounds !== undefined) {
    say(
      `machine: ${JSON.stringify(bounds, (_, value) => (typeof value === 'number' ? Math.round(value) : value))}\n`,
    );
    for (const entry of report) {
      const bound = writeBound(entry.row, bounds);
      if (bound !== undefined) entry.bound = bound;
    }
  }
  const table = toMarkdown(report);
  process.stdout.write(`${table}\n`);
  if (options.out !== undefined) await writeReport({ folder: options.out, table, report, bounds });
}

function isWanted(name: string, only: string | undefined): boolean {
  if (only === undefined) return true;
  return only.split(',').some((text) => name.toLowerCase().includes(text.trim().toLowerCase()));
}

function openOther(options: Options): Target | undefined {
  if (options.against === undefined) return undefined;
  return {
    endpoint: options.against,
    accessKey: options.againstAccessKey ?? options.accessKey ?? '',
    secretKey: options.againstSecretKey ?? options.secretKey ?? '',
    region: options.region,
  };
}

async function measureRow(input: {
  row: SuiteRow;
  own: MeasuredServer;
  other: Target | undefined;
  options: Options;
}): Promise<ReportRow> {
  const { row, own, other, options } = input;
  const entry: ReportRow = { row, own: [], other: [] };
  for (let round = 0; round < Number(options.rounds); round++) {
    const spec = specOf({ row, options, bucket: `bench-${process.pid}-${SUITE.indexOf(row)}-${round}` });
    const result = await generate({ ...spec, target: own.target, serverPids: own.pids });
    entry.own.push(result);
    say(`  CPU by thread, µs: ${threadLines(row, result)}\n`);
    if (other !== undefined) entry.other.push(await generate({ ...spec, target: other }));
  }
  const pids = Object.values(own.pids).flat();
  if (pids.length > 0) entry.rssMaxMiB = (await Promise.all(pids.map(peakRssMiB))).reduce((a, b) => a + b);
  const bound = options.machine ? await readBound({ row, options, target: own.target }) : undefined;
  if (bound !== undefined) entry.bound = bound;
  return entry;
}

/** They work on pages of one bucket. */
const ONE_BUCKET: ReadonlySet<string> = new Set(['list', 'delete-objects']);

function specOf(input: { row: SuiteRow; options: Options; bucket: string }): Omit<LoadSpec, 'target'> {
  const { row, options, bucket } = input;
  return {
    workload: row.workload,
    bucket,
    ...(!ONE_BUCKET.has(row.workload) && { bucketCount: Number(options.buckets) }),
    sizeBytes: row.sizeBytes,
    concurrency: row.concurrency,
    preparedCount: row.preparedCount,
    durationMs: Number(options.seconds) * 1000,
    // What uses up what was prepared must not do so before the clock runs.
    warmupMs: row.workload.startsWith('delete') ? 0 : Number(options.warmup) * 1000,
    payload: options.payload,
  };
}

/** The rate that the machine allows a row that writes, in the row's unit. */
function writeBound(row: SuiteRow, bounds: MachineBounds): number | undefined {
  if (row.bound === 'kv-small') return row.unit === 'keys/s' ? undefined : bounds.kvSmallPerSecond;
  if (row.bound === 'kv-large') return Math.min(bounds.kvLargeMiBps, bounds.md5MiBps * row.concurrency);
  return undefined;
}

/** Of a row that reads: what a bare server gives at the row's own shape. */
async function readBound(input: {
  row: SuiteRow;
  options: Options;
  target: Target;
}): Promise<number | undefined> {
  const { row, options, target } = input;
  if (row.bound === 'kv-small' || row.bound === 'kv-large' || row.unit === 'keys/s') return undefined;
  // Of a cluster, the bytes of a large body come to the gateway from another process.
  const plain = await (options.cluster && row.bound === 'http-get' ? startPlainRelay() : startPlainServer());
  const spec = specOf({ row: { ...row, workload: 'plain-get' }, options, bucket: 'plain' });
  const result = await generate({
    ...spec,
    sizeBytes: row.workload === 'head' ? 0 : row.sizeBytes,
    target: { ...target, endpoint: plain.endpoint },
  });
  await plain.stop();
  return row.unit === 'MiB/s' ? result.bytes / MiB / result.seconds : result.operationCount / result.seconds;
}

async function writeReport(input: {
  folder: string;
  table: string;
  report: ReportRow[];
  bounds: MachineBounds | undefined;
}): Promise<void> {
  await mkdir(input.folder, { recursive: true });
  const environment = await describeEnvironment('npm run bench --');
  await writeFile(join(input.folder, 'results.md'), toPage({ ...input, environment }));
  await writeFile(
    join(input.folder, 'results.json'),
    `${JSON.stringify({ environment, bounds: input.bounds, rows: input.report }, null, 2)}\n`,
  );
  await writeFile(join(input.folder, 'results.svg'), toSvg(input.report));
}

await main(program.parse().opts<Options>());
