// What a caller may do with a bucket and what is in it: policies, ACLs, objects of other accounts, and the rules of extensions.
import { describe, expect, test } from 'vitest';
import type { Grant } from '../types/acl.ts';
import type { AccountId, BucketId, BucketName } from '../types/names.ts';
import type { BucketRecord } from '../types/records/rows.ts';
import {
  type AccessPair,
  type AccessRequest,
  type Asker,
  decide,
  describeDecision,
  isAllowed,
  isSomeAllowed,
  type JudgedBucket,
  type StoredObject,
} from './authorize.ts';
import { compilePolicy } from './documents/compile-policy.ts';
import { NO_POLICIES } from './evaluate.ts';

const OWNER = '100000000001' as AccountId;
const OTHER = '100000000002' as AccountId;
const KEY = 'arn:aws:s3:::bucket/key';

const root = (accountId: AccountId): Asker => ({
  caller: { kind: 'root', accountId, canonicalId: accountId, arn: `arn:aws:iam::${accountId}:root` },
  policies: NO_POLICIES,
});
const ANONYMOUS: Asker = { caller: { kind: 'anonymous' }, policies: NO_POLICIES };

function policyOf(type: 'identity' | 'resource', statements: readonly object[]) {
  const text = JSON.stringify({ Version: '2012-10-17', Statement: statements });
  const outcome = compilePolicy(text, type === 'resource' ? { type, bucket: 'bucket' } : { type });
  if (outcome.kind !== 'compiled') throw new Error(outcome.message);
  return { name: type, policy: outcome.policy };
}

const user = (statements: readonly object[], accountId = OWNER): Asker => ({
  caller: { kind: 'user', accountId, canonicalId: accountId, arn: `arn:aws:iam::${accountId}:user/u` },
  policies: { identity: statements.length === 0 ? [] : [policyOf('identity', statements)] },
});

interface Sharing {
  policy?: readonly object[];
  grants?: readonly Grant[];
  record?: Partial<BucketRecord>;
  mayBePublic?: boolean;
}

function bucketOf({ policy, grants, record, mayBePublic = true }: Sharing = {}): JudgedBucket {
  return {
    record: {
      bucketId: 'b000000000000001' as BucketId,
      name: 'bucket' as BucketName,
      nameEpoch: 1,
      owner: OWNER,
      state: 'open',
      createdAtMs: 0,
      cfgVersion: 1,
      versioning: 'unversioned',
      ...record,
    },
    policy: policy && policyOf('resource', policy),
    acl: { owner: OWNER, grants },
    mayBePublic,
  };
}

let readCount = 0;

function requestOf(asker: Asker, bucket: JudgedBucket | undefined, stored?: StoredObject): AccessRequest {
  return {
    asker,
    pairs: [],
    bucket,
    contextOf: () => undefined,
    async storedObject() {
      readCount++;
      return stored;
    },
  };
}

async function answer(asker: Asker, pair: AccessPair, sharing: Sharing = {}, stored?: StoredObject) {
  readCount = 0;
  return describeDecision(await decide(requestOf(asker, bucketOf(sharing), stored), pair));
}

const allow = (Action: string, Resource: string) => ({ Effect: 'Allow', Action, Resource });
const forAll = (Action: string, Resource: string, Effect = 'Allow') => ({
  Effect,
  Principal: '*',
  Action,
  Resource,
});

