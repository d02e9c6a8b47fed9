import { expect, test } from 'vitest';
import { settingsHelp } from './help.ts';
import { flagOf, variableOf } from './names.ts';
import { SETTINGS } from './schema.ts';
import type { SettingRow } from './setting-row.ts';

test('names derive from the key', () => {
  const row: SettingRow = { key: 'storage.readingGrace', kind: 'duration', help: '' };
  expect(flagOf(row)).toBe('--storage-reading-grace');
  expect(variableOf(row)).toBe('HOLDFAST_STORAGE_READING_GRACE');
  expect(flagOf({ ...row, kind: 'secret' })).toBeUndefined();
});

test('every setting that is not hidden is listed with its names and default', () => {
  const help = settingsHelp();
  for (const row of SETTINGS as readonly SettingRow[]) {
    expect(help.includes(variableOf(row)), row.key).toBe(row.hidden !== true);
  }
  expect(help).toContain('  --storage-reading-grace DURATION  or  HOLDFAST_STORAGE_READING_GRACE\n');
  expect(help).toContain('Default: 10min.\n');
  expect(help).toContain('  HOLDFAST_ROOT_SECRET_KEY  or  HOLDFAST_ROOT_SECRET_KEY_FILE\n');
  expect(help).toContain('--tls-mode off|self-signed|files');
});
