#!/usr/bin/env node
// The program: cmd/main.ts, once its packages are there (bootstrap.mjs). Any Node from 20 on can run this.

import { readFileSync } from 'node:fs';
import { asksForHelp, isInstalled, runProgram } from './bootstrap.mjs';

const args = process.argv.slice(2);

/** Of process-settings.json; process-settings.ts says what each of it is for. */
function settingsOf(command) {
  const byCommand = JSON.parse(readFileSync(new URL('./process-settings.json', import.meta.url), 'utf8'));
  return byCommand[command] ?? {};
}

if (asksForHelp(args) && !isInstalled()) {
  process.stdout.write(
    'Usage: holdfast [command] [options]\n\n' +
      'Holdfast, an S3-compatible object store. Its packages are not installed yet, and help installs nothing:\n' +
      'run `npm ci`, or any command, and `holdfast --help` lists the commands and settings.\n',
  );
} else {
  const { flags, environment } = settingsOf(args[0]);
  await runProgram({ script: new URL('./main.ts', import.meta.url), args, flags, env: environment });
}
