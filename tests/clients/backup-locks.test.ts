// What backup programs call that cannot be had here and that lock what they write, replayed by the AWS SDK for JavaScript with the
// key that `holdfast user create` makes for each (clients 2): Veeam, Kopia, Commvault, NetBackup and Rubrik.
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetBucketLifecycleConfigurationCommand,
  GetBucketLocationCommand,
  GetBucketPolicyStatusCommand,
  GetBucketVersioningCommand,
  GetObjectCommand,
  GetObjectLegalHoldCommand,
  GetObjectLockConfigurationCommand,
  GetObjectRetentionCommand,
  GetObjectTaggingCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  ListObjectVersionsCommand,
  PutBucketLifecycleConfigurationCommand,
  PutBucketVersioningCommand,
  PutObjectCommand,
  PutObjectLegalHoldCommand,
  PutObjectLockConfigurationCommand,
  PutObjectRetentionCommand,
  PutObjectTaggingCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { must } from '../../src/base/assert.ts';
import {
  type BackupBucket,
  type BackupCalls,
  inDays,
  md5Of,
  openBackupCalls,
  refusalOf,
  versionPages,
} from '../support/clients/backup-calls.ts';
// What is retained could not be taken away from a given server.
import { ownServerTest as test } from '../support/servers/own-server-test.ts';

let calls: BackupCalls;
beforeAll(async () => {
  calls = await openBackupCalls();
});
afterAll(() => calls.close());

type Mode = 'COMPLIANCE' | 'GOVERNANCE';

/** Writes an object that is retained for so many days; its version. */
async function putLocked(at: BackupBucket, Key: string, { mode, days }: { mode: Mode; days: number }) {
  const { Bucket, program } = at;
  const Body = Buffer.from(`data of ${Key}`);
  const lock = { ObjectLockMode: mode, ObjectLockRetainUntilDate: inDays(days) };
  const put = { Bucket, Key, Body, ContentMD5: md5Of(Body), ...lock };
  return must((await program.send(new PutObjectCommand(put))).VersionId, 'a PUT answers with its version');
}

function extend(
  { Bucket, program }: BackupBucket,
  version: { Key: string; VersionId: string },
  { mode, days }: { mode: Mode; days: number },
) {
  const Retention = { Mode: mode, RetainUntilDate: inDays(days) };
  return program.send(new PutObjectRetentionCommand({ Bucket, ...version, Retention }));
}

