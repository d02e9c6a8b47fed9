import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mountSmallDisk } from '../../../tests/support/disks/small-disk.ts';
import { createMountMemory, type MountMemory } from './mount-points.ts';

let folder = '';
let path = '';
let memory: MountMemory;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-mounts-'));
  path = join(folder, 'mounts.json');
  memory = createMountMemory(path);
});
afterEach(() => rmSync(folder, { recursive: true }));

test('a folder in the same file system stays usable', async () => {
  const disk = join(folder, 'disk');
  mkdirSync(disk);
  await memory.assertMounted(disk);
  await memory.assertMounted(disk);
});

test('a former mount point is refused while nothing is mounted, until the operator confirms it', async (context) => {
  const mounted = mountSmallDisk(1024 * 1024);
  if (mounted === undefined) return context.skip();
  await memory.assertMounted(mounted.folder);
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual([mounted.folder]);
  await memory.assertMounted(mounted.folder);
  mounted.unmount();
  mkdirSync(mounted.folder);
  try {
    await expect(memory.assertMounted(mounted.folder)).rejects.toThrow(
      'is not mounted: mount it, or take it out',
    );
    rmSync(path);
    await memory.assertMounted(mounted.folder);
  } finally {
    rmSync(mounted.folder, { recursive: true });
  }
});
