// A storage node with several disks (storage.disks), as a process: each is a disk of its own. One that is not there keeps no
// other away, and one whose drive hangs is gone until the drive answers; the node goes on all the while.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { seededBytes } from '../support/clients/tree.ts';
import { openRoleProcesses, type RoleProcesses } from '../support/cluster/role-processes.ts';
import { hangBeneath, mountHangingDrive } from '../support/disks/hanging-drive.ts';
import { type RawRequest, send } from '../support/servers/raw-s3.ts';

const GiB = 1024 ** 3;
const OBJECTS = 32;

/** Of one size, so that each has its share of the chunks. */
const drives = [mountHangingDrive(4 * GiB), mountHangingDrive(4 * GiB)].flatMap((drive) => drive ?? []);
let cluster: RoleProcesses;
beforeAll(async () => {
  cluster = await openRoleProcesses({ shards: 1 });
});
afterAll(async () => {
  await cluster.stop();
  for (const drive of drives) drive.unmount();
});

/** Ids of the disks that the node has told of, once they are so many. */
function served(count: number): Promise<string[]> {
  return cluster.until(`${count} disks`, async () => {
    const { members } = await cluster.status();
    const disks = members.flatMap(({ role, disks }) => (role === 'storage' ? disks : []));
    return disks.length === count ? disks.map(({ diskId }) => diskId).sort() : undefined;
  });
}

const folderOf = (name: string) => join(cluster.folderOf('disks'), name);

function startStorage(disks: readonly string[], ...args: string[]): void {
  cluster.start('storage-1', '--storage-disks', disks.join(','), ...args);
}

test('serves each of its disks, the same ones after a restart, and continues without one', async () => {
  const [one, Two, away] = ['one', 'Two', 'away'].map(folderOf) as [string, string, string];
  for (const folder of [one, Two]) await mkdir(folder, { recursive: true });
  startStorage([one, Two, away]);
  const first = await served(2);
  expect((await cluster.status()).alarms).toContainEqual(expect.stringContaining(`does not serve ${away}: `));
  expect(new Set(first).size).toBe(2);
  await cluster.end('storage-1');
  await mkdir(away);
  startStorage([one, Two, away]);
  const again = await served(3);
  expect(again).toEqual(expect.arrayContaining(first));
  await cluster.end('storage-1');
});

test.skipIf(drives.length < 2)(
  'one whose drive hangs is gone until it answers, and nothing with it (skipped where nobody may mount one)',
  async () => {
    const drive = must(drives[0], 'a drive');
    const disks = drives.map(({ folder }) => folder);
    startStorage(disks, '--storage-hang-after', '2s');
    await cluster.startAll();
    const both = await served(2);
    const processId = must(cluster.processId('storage-1'), 'it runs');
    await cluster.until('both own chunks', async () => {
      const { disks } = await cluster.status();
      return disks.filter(({ ownedCount }) => ownedCount > 0).length === 2 ? true : undefined;
    });
    const ask = (wanted: RawRequest) => send(cluster.access, wanted);
    const bytesOf = (index: number) => seededBytes(`object ${index}`, 128 * 1024);
    const put = async (index: number) =>
      (await ask({ method: 'PUT', path: `/hangs/${index}`, body: bytesOf(index) })).status;
    const putAll = (from: number) =>
      Promise.all(
        Array.from({ length: OBJECTS }, async (_, at) => [from + at, await put(from + at)] as const),
      );
    const all = (from: number) => Array.from({ length: OBJECTS }, (_, at) => [from + at, 200]);
    expect((await ask({ method: 'PUT', path: '/hangs' })).status).toBe(200);
    expect(await putAll(0)).toEqual(all(0));

    await hangBeneath(processId, drive);
    try {
      // What the one that hangs was to have the other takes for it.
      expect(await putAll(OBJECTS)).toEqual(all(OBJECTS));
      const [left] = await served(1);
      const { disks: told, alarms } = await cluster.status();
      expect(told.find(({ diskId }) => diskId !== left)).toMatchObject({
        state: 'away',
        reason: 'the drive has not answered a write for 2 s',
      });
      expect(alarms).toContainEqual(expect.stringMatching(/is away \(the drive has not answered/));
    } finally {
      drive.goOn();
    }
    expect(await served(2)).toEqual(both);
    expect(cluster.processId('storage-1')).toBe(processId);
    for (let index = 0; index < 2 * OBJECTS; index++) {
      const { body } = await ask({ method: 'GET', path: `/hangs/${index}` });
      expect(body.equals(bytesOf(index)), `object ${index}`).toBe(true);
    }
    expect(await putAll(2 * OBJECTS)).toEqual(all(2 * OBJECTS));

    await hangBeneath(processId, drive);
    let ending: Promise<void>;
    try {
      expect(await putAll(3 * OBJECTS)).toEqual(all(3 * OBJECTS));
      ending = cluster.end('storage-1');
      // It has left, though it cannot be gone yet.
      await served(0);
      expect(cluster.processId('storage-1')).toBe(processId);
    } finally {
      drive.goOn();
    }
    await ending;
  },
);