test('where an account may not share with everybody, its lists and policy share with those they name alone', async () => {
  const pair = ['s3:GetObject', KEY] as const;
  const policy = [forAll('s3:GetObject', KEY), forAll('s3:GetObjectTagging', KEY, 'Deny')];
  const grants: Grant[] = [
    { grantee: 'AllUsers', permission: 'READ' },
    { grantee: 'AuthenticatedUsers', permission: 'READ' },
  ];
  const ofObject = { acl: { owner: OWNER, grants }, tags: [] };
  const strangers = [ANONYMOUS, root(OTHER)];
  for (const stranger of strangers) {
    expect(await answer(stranger, pair, { policy })).toBe('resource policy resource, statement 0');
    expect(await answer(stranger, pair, {}, ofObject)).toBe('acl');
    const [refused, byPolicy] = ['no resource policy allows it', { policy, mayBePublic: false }];
    expect(await answer(stranger, pair, byPolicy)).toBe(refused);
    expect(await answer(stranger, pair, { mayBePublic: false }, ofObject)).toBe(refused);
    expect(await answer(stranger, pair, {}, { ...ofObject, isPrivate: true })).toBe(refused);
    const listing = ['s3:ListBucket', 'arn:aws:s3:::bucket'] as const;
    expect(await answer(stranger, listing, { grants })).toBe('acl');
    expect(await answer(stranger, listing, { grants, mayBePublic: false })).toBe(refused);
    const bucket = bucketOf({ policy, grants, mayBePublic: false });
    expect(isSomeAllowed({ asker: stranger, bucket }, ['s3:ListBucket'])).toBe(false);
  }
  const named = [{ ...forAll('s3:GetObject', KEY), Principal: { AWS: OTHER } }];
  expect(await answer(root(OTHER), pair, { policy: named, mayBePublic: false })).toBe(
    'resource policy resource, statement 0',
  );
  const shared: Grant[] = [...grants, { grantee: OTHER, permission: 'READ' }];
  const stored = { acl: { owner: OWNER, grants: shared }, tags: [] };
  expect(await answer(root(OTHER), pair, { mayBePublic: false }, stored)).toBe('acl');
  // Users of the account itself are not everybody.
  expect(await answer(user([]), pair, { policy, mayBePublic: false })).toBe(
    'resource policy resource, statement 0',
  );
  const tagging = ['s3:GetObjectTagging', KEY] as const;
  expect(await answer(root(OTHER), tagging, { policy, mayBePublic: false })).toMatch(/statement 1$/);
});

