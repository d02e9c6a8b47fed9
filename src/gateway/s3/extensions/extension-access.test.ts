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
/** Headers that change nothing of what moves, or is appended to. */
const NOT_APPLIED = { 's3:x-amz-acl': [], 's3:x-amz-server-side-encryption-customer-algorithm': [] };
/** Of a destination without conditions. */
const NONE_OF_TARGET = {
  ...NOT_APPLIED,
  's3:if-match': [],
  's3:if-none-match': [],
  's3:x-amz-copy-source': 'bucket/key',
};

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
function documentAccessOf(name: string, xml: string, headers: Record<string, string> = {}) {
  const row = OPERATIONS.find((one) => one.name === name);
  const input = row?.parse(requestOf(headers)) as never;
  const document = (row?.parseDocument && finishAtOnce(row.parseDocument(Buffer.from(xml), input))) as never;
  return row?.documentAccess?.(input, document);
}

test('MOVE rule 1: s3:PutObject on both ends; who is denied to delete or to read the source, its tags too, is refused', () => {
  const pairsOf = (isPrefix = {}): AccessPair[] => {
    const ofSource = { ...isPrefix, values: NOT_APPLIED };
    return [
      ['s3:PutObject', `${ARN}/key`, undefined, ofSource],
      ['s3:PutObject', `${ARN}/other`, undefined, { ...isPrefix, values: NONE_OF_TARGET, bringsTags: true }],
      ['s3:DeleteObject', `${ARN}/key`, 'unless-denied', ofSource],
      ['s3:GetObject', `${ARN}/key`, 'unless-denied', ofSource],
      ['s3:GetObjectTagging', `${ARN}/key`, 'unless-denied', ofSource],
      [
        's3:PutObjectTagging',
        `${ARN}/other`,
        'unless-denied',
        { ...isPrefix, values: NONE_OF_TARGET, bringsTags: true, isOfNewObject: true },
      ],
    ];
  };
  const ofVersions = { values: NOT_APPLIED, isOfVersions: true };
  const older = ['s3:GetObjectVersion', 's3:GetObjectVersionTagging', 's3:DeleteObjectVersion'].map(
    (action) => [action, `${ARN}/key`, 'unless-denied', ofVersions] as const,
  );
  expect(accessOf('MoveObject', { destination: 'other' })).toEqual(pairsOf());
  expect(accessOf('MoveObject', { destination: 'other' }, KEPT)).toEqual([...pairsOf(), ...older]);
  expect(accessOf('MoveObject', { destination: 'other', overwrite: 'true' })).toEqual([
    ...pairsOf(),
    ['s3:DeleteObject', `${ARN}/other`, 'unless-denied', { values: NONE_OF_TARGET, bringsTags: true }],
  ]);
  expect(accessOf('MoveObject', { destination: 'other', 'x-svc-prefix': 'true' })).toEqual(
    pairsOf({ isPrefix: true }),
  );
});

test('MOVE: conditions of policies on the destination are met by its own headers, and by no others', () => {
  const headers = { destination: 'other', 'if-match': '"a"', 'x-svc-destination-if-none-match': '*' };
  const pairs = accessOf('MoveObject', { ...headers, overwrite: 'true' }) ?? [];
  const ofTarget = pairs.filter(([, resource]) => resource === `${ARN}/other`);
  expect(ofTarget.map(([action, , , options]) => [action, options?.values])).toEqual([
    ['s3:PutObject', { ...NONE_OF_TARGET, 's3:if-none-match': '*' }],
    ['s3:PutObjectTagging', { ...NONE_OF_TARGET, 's3:if-none-match': '*' }],
    ['s3:DeleteObject', { ...NONE_OF_TARGET, 's3:if-none-match': '*' }],
  ]);
});

