import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readConfig } from './read-config.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-config-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('the settings file is named by flag or environment, the flag wins', () => {
  const [a, b] = [join(folder, 'a.json'), join(folder, 'b.json')];
  writeFileSync(a, '{"listen": "a:1"}');
  writeFileSync(b, '{"listen": "b:1"}');
  expect(readConfig({ env: { HOLDFAST_CONFIG: a }, flags: {} }).listen.host).toBe('a');
  expect(readConfig({ env: { HOLDFAST_CONFIG: a }, flags: {}, configFile: b }).listen.host).toBe('b');
});

test('secrets come from files without their line end', () => {
  const path = join(folder, 'secret');
  writeFileSync(path, 's3cret \n', { mode: 0o600 });
  const env = { HOLDFAST_ROOT_ACCESS_KEY: 'key', HOLDFAST_ROOT_SECRET_KEY_FILE: path };
  expect(readConfig({ env, flags: {} }).root.secretKey).toBe('s3cret ');
});

test('a secret and its file together are refused, and so is a file that cannot be read', () => {
  const missing = join(folder, 'missing');
  const both = { HOLDFAST_ROOT_SECRET_KEY: 'x', HOLDFAST_ROOT_SECRET_KEY_FILE: missing };
  expect(() => readConfig({ env: both, flags: {} })).toThrow(
    'HOLDFAST_ROOT_SECRET_KEY and HOLDFAST_ROOT_SECRET_KEY_FILE are both set',
  );
  const env = { HOLDFAST_ROOT_SECRET_KEY_FILE: missing };
  expect(() => readConfig({ env, flags: {} })).toThrow(
    `HOLDFAST_ROOT_SECRET_KEY_FILE: cannot read ${missing}`,
  );
  expect(() => readConfig({ env: {}, flags: {}, configFile: missing })).toThrow(`cannot read ${missing}`);
});
