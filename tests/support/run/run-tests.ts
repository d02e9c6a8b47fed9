// `npm test` and `npm run test:GROUP`: installs what the asked tests need, runs them, and ends with one line of counts.
// Arguments: --group NAME (a group of groups.ts, or check), --long (the long forms), --no-install (never install programs);
// the rest goes to vitest as it is: texts in the paths of files, and options.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Refusal } from '../../../src/base/refusal.ts';
import { bringClientPrograms } from '../clients/client-programs.ts';
import { bringTestEtcd } from '../cluster/etcd.ts';
import { GROUP_NAMES, type GroupName, projectsOf } from './groups.ts';
import { ROOT } from './root.ts';
import { filesOf, needsOf } from './test-needs.ts';

/** Beside the groups of tests. */
const CHECK = 'check' as const;

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** What vitest's JSON report says that we count. */
interface VitestReport {
  readonly success: boolean;
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Runs one of the tools under node_modules with this Node; returns its exit code. */
function runTool(script: string, args: readonly string[]): number {
  const path = join(ROOT, 'node_modules', script);
  return spawnSync(process.execPath, [path, ...args], { cwd: ROOT, stdio: 'inherit' }).status ?? 1;
}

/** A check that is one test of its own. */
function runCheck(name: string, run: () => number): Counts {
  say(`\n== ${name}`);
  const isPassed = run() === 0;
  say(isPassed ? `${name}: passed` : `${name}: FAILED`);
  return { passed: isPassed ? 1 : 0, failed: isPassed ? 0 : 1, skipped: 0 };
}

function runChecks(): Counts[] {
  return [
    runCheck('format and lint', () => runTool('@biomejs/biome/bin/biome', ['check', '--error-on-warnings'])),
    runCheck('type check', () => runTool('typescript/bin/tsc', ['--noEmit', '-p', '.'])),
  ];
}

function runVitest(args: readonly string[]): Counts {
  say('\n== tests');
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-report-'));
  try {
    const path = join(folder, 'report.json');
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${path}`];
    const exitCode = runTool('vitest/vitest.mjs', ['run', ...reporters, ...args]);
    const report = JSON.parse(readFileSync(path, 'utf8')) as VitestReport;
    // A file that cannot be loaded, or an error outside of every test, fails the run without failing a test.
    const isBroken = report.numFailedTests === 0 && (exitCode !== 0 || !report.success);
    return {
      passed: report.numPassedTests,
      failed: report.numFailedTests + (isBroken ? 1 : 0),
      skipped: report.numPendingTests + report.numTodoTests,
    };
  } catch (error) {
    say(`vitest left no report: ${(error as Error).message}`);
    return { passed: 0, failed: 1, skipped: 0 };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Installs what the files of these groups need, of those files that have one of `texts` in their path. */
async function bringNeeds(
  groups: readonly GroupName[],
  { texts, mayInstall }: { texts: readonly string[]; mayInstall: boolean },
): Promise<boolean> {
  // Unit tests need nothing, and a list of them takes time to read.
  const files = groups.filter((group) => group !== 'unit').flatMap(filesOf);
  const asked = files.filter((file) => texts.length === 0 || texts.some((text) => file.includes(text)));
  const needs = needsOf(asked);
  if (needs.has('client programs') && !bringClientPrograms({ mayInstall })) return false;
  if (!needs.has('etcd')) return true;
  try {
    await bringTestEtcd({ mayInstall });
    return true;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    say(error.message);
    return false;
  }
}

/** Ours are taken out; a group that is none ends the run. */
function readArguments(args: readonly string[]) {
  const { values, tokens } = parseArgs({
    args: [...args],
    options: {
      group: { type: 'string' },
      long: { type: 'boolean', default: false },
      'no-install': { type: 'boolean', default: false },
    },
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const ours = new Set<number>();
  for (const token of tokens) {
    if (token.kind !== 'option' || !['group', 'long', 'no-install'].includes(token.name)) continue;
    ours.add(token.index);
    if (token.name === 'group' && token.inlineValue === false) ours.add(token.index + 1);
  }
  const group = [...GROUP_NAMES, CHECK].find((name) => name === values.group);
  if (group === undefined && values.group !== undefined) {
    say(`There is no group ${values.group}; there are ${[...GROUP_NAMES, CHECK].join(', ')}`);
    process.exit(1);
  }
  return {
    group,
    isLong: values.long === true,
    mayInstall: values['no-install'] !== true,
    rest: args.filter((_, index) => !ours.has(index)),
  };
}

const { group, isLong, mayInstall, rest } = readArguments(process.argv.slice(2));
const results: Counts[] = [];
// Whoever asks for one group, or for paths, asks for no more than those.
if (group === CHECK || (group === undefined && rest.length === 0 && !isLong)) results.push(...runChecks());
if (group !== CHECK) {
  const projects = group === undefined ? [] : projectsOf(group);
  const groups = GROUP_NAMES.filter((name) => group === undefined || projects.includes(name));
  const texts = rest.filter((argument) => !argument.startsWith('-'));
  if (!(await bringNeeds(groups, { texts, mayInstall }))) process.exit(1);
  if (isLong) process.env.HOLDFAST_TEST_LONG = 'true';
  results.push(runVitest([...projects.map((name) => `--project=${name}`), ...rest]));
}
const total = (kind: keyof Counts) => results.reduce((sum, counts) => sum + counts[kind], 0);
say(`\n${total('passed')} passed, ${total('failed')} failed, ${total('skipped')} skipped`);
process.exitCode = total('failed') === 0 ? 0 : 1;
