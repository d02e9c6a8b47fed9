// The settings as text for --help: flag, variable, default and unit of each row that is not hidden.
import { CONFIG_FILE_VARIABLE, fileVariableOf, flagOf, variableOf } from './names.ts';
import { SETTINGS } from './schema.ts';
import type { SettingKind, SettingRow } from './setting-row.ts';

const VALUE_NAMES: Readonly<Record<SettingKind, string>> = {
  text: 'TEXT',
  path: 'PATH',
  bytes: 'BYTES',
  duration: 'DURATION',
  integer: 'NUMBER',
  boolean: 'true|false',
  choice: 'CHOICE',
  list: 'LIST',
  hostPort: 'HOST:PORT',
  secret: 'TEXT',
};

/** What stands for the value in `--flag VALUE`. */
export function valueNameOf(row: SettingRow): string {
  return row.choices?.join('|') ?? VALUE_NAMES[row.kind];
}

/** The settings section of `holdfast --help`, or of a command that takes some of them. */
export function settingsHelp(rows: readonly SettingRow[] = SETTINGS): string {
  const lines = rows.filter((row) => row.hidden !== true).map(describe);
  return `Settings (a flag wins over the environment, that over the file, that over the default):

  --config PATH  or  ${CONFIG_FILE_VARIABLE}
      JSON file of settings: {"listen": "127.0.0.1:9000", "tls": {"mode": "self-signed"}}.
${lines.join('\n')}

BYTES: a whole number with B, KiB, MiB, GiB or TiB. DURATION: with ms, s, min, h or d. LIST: items separated by commas.`;
}

function describe(row: SettingRow): string {
  const flag = flagOf(row);
  const names = [
    flag === undefined ? undefined : `${flag} ${valueNameOf(row)}`,
    variableOf(row),
    fileVariableOf(row),
  ];
  const fallback = row.default === undefined ? '' : ` Default: ${row.default || 'none'}.`;
  return `  ${names.filter((name) => name !== undefined).join('  or  ')}\n      ${row.help}${fallback}`;
}
