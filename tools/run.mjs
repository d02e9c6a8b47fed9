#!/usr/bin/env node
// The programs of developers: `npm test`, `npm run bench`, `npm run sim`. Like the product's they install what they need
// (cmd/bootstrap.mjs), with the packages of tests and benchmarks. --help prints, and does nothing else.

import { asksForHelp, isInstalled, runProgram } from '../cmd/bootstrap.mjs';

const PROGRAMS = {
  test: {
    script: '../tests/support/run/run-tests.ts',
    usage: `Usage: npm test -- [--group NAME] [--long] [--no-install] [path...]

Format and lint, types, and all tests; with paths the tests with one of these texts in their path. Vitest takes other
options. Installs what these tests need first: npm packages, client programs, etcd. The last line has the counts.

  --group NAME   the tests of one group, or check for format, lint and types: npm run test:NAME, npm run check
  --long         the long forms of tests that have one: npm run test:long
  --no-install   refuse instead of installing programs

  docs/internals/testing.md tells what the groups are.`,
  },
  sim: {
    script: '../tests/simulation/run.ts',
    usage: `Usage: npm run sim -- [options]

Runs a whole cluster in one process, on simulated clocks, network and disks, once for each seed.

  --seeds N      how many seeds (1000)
  --seed S       the first one; printed, and by chance when it is left out
  --trace        with one seed: print what happened
  docs/reliability.md has the rest`,
  },
  bench: {
    script: '../bench/run.ts',
    usage: `Usage: npm run bench -- [options]

Measures an S3 endpoint, by default a server of its own with a temporary data folder. Its options are listed here once the
packages are installed: npm ci`,
    hasHelp: true,
  },
};

const [name = '', ...args] = process.argv.slice(2);
const program = Object.hasOwn(PROGRAMS, name) ? PROGRAMS[name] : undefined;
if (program === undefined) {
  const usage = `Usage: node tools/run.mjs ${Object.keys(PROGRAMS).join('|')} [options]\n`;
  if (asksForHelp(process.argv.slice(2))) process.stdout.write(usage);
  else {
    process.stderr.write(usage);
    process.exitCode = 1;
  }
} else if (asksForHelp(args) && !(program.hasHelp && isInstalled())) {
  process.stdout.write(`${program.usage}\n`);
} else {
  await runProgram({ script: new URL(program.script, import.meta.url), args, isDevelopment: true });
}
