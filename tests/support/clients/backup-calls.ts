// A server with a bucket for one backup program, and the AWS SDK with the key that the command line makes for the program: for
// tests that replay what programs call which cannot be had here.
import { createHash } from 'node:crypto';
import {
  CreateBucketCommand,
  ListObjectVersionsCommand,
  type ListObjectVersionsCommandInput,
  type ListObjectVersionsCommandOutput,
  PutBucketVersioningCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { must } from '../../../src/base/assert.ts';
import type { ClientLines } from '../../../src/cli/access/client-lines.ts';
import type { Access } from '../servers/raw-s3.ts';
import { makeBackupUser } from './backup-keys.ts';
import { type ClientWorld, openWorld } from './clients.ts';

export interface BackupBucket {
  /** Its name. */
  Bucket: string;
  /** With all rights. */
  owner: S3Client;
  /** With the program's key. */
  program: S3Client;
  /** Of the program's user. */
  name: string;
  access: Access;
  lines: ClientLines;
}

export interface BackupCalls {
  readonly world: ClientWorld;
  /** `policy`: the template of the program's user. */
  makeBucket(
    name: string,
    options: { policy: string; kind: 'plain' | 'versioned' | 'locked' },
  ): Promise<BackupBucket>;
  close(): Promise<void>;
}

export async function openBackupCalls(): Promise<BackupCalls> {
  const world = await openWorld({ transport: 'http' });
  const clients: S3Client[] = [];
  const clientOf = ({ endpoint, accessKey: accessKeyId, secretKey: secretAccessKey }: Access) => {
    const credentials = { accessKeyId, secretAccessKey };
    const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials });
    clients.push(client);
    return client;
  };
  const owner = clientOf(world.server);
  return {
    world,
    async makeBucket(Bucket, { policy, kind }) {
      const isLocked = kind === 'locked';
      await owner.send(
        new CreateBucketCommand({ Bucket, ...(isLocked && { ObjectLockEnabledForBucket: true }) }),
      );
      if (kind === 'versioned') {
        const VersioningConfiguration = { Status: 'Enabled' } as const;
        await owner.send(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration }));
      }
      const name = `of-${Bucket}`;
      const { access, lines } = await makeBackupUser(world.server, { name, policy, bucket: Bucket });
      return { Bucket, owner, program: clientOf(access), name, access, lines };
    },
    async close() {
      for (const client of clients) client.destroy();
      await world.close();
    },
  };
}

/** As Content-MD5 has it. */
export const md5Of = (body: Buffer) => createHash('md5').update(body).digest('base64');

/** The code of the error that a call ends with. */
export async function refusalOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return must(error instanceof Error ? error.name : undefined, 'the call is refused');
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** In whole seconds, as programs say it. */
export const inDays = (days: number) => new Date(Math.floor((Date.now() + days * DAY_MS) / 1000) * 1000);

/** All pages of versions and delete markers, which the SDK has no paginator for. */
export async function* versionPages(
  client: S3Client,
  wanted: ListObjectVersionsCommandInput,
): AsyncGenerator<ListObjectVersionsCommandOutput, void> {
  let from: Pick<ListObjectVersionsCommandInput, 'KeyMarker' | 'VersionIdMarker'> = {};
  for (;;) {
    const page = await client.send(new ListObjectVersionsCommand({ ...wanted, ...from }));
    yield page;
    if (!page.IsTruncated) return;
    from = { KeyMarker: page.NextKeyMarker, VersionIdMarker: page.NextVersionIdMarker };
  }
}

/**
 * Listings show of a version the second at which it came. This is a time behind all that has been written; what is written next
 * comes in a later second.
 */
export async function endOfSecond({ endpoint }: Pick<Access, 'endpoint'>): Promise<string> {
  const secondMs = async () => {
    const { headers } = await fetch(`${endpoint}/health/ready`);
    return Date.parse(must(headers.get('date') ?? undefined, 'an answer says when it is'));
  };
  const writtenMs = await secondMs();
  for (;;) {
    const nowMs = await secondMs();
    if (nowMs > writtenMs) return new Date(nowMs - 1).toISOString();
  }
}
