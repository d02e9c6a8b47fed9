import { expect, test } from 'vitest';
import type { AccountId, BucketId, BucketName } from '../types/names.ts';
import type { BucketRecord } from '../types/records/rows.ts';
import { isAllowed, isSomeAllowed } from './authorize.ts';

const owner = '000000000001' as AccountId;
const other = '000000000002' as AccountId;
const bucket: BucketRecord = {
  bucketId: 'b000000000000001' as BucketId,
  name: 'bucket' as BucketName,
  nameEpoch: 1,
  owner,
  state: 'open',
  createdAtMs: 0,
  cfgVersion: 1,
  versioning: 'unversioned',
};
const key = 'arn:aws:s3:::bucket/key';

test('the owner may do everything on its bucket, others and strangers nothing', () => {
  const pairs = [
    ['s3:GetObject', key],
    ['s3:ListBucket', 'arn:aws:s3:::bucket'],
  ] as const;
  expect(isAllowed({ accountId: owner, pairs, bucket })).toBe(true);
  expect(isAllowed({ accountId: other, pairs, bucket })).toBe(false);
  expect(isAllowed({ accountId: undefined, pairs, bucket })).toBe(false);
});

test('before the keys are known: the owner may do something, others and strangers nothing', () => {
  const actions = ['s3:DeleteObject', 's3:DeleteObjectVersion'] as const;
  expect(isSomeAllowed({ accountId: owner, actions, bucket })).toBe(true);
  expect(isSomeAllowed({ accountId: other, actions, bucket })).toBe(false);
  expect(isSomeAllowed({ accountId: undefined, actions, bucket })).toBe(false);
});

test('any account may make buckets and list its own; nothing else goes without a bucket', () => {
  const pairs = [['s3:CreateBucket', 'arn:aws:s3:::new']] as const;
  expect(isAllowed({ accountId: other, pairs, bucket: undefined })).toBe(true);
  expect(isAllowed({ accountId: undefined, pairs, bucket: undefined })).toBe(false);
  const list = [['s3:ListAllMyBuckets', 'arn:aws:s3:::*']] as const;
  expect(isAllowed({ accountId: other, pairs: list, bucket: undefined })).toBe(true);
  expect(isAllowed({ accountId: other, pairs: [...list, ['s3:GetObject', key]], bucket: undefined })).toBe(
    false,
  );
});

test('asking one bucket about the resources of another is a mistake of ours', () => {
  const pairs = [['s3:GetObject', 'arn:aws:s3:::bucket-2/key']] as const;
  expect(() => isAllowed({ accountId: owner, pairs, bucket })).toThrow('s3:GetObject');
});

test('what must only not be denied is nobody’s right, and still not for strangers', () => {
  const pairs = [['s3:DeleteObject', key, 'not-denied']] as const;
  expect(isAllowed({ accountId: owner, pairs, bucket })).toBe(true);
  expect(isAllowed({ accountId: other, pairs, bucket })).toBe(true);
  expect(isAllowed({ accountId: undefined, pairs, bucket })).toBe(false);
  const beside = [['s3:PutObject', key], ...pairs] as const;
  expect(isAllowed({ accountId: other, pairs: beside, bucket })).toBe(false);
});

test('a new name is asked for beside the bucket that has an old one, and only the owner gives it another', () => {
  const pairs = [
    ['s3:CreateBucket', 'arn:aws:s3:::new', 'new-bucket'],
    ['s3:DeleteBucket', 'arn:aws:s3:::bucket', 'owner'],
  ] as const;
  expect(isAllowed({ accountId: owner, pairs, bucket })).toBe(true);
  expect(isAllowed({ accountId: other, pairs, bucket })).toBe(false);
  expect(isAllowed({ accountId: undefined, pairs, bucket })).toBe(false);
  const misused = [['s3:DeleteBucket', 'arn:aws:s3:::new', 'new-bucket']] as const;
  expect(isAllowed({ accountId: owner, pairs: misused, bucket })).toBe(false);
});