describe('Veeam', () => {
  let at: BackupBucket;
  beforeAll(async () => {
    at = await calls.makeBucket('veeam', { policy: 'veeam', kind: 'locked' });
  });

  test('checks the bucket: it keeps versions, is locked, and retains nothing by itself', async () => {
    const { Bucket, program } = at;
    expect((await program.send(new ListBucketsCommand({}))).Buckets?.map(({ Name }) => Name)).toContain(
      Bucket,
    );
    expect((await program.send(new GetBucketLocationCommand({ Bucket }))).LocationConstraint).toBe('us-east');
    expect((await program.send(new GetBucketVersioningCommand({ Bucket }))).Status).toBe('Enabled');
    const { ObjectLockConfiguration } = await program.send(new GetObjectLockConfigurationCommand({ Bucket }));
    expect(ObjectLockConfiguration).toEqual({ ObjectLockEnabled: 'Enabled' });
  });

  test('learns by SOSAPI what it writes to', async () => {
    const { Bucket, program } = at;
    const folder = '.system-d26a9498-cb7c-4a87-a44a-8ae204f5ba6c';
    const textOf = async (name: string) => {
      const { Body } = await program.send(new GetObjectCommand({ Bucket, Key: `${folder}/${name}` }));
      return must(await Body?.transformToString(), 'an answer has a body');
    };
    expect(await textOf('system.xml')).toContain('<CapacityInfo>true</CapacityInfo>');
    expect(await textOf('capacity.xml')).toMatch(
      /<Capacity>\d+<\/Capacity><Available>\d+<\/Available><Used>\d+<\/Used>/,
    );
  });

  test('extends the retention of what it has written again and again, and never shortens it', async () => {
    const { Bucket, program } = at;
    const Key = 'Veeam/Backup/blocks/1';
    const VersionId = await putLocked(at, Key, { mode: 'COMPLIANCE', days: 7 });
    for (const days of [8, 9, 30]) {
      await extend(at, { Key, VersionId }, { mode: 'COMPLIANCE', days });
      const { Retention } = await program.send(new GetObjectRetentionCommand({ Bucket, Key, VersionId }));
      expect(Retention?.Mode).toBe('COMPLIANCE');
      expect(Retention?.RetainUntilDate?.getTime()).toBeGreaterThan(inDays(days - 1).getTime());
    }
    expect(await refusalOf(extend(at, { Key, VersionId }, { mode: 'COMPLIANCE', days: 8 }))).toBe(
      'AccessDenied',
    );
    expect(await refusalOf(extend(at, { Key, VersionId }, { mode: 'GOVERNANCE', days: 60 }))).toBe(
      'AccessDenied',
    );
    const head = await program.send(new HeadObjectCommand({ Bucket, Key }));
    expect([head.ObjectLockMode, head.VersionId]).toEqual(['COMPLIANCE', VersionId]);
  });

  test('deletes versions by the thousand, and is told which of them are retained', async () => {
    const { Bucket, program } = at;
    const prefix = 'Veeam/Backup/expired/';
    const numbers = Array.from({ length: 998 }, (_, number) => number);
    const put = async (number: number) => {
      const Key = `${prefix}${String(number).padStart(4, '0')}`;
      const { VersionId } = await program.send(new PutObjectCommand({ Bucket, Key, Body: 'x' }));
      return { Key, VersionId };
    };
    const expired: { Key: string; VersionId: string | undefined }[] = [];
    for (let from = 0; from < numbers.length; from += 50)
      expired.push(...(await Promise.all(numbers.slice(from, from + 50).map(put))));
    const retained = [];
    for (const Key of [`${prefix}r1`, `${prefix}r2`])
      retained.push({ Key, VersionId: await putLocked(at, Key, { mode: 'COMPLIANCE', days: 1 }) });
    const Objects = [...expired, ...retained];
    const { Deleted = [], Errors = [] } = await program.send(
      new DeleteObjectsCommand({ Bucket, Delete: { Objects } }),
    );
    expect([Deleted.length, Errors.map(({ Key, Code }) => [Key, Code])]).toEqual([
      998,
      retained.map(({ Key }) => [Key, 'AccessDenied']),
    ]);
    const left = await program.send(new ListObjectVersionsCommand({ Bucket, Prefix: prefix }));
    expect(left.Versions?.map(({ Key, VersionId }) => ({ Key, VersionId }))).toEqual(retained);
    expect(left.DeleteMarkers).toBeUndefined();
  });

  test('what it deletes without a version id stays behind a marker', async () => {
    const { Bucket, program } = at;
    const Key = 'Veeam/Backup/blocks/2';
    const VersionId = await putLocked(at, Key, { mode: 'COMPLIANCE', days: 1 });
    expect((await program.send(new DeleteObjectCommand({ Bucket, Key }))).DeleteMarker).toBe(true);
    const got = await program.send(new GetObjectCommand({ Bucket, Key, VersionId }));
    expect(await got.Body?.transformToString()).toBe(`data of ${Key}`);
    const removal = program.send(new DeleteObjectCommand({ Bucket, Key, VersionId }));
    expect(await refusalOf(removal)).toBe('AccessDenied');
  });

  test('a legal hold keeps a version until it is taken away', async () => {
    const { Bucket, program } = at;
    const Key = 'Veeam/Backup/held';
    const { VersionId } = await program.send(new PutObjectCommand({ Bucket, Key, Body: 'x' }));
    const hold = (Status: 'ON' | 'OFF') =>
      program.send(new PutObjectLegalHoldCommand({ Bucket, Key, VersionId, LegalHold: { Status } }));
    const remove = () => program.send(new DeleteObjectCommand({ Bucket, Key, VersionId }));
    await hold('ON');
    const { LegalHold } = await program.send(new GetObjectLegalHoldCommand({ Bucket, Key, VersionId }));
    expect(LegalHold?.Status).toBe('ON');
    expect(await refusalOf(remove())).toBe('AccessDenied');
    await hold('OFF');
    await remove();
  });

  test('the key cannot take the protection away, and neither can the owner of the bucket', async () => {
    const { Bucket, program, owner } = at;
    const Status = 'Suspended' as const;
    const suspend = new PutBucketVersioningCommand({ Bucket, VersioningConfiguration: { Status } });
    expect(await refusalOf(program.send(suspend))).toBe('AccessDenied');
    expect(await refusalOf(owner.send(suspend))).toBe('InvalidBucketState');
    const Key = 'Veeam/Backup/blocks/3';
    const VersionId = await putLocked(at, Key, { mode: 'COMPLIANCE', days: 1 });
    const removal = { Bucket, Key, VersionId, BypassGovernanceRetention: true };
    expect(await refusalOf(program.send(new DeleteObjectCommand(removal)))).toBe('AccessDenied');
    expect(await refusalOf(owner.send(new DeleteObjectCommand(removal)))).toBe('AccessDenied');
  });
});

