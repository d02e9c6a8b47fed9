// Barman's programs for clouds, with a key and a bucket as its page in docs/backup has it: WAL is archived and restored.
// Not here: a base backup, which needs a PostgreSQL server.
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { HeadObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BackupBucket, type BackupCalls, openBackupCalls } from '../support/clients/backup-calls.ts';
import { PROGRAMS } from '../support/clients/clients.ts';

const SEGMENT_BYTES = 16 << 20;
const SEGMENT = '000000010000000000000001';
const FROM = 's3://barman/pg';

let calls: BackupCalls;
let at: BackupBucket;
const segment = randomBytes(SEGMENT_BYTES);

function barman(program: string, ...args: string[]) {
  const { endpoint, accessKey, secretKey } = at.access;
  const env = {
    AWS_ACCESS_KEY_ID: accessKey,
    AWS_SECRET_ACCESS_KEY: secretKey,
    AWS_DEFAULT_REGION: 'us-east',
    AWS_EC2_METADATA_DISABLED: 'true',
  };
  const path = join(dirname(PROGRAMS.barmanWalArchive), program);
  return calls.world.run(path, ['--endpoint-url', endpoint, ...args], { env });
}

beforeAll(async () => {
  calls = await openBackupCalls();
  at = await calls.makeBucket('barman', { policy: 'veeam', kind: 'versioned' });
  mkdirSync(calls.world.path('pg_wal'));
  writeFileSync(calls.world.path(`pg_wal/${SEGMENT}`), segment);
});
afterAll(() => calls.close());

test('finds its bucket, and an archive that is empty', async () => {
  await barman('barman-cloud-wal-archive', '--test', FROM, 'main', SEGMENT);
  await barman('barman-cloud-check-wal-archive', FROM, 'main');
});

test.each([
  ['as it is', [], ''],
  ['compressed', ['--gzip'], '.gz'],
] as const)('archives a segment %s, and restores it', async (_, options, suffix) => {
  const server = `main${suffix}`;
  await barman('barman-cloud-wal-archive', ...options, FROM, server, calls.world.path(`pg_wal/${SEGMENT}`));
  const Key = `pg/${server}/wals/0000000100000000/${SEGMENT}${suffix}`;
  const head = await at.owner.send(new HeadObjectCommand({ Bucket: at.Bucket, Key }));
  expect(head.ContentLength).toBeGreaterThan(suffix === '' ? SEGMENT_BYTES - 1 : 0);
  const restored = calls.world.path(`restored${suffix}`);
  await barman('barman-cloud-wal-restore', FROM, server, SEGMENT, restored);
  expect(readFileSync(restored).equals(segment)).toBe(true);
});

test('is told that an archive which is in use is not empty, and lists its backups: none', async () => {
  await expect(barman('barman-cloud-check-wal-archive', FROM, 'main')).rejects.toThrow(
    'Expected empty archive',
  );
  const listed = await barman('barman-cloud-backup-list', '--format', 'json', FROM, 'main');
  expect(JSON.parse(listed.stdout)).toMatchObject({ backups_list: [] });
});
