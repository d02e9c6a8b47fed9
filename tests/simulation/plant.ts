// `node tests/simulation/plant.ts [--bug NAME] [--seed S] [--seeds-max N] [--parts P]`: plants each bug of planted-bugs.ts in a copy of
// the program, runs seeds until one fails, and prints how many it took and what found it. Fails when one is not found.
import { spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type BugPlace, PLANTED_BUGS, type PlantedBug } from './planted-bugs.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const COPIED = ['src', 'tests', 'package.json', 'tsconfig.json'];
const SEEDS_MAX = '2000';
const SEEDS_AT_ONCE = 20;

const print = (text: string) => process.stdout.write(`${text}\n`);

interface Found {
  seedCount: number;
  seed: number;
  message: string;
}

/** Throws when the place is not there exactly once. */
export function plant(text: string, { from, to }: Pick<BugPlace, 'from' | 'to'>): string {
  const parts = text.split(from);
  if (parts.length !== 2) throw new Error(`${from}: its place is there ${parts.length - 1} times, not once`);
  return parts.join(to);
}

export function placesOf(bug: PlantedBug): BugPlace[] {
  return bug.also === undefined ? [bug] : [bug, bug.also];
}

async function copyWith(bug: PlantedBug): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-planted-'));
  for (const name of COPIED) await cp(join(ROOT, name), join(folder, name), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  for (const place of placesOf(bug)) {
    const path = join(folder, place.file);
    await writeFile(path, plant(await readFile(path, 'utf8'), place));
  }
  return folder;
}

interface Seeds {
  first: number;
  count: number;
  /** As --parts of the simulation. */
  parts: string | undefined;
}

function runSeeds(folder: string, { first, count, parts }: Seeds): Promise<string> {
  const args = ['tests/simulation/run.ts', '--seeds', `${count}`, '--seed', `${first}`];
  if (parts !== undefined) args.push('--parts', parts);
  return new Promise((resolve, reject) => {
    const processes = ['--processes', `${availableParallelism()}`];
    const child = spawn(process.execPath, [...args, ...processes], { cwd: folder });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.on('error', reject);
    child.on('close', () => resolve(output));
  });
}

async function find(
  folder: string,
  { first, max, parts }: { first: number; max: number; parts: string | undefined },
): Promise<Found | undefined> {
  for (let tried = 0; tried < max; tried += SEEDS_AT_ONCE) {
    const output = await runSeeds(folder, {
      first: first + tried,
      count: Math.min(SEEDS_AT_ONCE, max - tried),
      parts,
    });
    for (const seed of failedSeeds(output)) {
      // One that fails without the bug as well has not found it.
      if (failedSeeds(await runSeeds(ROOT, { first: seed, count: 1, parts })).length > 0) continue;
      const again = await runSeeds(folder, { first: seed, count: 1, parts });
      const message = /^seed \d+ FAILED: (.*)$/m.exec(again)?.[1] ?? 'not when it was repeated';
      return { seedCount: seed - first + 1, seed, message };
    }
  }
  return undefined;
}

function failedSeeds(output: string): number[] {
  if (!/ \d+ failed$/m.test(output)) throw new Error(`the simulation did not run: ${output.slice(-500)}`);
  return /^failed: (.*)$/m.exec(output)?.[1]?.split(' ').map(Number) ?? [];
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      bug: { type: 'string' },
      seed: { type: 'string', default: '1' },
      'seeds-max': { type: 'string', default: SEEDS_MAX },
      parts: { type: 'string' },
    },
  });
  const bugs = PLANTED_BUGS.filter(({ name }) => values.bug === undefined || name === values.bug);
  if (bugs.length === 0)
    throw new Error(`--bug is one of ${PLANTED_BUGS.map(({ name }) => name).join(', ')}`);
  print('| bug | breaks | seeds | found by |\n|---|---|---|---|');
  for (const bug of bugs) {
    const folder = await copyWith(bug);
    try {
      const { parts, 'seeds-max': max } = values;
      const found = await find(folder, { first: Number(values.seed), max: Number(max), parts });
      if (found === undefined) process.exitCode = 1;
      const what =
        found === undefined ? ['-', 'NOT FOUND'] : [`${found.seedCount}`, found.message.slice(0, 120)];
      print(`| ${bug.name} | ${bug.breaks} | ${what.join(' | ')} |`);
    } finally {
      await rm(folder, { recursive: true });
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
