// What is in deploy/, read as those read it who use it, and compared with the program: settings, subcommands and flags.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../../src/config/load.ts';
import type { Config } from '../../../src/config/schema.ts';
import { LIMITS } from '../../../src/types/limits.ts';
import { COMPILE_CACHE, ROOT } from '../run/root.ts';

export type Environment = Readonly<Record<string, string>>;

export interface ComposeService {
  readonly image: string;
  readonly command?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly environment?: Environment;
  readonly profiles?: readonly string[];
  readonly restart?: string;
  readonly user?: string;
  readonly privileged?: boolean;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly stop_grace_period?: string;
  readonly pids_limit?: number;
  readonly ulimits?: { nofile?: number };
  readonly logging?: { options?: Readonly<Record<string, string>> };
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly networks?: readonly string[];
  readonly secrets?: readonly { source: string; target: string }[];
  readonly healthcheck?: { test?: readonly string[]; disable?: boolean };
  readonly depends_on?: Readonly<Record<string, { condition: string }>>;
}

export interface ComposeFile {
  readonly name?: string;
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly volumes?: Readonly<Record<string, unknown>>;
  readonly secrets?: Readonly<Record<string, { file: string }>>;
  readonly networks?: Readonly<Record<string, NetworkEntry | null>>;
}

interface NetworkEntry {
  internal?: boolean;
  ipam?: { config: { subnet: string }[] };
}

export const deployPath = (name: string): string => join(ROOT, 'deploy', name);
export const readDeploy = (name: string): string => readFileSync(deployPath(name), 'utf8');

/** Variables of who starts it are not set: each stands for its default, or nothing. */
export function readCompose(name: string): ComposeFile {
  const text = readDeploy(name).replace(/\$\{\w+:-([^}]*)\}/g, '$1');
  return parse(text, { merge: true }) as ComposeFile;
}

/** Lines NAME=value, as a service manager reads them. */
export function readEnvironmentFile(text: string): Environment {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => {
      const [, name = '', value = ''] = /^([A-Z_]+)=(\S*)$/.exec(line) ?? [];
      expect(name, line).not.toBe('');
      return [name, value];
    }),
  );
}

/** What follows the key at the beginning of each line, of a container file or a unit. */
export function valuesOf(text: string, key: string): string[] {
  const joined = text.replace(/\\\n\s*/g, '');
  return [...joined.matchAll(new RegExp(`^${key}[ =](.*)$`, 'gm'))].map(([, value = '']) => value);
}

/** `NAME=a OTHER=b` of an ENV instruction, or one assignment of each of several lines. */
export function assignmentsOf(lines: readonly string[]): Environment {
  const pairs = lines.flatMap((line) => [...line.matchAll(/(\w+)=(\S*)/g)]);
  return Object.fromEntries(pairs.map(([, name = '', value = '']) => [name, value]));
}

/** What every container of the image has in its environment. */
export const imageEnvironment = (): Environment => assignmentsOf(valuesOf(readDeploy('Dockerfile'), 'ENV'));

/** The settings of a process with this environment. Throws for a variable of ours that is none, and for a bad value. */
export function settingsOf(environment: Environment): Config {
  return loadConfig({ env: environment });
}

const helps = new Map<string, string>();

/** What follows `holdfast` on a command line is a command that there is, and takes the options that it is given. */
export function expectCommand(words: readonly string[]): void {
  const firstOption = words.findIndex((word) => word.startsWith('-'));
  const command = (firstOption === -1 ? words : words.slice(0, firstOption)).join(' ');
  let help = helps.get(command);
  if (help === undefined) {
    const args = [join(ROOT, 'cmd', 'main.ts'), ...command.split(' '), '--help'];
    const env = { NODE_COMPILE_CACHE: COMPILE_CACHE };
    help = spawnSync(process.execPath, args, { encoding: 'utf8', env }).stdout;
    helps.set(command, help);
  }
  expect(help, `holdfast ${command}`).toContain(`Usage: holdfast ${command} `);
  const options = help.match(/--[a-z][a-z-]*/g) ?? [];
  for (const word of words.filter((word) => word.startsWith('--')))
    expect(options, `holdfast ${command}`).toContain(word.replace(/=.*/, ''));
}

/** How long a process may take from the signal to its end: requests in flight, then its stores, one behind another. */
export function endMaxMs(drainTimeoutMs: number): number {
  return drainTimeoutMs + 2 * LIMITS.storeCloseMaxMs;
}

/** `30s`, `6m`: in seconds. */
export function secondsOf(text: string | undefined): number {
  const [, count, unit = ''] = /^(\d+)(s|m|min)$/.exec(text ?? '') ?? [];
  expect(count, text).toBeDefined();
  return Number(count) * (unit === 's' ? 1 : 60);
}
