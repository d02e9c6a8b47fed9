// Borg with a repository on a disk that rclone copies here, as its page in docs/backup has it: after the archive is pruned and its
// segments are gone, it is restored from the versions of the bucket.
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type BackupBucket,
  type BackupCalls,
  endOfSecond,
  openBackupCalls,
} from '../support/clients/backup-calls.ts';
import { writeSmallTree } from '../support/clients/backup-keys.ts';
import { PROGRAMS } from '../support/clients/clients.ts';
import { compareTrees } from '../support/clients/tree.ts';

let calls: BackupCalls;
let at: BackupBucket;
/** When the first archive had been copied, and nothing pruned. */
let copiedAt: string;
const path = (name: string) => calls.world.path(name);
const repository = () => path('repository');
const remote = () => `${at.name}:${at.Bucket}/borg`;

/** `machine`: a home of its own. Borg takes a repository that is older than what it knows of it for an attack. */
async function borg(args: readonly string[], { cwd = path('tree'), machine = 'old' } = {}): Promise<string> {
  const env = {
    BORG_PASSPHRASE: 'a password of the repository',
    BORG_RELOCATED_REPO_ACCESS_IS_OK: 'yes',
    BORG_BASE_DIR: path(machine),
  };
  return (await calls.world.run(PROGRAMS.borg, args, { cwd, env })).stdout;
}
const rclone = (...args: string[]) =>
  calls.world.run(PROGRAMS.rclone, ['--config', path('rclone.conf'), '--retries', '1', ...args]);

beforeAll(async () => {
  calls = await openBackupCalls();
  writeSmallTree(path('tree'));
  at = await calls.makeBucket('borg', { policy: 'veeam', kind: 'versioned' });
  writeFileSync(path('rclone.conf'), at.lines.rclone);
});
afterAll(() => calls.close());

test('archives, and copies the repository', async () => {
  await borg(['init', '--encryption', 'repokey', repository()]);
  await borg(['create', `${repository()}::first`, '.']);
  await rclone('sync', repository(), remote());
  copiedAt = await endOfSecond(calls.world.server);
});

test('prunes, compacts and copies again: what is gone there is hidden here', async () => {
  writeFileSync(path('tree/later'), 'later');
  await borg(['create', `${repository()}::second`, '.']);
  await borg(['delete', `${repository()}::first`]);
  await borg(['compact', repository()]);
  await rclone('sync', repository(), remote());
  await rclone('check', '--download', repository(), remote());
});

test('restores the newest archive, and the pruned one from the time at which it was there', async () => {
  await rclone('copy', remote(), path('now'));
  await calls.world.run('/bin/mkdir', [path('second'), path('first')]);
  await borg(['extract', `${path('now')}::second`], { cwd: path('second') });
  expect(compareTrees({ expected: path('tree'), actual: path('second') })).toEqual([]);
  await rclone('copy', '--s3-version-at', copiedAt, remote(), path('then'));
  await borg(['check', '--verify-data', path('then')], { machine: 'new' });
  await borg(['extract', `${path('then')}::first`], { cwd: path('first'), machine: 'new' });
  await calls.world.run('/bin/rm', [path('tree/later')]);
  expect(compareTrees({ expected: path('tree'), actual: path('first') })).toEqual([]);
});
