// restic in a bucket with a default retention and a lifecycle, as its page in docs/backup has it: backups go on, old ones are
// forgotten and pruned, and a repository that somebody deletes is restored.
import { writeFileSync } from 'node:fs';
import {
  DeleteObjectsCommand,
  GetObjectRetentionCommand,
  type ObjectVersion,
  PutBucketLifecycleConfigurationCommand,
  PutObjectLockConfigurationCommand,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect } from 'vitest';
import {
  type BackupBucket,
  type BackupCalls,
  endOfSecond,
  openBackupCalls,
  versionPages,
} from '../support/clients/backup-calls.ts';
import { PROGRAMS } from '../support/clients/clients.ts';
import { changeTree, compareTrees, hashTree, writeTree } from '../support/clients/tree.ts';
// What is retained could not be taken away from a given server.
import { ownServerTest } from '../support/servers/own-server-test.ts';

const SIZE_MIB = 16;
const RETAINED_DAYS = 30;

let calls: BackupCalls;
let at: BackupBucket;
let firstState: Map<string, string>;
/** Behind the backups, and before anything was forgotten. */
let backedUpAt: string;
const tree = () => calls.world.path('tree');

/** With the lines that the command prints for the program's user, or with the keys of somebody who may delete. */
async function restic(who: 'program' | 'administrator', ...args: string[]): Promise<string> {
  const { accessKey, secretKey } = calls.world.server;
  const lines = [
    at.lines.restic,
    ...(who === 'program'
      ? []
      : [`export AWS_ACCESS_KEY_ID=${accessKey}`, `export AWS_SECRET_ACCESS_KEY=${secretKey}`]),
    'exec "$@"',
  ];
  const ran = await calls.world.run(
    '/bin/bash',
    ['-ec', lines.join('\n'), 'bash', PROGRAMS.restic, ...args],
    {
      cwd: tree(),
      env: { RESTIC_PASSWORD: 'a password of the repository' },
    },
  );
  return ran.stdout;
}

async function versions(): Promise<ObjectVersion[]> {
  const { Bucket, owner } = at;
  const data: ObjectVersion[] = [];
  for await (const { Versions = [] } of versionPages(owner, { Bucket })) data.push(...Versions);
  return data;
}

beforeAll(async () => {
  calls = await openBackupCalls();
  writeTree({ folder: tree(), seed: 'restic-locks', sizeMiB: SIZE_MIB });
  firstState = hashTree(tree());
  at = await calls.makeBucket('restic-locks', { policy: 'restic', kind: 'locked' });
  const { Bucket, owner } = at;
  const DefaultRetention = { Mode: 'COMPLIANCE', Days: RETAINED_DAYS } as const;
  const ObjectLockConfiguration = { ObjectLockEnabled: 'Enabled', Rule: { DefaultRetention } } as const;
  await owner.send(new PutObjectLockConfigurationCommand({ Bucket, ObjectLockConfiguration }));
  const rule = {
    ID: 'what was deleted',
    Status: 'Enabled',
    Filter: { Prefix: '' },
    NoncurrentVersionExpiration: { NoncurrentDays: 30 },
    Expiration: { ExpiredObjectDeleteMarker: true },
  } as const;
  const LifecycleConfiguration = { Rules: [rule] };
  await owner.send(new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration }));
});
afterAll(() => calls.close());

ownServerTest('backs up twice, and its locks go though they are retained', async () => {
  await restic('program', 'init');
  await restic('program', 'backup', '.');
  changeTree({ folder: tree(), seed: 'restic-locks' });
  await restic('program', 'backup', '.');
  expect(await restic('program', 'list', 'locks', '--no-lock')).toBe('');
  backedUpAt = await endOfSecond(calls.world.server);
});

ownServerTest('forgets and prunes with other keys, and the rest is intact', async () => {
  await restic('administrator', 'forget', '--keep-last', '1', '--group-by', '', '--prune');
  expect(JSON.parse(await restic('program', 'snapshots', '--json', '--no-lock'))).toHaveLength(1);
  expect(await restic('program', 'check', '--read-data', '--no-lock')).toContain('no errors were found');
  const { Bucket, owner } = at;
  const hidden = (await versions()).filter(({ IsLatest }) => !IsLatest);
  expect(hidden.some(({ Key }) => Key?.startsWith('data/'))).toBe(true);
  for (const { Key, VersionId } of hidden.slice(0, 20)) {
    const { Retention } = await owner.send(new GetObjectRetentionCommand({ Bucket, Key, VersionId }));
    expect(Retention?.Mode, Key).toBe('COMPLIANCE');
  }
});

ownServerTest('a repository that somebody with all rights deletes is restored as it was', async () => {
  const { Bucket, owner } = at;
  const data = await versions();
  const live = data.filter(({ IsLatest }) => IsLatest).map(({ Key }) => ({ Key }));
  await owner.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: live, Quiet: true } }));
  const all = data.slice(0, 1000).map(({ Key, VersionId }) => ({ Key, VersionId }));
  const forced = await owner.send(
    new DeleteObjectsCommand({ Bucket, Delete: { Objects: all }, BypassGovernanceRetention: true }),
  );
  expect([forced.Deleted, forced.Errors?.length]).toEqual([undefined, all.length]);
  await expect(restic('program', 'snapshots', '--no-lock')).rejects.toThrow('unable to open config file');

  const config = calls.world.path('rclone.conf');
  writeFileSync(config, at.lines.rclone);
  const repository = calls.world.path('repository');
  const from = `${at.name}:${Bucket}`;
  await calls.world.run(PROGRAMS.rclone, [
    '--config',
    config,
    'copy',
    '--s3-version-at',
    backedUpAt,
    from,
    repository,
  ]);
  const local = ['-r', repository, '--no-lock'];
  expect(JSON.parse(await restic('program', ...local, 'snapshots', '--json'))).toHaveLength(2);
  expect(await restic('program', ...local, 'check', '--read-data')).toContain('no errors were found');
  const [first] = JSON.parse(await restic('program', ...local, 'snapshots', '--json')) as { id: string }[];
  await restic('program', ...local, 'restore', String(first?.id), '--target', calls.world.path('first'));
  expect(hashTree(calls.world.path('first'))).toEqual(firstState);
  await restic('program', ...local, 'restore', 'latest', '--target', calls.world.path('second'));
  expect(compareTrees({ expected: tree(), actual: calls.world.path('second') })).toEqual([]);
});
