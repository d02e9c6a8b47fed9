// Folders are made with those above them, and a path that cannot be made is refused at once.
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeFolder } from './make-folder.ts';

let base = '';

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'holdfast-folder-'));
});

afterAll(() => rm(base, { recursive: true }));

test('makes a folder and its parents, with their mode', async () => {
  expect(await makeFolder(join(base, 'a', 'b', 'c'), 0o700)).toBe(join(base, 'a'));
  for (const path of ['a', 'a/b', 'a/b/c']) {
    expect((await stat(join(base, path))).mode & 0o777).toBe(0o700);
  }
  expect(await makeFolder(join(base, 'a', 'b', 'c'))).toBeUndefined();
});

test('two calls for the same folder both succeed', async () => {
  const path = join(base, 'same', 'deep', 'folder');
  await Promise.all([makeFolder(path), makeFolder(path)]);
  expect((await stat(path)).isDirectory()).toBe(true);
});

test.each([
  ['below /proc', () => '/proc/holdfast/data', 'ENOENT'],
  ['directly below /proc', () => '/proc/holdfast', 'ENOENT'],
  ['below a file', () => join(base, 'file', 'data'), 'ENOTDIR'],
  ['that is a file', () => join(base, 'file'), 'EEXIST'],
])('a folder %s is refused at once', async (_, pathOf, code) => {
  await writeFile(join(base, 'file'), '');
  await expect(makeFolder(pathOf())).rejects.toMatchObject({ code });
});
