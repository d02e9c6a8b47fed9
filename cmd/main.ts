// The command line: one subcommand each, its code loaded when it is called, so that none waits for another's.
// Runs under the locked Node, started by holdfast.mjs. No logic here: a subcommand reads settings and hands over.
import { setTimeout as sleep } from 'node:timers/promises';
import { Command, Help, Option } from 'commander';
import { toHex } from '../src/base/bytes/bytes.ts';
import { Refusal } from '../src/base/refusal.ts';
import { addClientCommands } from '../src/cli/commands.ts';
import { HEALTH_HELP } from '../src/cli/connection-help.ts';
import { formatPrinted } from '../src/cli/format.ts';
import { settingsHelp, valueNameOf } from '../src/config/help.ts';
import { checkVariables } from '../src/config/load.ts';
import { flagOf } from '../src/config/names.ts';
import { type Config, SETTINGS } from '../src/config/schema.ts';
import type { SettingRow } from '../src/config/setting-row.ts';
import { writeDurableFile } from '../src/platform/disk/durable-file.ts';
import { systemRandom } from '../src/platform/system-clock.ts';
import { AppError } from '../src/types/errors.ts';
import '../src/types/limit-relations.ts';
import { readVersion } from '../src/platform/version.ts';
import { addClusterCommands } from './cluster/commands.ts';
import { addShardCommands } from './cluster/shard-commands.ts';
import { endWithParent } from './end-with-parent.ts';
import type { HealthOptions } from './health.ts';
import { readConfig, withSecretsRead } from './read-config.ts';
import './source-paths.ts';

const ROWS: readonly SettingRow[] = SETTINGS;
/** Enough that no two commands ever have the same token. */
const TOKEN_BYTES = 16;

function buildProgram(): Command {
  const program = new Command('holdfast')
    .description('Holdfast, an S3-compatible object store.')
    .version(readVersion())
    .addHelpText('after', `\n${settingsHelp()}`)
    .showHelpAfterError('(holdfast --help lists the commands and settings)');
  const print = (line: string) => void process.stdout.write(`${formatPrinted(line)}\n`);
  // A mistyped one would be passed over by commands that read no settings.
  program.hook('preAction', () => checkVariables(process.env));
  addServerCommand(program);
  addRoleCommands(program);
  addHealthCommand(program);
  addSalvageCommand(program, print);
  const rebuildChunks = async (dataDir: string | undefined, how: { yes?: true }) => {
    const { rebuildChunks: rebuild } = await import('../src/admin/recovery/rebuild-chunks.ts');
    const flags = dataDir === undefined ? {} : { dataDir };
    return rebuild({ ...readConfig({ env: process.env, flags, configFile: undefined }), print, ...how });
  };
  const cluster = { print, nowMs: Date.now, withSettings, readSettings };
  addClusterCommands(program, cluster);
  addShardCommands(program, cluster);
  addClientCommands(program, {
    // Read when a command asks, so that a bad secret file does not stop the others.
    get env() {
      return withSecretsRead(process.env);
    },
    print,
    rebuildChunks,
    nowMs: Date.now,
    sleep,
    writeFile: writeDurableFile,
    newToken: () => toHex(systemRandom.bytes(TOKEN_BYTES)),
  });
  return program;
}

function addServerCommand(program: Command): void {
  const server = withSettings(program.command('server')).description(
    'start the server; its settings are listed below',
  );
  server.action(async () => {
    const { runServer } = await import('./server.ts');
    process.exit(await runServer(readSettings(server)));
  });
}

/** The processes of a cluster (design "A cluster"). */
function addRoleCommands(program: Command): void {
  const roles = {
    metadata: 'start a metadata node of a cluster',
    storage: 'start a storage node of a cluster',
    gateway: 'start a gateway of a cluster',
  } as const;
  for (const role of ['metadata', 'storage', 'gateway'] as const) {
    const command = withSettings(program.command(role)).description(
      `${roles[role]}; settings as of the server`,
    );
    if (role === 'metadata')
      command.option('--maintenance', 'open nothing: only tell what is here to cluster rebuild-coordination');
    command.action(async () => {
      const { runRole } = await import('./cluster/run-role.ts');
      const { maintenance: isAtRest = false } = command.opts<{ maintenance?: true }>();
      process.exit(await runRole(readSettings(command), { role, isAtRest }));
    });
  }
}

