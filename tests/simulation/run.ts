// `npm run sim -- --seeds N [--seed S]`: runs seeds one after another, in as many processes as there are cores, prints the
// first one before anything else, and ends with how often everything happened. A seed that fails is run again with its
// trace by `--seeds 1 --seed S --trace`.
import './few-partitions.ts';
import './small-steps.ts';
import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { AIMED_FAULTS, lastActOf } from './aimed-faults.ts';
import { driverOf } from './drivers.ts';
import { FAULT_NAMES, type FaultName } from './faults.ts';
import { metadataDriver } from './metadata-driver.ts';
import { createProduct } from './metadata-node.ts';
import type { NodeKind } from './node.ts';
import { isPartName, PART_BRANCHES, type PartName, partsOf } from './parts.ts';
import { createStandIn } from './stand-in.ts';
import { runSeed, type SeedReport } from './world.ts';

const SEEDS_DEFAULT = 1000;
const SHARE_MIN = 0.02;
/** With fewer seeds a share says nothing. */
const SEEDS_FOR_SHARES = 300;
/** With so many each thing that is wanted happens at least once. */
const SEEDS_FOR_ALL = 100;
const FAILURES_SHOWN = 5;
const TRACE_LINES_SHOWN = 40;

/** What can run in the world. */
const KINDS: Readonly<Record<string, NodeKind>> = {
  product: createProduct(),
  'stand-in': createStandIn(),
};

/** What one process did, as plain data. */
interface Summary {
  seedCount: number;
  operationCount: number;
  unknownCount: number;
  stepCount: number;
  virtualMs: number;
  /** Name -> seeds in which it happened, and how often. */
  happened: Record<string, { seeds: number; times: number }>;
  failures: { seed: number; message: string; trace: string[] }[];
}

const print = (text: string) => process.stdout.write(`${text}\n`);

function emptySummary(): Summary {
  return {
    seedCount: 0,
    operationCount: 0,
    unknownCount: 0,
    stepCount: 0,
    virtualMs: 0,
    happened: {},
    failures: [],
  };
}

function addTo(summary: Summary, other: Summary): void {
  summary.seedCount += other.seedCount;
  summary.operationCount += other.operationCount;
  summary.unknownCount += other.unknownCount;
  summary.stepCount += other.stepCount;
  summary.virtualMs += other.virtualMs;
  summary.failures.push(...other.failures);
  for (const [name, { seeds, times }] of Object.entries(other.happened)) {
    const sum = summary.happened[name] ?? { seeds: 0, times: 0 };
    summary.happened[name] = { seeds: sum.seeds + seeds, times: sum.times + times };
  }
}

function summaryOf(report: SeedReport): Summary {
  const happened = report.counts.entries().map(([name, times]) => [name, { seeds: 1, times }] as const);
  const { operationCount, unknownCount, stepCount, virtualMs } = report;
  return {
    seedCount: 1,
    operationCount,
    unknownCount,
    stepCount,
    virtualMs,
    happened: Object.fromEntries(happened),
    failures: [],
  };
}

async function runOne(
  seed: number,
  options: { kind: NodeKind; trace: boolean; parts: readonly PartName[] | undefined },
): Promise<Summary> {
  try {
    const onTrace = options.trace ? print : undefined;
    const driver = options.parts === undefined ? driverOf(seed) : metadataDriver;
    const drawn = options.kind.name === 'product' ? partsOf(seed, driver) : [];
    const parts = options.parts ?? drawn;
    const report = await runSeed({
      seed,
      driver,
      parts,
      kind: options.kind,
      ...(onTrace && { onTrace }),
    });
    if (options.trace) print(`seed ${seed}: ${report.stepCount} steps, trace ${report.traceHash}`);
    return summaryOf(report);
  } catch (error) {
    const { message, traceTail = [] } = error as Error & { traceTail?: readonly string[] };
    const isOurs = (error as Error).name === 'SimulationFailure';
    const shown = isOurs ? message : ((error as Error).stack ?? message);
    const trace = traceTail.slice(-TRACE_LINES_SHOWN);
    return { ...emptySummary(), seedCount: 1, failures: [{ seed, message: shown, trace }] };
  }
}

/** The part of the seeds that falls to one process of several. */
async function runPart(part: {
  first: number;
  end: number;
  index: number;
  processCount: number;
  kindName: string;
  trace: boolean;
  parts: readonly PartName[] | undefined;
}) {
  const summary = emptySummary();
  const kind = KINDS[part.kindName];
  if (kind === undefined) throw new Error(`no such node: ${part.kindName}`);
  for (let seed = part.first; seed < part.end; seed++) {
    // Every second seed is one of the slower state machine: each process has as many of them as the others.
    const pair = Math.floor((seed - part.first) / 2);
    if (pair % part.processCount !== part.index) continue;
    addTo(summary, await runOne(seed, { kind, trace: part.trace, parts: part.parts }));
  }
  return summary;
}