describe('by policies', () => {
  test('of many objects, tags that some may have deny all, and allow none', async () => {
    const all = 'arn:aws:s3:::bucket/';
    const pair = ['s3:DeleteObject', all, undefined, { isPrefix: true }] as const;
    const [kept, others] = [
      { StringEquals: { 's3:ExistingObjectTag/keep': 'yes' } },
      { StringNotEquals: { 's3:ExistingObjectTag/keep': 'yes' } },
    ];
    const [may, mayNot] = [allow('s3:*', '*'), { ...allow('s3:DeleteObject', '*'), Effect: 'Deny' }];
    expect(await answer(user([may]), pair)).toBe('identity policy identity, statement 0');
    expect(await answer(user([may, { ...mayNot, Condition: kept }]), pair)).toBe(
      'identity policy identity, statement 1',
    );
    expect(await answer(user([{ ...may, Condition: others }]), pair)).toBe('no identity policy allows it');
    expect(readCount).toBe(0);
  });

  test('of all versions of a key, what some may have denies all, and none of them opens the others', async () => {
    const pair = ['s3:GetObjectVersion', KEY, 'unless-denied', { isOfVersions: true }] as const;
    const denying = (Condition: object) => user([{ ...allow('s3:*', KEY), Effect: 'Deny', Condition }]);
    const denied = 'identity policy identity, statement 0';
    expect(await answer(denying({ StringEquals: { 's3:VersionId': 'v1' } }), pair)).toBe(denied);
    expect(await answer(denying({ StringEquals: { 's3:ExistingObjectTag/a': 'b' } }), pair)).toBe(denied);
    expect(await answer(user([]), pair)).toBe('extension');
    const readable = {
      acl: { owner: OWNER, grants: [{ grantee: OTHER, permission: 'READ' } as const] },
      tags: [],
    };
    expect(await answer(root(OTHER), pair, {}, readable)).toBe('no resource policy allows it');
    const policy = [forAll('s3:GetObjectVersion', KEY)];
    expect(await answer(root(OTHER), pair, { policy })).toBe('resource policy resource, statement 0');
  });

  test('who may list learns what is missing, and renames nothing by that', async () => {
    const policy = [forAll('s3:ListBucket', 'arn:aws:s3:::bucket')];
    const [listed, refused] = ['resource policy resource, statement 0', 'no resource policy allows it'];
    for (const stranger of [ANONYMOUS, root(OTHER)]) {
      expect(await answer(stranger, ['s3:GetObject', KEY], { policy })).toBe(listed);
      const pairs: AccessPair[] = [
        ['s3:GetObject', KEY, 'unless-denied'],
        ['s3:GetObject', 'arn:aws:s3:::bucket/k', 'unless-denied', { isPrefix: true }],
        ['s3:GetObjectVersion', KEY, 'unless-denied', { isOfVersions: true }],
      ];
      for (const pair of pairs) expect(await answer(stranger, pair, { policy })).toBe(refused);
    }
  });

  test("the root of the bucket's account may do everything, other accounts and strangers nothing", async () => {
    expect(await answer(root(OWNER), ['s3:DeleteObject', KEY])).toBe('root');
    expect(readCount).toBe(0);
    expect(await answer(root(OTHER), ['s3:DeleteObject', KEY])).toBe('no resource policy allows it');
    expect(await answer(ANONYMOUS, ['s3:DeleteObject', KEY])).toBe('no resource policy allows it');
  });

  test('a user may do what its policies allow, and nothing that they deny', async () => {
    const writer = user([allow('s3:PutObject', 'arn:aws:s3:::bucket/*')]);
    expect(await answer(writer, ['s3:PutObject', KEY])).toBe('identity policy identity, statement 0');
    expect(await answer(writer, ['s3:DeleteObject', KEY])).toBe('no identity policy allows it');
    const denied = user([allow('*', '*'), { ...allow('s3:Delete*', '*'), Effect: 'Deny', Sid: 'Keep' }]);
    expect(await answer(denied, ['s3:DeleteObject', KEY])).toBe(
      'identity policy identity, statement 1 (Keep)',
    );
  });

  test('stored tags are read where a policy asks for them, and only there', async () => {
    const Condition = { StringEquals: { 's3:ExistingObjectTag/class': 'open' } };
    const policy = [{ ...forAll('s3:GetObject', 'arn:aws:s3:::bucket/*'), Condition }];
    const acl = { owner: OWNER };
    const tagged = { acl, tags: [{ key: 'class', value: 'open' }] };
    expect(await answer(ANONYMOUS, ['s3:GetObject', KEY], { policy }, tagged)).toMatch(/^resource policy/);
    expect(await answer(ANONYMOUS, ['s3:GetObject', KEY], { policy }, { acl, tags: [] })).toBe(
      'no resource policy allows it',
    );
    await answer(root(OWNER), ['s3:PutObject', KEY], { policy });
    expect(readCount).toBe(0);
  });

  test('a key that the action does not have has no value, whatever the request says under its name', async () => {
    const home = { StringLike: { 's3:prefix': 'home/*' } };
    const lister = user([{ ...allow('s3:*', '*'), Condition: home }]);
    const spared = user([
      allow('s3:*', '*'),
      { ...allow('s3:*', '*'), Effect: 'Deny', Condition: { StringNotLike: { 's3:prefix': 'home/*' } } },
    ]);
    const sent = (key: string) => (key === 's3:prefix' ? 'home/' : undefined);
    const ask = async (asker: Asker, pair: AccessPair) => {
      const request = { ...requestOf(asker, bucketOf()), contextOf: sent };
      return (await decide(request, pair)).isAllowed;
    };
    for (const asker of [lister, spared]) {
      expect(await ask(asker, ['s3:ListBucket', 'arn:aws:s3:::bucket'])).toBe(true);
      expect(await ask(asker, ['s3:GetObject', KEY])).toBe(false);
      expect(await ask(asker, ['s3:DeleteObject', KEY])).toBe(false);
    }
  });

  test('a new bucket is for the caller to make by its own account, whatever bucket the request is about', async () => {
    const pair: AccessPair = ['s3:CreateBucket', 'arn:aws:s3:::new', 'new-bucket'];
    expect(await answer(root(OTHER), pair)).toBe('root');
    expect(await answer(user([]), pair)).toBe('no identity policy allows it');
    expect(await answer(ANONYMOUS, pair)).toBe('no resource policy allows it');
  });

  test('a new name takes what comes along from all of the account to whom nothing denies that, and the bucket has no say', async () => {
    const pair: AccessPair = ['s3:PutBucketPolicy', 'arn:aws:s3:::new', 'new-name'];
    const denying = { ...forAll('s3:PutBucketPolicy', 'arn:aws:s3:::*'), Effect: 'Deny' };
    expect(await answer(user([]), pair, { policy: [denying] })).toBe('extension');
    const denied = user([{ ...allow('s3:PutBucketPolicy', 'arn:aws:s3:::ne*'), Effect: 'Deny' }]);
    expect(await answer(denied, pair)).toBe('identity policy identity, statement 0');
    expect(await answer(user([], OTHER), pair)).toBe('no identity policy allows it');
  });
});

