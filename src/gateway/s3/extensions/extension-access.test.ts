// Which rights the extensions ask for, and of what: data of the registry's rows (service 4.1, 4.2, 4.5; extensions 2).

import { expect, test } from 'vitest';
import { finishAtOnce } from '../../../base/async/steps.ts';
import type { AccessPair } from '../../../policy/authorize.ts';
import type { AccountId, BucketId, BucketName, ObjectKey } from '../../../types/names.ts';
import type { BucketRecord } from '../../../types/records/rows.ts';
import type { OperationRequest } from '../operation.ts';
import { OPERATIONS } from '../registry.ts';
import type { RequestBody } from '../request/request-body.ts';

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

function requestOf(headers: Record<string, string>): OperationRequest {
  return {
    method: 'PUT',
    bucket: BUCKET.name,
    key: 'key' as ObjectKey,
    query: new Map(),
    headers,
    body: { sizeBytes: 5 } as RequestBody,
    mayCarrySecrets: true,
  };
}

function accessOf(name: string, headers: Record<string, string> = {}, bucket = BUCKET) {
  const row = OPERATIONS.find((one) => one.name === name);
  return row?.access(row.parse(requestOf(headers)) as never, bucket) as readonly AccessPair[] | undefined;
}

/** What is asked once the document is read. */
function documentAccessOf(name: string, xml: string) {
  const row = OPERATIONS.find((one) => one.name === name);
  const input = row?.parse(requestOf({})) as never;
  const document = (row?.parseDocument && finishAtOnce(row.parseDocument(Buffer.from(xml), input))) as never;
  return row?.documentAccess?.(input, document);
}

test('MOVE rule 1: s3:PutObject on both ends; a denied s3:DeleteObject on the source refuses it', () => {
  const both: AccessPair[] = [
    ['s3:PutObject', `${ARN}/key`],
    ['s3:PutObject', `${ARN}/other`],
    ['s3:DeleteObject', `${ARN}/key`, 'unless-denied'],
  ];
  expect(accessOf('MoveObject', { destination: 'other' })).toEqual(both);
  expect(accessOf('MoveObject', { destination: 'other', overwrite: 'true' })).toEqual([
    ...both,
    ['s3:DeleteObject', `${ARN}/other`, 'unless-denied'],
  ]);
  expect(accessOf('MoveObject', { destination: 'other', 'x-svc-prefix': 'true' })).toEqual([
    ['s3:PutObject', `${ARN}/key`, undefined, { isPrefix: true }],
    ['s3:PutObject', `${ARN}/other`, undefined, { isPrefix: true }],
    ['s3:DeleteObject', `${ARN}/key`, 'unless-denied', { isPrefix: true }],
  ]);
});

test('MOVE of a bucket, 4.5: s3:CreateBucket for both names, and only by its owner', () => {
  expect(accessOf('MoveBucket', { destination: 'new-name' })).toEqual([
    ['s3:CreateBucket', 'arn:aws:s3:::new-name', 'new-bucket'],
    ['s3:CreateBucket', ARN],
    ['s3:DeleteBucket', ARN, 'owner-only'],
  ]);
});

test.each(['ComposeObject', 'AppendObject'])(
  '%s, compose rule 1 and append rule 3: s3:PutObject; without versions nobody whom s3:DeleteObject is denied',
  (name) => {
    expect(accessOf(name)).toEqual([
      ['s3:PutObject', `${ARN}/key`],
      ['s3:DeleteObject', `${ARN}/key`, 'unless-denied'],
    ]);
    expect(accessOf(name, {}, KEPT)).toEqual([['s3:PutObject', `${ARN}/key`]]);
  },
);

test('composition, compose rule 1: a component must be readable or writable, and a denied one refuses it', () => {
  const body = [
    '<Component><Key>one</Key></Component>',
    '<Component><Key>a/two</Key><VersionId>null</VersionId></Component>',
    '<Component><Key>one</Key></Component>',
  ];
  expect(documentAccessOf('ComposeObject', `<ComposeRequest>${body.join('')}</ComposeRequest>`)).toEqual([
    ['s3:GetObject', `${ARN}/one`, 'component', {}],
    ['s3:GetObjectVersion', `${ARN}/a/two`, 'component', { versionId: 'null' }],
    ['s3:GetObject', `${ARN}/one`, 'component', {}],
  ]);
});

test('composition with tags needs the tagging permission', () => {
  const givenTags = [{ key: 'a', value: 'b' }];
  expect(accessOf('ComposeObject', { 'x-amz-tagging': 'a=b' }, KEPT)).toEqual([
    ['s3:PutObject', `${ARN}/key`, undefined, { givenTags }],
    ['s3:PutObjectTagging', `${ARN}/key`, undefined, { isOfNewObject: true, givenTags }],
  ]);
});

test('compliance that deletes after retention (extensions 2.6) needs deletion of every object and version', () => {
  const settings = (its: string) =>
    `<BucketComplianceConfiguration><Status>enabled</Status><RetentionDays>0</RetentionDays>${its}</BucketComplianceConfiguration>`;
  const deleting = settings('<DeleteAfterRetention>true</DeleteAfterRetention>');
  expect(documentAccessOf('PutBucketCompliance', deleting)).toEqual([
    ['s3:DeleteObject', `${ARN}/`, undefined, { isPrefix: true }],
    ['s3:DeleteObjectVersion', `${ARN}/`, undefined, { isPrefix: true, removesVersion: true }],
  ]);
  expect(documentAccessOf('PutBucketCompliance', settings(''))).toEqual([]);
});

test('forced deletion (extensions 2.5) needs s3:DeleteBucket, and deletion of every object and version', () => {
  expect(accessOf('ForceDeleteBucket')).toEqual([
    ['s3:DeleteBucket', ARN],
    ['s3:DeleteObject', `${ARN}/`, undefined, { isPrefix: true }],
    ['s3:DeleteObjectVersion', `${ARN}/`, undefined, { isPrefix: true, removesVersion: true }],
  ]);
});
