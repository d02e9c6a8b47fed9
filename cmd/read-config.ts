// Reads what the settings come from (settings file, files of secrets, environment) and loads them.
// What may stand there and which source wins is src/config's.
import { readFileSync } from 'node:fs';
import { Refusal } from '../src/base/refusal.ts';
import { type ConfigSources, loadConfig, SettingsError, secretsIn } from '../src/config/load.ts';
import { CONFIG_FILE_VARIABLE, fileVariableOf, variableOf } from '../src/config/names.ts';
import { type Config, SETTINGS } from '../src/config/schema.ts';
import { readSecretFileSync } from '../src/platform/disk/secret-file.ts';

export interface ConfigInput {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Text of each given flag by setting key. */
  readonly flags: Readonly<Record<string, string>>;
  /** --config; the environment may name the file too. */
  readonly configFile?: string | undefined;
}

/** The settings of this run. Throws {@link SettingsError} for a file that cannot be read and for every bad value. */
export function readConfig(input: ConfigInput): Config {
  const sources: ConfigSources = { flags: input.flags, env: withSecretsRead(input.env) };
  const name = input.configFile ?? (input.env[CONFIG_FILE_VARIABLE] || undefined);
  if (name === undefined) return loadConfig(sources);
  const file = { name, text: readText(name, name) };
  // A file of settings without secrets may be anybody's to read.
  if (secretsIn(file).length > 0) readSecretText(name, name);
  return loadConfig({ ...sources, file });
}

/** Each NAME_FILE variable replaced by NAME with the file's text, without the line end that editors add. */
export function withSecretsRead(env: ConfigInput['env']): ConfigInput['env'] {
  const read: Record<string, string | undefined> = { ...env };
  for (const row of SETTINGS) {
    const fileVariable = fileVariableOf(row);
    const path = fileVariable === undefined ? undefined : env[fileVariable];
    if (fileVariable === undefined || path === undefined || path === '') continue;
    if (read[variableOf(row)])
      throw new SettingsError([`${variableOf(row)} and ${fileVariable} are both set`]);
    read[variableOf(row)] = readSecretText(path, fileVariable).replace(/\r?\n$/, '');
  }
  return read;
}

function readText(path: string, source: string): string {
  return reading(path, source, () => readFileSync(path, 'utf8'));
}

function readSecretText(path: string, source: string): string {
  return reading(path, source, () => readSecretFileSync(path));
}

function reading(path: string, source: string, read: () => string): string {
  try {
    return read();
  } catch (error) {
    if (error instanceof Refusal) throw new SettingsError([`${source}: ${error.message}`]);
    throw new SettingsError([`${source}: cannot read ${path}: ${(error as Error).message}`]);
  }
}
