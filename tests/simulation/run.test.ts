// The command: it says its first seed before anything else, repeats a seed exactly, and fails when a seed does.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const PROGRAM = fileURLToPath(new URL('./run.ts', import.meta.url));

const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

function run(...args: string[]): { lines: string[]; code: number | null } {
  const options = { encoding: 'utf8', maxBuffer: OUTPUT_BYTES_MAX } as const;
  const { stdout, status } = spawnSync(process.execPath, [PROGRAM, ...args], options);
  return { lines: stdout.split('\n'), code: status };
}

test('begins with the seed, and ends with a summary', () => {
  const { lines, code } = run('--node', 'stand-in', '--seeds', '4', '--seed', '300', '--processes', '2');
  expect(lines[0]).toBe('seed 300');
  expect(lines[1]).toMatch(/^4 seeds, \d+ operations/);
  expect(lines).toContainEqual(expect.stringMatching(/^ +\d+\.\d % +\d+ x fault: /));
  expect(lines).toContain('4 seeds passed, 0 failed');
  expect(code).toBe(0);
});

test('a seed is replayed step by step', () => {
  const traced = () => run('--node', 'stand-in', '--seeds', '1', '--seed', '301', '--trace').lines;
  const [first, again] = [traced(), traced()];
  expect(first.length).toBeGreaterThan(5000);
  expect(again).toEqual(first);
});

test('so is one with all parts', () => {
  const parts = ['--parts', 'chunks,names,revocation'];
  const traced = () => run('--seeds', '1', '--seed', '303', '--trace', ...parts).lines;
  const [first, again] = [traced(), traced()];
  expect(first).toContain('1 seeds passed, 0 failed');
  expect(again).toEqual(first);
});

test('invalid arguments are refused', () => {
  expect(run('--seeds', 'many').code).not.toBe(0);
  expect(run('--node', 'none', '--seeds', '1').code).not.toBe(0);
  expect(run('--parts', 'none', '--seeds', '1').code).not.toBe(0);
});