type Part = Parameters<typeof runPart>[0];

/** A simulated world is short-lived: it need not be copied to the old heap. Every core has a process of its own. */
const HEAP = ['--max-semi-space-size=64', '--single-threaded-gc'];

function runPartElsewhere(part: Part): Promise<Summary> {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(import.meta.url), [], {
      serialization: 'advanced',
      execArgv: HEAP,
    });
    let summary: Summary | undefined;
    child.on('message', (message) => {
      summary = message as Summary;
    });
    child.on('error', reject);
    child.on('exit', (code) => {
      if (summary !== undefined) resolve(summary);
      else reject(new Error(`a process of the simulation ended with ${code}`));
    });
    child.send(part);
  });
}

function report(summary: Summary, { kind, hasAllParts }: { kind: NodeKind; hasAllParts: boolean }): boolean {
  const { seedCount, failures, happened } = summary;
  print(
    `${seedCount} seeds, ${summary.operationCount} operations (${summary.unknownCount} of unknown outcome), ` +
      `${summary.stepCount} steps, ${(summary.virtualMs / 60_000).toFixed(0)} minutes of simulated time`,
  );
  const faults = FAULT_NAMES.filter((name: FaultName) => !kind.spared.includes(name));
  const isProduct = kind.name === 'product';
  const ofParts = isProduct && hasAllParts ? PART_BRANCHES : [];
  const lastActs = isProduct ? Object.keys(AIMED_FAULTS).map(lastActOf) : [];
  const wanted = [...faults.map((name) => `fault: ${name}`), ...lastActs, ...kind.branches, ...ofParts];
  let isEnough = true;
  for (const name of [...new Set([...wanted, ...Object.keys(happened).sort()])]) {
    const { seeds, times } = happened[name] ?? { seeds: 0, times: 0 };
    const share = seeds / seedCount;
    const shareMin = seedCount >= SEEDS_FOR_SHARES ? SHARE_MIN : 0;
    const isTooFew = seeds === 0 || share < shareMin;
    const isRare = wanted.includes(name) && isTooFew && seedCount >= SEEDS_FOR_ALL;
    if (isRare) isEnough = false;
    print(
      `${(100 * share).toFixed(1).padStart(6)} % ${String(times).padStart(8)} x ${name}${isRare ? '  TOO RARE' : ''}`,
    );
  }
  for (const { seed, message, trace } of failures.slice(0, FAILURES_SHOWN))
    print(`\nseed ${seed} FAILED: ${message}\n${trace.map((line) => `    ${line}`).join('\n')}`);
  print(`\n${seedCount - failures.length} seeds passed, ${failures.length} failed`);
  if (failures.length > 0) print(`failed: ${failures.map(({ seed }) => seed).join(' ')}`);
  return isEnough && failures.length === 0;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: String(SEEDS_DEFAULT) },
      seed: { type: 'string' },
      node: { type: 'string', default: 'product' },
      processes: { type: 'string', default: String(availableParallelism()) },
      trace: { type: 'boolean', default: false },
      /** Names of parts, or none, instead of those that each seed draws. */
      parts: { type: 'string' },
    },
  });
  const seedCount = Number(values.seeds);
  const first = values.seed === undefined ? Math.floor(Math.random() * 1e9) : Number(values.seed);
  const kind = KINDS[values.node];
  if (kind === undefined || !Number.isSafeInteger(seedCount) || !Number.isSafeInteger(first) || first < 0)
    throw new Error(`--seeds and --seed are whole numbers, --node one of ${Object.keys(KINDS).join(', ')}`);
  const only = values.parts?.split(',').filter((name) => name !== '');
  if (only !== undefined && !only.every(isPartName)) throw new Error('--parts: no such part');
  print(`seed ${first}`);
  const processCount = values.trace ? 1 : Math.max(1, Math.min(Number(values.processes), seedCount));
  const parts = Array.from({ length: processCount }, (_, index): Part => {
    const end = first + seedCount;
    return { first, end, index, processCount, kindName: values.node, trace: values.trace, parts: only };
  });
  const summary = emptySummary();
  const done = await Promise.all(processCount === 1 ? parts.map(runPart) : parts.map(runPartElsewhere));
  for (const part of done) addTo(summary, part);
  summary.failures.sort((one, other) => one.seed - other.seed);
  process.exitCode = report(summary, { kind, hasAllParts: only === undefined }) ? 0 : 1;
}

if (process.send === undefined) await main();
else
  process.once('message', (part) => {
    runPart(part as Part).then(
      (summary) => process.send?.(summary, () => process.disconnect()),
      (error) => {
        process.stderr.write(`${(error as Error).stack}\n`);
        process.exit(1);
      },
    );
  });
