// Today's rclone with its flags of object lock, by the key and the lines that `holdfast user create` prints: what it copies is
// retained, small and in parts, and is restored after all of it was deleted.
import { writeFileSync } from 'node:fs';
import { HeadObjectCommand, ListObjectVersionsCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect } from 'vitest';
import {
  type BackupBucket,
  type BackupCalls,
  endOfSecond,
  openBackupCalls,
} from '../support/clients/backup-calls.ts';
import { writeSmallTree } from '../support/clients/backup-keys.ts';
import { PROGRAMS } from '../support/clients/clients.ts';
import { compareTrees, listFiles } from '../support/clients/tree.ts';
// What is retained could not be taken away from a given server.
import { ownServerTest } from '../support/servers/own-server-test.ts';

const LOCKED = ['--s3-object-lock-supported', 'true', '--s3-object-lock-mode', 'COMPLIANCE'];
const FOR_A_DAY = [...LOCKED, '--s3-object-lock-retain-until-date', '24h'];

let calls: BackupCalls;
let at: BackupBucket;
/** When all had been copied, and nothing deleted. */
let copiedAt: string;
const tree = () => calls.world.path('tree');
const remote = (rest: string) => `${at.name}:${at.Bucket}/${rest}`;
const rclone = async (...args: string[]) => {
  const config = ['--config', calls.world.path('rclone.conf'), '--retries', '1', '--low-level-retries', '1'];
  return (await calls.world.run(PROGRAMS.pypiRclone, [...config, ...args])).stdout;
};

beforeAll(async () => {
  calls = await openBackupCalls();
  writeSmallTree(tree());
  at = await calls.makeBucket('rclone-locks', { policy: 'veeam', kind: 'locked' });
  writeFileSync(calls.world.path('rclone.conf'), at.lines.rclone);
});
afterAll(() => calls.close());

/** What protects the current version of each key below a prefix. */
async function locksBelow(Prefix: string) {
  const { Bucket, owner } = at;
  const { Versions = [] } = await owner.send(new ListObjectVersionsCommand({ Bucket, Prefix }));
  return Promise.all(
    Versions.map(async ({ Key, VersionId }) => {
      const head = await owner.send(new HeadObjectCommand({ Bucket, Key, VersionId }));
      return head.ObjectLockMode;
    }),
  );
}

ownServerTest('copies a tree with retention, small files and one in parts', async () => {
  await rclone(
    'copy',
    ...FOR_A_DAY,
    '--s3-upload-cutoff',
    '5Mi',
    '--s3-chunk-size',
    '5Mi',
    tree(),
    remote('tree'),
  );
  await rclone('check', '--download', tree(), remote('tree'));
  expect(await locksBelow('tree/')).toEqual(listFiles(tree()).map(() => 'COMPLIANCE'));
  const completed = calls.world.server
    .logs()
    .filter(({ operation }) => operation === 'CompleteMultipartUpload');
  expect(completed.length).toBeGreaterThan(0);
});

ownServerTest('sets retention behind the upload, where it is told to', async () => {
  await rclone('copyto', ...FOR_A_DAY, '--s3-object-lock-set-after-upload', `${tree()}/ä+&`, remote('after'));
  expect(await locksBelow('after')).toEqual(['COMPLIANCE']);
  copiedAt = await endOfSecond(calls.world.server);
});

ownServerTest('hides what it deletes, and removes no version of it', async () => {
  await rclone('delete', remote('tree'));
  expect(await rclone('lsf', '-R', '--files-only', remote('tree'))).toBe('');
  await expect(rclone('backend', 'cleanup-hidden', `${at.name}:${at.Bucket}`)).rejects.toThrow(
    'AccessDenied',
  );
  expect(await locksBelow('tree/')).toEqual(listFiles(tree()).map(() => 'COMPLIANCE'));
});

ownServerTest('restores the tree as it was at a time', async () => {
  await rclone('copy', '--s3-version-at', copiedAt, remote('tree'), calls.world.path('back'));
  expect(compareTrees({ expected: tree(), actual: calls.world.path('back') })).toEqual([]);
});
