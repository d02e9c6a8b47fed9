// Does a server stay as it is under the load of backup programs for an hour? One of its own with default settings and a fresh data
// folder takes packs of 16 MiB, small files, multipart uploads, reads, listings and deletes; each minute its memory, its processor
// time for a MiB and its disk are told. Ends with exit code 1 where the last third is worse than the second. Run:
// npx node bench/soak.ts [--minutes N] [--pace MIB_PER_SECOND] [--live BYTES] [--files N] [--clients N]
import { Command } from 'commander';
import { must } from '../src/base/assert.ts';
import { formatBytes, formatCount } from '../src/cli/format.ts';
import { describeEnvironment } from './environment.ts';
import { openServer } from './measured-server.ts';
import { quantity } from './quantity.ts';
import { median, toPage, toTable } from './report.ts';
import { BackupLoad, KINDS, type LoadFigures } from './soak/backup-load.ts';
import { type DiskUse, diskUseOf, metricsOf, rssBytesOf } from './soak/watched.ts';
import { cpuSecondsOf, percentile } from './timing.ts';

const MiB = 1024 * 1024;
const MINUTE_MS = 60_000;
const SAMPLES_OF_A_MINUTE = 12;
const MINUTES_OF_A_LINE = 10;
/** The last third over the second: more than this is growth, and not scatter. */
const GROWTH_MAX = 1.1;

interface Options {
  minutes: number;
  pace?: number;
  live: number;
  files: number;
  clients: number;
}

interface Minute extends LoadFigures {
  seconds: number;
  /** Samples of the minute. */
  rssBytes: number[];
  cpuSeconds: number;
  liveBytes: number;
  disk: DiskUse;
}

const say = (text: string) => process.stderr.write(`${text}\n`);

const program = new Command('soak')
  .description('a server of its own under the mixed load of backup programs, for a long time')
  .option('--minutes <n>', 'how long', quantity({ kind: 'integer', min: 1, max: 100_000 }), 60)
  .option(
    '--pace <mib>',
    'MiB a second, written and read; default: as fast as it goes',
    quantity({ kind: 'integer', min: 1, max: 100_000 }),
  )
  .option(
    '--live <bytes>',
    'of packs that are there once it has grown',
    quantity({ kind: 'bytes', min: 256 * MiB, max: 1e15 }),
    8192 * MiB,
  )
  .option(
    '--files <n>',
    'small files that are there then',
    quantity({ kind: 'integer', min: 1000, max: 1e8 }),
    20_000,
  )
  .option('--clients <n>', 'requests under way at once', quantity({ kind: 'integer', min: 1, max: 1000 }), 8);

async function main(options: Options): Promise<void> {
  const server = await openServer({ region: 'us-east' });
  const { pid, dataDir } = must(server.child, 'a server of our own');
  const load = new BackupLoad({
    target: server.target,
    bucket: 'soak',
    concurrency: options.clients,
    mibPerSecond: options.pace,
    packBytesMax: options.live,
    fileCountMax: options.files,
  });
  const minutes: Minute[] = [];
  let wrongKeys: string[] = [];
  try {
    const running = load.run();
    while (minutes.length < options.minutes) {
      const minute = must(
        await Promise.race([watchMinute({ pid, dataDir, load }), running.then(() => undefined)]),
        'the load goes on until it is ended',
      );
      minutes.push(minute);
      say(`${minutes.length} min: ${linesOf(minute)}`);
      say(`  ${await insideOf(server.target.endpoint)}`);
    }
    load.end();
    await running;
    wrongKeys = await load.wrongKeys();
  } finally {
    await server.stop();
  }
  for (const error of load.errors) say(`error: ${error}`);
  const environment = await describeEnvironment('npx node bench/soak.ts');
  process.stdout.write(toPage({ table: tableOf(minutes), environment, bounds: undefined }));
  const problems = [
    ...verdictOf(minutes),
    ...wrongKeys.map((key) => `lost, or there though deleted: ${key}`),
  ];
  process.stdout.write(`\n${problems.length === 0 ? 'it stays as it is' : problems.join('\n')}\n`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}

async function watchMinute(of: { pid: number; dataDir: string; load: BackupLoad }): Promise<Minute> {
  const { pid, dataDir, load } = of;
  const startedAt = performance.now();
  const cpuFrom = cpuSecondsOf(pid);
  const rssBytes: number[] = [];
  for (let sample = 1; sample <= SAMPLES_OF_A_MINUTE; sample++) {
    const dueMs = startedAt + (sample * MINUTE_MS) / SAMPLES_OF_A_MINUTE;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs - performance.now())));
    rssBytes.push(await rssBytesOf(pid));
  }
  const seconds = (performance.now() - startedAt) / 1000;
  const cpuSeconds = cpuSecondsOf(pid) - cpuFrom;
  return {
    ...load.takeFigures(),
    seconds,
    rssBytes,
    cpuSeconds,
    liveBytes: load.liveBytes,
    disk: await diskUseOf(dataDir),
  };
}

