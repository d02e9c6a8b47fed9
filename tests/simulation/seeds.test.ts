// The cluster under many seeds, each with its faults, in as many processes as there are cores.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { amountOf } from '../support/run/long-form.ts';

const PROGRAM = fileURLToPath(new URL('./run.ts', import.meta.url));
/** The command judges of 100 that each fault and each branch has happened, of 300 and more how often. */
const SEED_COUNT = amountOf({ short: 100, long: 2000 });
/** A seed takes half a second of two cores; machines may have other things to do. */
const DURATION_MAX_MS = SEED_COUNT * 6000;
/** Of histories so tangled that the search for an order is given up: in so many of 100 seeds at most. */
const UNDECIDED_MAX = 3;

test(
  `${SEED_COUNT} seeds pass, and show each fault and each branch often enough`,
  async () => {
    const seeds = ['--seeds', String(SEED_COUNT), '--seed', '1'];
    const child = spawn(process.execPath, [PROGRAM, ...seeds], { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    const code = await new Promise((resolve) => child.on('close', resolve));
    // The command fails for a seed that does, and for what is too rare.
    expect(code, output).toBe(0);
    expect(output).toContain(`${SEED_COUNT} seeds passed, 0 failed`);
    const [, undecided = '0'] = /([\d.]+) % +\d+ x history undecided/.exec(output) ?? [];
    expect(Number(undecided)).toBeLessThanOrEqual(UNDECIDED_MAX);
  },
  DURATION_MAX_MS,
);
