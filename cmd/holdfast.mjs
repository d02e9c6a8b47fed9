#!/usr/bin/env node
// The program: cmd/main.ts, once its packages are there (bootstrap.mjs). Any Node from 20 on can run this.

import { asksForHelp, isInstalled, runProgram } from './bootstrap.mjs';

const args = process.argv.slice(2);

/**
 * Reads of a drive that hangs keep their threads for as long: with four, which is what libuv has otherwise, two such drives of
 * a storage node would leave none to the others (deploy/holdfast has the same).
 */
function threadsFor(command) {
  return command === 'storage' ? { UV_THREADPOOL_SIZE: '32' } : {};
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