/** One line for people, of one minute or of several. */
function linesOf(minute: Minute): string {
  const kinds = KINDS.map((kind) => `${kind} ${latencyText(minute.latenciesMs.get(kind) ?? [])}`);
  const [rate, cpu, rss, live, disk, extents, errors] = cellsOf([minute]);
  return `${rate} MiB/s, CPU ${cpu} ms/MiB, RSS ${rss} MiB, live ${live}, disk ${disk}, ${extents} extents, ${errors} errors\n  ${kinds.join(', ')}`;
}

function latencyText(latenciesMs: readonly number[]): string {
  if (latenciesMs.length === 0) return 'none';
  const at = (share: number) => Math.round(percentile(latenciesMs, share));
  return `${latenciesMs.length} ${at(50)}/${at(99)} ms`;
}

/** What the server says of its own memory. */
async function insideOf(endpoint: string): Promise<string> {
  const metrics = await metricsOf(endpoint);
  const mib = (name: string) => Math.round((metrics.get(name) ?? Number.NaN) / MiB);
  const heap = mib('holdfast_nodejs_heap_size_used_bytes');
  const external = mib('holdfast_nodejs_external_memory_bytes');
  return `heap ${heap} MiB, external ${external} MiB, pending reclaim ${mib('holdfast_pending_reclaim_bytes')} MiB`;
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
const mean = (values: readonly number[]) => sum(values) / values.length;
const rateOf = (minutes: readonly Minute[]) =>
  sum(minutes.map(({ bytes }) => bytes)) / MiB / sum(minutes.map(({ seconds }) => seconds));
const cpuMsPerMiB = (minutes: readonly Minute[]) =>
  (sum(minutes.map(({ cpuSeconds }) => cpuSeconds)) * 1000 * MiB) / sum(minutes.map(({ bytes }) => bytes));
const rssOf = (minutes: readonly Minute[]) => mean(minutes.flatMap(({ rssBytes }) => rssBytes));
const diskShareOf = (minutes: readonly Minute[]) =>
  mean(minutes.map(({ disk, liveBytes }) => disk.bytes / liveBytes));

function cellsOf(minutes: readonly Minute[]): string[] {
  const last = must(minutes.at(-1), 'a minute');
  return [
    rateOf(minutes).toFixed(1),
    cpuMsPerMiB(minutes).toFixed(1),
    `${Math.round(rssOf(minutes) / MiB)} (${Math.round(Math.max(...minutes.flatMap(({ rssBytes }) => rssBytes)) / MiB)} at most)`,
    formatBytes(last.liveBytes),
    `${formatBytes(last.disk.bytes)} (${diskShareOf(minutes).toFixed(2)} of live)`,
    formatCount(last.disk.extentCount),
    String(sum(minutes.map(({ errorCount }) => errorCount))),
  ];
}

function tableOf(minutes: readonly Minute[]): string {
  const lines: string[][] = [];
  for (let from = 0; from < minutes.length; from += MINUTES_OF_A_LINE) {
    const part = minutes.slice(from, from + MINUTES_OF_A_LINE);
    const latencies = KINDS.map((kind) => {
      const all = part.flatMap(({ latenciesMs }) => latenciesMs.get(kind) ?? []);
      return latencyText(all);
    });
    lines.push([`${from + 1} to ${from + part.length}`, ...cellsOf(part), ...latencies]);
  }
  const heads = ['minutes', 'MiB/s', 'CPU ms/MiB', 'RSS MiB', 'live', 'disk', 'extents', 'errors'];
  return toTable([...heads, ...KINDS.map((kind) => `${kind}: number, p50/p99`)], lines);
}

/** What is worse in the last third than in the second, in which the store has its size; none for a short run. */
function verdictOf(minutes: readonly Minute[]): string[] {
  const problems: string[] = [];
  const errorCount = sum(minutes.map((minute) => minute.errorCount));
  if (errorCount > 0) problems.push(`${errorCount} errors`);
  const third = Math.floor(minutes.length / 3);
  if (third === 0) return problems;
  const [second, last] = [minutes.slice(-2 * third, -third), minutes.slice(-third)];
  const growth = {
    memory: rssOf(last) / rssOf(second),
    'CPU per MiB': cpuMsPerMiB(last) / cpuMsPerMiB(second),
    'time per MiB': rateOf(second) / rateOf(last),
    'disk over live bytes': diskShareOf(last) / diskShareOf(second),
    'median of pack PUT': packMedian(last) / packMedian(second),
  };
  for (const [what, ratio] of Object.entries(growth)) {
    say(`${what}: the last third has ${ratio.toFixed(3)} of the second`);
    if (ratio > GROWTH_MAX) problems.push(`${what} has grown: ${ratio.toFixed(2)} of the second third`);
  }
  return problems;
}

const packMedian = (minutes: readonly Minute[]) =>
  median(minutes.flatMap(({ latenciesMs }) => latenciesMs.get('pack PUT') ?? []));

await main(program.parse().opts<Options>());
