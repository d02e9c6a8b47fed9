// The names of a setting in each place it may be written, all derived from its key. No values here.
import type { SettingRow } from './setting-row.ts';

/** Where the path of the JSON settings file may be given, beside --config. Not a setting: the file cannot name itself. */
export const CONFIG_FILE_VARIABLE = 'HOLDFAST_CONFIG';

/** Where commands find a server, beside --endpoint. Not a setting: the server has its own address to listen on. */
export const ENDPOINT_VARIABLE = 'HOLDFAST_ENDPOINT';

const PREFIX = 'HOLDFAST_';

/** `storage.readingGrace` → ['storage', 'reading', 'grace'] */
function words(key: string): string[] {
  return key.replace(/[A-Z]/g, (capital) => `.${capital.toLowerCase()}`).split('.');
}

/** `--storage-reading-grace`. Secrets have none: a command line is visible to every user of the machine. */
export function flagOf(row: SettingRow): string | undefined {
  return row.kind === 'secret' ? undefined : `--${words(row.key).join('-')}`;
}

/** `HOLDFAST_STORAGE_READING_GRACE` */
export function variableOf(row: SettingRow): string {
  return PREFIX + words(row.key).join('_').toUpperCase();
}

/** The variable that names a file with the value: secrets only. */
export function fileVariableOf(row: SettingRow): string | undefined {
  return row.kind === 'secret' ? `${variableOf(row)}_FILE` : undefined;
}

/** The name in the loaded settings, which ends in the unit: `storage.readingGraceMs`. */
export function propertyOf(row: SettingRow): string {
  if (row.kind === 'duration') return `${row.key}Ms`;
  return row.kind === 'bytes' ? `${row.key}Bytes` : row.key;
}

/** True for a variable that claims to be one of ours, known or not. */
export function isOurVariable(name: string): boolean {
  return name.startsWith(PREFIX);
}
