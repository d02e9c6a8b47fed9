#!/usr/bin/env node
// The program: cmd/main.ts, once its packages are there (bootstrap.mjs). Any Node from 20 on can run this.

import { asksForHelp, isInstalled, runProgram } from './bootstrap.mjs';

const args = process.argv.slice(2);

/**
 * Where files are read and written by libuv's threads, of which there are four otherwise (deploy/holdfast has the same). Of a
 * storage node, reads of a drive that hangs keep theirs for as long: two such drives would leave none to the others. Of a single
 * node, four writes into extents would leave none to reads.
 */
function threadsFor(command) {
  const count = { storage: '32', server: '16' }[command];
  return count === undefined ? {} : { UV_THREADPOOL_SIZE: count };
}

if (asksForHelp(args) && !isInstalled()) {
  process.stdout.write(
    'Usage: holdfast [command] [options]\n\n' +
      'Holdfast, an S3-compatible object store. Its packages are not installed yet, and help installs nothing:\n' +
      'run `npm ci`, or any command, and `holdfast --help` lists the commands and settings.\n',
  );
} else {
  await runProgram({ script: new URL('./main.ts', import.meta.url), args, env: threadsFor(args[0]) });
}
