// What backup programs call that cannot be had here, replayed by the AWS SDK for JavaScript with the key that
// `holdfast user create` makes for each (clients 2): Proxmox Backup Server, and what jobs ask of a bucket before they begin.
// What needs object lock is in backup-locks.test.ts.
import {
  CopyObjectCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetBucketLifecycleConfigurationCommand,
  GetBucketLocationCommand,
  GetBucketLoggingCommand,
  GetBucketMetricsConfigurationCommand,
  GetBucketNotificationConfigurationCommand,
  GetBucketOwnershipControlsCommand,
  GetBucketPolicyCommand,
  GetBucketPolicyStatusCommand,
  GetBucketReplicationCommand,
  GetBucketRequestPaymentCommand,
  GetBucketTaggingCommand,
  GetBucketVersioningCommand,
  GetBucketWebsiteCommand,
  GetObjectCommand,
  GetPublicAccessBlockCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  PutObjectCommand,
  paginateListObjectsV2,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type BackupBucket,
  type BackupCalls,
  md5Of,
  openBackupCalls,
  refusalOf,
} from '../support/clients/backup-calls.ts';

let calls: BackupCalls;
beforeAll(async () => {
  calls = await openBackupCalls();
});
afterAll(() => calls.close());

describe('Proxmox Backup Server', () => {
  let at: BackupBucket;
  const chunk = (number: number) => `store/.chunks/0000/${String(number).padStart(8, '0')}`;
  const bodyOf = (number: number) => Buffer.from(`chunk ${number}`.repeat(100));
  const put = (Key: string, Body: Buffer) => {
    const { Bucket, program } = at;
    const ContentMD5 = md5Of(Body);
    return program.send(new PutObjectCommand({ Bucket, Key, Body, ContentMD5, IfNoneMatch: '*' }));
  };

  beforeAll(async () => {
    at = await calls.makeBucket('proxmox', { policy: 'veeam', kind: 'plain' });
  });

  test('looks for its bucket, and writes each chunk once', async () => {
    const { Bucket, program } = at;
    const { Buckets } = await program.send(new ListBucketsCommand({}));
    expect(Buckets?.map(({ Name }) => Name)).toContain(Bucket);
    await program.send(new HeadBucketCommand({ Bucket }));
    await put(chunk(1), bodyOf(1));
    // A chunk that is there is a success to it.
    expect(await refusalOf(put(chunk(1), Buffer.from('others')))).toBe('PreconditionFailed');
    const got = await program.send(new GetObjectCommand({ Bucket, Key: chunk(1) }));
    expect(Buffer.from((await got.Body?.transformToByteArray()) ?? []).equals(bodyOf(1))).toBe(true);
  });

  test('of chunks that are sent at once by two backups, one of each is kept', async () => {
    const sent = [2, 3, 4, 5].flatMap((number) => [number, number]);
    const outcomes = await Promise.all(
      sent.map((number) =>
        put(chunk(number), bodyOf(number)).then(
          () => 'stored',
          (error: Error) => error.name,
        ),
      ),
    );
    const stored = sent.filter((_, index) => outcomes[index] === 'stored');
    expect(stored.sort()).toEqual([2, 3, 4, 5]);
    const refused = outcomes.filter((outcome) => outcome !== 'stored');
    expect(refused).toEqual(Array(4).fill('PreconditionFailed'));
  });

  test('is told of a body that was damaged on its way', async () => {
    const { Bucket, program } = at;
    const wrong = { Bucket, Key: chunk(9), Body: bodyOf(9), ContentMD5: md5Of(bodyOf(8)) };
    expect(await refusalOf(program.send(new PutObjectCommand({ ...wrong, IfNoneMatch: '*' })))).toBe(
      'BadDigest',
    );
    expect(await refusalOf(program.send(new HeadObjectCommand({ Bucket, Key: chunk(9) })))).toBe('NotFound');
  });

  test('touches a chunk by a copy onto itself, which replaces its metadata', async () => {
    const { Bucket, program } = at;
    const Key = chunk(1);
    const CopySource = `${Bucket}/${Key}`;
    const touch = { Bucket, Key, CopySource, MetadataDirective: 'REPLACE', Metadata: { seen: '2' } } as const;
    await program.send(new CopyObjectCommand(touch));
    const { Metadata, ContentLength } = await program.send(new HeadObjectCommand({ Bucket, Key }));
    expect([Metadata, ContentLength]).toEqual([{ seen: '2' }, bodyOf(1).length]);
  });

  test('collects garbage: lists all chunks, and deletes some at once and one alone', async () => {
    const { Bucket, program } = at;
    const list = async () => {
      const keys: (string | undefined)[] = [];
      const pages = paginateListObjectsV2(
        { client: program, pageSize: 2 },
        { Bucket, Prefix: 'store/.chunks/' },
      );
      for await (const { Contents = [] } of pages) keys.push(...Contents.map(({ Key }) => Key));
      return keys;
    };
    expect(await list()).toEqual([1, 2, 3, 4, 5].map(chunk));
    const Objects = [2, 3].map((number) => ({ Key: chunk(number) }));
    const deleted = await program.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects } }));
    expect([deleted.Deleted?.length, deleted.Errors]).toEqual([2, undefined]);
    await program.send(new DeleteObjectCommand({ Bucket, Key: chunk(4) }));
    expect(await list()).toEqual([1, 5].map(chunk));
  });
});