/** Exits with 0 when the process is well, else 1. */
function addHealthCommand(program: Command): void {
  const health = withSettings(program.command('health'), ['health.listen', 'listen', 'tls.mode', 'dataDir'])
    .description('ask a server or a node here whether it serves; its settings as it has them')
    .option('--endpoint <url>', 'where it is instead, as http://127.0.0.1:9100')
    .option('--url <url>', 'the same')
    .option('--live', 'ask whether it runs, which it may without being able to serve')
    .addHelpText('after', `\n${HEALTH_HELP}`);
  health.action(async () => {
    const { askHealth } = await import('./health.ts');
    await askHealth(readSettings(health), health.opts<HealthOptions>(), process.env);
  });
}

/** Exits with 0 when nothing is lost or all is done, 2 when something is lost and nothing was changed. */
function addSalvageCommand(program: Command, print: (line: string) => void): void {
  const command = withSettings(program.command('salvage'), ['dataDir'])
    .description('of a single node that does not run: go on without tables of chunks that are lost')
    .option('--yes', 'do it; otherwise it is only shown');
  command.action(async () => {
    const { salvage } = await import('../src/admin/recovery/salvage.ts');
    const { dataDir } = readSettings(command);
    process.exitCode = await salvage({ dataDir, print, ...command.opts<{ yes?: true }>() });
  });
}

/** Takes all settings as options, or those of `keys` beside options of its own. */
function withSettings(command: Command, keys?: readonly string[]): Command {
  const rows = keys === undefined ? ROWS : ROWS.filter(({ key }) => keys.includes(key));
  const flags = new Set<string | undefined>(['--config']);
  command.addOption(new Option('--config <path>'));
  for (const row of rows) {
    const flag = flagOf(row);
    if (flag === undefined) continue;
    const option = new Option(row.kind === 'boolean' ? `${flag} [value]` : `${flag} <${valueNameOf(row)}>`);
    flags.add(flag);
    command.addOption(option.argParser(row.kind === 'list' ? joinRepeated : String));
  }
  // They stand below by themselves; hidden options would not be suggested for mistyped ones.
  const { visibleOptions } = Help.prototype;
  command.configureHelp({
    formatHelp(shown, helper) {
      helper.visibleOptions = (of) =>
        visibleOptions.call(helper, of).filter(({ long }) => !flags.has(long ?? ''));
      return Help.prototype.formatHelp.call(helper, shown, helper);
    },
  });
  return command
    .addHelpText('after', `\n${settingsHelp(rows)}\n`)
    .showHelpAfterError(`(holdfast ${pathOf(command)} --help lists the settings)`);
}

/** `cluster init`, say. */
function pathOf(command: Command): string {
  const { parent } = command;
  return parent === null || parent.parent === null ? command.name() : `${pathOf(parent)} ${command.name()}`;
}

function readSettings(command: Command): Config {
  const options = command.opts<Record<string, string | true>>();
  return readConfig({
    env: process.env,
    flags: flagsByKey(options),
    configFile: options.config as string | undefined,
  });
}

function joinRepeated(item: string, earlier: string | undefined): string {
  return earlier === undefined ? item : `${earlier},${item}`;
}

/** Commander names an option after its flag in camelCase; the settings are named by key. */
function flagsByKey(options: Readonly<Record<string, string | true>>): Record<string, string> {
  const flags: Record<string, string> = {};
  for (const row of ROWS) {
    const flag = flagOf(row);
    const value = flag === undefined ? undefined : options[new Option(flag).attributeName()];
    if (value !== undefined) flags[row.key] = String(value);
  }
  return flags;
}

/** What we refuse, what a file or a socket refuses, and what a server answers: no fault of ours that needs a stack. */
function hasClearMessage(error: unknown): error is Error {
  return (
    error instanceof Refusal ||
    error instanceof AppError ||
    (error instanceof Error && 'syscall' in error && 'code' in error)
  );
}

endWithParent();
// Who reads what is printed may have read enough (`... | head`); what the command does goes on.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
try {
  await buildProgram().parseAsync();
} catch (error) {
  if (!hasClearMessage(error)) throw error;
  for (const line of error.message.split('\n')) process.stderr.write(`holdfast: ${formatPrinted(line)}\n`);
  process.exit(error instanceof Refusal ? error.exitCode : 1);
}
