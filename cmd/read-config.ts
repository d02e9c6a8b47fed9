// Reads what the settings come from (settings file, files of secrets, environment) and loads them.
// What may stand there and which source wins is src/config's.
import { readFileSync } from 'node:fs';
import { type ConfigSources, loadConfig, SettingsError } from '../src/config/load.ts';
import { CONFIG_FILE_VARIABLE, fileVariableOf, variableOf } from '../src/config/names.ts';
import { type Config, SETTINGS } from '../src/config/schema.ts';

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
  return loadConfig(
    name === undefined ? sources : { ...sources, file: { name, text: readText(name, name) } },
  );
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
    read[variableOf(row)] = readText(path, fileVariable).replace(/\r?\n$/, '');
  }
  return read;
}

function readText(path: string, source: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new SettingsError([`${source}: cannot read ${path}: ${(error as Error).message}`]);
  }
}
