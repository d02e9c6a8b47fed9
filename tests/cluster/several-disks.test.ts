// A storage node with several disks (storage.disks), as a process: each is a disk of its own, and one that is not there
// keeps no other away.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openRoleProcesses, type RoleProcesses } from '../support/role-processes.ts';

let cluster: RoleProcesses;
beforeAll(async () => {
  cluster = await openRoleProcesses({ shards: 1 });
}, 60_000);
afterAll(() => cluster.stop());

/** Ids of the disks that the node has told of, once they are so many. */
function served(count: number): Promise<string[]> {
  return cluster.until(`${count} disks`, async () => {
    const { members } = await cluster.status();
    const disks = members.flatMap(({ role, disks }) => (role === 'storage' ? disks : []));
    return disks.length === count ? disks.map(({ diskId }) => diskId).sort() : undefined;
  });
}

test('serves each of its disks, the same ones after a restart, and goes on without one', async () => {
  const [one, Two, away] = ['one', 'Two', 'away'].map((name) => join(cluster.folderOf('disks'), name));
  for (const folder of [one, Two]) await mkdir(folder ?? '', { recursive: true });
  const start = () => cluster.start('storage-1', '--storage-disks', [one, Two, away].join(','));
  start();
  const first = await served(2);
  expect(new Set(first).size).toBe(2);
  await cluster.end('storage-1');
  await mkdir(away ?? '');
  start();
  const again = await served(3);
  expect(again).toEqual(expect.arrayContaining(first));
});