describe('Kopia', () => {
  let at: BackupBucket;
  beforeAll(async () => {
    at = await calls.makeBucket('kopia', { policy: 'veeam', kind: 'locked' });
  });

  test('writes packs with a digest and a lock, and extends the lock in each maintenance', async () => {
    const { Bucket, program } = at;
    const Key = 'p0123456789abcdef';
    const VersionId = await putLocked(at, Key, { mode: 'GOVERNANCE', days: 2 });
    await extend(at, { Key, VersionId }, { mode: 'GOVERNANCE', days: 4 });
    const { Retention } = await program.send(new GetObjectRetentionCommand({ Bucket, Key, VersionId }));
    expect(Retention?.Mode).toBe('GOVERNANCE');
    expect(Retention?.RetainUntilDate?.getTime()).toBeGreaterThan(inDays(3).getTime());
  });

  test('sees the repository as it was at a time, when what was there has been overwritten and deleted', async () => {
    const { Bucket, program } = at;
    const Prefix = 'kopia.';
    const Key = `${Prefix}repository`;
    const before = await putLocked(at, Key, { mode: 'GOVERNANCE', days: 2 });
    const listed = async () => {
      const seen: { id: string | undefined; isMarker: boolean; at: Date | undefined }[] = [];
      for await (const page of versionPages(program, { Bucket, Prefix, MaxKeys: 1 })) {
        const { Versions = [], DeleteMarkers = [] } = page;
        seen.push(...Versions.map((v) => ({ id: v.VersionId, isMarker: false, at: v.LastModified })));
        seen.push(...DeleteMarkers.map((v) => ({ id: v.VersionId, isMarker: true, at: v.LastModified })));
      }
      return seen;
    };
    expect((await listed()).map(({ id }) => id)).toEqual([before]);
    await program.send(new PutObjectCommand({ Bucket, Key, Body: 'encrypted by somebody else' }));
    await program.send(new DeleteObjectCommand({ Bucket, Key }));
    const all = await listed();
    expect(all.map(({ isMarker }) => isMarker)).toEqual([true, false, false]);
    const oldest = must(all.at(-1), 'the first version is still there');
    const got = await program.send(new GetObjectCommand({ Bucket, Key, VersionId: oldest.id }));
    expect([oldest.id, await got.Body?.transformToString()]).toEqual([before, `data of ${Key}`]);
  });
});

describe('Commvault', () => {
  let at: BackupBucket;
  beforeAll(async () => {
    at = await calls.makeBucket('commvault', { policy: 'bucket-admin', kind: 'locked' });
  });

  test('has a lifecycle rule remove what deletions leave', async () => {
    const { Bucket, program } = at;
    const Rules = [
      {
        ID: 'markers',
        Status: 'Enabled' as const,
        Filter: { Prefix: '' },
        Expiration: { ExpiredObjectDeleteMarker: true },
        NoncurrentVersionExpiration: { NoncurrentDays: 1 },
      },
    ];
    const LifecycleConfiguration = { Rules };
    await program.send(new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration }));
    const found = await program.send(new GetBucketLifecycleConfigurationCommand({ Bucket }));
    expect(found.Rules).toEqual(Rules);
  });

  test('tags, retains and extends what it writes, and cannot delete it before its time', async () => {
    const { Bucket, program } = at;
    const Key = 'V_1/CHUNK_1/SFILE_CONTAINER_001';
    const VersionId = await putLocked(at, Key, { mode: 'COMPLIANCE', days: 1 });
    const Tagging = { TagSet: [{ Key: 'job', Value: '17' }] };
    await program.send(new PutObjectTaggingCommand({ Bucket, Key, VersionId, Tagging }));
    const { TagSet } = await program.send(new GetObjectTaggingCommand({ Bucket, Key, VersionId }));
    expect(TagSet).toEqual(Tagging.TagSet);
    await extend(at, { Key, VersionId }, { mode: 'COMPLIANCE', days: 2 });
    const removal = program.send(new DeleteObjectCommand({ Bucket, Key, VersionId }));
    expect(await refusalOf(removal)).toBe('AccessDenied');
  });
});