describe('what jobs ask of a bucket', () => {
  let at: BackupBucket;
  beforeAll(async () => {
    at = await calls.makeBucket('unstructured', { policy: 'bucket-admin', kind: 'versioned' });
  });

  test('where it is, and whether it keeps versions', async () => {
    const { Bucket, owner, program } = at;
    expect((await program.send(new GetBucketLocationCommand({ Bucket }))).LocationConstraint).toBe('us-east');
    expect((await program.send(new GetBucketVersioningCommand({ Bucket }))).Status).toBe('Enabled');
    const { Buckets = [] } = await owner.send(new ListBucketsCommand({}));
    expect(Buckets.map(({ Name }) => Name)).toContain(Bucket);
  });

  test('configurations that it has none of: an empty document, or the code that says so', async () => {
    const { Bucket, program } = at;
    expect((await program.send(new GetBucketLoggingCommand({ Bucket }))).LoggingEnabled).toBeUndefined();
    const notification = await program.send(new GetBucketNotificationConfigurationCommand({ Bucket }));
    expect(notification.QueueConfigurations).toBeUndefined();
    const codes = await Promise.all([
      refusalOf(program.send(new GetBucketLifecycleConfigurationCommand({ Bucket }))),
      refusalOf(program.send(new GetBucketPolicyCommand({ Bucket }))),
      refusalOf(program.send(new GetBucketReplicationCommand({ Bucket }))),
      refusalOf(program.send(new GetBucketWebsiteCommand({ Bucket }))),
    ]);
    expect(codes).toEqual([
      'NoSuchLifecycleConfiguration',
      'NoSuchBucketPolicy',
      'ReplicationConfigurationNotFoundError',
      'NoSuchWebsiteConfiguration',
    ]);
  });

  test('features that are not there at all (service 4.6): 501, and never a listing or another operation', async () => {
    const { Bucket, program } = at;
    const codes = await Promise.all([
      refusalOf(program.send(new GetBucketMetricsConfigurationCommand({ Bucket, Id: 'one' }))),
      refusalOf(program.send(new GetBucketOwnershipControlsCommand({ Bucket }))),
      refusalOf(program.send(new GetBucketPolicyStatusCommand({ Bucket }))),
      refusalOf(program.send(new GetBucketRequestPaymentCommand({ Bucket }))),
      refusalOf(program.send(new GetBucketTaggingCommand({ Bucket }))),
      refusalOf(program.send(new GetPublicAccessBlockCommand({ Bucket }))),
    ]);
    expect(codes).toEqual(Array(6).fill('NotImplemented'));
  });
});
