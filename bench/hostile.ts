// What one account, or somebody without any, can do to the others: runs the attacks of hostile/attacks.ts one by one
// against a server of its own, beside a well-behaved account, and prints what that one noticed and what memory it took.
// With --cluster both are at the first gateway of a cluster, and memory is that of its largest process.
// Run: npx node bench/hostile.ts [--seconds N] [--only WORD] [--keys N] [--scale N] [--threads N | --cluster]
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { must } from '../src/base/assert.ts';
import type { Access } from '../tests/support/servers/raw-s3.ts';
import { createAccount } from '../tests/support/servers/s3-api.ts';
import { describeEnvironment } from './environment.ts';
import { ATTACKS, prepare } from './hostile/attacks.ts';
import { neighbourWork, prepareNeighbour, type Work } from './hostile/neighbour.ts';
import { openServer } from './measured-server.ts';
import { quantity } from './quantity.ts';
import { toPage, toTable } from './report.ts';
import { percentile } from './timing.ts';

interface Options {
  seconds: number;
  keys: number;
  scale: number;
  only?: string;
  threads?: string;
  cluster?: true;
}

const PATIENCE_MS = 10_000;
/** How long memory is given to come back. */
const RECOVERY_MS = 15_000;

const count = (max: number) => quantity({ kind: 'integer', min: 1, max });
const program = new Command('hostile')
  .description('attacks of one account, and what a well-behaved one notices of them')
  .option('--seconds <n>', 'of each attack', count(600), 10)
  .option('--keys <n>', 'that the attacker lists', count(1_000_000), 20_000)
  .option('--scale <n>', 'times the usual number of connections', count(10), 1)
  .option('--only <word>', 'attacks whose name has this in it')
  .option('--threads <n>', 'gateway.threads of the single server')
  .option('--cluster', 'etcd, 3 metadata nodes, 3 storage nodes and 2 gateways in place of a single server');

interface Noticed {
  /** By work: ms. */
  readonly latencies: Map<string, number[]>;
  /** Answers that were not a success, by status; 0 where there was none. */
  readonly refusals: Map<number, number>;
  requests: number;
  peakMiB: number;
}

async function main({ seconds, keys, scale, only, ...form }: Options): Promise<void> {
  const server = await openServer({ region: 'us-east', ...form });
  try {
    const pids = Object.values(server.pids).flat();
    const [endpoint] = server.target.endpoint.split(',');
    const root = { ...server.target, endpoint: must(endpoint, 'an endpoint') };
    const [attacker, neighbour] = [await createAccount(root), await createAccount(root)];
    await prepare(attacker, keys);
    await prepareNeighbour(neighbour);
    const work = neighbourWork(neighbour, root, PATIENCE_MS);
    const lines = [lineOf('nobody', await watch(pids, work, seconds), await largestMiB(pids), 'none')];
    for (const [number, attack] of ATTACKS.entries()) {
      if (only !== undefined && !attack.name.includes(only)) continue;
      const attackerProcess = await begin(number, attacker, scale);
      const noticed = await watch(pids, work, seconds);
      const answered = await end(attackerProcess);
      await sleep(RECOVERY_MS);
      lines.push(lineOf(attack.name, noticed, await largestMiB(pids), answered));
      process.stderr.write(`${lines.at(-1)?.join(' | ')}\n`);
    }
    const heads = [
      'attack',
      ...work.map(({ name }) => `${name} p50/p99 ms`),
      'refused of',
      'RSS peak, after MiB',
      'attacker was answered',
    ];
    const environment = await describeEnvironment('npx node bench/hostile.ts');
    process.stdout.write(toPage({ table: toTable(heads, lines), environment, bounds: undefined }));
  } finally {
    await server.stop();
  }
}

function lineOf(name: string, noticed: Noticed, afterMiB: number, answered: string): string[] {
  const { latencies, refusals, requests, peakMiB } = noticed;
  const times = [...latencies.values()].map((values) =>
    values.length === 0
      ? 'none'
      : `${Math.round(percentile(values, 50))}/${Math.round(percentile(values, 99))}`,
  );
  const refused = [...refusals].map(([status, times]) => `${times} x ${status}`).join(', ') || '0';
  return [
    name,
    ...times,
    `${refused} of ${requests}`,
    `${Math.round(peakMiB)}, ${Math.round(afterMiB)}`,
    answered,
  ];
}

/** Runs the neighbour's work, each kind one after another, for so long. */
async function watch(pids: readonly number[], work: readonly Work[], seconds: number): Promise<Noticed> {
  const noticed: Noticed = {
    latencies: new Map(work.map(({ name }) => [name, []])),
    refusals: new Map(),
    requests: 0,
    peakMiB: 0,
  };
  const untilMs = performance.now() + seconds * 1000;
  const run = async ({ name, run: ask }: Work) => {
    while (performance.now() < untilMs) {
      const startedMs = performance.now();
      const status = await ask();
      noticed.requests++;
      noticed.latencies.get(name)?.push(performance.now() - startedMs);
      if (status < 200 || status >= 300)
        noticed.refusals.set(status, (noticed.refusals.get(status) ?? 0) + 1);
      await sleep(10);
    }
  };
  const look = async () => {
    for (; performance.now() < untilMs; await sleep(100)) {
      noticed.peakMiB = Math.max(noticed.peakMiB, await largestMiB(pids));
    }
  };
  await Promise.all([look(), ...work.map(run)]);
  return noticed;
}

/** Of the process that has most of it. */
async function largestMiB(pids: readonly number[]): Promise<number> {
  return Math.max(...(await Promise.all(pids.map(rssMiB))));
}

async function rssMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
}

interface AttackerProcess {
  readonly child: ChildProcess;
  /** The next line that it prints. */
  line(): Promise<string>;
}

async function begin(number: number, account: Access, scale: number): Promise<AttackerProcess> {
  const { endpoint, accessKey, secretKey } = account;
  const script = join(import.meta.dirname, 'hostile', 'attacker.ts');
  const facts = JSON.stringify({ account: { endpoint, accessKey, secretKey }, scale });
  const child = spawn(process.execPath, [script, String(number), facts], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: must(child.stdout, 'a pipe') })[Symbol.asyncIterator]();
  const line = async () => (await lines.next()).value ?? '';
  // An attack that cannot even be begun, because nothing is answered, is under way.
  await Promise.race([line(), sleep(5000)]);
  return { child, line };
}

/** What the attacker was answered, by status. */
async function end({ child, line }: AttackerProcess): Promise<string> {
  child.stdin?.end();
  let text = await line();
  if (text === 'begun') text = await line();
  const { answers, endedCount } = JSON.parse(text) as { answers: Record<string, number>; endedCount: number };
  const parts = Object.entries(answers).map(([status, times]) => `${times} x ${status}`);
  return `${parts.join(', ') || 'nothing'}; ${endedCount} ended`;
}

await main(program.parse().opts<Options>());