describe('NetBackup', () => {
  let at: BackupBucket;
  beforeAll(async () => {
    at = await calls.makeBucket('netbackup', { policy: 'bucket-admin', kind: 'locked' });
  });

  test('asks whether the bucket is public, and is told that this is not implemented', async () => {
    const { Bucket, program } = at;
    expect(await refusalOf(program.send(new GetBucketPolicyStatusCommand({ Bucket })))).toBe(
      'NotImplemented',
    );
  });

  test('sets the lock of the bucket, in a default retention, and takes the default away', async () => {
    const { Bucket, program } = at;
    const set = (Days?: number) => {
      const Rule =
        Days === undefined ? undefined : { DefaultRetention: { Mode: 'GOVERNANCE' as const, Days } };
      const ObjectLockConfiguration = { ObjectLockEnabled: 'Enabled' as const, Rule };
      return program.send(new PutObjectLockConfigurationCommand({ Bucket, ObjectLockConfiguration }));
    };
    await set(3);
    const { VersionId } = await program.send(new PutObjectCommand({ Bucket, Key: 'by default', Body: 'x' }));
    await set();
    const of = { Bucket, Key: 'by default', VersionId };
    const { Retention } = await program.send(new GetObjectRetentionCommand(of));
    expect(Retention?.Mode).toBe('GOVERNANCE');
    await program.send(new PutObjectCommand({ Bucket, Key: 'free', Body: 'x' }));
    const none = program.send(new GetObjectRetentionCommand({ Bucket, Key: 'free' }));
    expect(await refusalOf(none)).toBe('NoSuchObjectLockConfiguration');
  });

  test('in enterprise mode deletes by bypass alone, and in compliance mode not at all', async () => {
    const { Bucket, program } = at;
    const remove = (Key: string, VersionId: string, BypassGovernanceRetention: boolean) =>
      program.send(new DeleteObjectCommand({ Bucket, Key, VersionId, BypassGovernanceRetention }));
    const enterprise = await putLocked(at, 'enterprise', { mode: 'GOVERNANCE', days: 1 });
    expect(await refusalOf(remove('enterprise', enterprise, false))).toBe('AccessDenied');
    await remove('enterprise', enterprise, true);
    const compliance = await putLocked(at, 'compliance', { mode: 'COMPLIANCE', days: 1 });
    expect(await refusalOf(remove('compliance', compliance, true))).toBe('AccessDenied');
  });
});

describe('Rubrik', () => {
  test('locks what it uploads in parts, from the moment that it is complete', async () => {
    const { Bucket, program } = await calls.makeBucket('rubrik', { policy: 'veeam', kind: 'locked' });
    const Key = 'blobstore/snapshot.data';
    const lock = { ObjectLockMode: 'COMPLIANCE', ObjectLockRetainUntilDate: inDays(1) } as const;
    const begin = () => program.send(new CreateMultipartUploadCommand({ Bucket, Key, ...lock }));
    const given = await begin();
    await program.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId: given.UploadId }));
    const { UploadId } = await begin();
    const Parts = [];
    for (const [PartNumber, Body] of [
      [1, Buffer.alloc(5 << 20, 'a')],
      [2, Buffer.from('the rest')],
    ] as const) {
      const part = { Bucket, Key, UploadId, PartNumber, Body, ContentMD5: md5Of(Body) };
      Parts.push({ PartNumber, ETag: (await program.send(new UploadPartCommand(part))).ETag });
    }
    const whole = { Bucket, Key, UploadId, MultipartUpload: { Parts } };
    const { VersionId } = await program.send(new CompleteMultipartUploadCommand(whole));
    const head = await program.send(new HeadObjectCommand({ Bucket, Key }));
    expect([head.ObjectLockMode, head.ObjectLockRetainUntilDate]).toEqual([
      'COMPLIANCE',
      lock.ObjectLockRetainUntilDate,
    ]);
    const removal = program.send(new DeleteObjectCommand({ Bucket, Key, VersionId }));
    expect(await refusalOf(removal)).toBe('AccessDenied');
  });
});