test('MOVE of a bucket, 4.5: s3:CreateBucket for both names, only by its owner, and by nobody who may not give the new one what comes along', () => {
  expect(accessOf('MoveBucket', { destination: 'new-name' })).toEqual([
    ['s3:CreateBucket', 'arn:aws:s3:::new-name', 'new-bucket'],
    ['s3:CreateBucket', ARN],
    ['s3:DeleteBucket', ARN, 'owner-only', { renamedTo: 'new-name' }],
    ['s3:PutBucketPolicy', 'arn:aws:s3:::new-name', 'new-name'],
    ['s3:PutBucketAcl', 'arn:aws:s3:::new-name', 'new-name'],
  ]);
});

test.each(['ComposeObject', 'AppendObject'])(
  '%s, compose rule 1 and append rule 3: s3:PutObject; without versions nobody whom s3:DeleteObject is denied',
  (name) => {
    // The target of a composition gets a list, which is private; that of an append keeps what it has.
    // Of what it comes from the target of a composition is judged with the document.
    const options = name === 'AppendObject' ? { values: NOT_APPLIED } : { isBeforeDocument: true };
    const write = ['s3:PutObject', `${ARN}/key`, undefined, options];
    expect(accessOf(name)).toEqual([write, ['s3:DeleteObject', `${ARN}/key`, 'unless-denied']]);
    expect(accessOf(name, {}, KEPT)).toEqual([write]);
  },
);

test('composition, compose rule 1: a component must be readable or writable, and s3:PutObject of the target allows each source', () => {
  const body = [
    '<Component><Key>one</Key></Component>',
    '<Component><Key>a/two</Key><VersionId>null</VersionId></Component>',
    '<Component><Key>one</Key></Component>',
  ];
  expect(documentAccessOf('ComposeObject', `<ComposeRequest>${body.join('')}</ComposeRequest>`)).toEqual([
    ['s3:GetObject', `${ARN}/one`, 'component', {}],
    ['s3:GetObjectVersion', `${ARN}/a/two`, 'component', { versionId: 'null' }],
    ['s3:GetObject', `${ARN}/one`, 'component', {}],
    ['s3:PutObject', `${ARN}/key`, undefined, { values: { 's3:x-amz-copy-source': 'bucket/one' } }],
    [
      's3:PutObject',
      `${ARN}/key`,
      undefined,
      { values: { 's3:x-amz-copy-source': 'bucket/a/two?versionId=null' } },
    ],
  ]);
});

test('composition with tags needs the tagging permission', () => {
  const givenTags = [{ key: 'a', value: 'b' }];
  expect(accessOf('ComposeObject', { 'x-amz-tagging': 'a=b' }, KEPT)).toEqual([
    ['s3:PutObject', `${ARN}/key`, undefined, { isBeforeDocument: true }],
    ['s3:PutObjectTagging', `${ARN}/key`, undefined, { isOfNewObject: true, givenTags }],
  ]);
  const xml = '<ComposeRequest><Component><Key>one</Key></Component></ComposeRequest>';
  expect(documentAccessOf('ComposeObject', xml, { 'x-amz-tagging': 'a=b' })).toContainEqual([
    's3:PutObject',
    `${ARN}/key`,
    undefined,
    { givenTags, values: { 's3:x-amz-copy-source': 'bucket/one' } },
  ]);
});

test('compliance that deletes after retention (extensions 2.6) needs deletion of every object and version; no header is a condition on it', () => {
  const settings = (its: string) =>
    `<BucketComplianceConfiguration><Status>enabled</Status><RetentionDays>0</RetentionDays>${its}</BucketComplianceConfiguration>`;
  const deleting = settings('<DeleteAfterRetention>true</DeleteAfterRetention>');
  expect(documentAccessOf('PutBucketCompliance', deleting)).toEqual([
    ['s3:DeleteObject', `${ARN}/`, undefined, { isPrefix: true, values: { 's3:if-match': [] } }],
    [
      's3:DeleteObjectVersion',
      `${ARN}/`,
      undefined,
      { isPrefix: true, removesVersion: true, values: { 's3:if-match': [] } },
    ],
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
