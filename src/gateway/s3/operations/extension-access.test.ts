// Which rights the extensions ask for, and of what: data of the registry's rows (service.txt 4.1, 4.2, 4.5; extensions.md 2).
import { expect, test } from 'vitest';
import type { AccountId, BucketId, BucketName, ObjectKey } from '../../../model/names.ts';
import type { BucketRecord } from '../../../model/records/rows.ts';
import type { AccessPair } from '../caller.ts';
import type { OperationRequest } from '../operation.ts';
import { OPERATIONS } from '../registry.ts';
import type { RequestBody } from '../request-body.ts';

const BUCKET: BucketRecord = {
  bucketId: 'b000000000000001' as BucketId,
  name: 'bucket' as BucketName,
  nameEpoch: 1,
  owner: '000000000001' as AccountId,
  state: 'open',
  createdAtMs: 0,
  cfgVersion: 1,
  versioning: 'unversioned',
};
const KEPT: BucketRecord = { ...BUCKET, versioning: 'enabled' };
const ARN = 'arn:aws:s3:::bucket';

function accessOf(name: string, headers: Record<string, string> = {}, bucket = BUCKET) {
  const row = OPERATIONS.find((one) => one.name === name);
  const request: OperationRequest = {
    ...{ method: 'PUT', bucket: BUCKET.name, key: 'key' as ObjectKey, query: new Map() },
    ...{ headers, body: { sizeBytes: 5 } as RequestBody, mayCarrySecrets: true },
  };
  return row?.access(row.parse(request) as never, bucket) as readonly AccessPair[] | undefined;
}

test('MOVE, rule 1: s3:PutObject on both ends; who is denied s3:DeleteObject on what goes is refused', () => {
  const both: AccessPair[] = [
    ['s3:PutObject', `${ARN}/key`],
    ['s3:PutObject', `${ARN}/other`],
    ['s3:DeleteObject', `${ARN}/key`, 'not-denied'],
  ];
  expect(accessOf('MoveObject', { destination: 'other' })).toEqual(both);
  expect(accessOf('MoveObject', { destination: 'other', overwrite: 'true' })).toEqual([
    ...both,
    ['s3:DeleteObject', `${ARN}/other`, 'not-denied'],
  ]);
  expect(accessOf('MoveObject', { destination: 'other', 'x-svc-prefix': 'true' })).toEqual([
    ['s3:PutObject', `${ARN}/key*`],
    ['s3:PutObject', `${ARN}/other*`],
    ['s3:DeleteObject', `${ARN}/key*`, 'not-denied'],
  ]);
});

test('MOVE of a bucket, 4.5: s3:CreateBucket for the new name, and only its owner', () => {
  expect(accessOf('MoveBucket', { destination: 'new-name' })).toEqual([
    ['s3:CreateBucket', 'arn:aws:s3:::new-name', 'new-bucket'],
    ['s3:DeleteBucket', ARN, 'owner'],
  ]);
});

test.each(['ComposeObject', 'AppendObject'])(
  '%s, compose rule 1 and append rule 3: s3:PutObject; without versions nobody whom s3:DeleteObject is denied',
  (name) => {
    expect(accessOf(name)).toEqual([
      ['s3:PutObject', `${ARN}/key`],
      ['s3:DeleteObject', `${ARN}/key`, 'not-denied'],
    ]);
    expect(accessOf(name, {}, KEPT)).toEqual([['s3:PutObject', `${ARN}/key`]]);
  },
);

test('composition, with tags of its own: these are a right of their own', () => {
  expect(accessOf('ComposeObject', { 'x-amz-tagging': 'a=b' }, KEPT)).toEqual([
    ['s3:PutObject', `${ARN}/key`],
    ['s3:PutObjectTagging', `${ARN}/key`],
  ]);
});

test('forced deletion (extensions.md 2.5): s3:DeleteBucket, and the deletion of every object and version', () => {
  expect(accessOf('ForceDeleteBucket')).toEqual([
    ['s3:DeleteBucket', ARN],
    ['s3:DeleteObject', `${ARN}/*`],
    ['s3:DeleteObjectVersion', `${ARN}/*`],
  ]);
});
