// `npm test`: brings what the tests need, runs every check, and ends with one line of counts.
// Arguments: --no-install (never install system packages), the rest goes to vitest as it is (a file name filter).
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Refusal } from '../../src/base/refusal.ts';
import { bringClientPrograms, ROOT } from './client-programs.ts';
import { bringTestEtcd } from './etcd.ts';

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

const args = process.argv.slice(2);
const mayInstall = !args.includes('--no-install');
if (!bringClientPrograms({ mayInstall })) process.exit(1);
try {
  await bringTestEtcd({ mayInstall });
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  say(error.message);
  process.exit(1);
}

const results = [
  runCheck('format and lint', () => runTool('@biomejs/biome/bin/biome', ['check', '--error-on-warnings'])),
  runCheck('type check', () => runTool('typescript/bin/tsc', ['--noEmit', '-p', '.'])),
  runVitest(args.filter((arg) => arg !== '--no-install')),
];
const total = (kind: keyof Counts) => results.reduce((sum, counts) => sum + counts[kind], 0);
say(`\n${total('passed')} passed, ${total('failed')} failed, ${total('skipped')} skipped`);
process.exitCode = total('failed') === 0 ? 0 : 1;