test('what is for owners alone no policy gives to another account', async () => {
  const pair: AccessPair = ['s3:DeleteBucket', 'arn:aws:s3:::bucket', 'owner-only'];
  const policy = [forAll('s3:DeleteBucket', 'arn:aws:s3:::bucket')];
  for (const asker of [root(OTHER), user([allow('s3:*', '*')], OTHER), ANONYMOUS])
    expect(await answer(asker, pair, { policy })).toBe('no resource policy allows it');
  expect(await answer(user([]), pair)).toBe('extension');
  const denied = user([{ ...allow('s3:DeleteBucket', '*'), Effect: 'Deny' }]);
  expect(await answer(denied, pair, { policy })).toBe('identity policy identity, statement 0');
});

describe('by ACLs', () => {
  const readable: Grant[] = [{ grantee: 'AllUsers', permission: 'READ' }];

  test("a bucket's list opens listing, and no object; an object's opens that object alone", async () => {
    const listing: AccessPair = ['s3:ListBucket', 'arn:aws:s3:::bucket'];
    const reading: AccessPair = ['s3:GetObject', KEY];
    const hidden = { acl: { owner: OWNER }, tags: [] };
    expect(await answer(ANONYMOUS, listing, { grants: readable })).toBe('acl');
    expect(await answer(ANONYMOUS, reading, { grants: readable }, hidden)).toBe(
      'no resource policy allows it',
    );
    const open = { acl: { owner: OWNER, grants: readable }, tags: [] };
    expect(await answer(ANONYMOUS, reading, {}, open)).toBe('acl');
    expect(await answer(ANONYMOUS, ['s3:DeleteObject', KEY], {}, open)).toBe('no resource policy allows it');
  });

  test('who may list learns that an object is missing', async () => {
    expect(await answer(ANONYMOUS, ['s3:GetObject', KEY], { grants: readable })).toBe('acl');
    expect(await answer(ANONYMOUS, ['s3:GetObject', KEY])).toBe('no resource policy allows it');
  });

  test("an object of another account is closed to the bucket's account, but for deletion", async () => {
    const sharing = { record: { mayHaveForeignObjects: true as const } };
    const theirs = { acl: { owner: OTHER }, tags: [] };
    expect(await answer(root(OWNER), ['s3:GetObject', KEY], sharing, theirs)).toBe(
      'no resource policy allows it',
    );
    expect(await answer(root(OWNER), ['s3:DeleteObject', KEY], sharing, theirs)).toBe('root');
    expect(await answer(root(OTHER), ['s3:GetObject', KEY], sharing, theirs)).toBe('acl');
    const shared: Grant[] = [{ grantee: OWNER, permission: 'FULL_CONTROL' }];
    const given = { acl: { owner: OTHER, grants: shared }, tags: [] };
    expect(await answer(root(OWNER), ['s3:GetObject', KEY], sharing, given)).toBe('acl');
  });
});

