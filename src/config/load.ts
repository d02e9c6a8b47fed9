// Combines flags, environment, settings file and defaults into one frozen Config: flag over environment over file over
// default. Unknown names are refused, with the nearest known one. Pure: the caller has read the file and the environment
// (cmd/read-config.ts), and resolved the variables that name a secret's file.
import { nearestWord } from '../base/nearest-word.ts';
import { Refusal } from '../base/refusal.ts';
import { LIMITS } from '../types/limits.ts';
import {
  CONFIG_FILE_VARIABLE,
  ENDPOINT_VARIABLE,
  fileVariableOf,
  flagOf,
  isOurVariable,
  propertyOf,
  variableOf,
} from './names.ts';
import { type Config, SETTINGS } from './schema.ts';
import type { SettingRow } from './setting-row.ts';
import { type ParsedValue, parseJsonSetting, parseSetting, type SettingValue } from './values.ts';

export interface ConfigSources {
  /** Text of each given flag by setting key; the items of a repeated flag are joined by commas. */
  readonly flags?: Readonly<Record<string, string>>;
  /** The whole environment; an empty variable counts as not set. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly file?: { readonly name: string; readonly text: string };
}

const MiB = 1024 * 1024;

/** Everything that is wrong with the settings, each line naming its source and key. */
export class SettingsError extends Refusal {
  override name = 'SettingsError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

const ROWS: readonly SettingRow[] = SETTINGS;

/** The settings, or a {@link SettingsError} that lists every problem at once. */
export function loadConfig(sources: ConfigSources): Config {
  const problems: string[] = [];
  const fromFile = readFile(sources.file, problems);
  refuseUnknownVariables(sources.env ?? {}, problems);
  const values = new Map<string, SettingValue>();
  for (const row of ROWS) {
    const found = findValue(row, sources, fromFile);
    if ('problem' in found.parsed) problems.push(`${found.source} ${found.parsed.problem}`);
    else values.set(row.key, found.parsed.value);
  }
  if (problems.length === 0) problems.push(...conflicts(values));
  if (problems.length > 0) throw new SettingsError(problems);
  return nest(values);
}

/** Where the row's value comes from, in order of precedence. */
function findValue(
  row: SettingRow,
  sources: ConfigSources,
  fromFile: ReadonlyMap<string, unknown>,
): { source: string; parsed: ParsedValue } {
  const flag = sources.flags?.[row.key];
  if (flag !== undefined) return { source: flagOf(row) ?? row.key, parsed: parseSetting(row, flag) };
  const variable = sources.env?.[variableOf(row)];
  if (variable !== undefined && variable !== '') {
    return { source: variableOf(row), parsed: parseSetting(row, variable) };
  }
  if (fromFile.has(row.key)) {
    return {
      source: `${sources.file?.name}: ${row.key}`,
      parsed: parseJsonSetting(row, fromFile.get(row.key)),
    };
  }
  if (row.default === undefined) return { source: row.key, parsed: { value: undefined } };
  return { source: row.key, parsed: parseSetting(row, row.default) };
}

/** Which secrets a settings file holds, by dotted key. */
export function secretsIn(file: NonNullable<ConfigSources['file']>): string[] {
  const found = readFile(file, []);
  return ROWS.filter(({ key, kind }) => kind === 'secret' && found.has(key)).map(({ key }) => key);
}

/** The file's values by dotted key. */
function readFile(file: ConfigSources['file'], problems: string[]): ReadonlyMap<string, unknown> {
  const found = new Map<string, unknown>();
  if (file === undefined) return found;
  let json: unknown;
  try {
    json = JSON.parse(file.text);
  } catch (error) {
    problems.push(`${file.name}: is not JSON: ${(error as Error).message}`);
    return found;
  }
  if (!isObject(json)) {
    problems.push(`${file.name}: must be a JSON object of settings`);
    return found;
  }
  for (const [key, value] of flatten(json)) {
    if (ROWS.some((row) => row.key === key)) found.set(key, value);
    else
      problems.push(
        unknownName(
          `${file.name}: ${key}`,
          key,
          ROWS.map((row) => row.key),
        ),
      );
  }
  return found;
}

function* flatten(json: object): Iterable<[string, unknown]> {
  for (const [key, value] of Object.entries(json)) {
    if (!isObject(value)) yield [key, value];
    else for (const [inner, innerValue] of Object.entries(value)) yield [`${key}.${inner}`, innerValue];
  }
}

function isObject(json: unknown): json is object {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

/** Throws {@link SettingsError} for variables that claim to be ours and are none: for commands that read no settings. */
export function checkVariables(env: Readonly<Record<string, string | undefined>>): void {
  const problems: string[] = [];
  refuseUnknownVariables(env, problems);
  if (problems.length > 0) throw new SettingsError(problems);
}

function refuseUnknownVariables(env: Readonly<Record<string, string | undefined>>, problems: string[]): void {
  const known = [
    CONFIG_FILE_VARIABLE,
    ENDPOINT_VARIABLE,
    ...ROWS.flatMap((row) => [variableOf(row), fileVariableOf(row) ?? []].flat()),
  ];
  for (const name of Object.keys(env)) {
    if (isOurVariable(name) && !known.includes(name)) problems.push(unknownName(name, name, known));
  }
}

function unknownName(source: string, name: string, known: readonly string[]): string {
  const nearest = nearestWord(name, known);
  return `${source} is not a known setting${nearest === undefined ? '' : `; did you mean ${nearest}?`}`;
}

/** Rules between settings. */
function conflicts(values: ReadonlyMap<string, SettingValue>): string[] {
  const found: string[] = [];
  const isSet = (key: string) => values.get(key) !== undefined;
  if (values.get('tls.mode') === 'files' && !(isSet('tls.cert') && isSet('tls.key'))) {
    found.push('tls.mode files needs tls.cert and tls.key');
  }
  if (values.get('tls.mode') !== 'files' && (isSet('tls.cert') || isSet('tls.key'))) {
    found.push('tls.cert and tls.key are only used with tls.mode files');
  }
  if (isSet('root.accessKey') !== isSet('root.secretKey')) {
    found.push('root.accessKey and root.secretKey must be set together');
  }
  const threads = values.get('gateway.threads');
  const bodyBuffer = values.get('memory.bodyBuffer');
  const neededBytes = Number(threads) * LIMITS.threadBodyBufferBytesMin;
  if (Number(bodyBuffer) < neededBytes) {
    found.push(`gateway.threads ${threads} needs memory.bodyBuffer of at least ${neededBytes / MiB}MiB`);
  }
  return found;
}

/** Dotted keys become one level of nesting, under the property names that Config's type derives as well. */
function nest(values: ReadonlyMap<string, SettingValue>): Config {
  const config: Record<string, unknown> = {};
  const groups: Record<string, Record<string, unknown>> = {};
  for (const row of ROWS) {
    const [first = '', second] = propertyOf(row).split('.');
    if (second === undefined) {
      config[first] = values.get(row.key);
    } else {
      groups[first] ??= {};
      groups[first][second] = values.get(row.key);
    }
  }
  for (const [name, group] of Object.entries(groups)) config[name] = Object.freeze(group);
  return Object.freeze(config) as Config;
}

/** The settings for a log line or a person: secrets only say whether they are set. */
export function printableConfig(config: Config): Readonly<Record<string, unknown>> {
  const printable: Record<string, unknown> = {};
  for (const row of ROWS) {
    const [first = '', second] = propertyOf(row).split('.');
    const outer = (config as Readonly<Record<string, unknown>>)[first];
    const value = second === undefined ? outer : (outer as Readonly<Record<string, unknown>>)[second];
    if (value !== undefined) printable[propertyOf(row)] = row.kind === 'secret' ? '(secret)' : value;
  }
  return printable;
}
