import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mountSmallDisk } from '../../tests/support/small-disk.ts';
import { assertMounted } from './mount-points.ts';

let folder = '';
let memory = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-mounts-'));
  memory = join(folder, 'mounts.json');
});
afterEach(() => rmSync(folder, { recursive: true }));

test('a folder of the same file system may stay one', async () => {
  const disk = join(folder, 'disk');
  mkdirSync(disk);
  await assertMounted(memory, disk);
  await assertMounted(memory, disk);
});

test('what was mounted once is no disk without it, until the operator says so', async (context) => {
  const mounted = mountSmallDisk(1024 * 1024);
  if (mounted === undefined) return context.skip();
  await assertMounted(memory, mounted.folder);
  expect(JSON.parse(readFileSync(memory, 'utf8'))).toEqual([mounted.folder]);
  await assertMounted(memory, mounted.folder);
  mounted.unmount();
  mkdirSync(mounted.folder);
  try {
    await expect(assertMounted(memory, mounted.folder)).rejects.toThrow(
      'is not mounted: mount it, or take it out',
    );
    rmSync(memory);
    await assertMounted(memory, mounted.folder);
  } finally {
    rmSync(mounted.folder, { recursive: true });
  }
});