describe('by rules of extensions', () => {
  const pair: AccessPair = ['s3:DeleteObject', KEY, 'unless-denied'];
  const everything = [forAll('s3:PutObject', 'arn:aws:s3:::bucket/*')];

  test("what is not denied is open to the bucket's account alone", async () => {
    expect(await answer(user([]), pair)).toBe('extension');
    expect(await answer(user([{ ...allow('s3:DeleteObject', '*'), Effect: 'Deny' }]), pair)).toMatch(
      /^identity/,
    );
    expect(await answer(user([allow('s3:PutObject', '*')], OTHER), pair, { policy: everything })).toBe(
      'no identity policy allows it',
    );
    expect(await answer(ANONYMOUS, pair, { policy: everything })).toBe('no resource policy allows it');
  });

  test('a component must be readable or writable', async () => {
    const component: AccessPair = ['s3:GetObject', KEY, 'component'];
    expect(await answer(user([allow('s3:PutObject', 'arn:aws:s3:::bucket/*')]), component)).toMatch(
      /^identity/,
    );
    expect(await answer(user([allow('s3:PutObject', 'arn:aws:s3:::bucket/mine/*')]), component)).toBe(
      'no identity policy allows it',
    );
  });

  test('a component of another account must be readable: writable is not enough', async () => {
    const component: AccessPair = ['s3:GetObject', KEY, 'component'];
    const sharing = { record: { mayHaveForeignObjects: true as const } };
    const of = (owner: AccountId, grants?: Grant[]) => ({ acl: { owner, grants }, tags: [] });
    expect(await answer(root(OWNER), component, sharing, of(OTHER))).toBe('no resource policy allows it');
    const readable: Grant[] = [{ grantee: OWNER, permission: 'READ' }];
    expect(await answer(root(OWNER), component, sharing, of(OTHER, readable))).toBe('acl');
    const writer = user([allow('s3:PutObject', '*')]);
    expect(await answer(writer, component, sharing, of(OWNER))).toMatch(/^identity/);
    expect(await answer(writer, component, sharing, of(OTHER))).toBe('no identity policy allows it');
  });

  test.each([
    ['allowed as a whole', [allow('s3:PutObject', 'arn:aws:s3:::bucket/a/*')], true],
    ['allowed for one more character', [allow('s3:PutObject', 'arn:aws:s3:::bucket/a/?')], false],
    ['allowed in part', [allow('s3:PutObject', 'arn:aws:s3:::bucket/a/b/*')], false],
    [
      'denied in part',
      [allow('s3:*', '*'), { ...allow('s3:PutObject', 'arn:aws:s3:::bucket/a/b/*'), Effect: 'Deny' }],
      false,
    ],
    [
      'denied elsewhere',
      [allow('s3:*', '*'), { ...allow('s3:PutObject', 'arn:aws:s3:::bucket/b/*'), Effect: 'Deny' }],
      true,
    ],
    [
      'denied outside of it',
      [
        allow('s3:*', '*'),
        { Effect: 'Deny', Action: 's3:PutObject', NotResource: 'arn:aws:s3:::bucket/a/*' },
      ],
      true,
    ],
    [
      'denied outside of a part of it',
      [
        allow('s3:*', '*'),
        { Effect: 'Deny', Action: 's3:PutObject', NotResource: 'arn:aws:s3:::bucket/a/b*' },
      ],
      false,
    ],
  ])('a prefix must be allowed as a whole, and denied nowhere: %s', async (_, statements, isFine) => {
    const prefix = 'arn:aws:s3:::bucket/a/';
    const pairs: AccessPair[] = [['s3:PutObject', prefix, undefined, { isPrefix: true }]];
    const request = { ...requestOf(user(statements), bucketOf()), pairs };
    expect(await isAllowed(request)).toBe(isFine);
  });
});

test('the first pair that is refused is told with its reason', async () => {
  const told: unknown[] = [];
  const request: AccessRequest = {
    ...requestOf(user([allow('s3:GetObject', '*')]), bucketOf()),
    pairs: [
      ['s3:GetObject', KEY],
      ['s3:PutObject', KEY],
      ['s3:DeleteObject', KEY],
    ],
    onRefused: ([action], decision) => told.push([action, describeDecision(decision)]),
  };
  expect(await isAllowed(request)).toBe(false);
  expect(told).toEqual([['s3:PutObject', 'no identity policy allows it']]);
});

test('callers who can be allowed nothing are known before the key is', () => {
  const ask = (asker: Asker, sharing: Sharing = {}) =>
    isSomeAllowed({ asker, bucket: bucketOf(sharing) }, ['s3:DeleteObject', 's3:DeleteObjectVersion']);
  expect(ask(root(OWNER))).toBe(true);
  expect(ask(ANONYMOUS)).toBe(false);
  expect(ask(ANONYMOUS, { grants: [{ grantee: 'AllUsers', permission: 'WRITE' }] })).toBe(true);
  expect(ask(user([allow('s3:GetObject', '*')]))).toBe(false);
  expect(ask(user([allow('s3:Delete*', 'arn:aws:s3:::bucket/x')]))).toBe(true);
});
