import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { writeDurableFile } from './durable-file.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-file-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('writes and replaces, leaves no temporary file, and only the owner may read', async () => {
  const path = join(folder, 'secret');
  writeFileSync(`${path}.new`, 'left by a crash', { mode: 0o644 });
  await writeDurableFile(path, 'one');
  await writeDurableFile(path, 'two');
  expect(readFileSync(path, 'utf8')).toBe('two');
  expect(readdirSync(folder)).toEqual(['secret']);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});
