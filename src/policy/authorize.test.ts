import { expect, test } from 'vitest';
import type { AccountId, BucketId, BucketName } from '../types/names.ts';
import type { BucketRecord } from '../types/records/rows.ts';
import { type AccessPair, createAuthorizer, type RequestFacts, RULES, type Rule } from './authorize.ts';

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

let tagReads = 0;
const facts: RequestFacts = {
  remoteAddress: '192.0.2.7',
  isTls: false,
  nowMs: 0,
  header: () => undefined,
  parameter: () => undefined,
};

async function objectTags() {
  tagReads++;
  return [{ key: 'class', value: 'secret' }];
}

interface Asked {
  accountId: AccountId | undefined;
  bucket: BucketRecord | undefined;
}

const { isSomeAllowed: someAllowed } = createAuthorizer();
const principalOf = ({ accountId }: Pick<Asked, 'accountId'>) =>
  accountId === undefined ? undefined : { accountId };

function isAllowed({ pairs, bucket: of, ...who }: Asked & { pairs: readonly AccessPair[] }, rules = RULES) {
  return createAuthorizer(rules).isAllowed({
    principal: principalOf(who),
    pairs,
    bucket: of,
    facts,
    tagsOf: objectTags,
  });
}

function isSomeAllowed({
  accountId,
  ...asked
}: { accountId: AccountId | undefined } & Omit<Parameters<typeof someAllowed>[0], 'principal'>) {
  return someAllowed({ principal: principalOf({ accountId }), ...asked });
}

test('the owner may do everything on its bucket, others and strangers nothing', async () => {
  const pairs = [
    ['s3:GetObject', key],
    ['s3:ListBucket', 'arn:aws:s3:::bucket'],
  ] as const;
  expect(await isAllowed({ accountId: owner, pairs, bucket })).toBe(true);
  expect(await isAllowed({ accountId: other, pairs, bucket })).toBe(false);
  expect(await isAllowed({ accountId: undefined, pairs, bucket })).toBe(false);
});

test('before the keys are known: the owner may do something, others and strangers nothing', async () => {
  const actions = ['s3:DeleteObject', 's3:DeleteObjectVersion'] as const;
  expect(isSomeAllowed({ accountId: owner, actions, bucket })).toBe(true);
  expect(isSomeAllowed({ accountId: other, actions, bucket })).toBe(false);
  expect(isSomeAllowed({ accountId: undefined, actions, bucket })).toBe(false);
});

test('any account may make buckets and list its own; nothing else goes without a bucket', async () => {
  const pairs = [['s3:CreateBucket', 'arn:aws:s3:::new']] as const;
  expect(await isAllowed({ accountId: other, pairs, bucket: undefined })).toBe(true);
  expect(await isAllowed({ accountId: undefined, pairs, bucket: undefined })).toBe(false);
  const list = [['s3:ListAllMyBuckets', 'arn:aws:s3:::*']] as const;
  expect(await isAllowed({ accountId: other, pairs: list, bucket: undefined })).toBe(true);
  expect(
    await isAllowed({ accountId: other, pairs: [...list, ['s3:GetObject', key]], bucket: undefined }),
  ).toBe(false);
});

test('asking one bucket about the resources of another is a mistake of ours', async () => {
  const pairs = [['s3:GetObject', 'arn:aws:s3:::bucket-2/key']] as const;
  await expect(isAllowed({ accountId: owner, pairs, bucket })).rejects.toThrow('s3:GetObject');
});

test('what must only not be denied is nobody’s right, and still not for strangers', async () => {
  const pairs = [['s3:DeleteObject', key, 'unless-denied']] as const;
  expect(await isAllowed({ accountId: owner, pairs, bucket })).toBe(true);
  expect(await isAllowed({ accountId: other, pairs, bucket })).toBe(true);
  expect(await isAllowed({ accountId: undefined, pairs, bucket })).toBe(false);
  const beside = [['s3:PutObject', key], ...pairs] as const;
  expect(await isAllowed({ accountId: other, pairs: beside, bucket })).toBe(false);
});

test('a new name is asked for beside the bucket that has an old one, and only the owner gives it another', async () => {
  const pairs = [
    ['s3:CreateBucket', 'arn:aws:s3:::new', 'new-bucket'],
    ['s3:DeleteBucket', 'arn:aws:s3:::bucket', 'owner-only'],
  ] as const;
  expect(await isAllowed({ accountId: owner, pairs, bucket })).toBe(true);
  expect(await isAllowed({ accountId: other, pairs, bucket })).toBe(false);
  expect(await isAllowed({ accountId: undefined, pairs, bucket })).toBe(false);
  const misused = [['s3:DeleteBucket', 'arn:aws:s3:::new', 'new-bucket']] as const;
  expect(await isAllowed({ accountId: owner, pairs: misused, bucket })).toBe(false);
});

/** Denies to take away what is tagged as secret, and looks at nothing before that. */
const keepSecrets: Rule = {
  name: 'keep-secrets',
  judge({ action, objectTags }) {
    if (action !== 's3:DeleteObject') return undefined;
    return objectTags().then((tags) => (tags.some(({ value }) => value === 'secret') ? 'deny' : undefined));
  },
  mayAllow: () => false,
};

test('what one rule denies no other allows, in whichever order they stand', async () => {
  const pairs = [['s3:DeleteObject', key]] as const;
  for (const rules of [
    [...RULES, keepSecrets],
    [keepSecrets, ...RULES],
  ])
    expect(await isAllowed({ accountId: owner, pairs, bucket }, rules)).toBe(false);
});

test('what must only not be denied is refused where a rule denies it', async () => {
  const pairs = [['s3:DeleteObject', key, 'unless-denied']] as const;
  expect(await isAllowed({ accountId: owner, pairs, bucket }, [...RULES, keepSecrets])).toBe(false);
  const owned = [['s3:DeleteObject', key, 'owner-only']] as const;
  expect(await isAllowed({ accountId: owner, pairs: owned, bucket }, [...RULES, keepSecrets])).toBe(false);
});

test('facts are looked at only by a rule that needs them', async () => {
  tagReads = 0;
  await isAllowed({ accountId: owner, pairs: [['s3:GetObject', key]], bucket }, [...RULES, keepSecrets]);
  expect(tagReads).toBe(0);
  await isAllowed({ accountId: owner, pairs: [['s3:DeleteObject', key]], bucket }, [...RULES, keepSecrets]);
  expect(tagReads).toBe(1);
});

test('the answer for one pair says which rule decided', async () => {
  const { decide } = createAuthorizer([...RULES, keepSecrets]);
  const ask = (accountId: AccountId | undefined, action: string) =>
    decide({ principal: principalOf({ accountId }), action, resource: key, bucket, facts, objectTags });
  expect(await ask(owner, 's3:GetObject')).toEqual({ isAllowed: true, rule: 'bucket-owner' });
  expect(await ask(other, 's3:GetObject')).toEqual({ isAllowed: false, isExplicit: false });
  expect(await ask(owner, 's3:DeleteObject')).toEqual({
    isAllowed: false,
    isExplicit: true,
    rule: 'keep-secrets',
  });
});
