import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FORMAT_FILE, writeFormatFile } from '../platform/disk/data-dir-lock.ts';
import { refuseNodeFolder, refuseStrangeDisk, writeNodeFile } from './node-folder.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-folder-'));
});
afterEach(() => rm(folder, { recursive: true }));

test('a disk folder may be empty, used, broken or of a storage node, and of no other role', async () => {
  await refuseStrangeDisk(folder);
  await refuseStrangeDisk(join(folder, 'absent'));
  await writeFormatFile(folder, 4);
  await expect(refuseStrangeDisk(folder)).rejects.toThrow('is the data folder of a single node');
  await writeNodeFile(folder, { nodeId: 'a', role: 'storage' });
  await refuseStrangeDisk(folder);
  await writeNodeFile(folder, { nodeId: 'a', role: 'metadata' });
  await expect(refuseStrangeDisk(folder)).rejects.toThrow('is the data folder of a metadata node');
  await writeFile(join(folder, 'node.json'), '{');
  await refuseStrangeDisk(folder);
});

test('a single node is told whose folder it is', async () => {
  await writeFile(join(folder, FORMAT_FILE), '{}');
  await refuseNodeFolder(folder);
  await writeNodeFile(folder, { nodeId: 'a', role: 'metadata' });
  await expect(refuseNodeFolder(folder)).rejects.toThrow(
    `${folder} is the folder of a metadata node of a cluster: start it by \`holdfast metadata\``,
  );
});
