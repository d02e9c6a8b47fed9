// Templates of policies, judged by the engine: what each allows and forbids, also where another policy allows everything.
import { describe, expect, test } from 'vitest';
import { ACTIONS } from '../../policy/actions.ts';
import {
  compilePolicy,
  compileStoredPolicy,
  countCharacters,
  POLICY_SIZES,
} from '../../policy/documents/compile-policy.ts';
import { evaluate, type NamedPolicy } from '../../policy/evaluate.ts';
import { isTemplateName, policyOfTemplate, TEMPLATE_NAMES, type TemplateName } from './policy-templates.ts';

const ACCOUNT = '111111111111';
const BUCKET = 'backups';
const ARN = `arn:aws:s3:::${BUCKET}`;

function compiled(name: string, text: string): NamedPolicy {
  const outcome = compileStoredPolicy(text, 'identity');
  if (outcome.kind !== 'compiled') throw new Error(outcome.message);
  return { name, policy: outcome.policy };
}

const EVERYTHING = compiled(
  'everything',
  JSON.stringify({ Version: '2012-10-17', Statement: { Effect: 'Allow', Action: '*', Resource: '*' } }),
);

function decision(identity: readonly NamedPolicy[], action: string, resource: string) {
  const arn = `arn:aws:iam::${ACCOUNT}:user/backup`;
  return evaluate({
    caller: { kind: 'user', accountId: ACCOUNT, canonicalId: '1'.repeat(64), arn },
    policies: { identity },
    action,
    resource,
    resourceAccount: ACCOUNT,
    contextOf: () => undefined,
  });
}

const isAllowed = (name: TemplateName, action: string, resource: string) =>
  decision([compiled(name, policyOfTemplate(name, BUCKET))], action, resource).isAllowed;

/** Denied though another policy of the user allows everything. */
const isDenied = (name: TemplateName, action: string, resource: string) =>
  !decision([compiled(name, policyOfTemplate(name, BUCKET)), EVERYTHING], action, resource).isAllowed;

const LOOKING = ['ListBucket', 'ListBucketVersions', 'GetBucketLocation', 'GetBucketVersioning'];
const READING = ['GetObject', 'GetObjectVersion'];
const WRITING = ['PutObject', 'AbortMultipartUpload', 'ListMultipartUploadParts'];
const RULES = [
  'DeleteBucket',
  'DeleteBucketPolicy',
  'PutBucketPolicy',
  'PutBucketAcl',
  'PutBucketVersioning',
  'PutBucketCompliance',
  'PutBucketLogging',
  'PutBucketNotification',
  'PutBucketObjectLockConfiguration',
  'PutLifecycleConfiguration',
  'PutReplicationConfiguration',
];
const OBJECT_RULES = [
  'PutObjectAcl',
  'PutObjectVersionAcl',
  'PutObjectCompliance',
  'BypassGovernanceRetention',
];
const RETENTION = ['PutObjectRetention', 'PutObjectLegalHold'];
const DELETING = ['DeleteObject', 'DeleteObjectVersion'];

interface Expectation {
  readonly bucket: readonly string[];
  readonly object: readonly string[];
  readonly deniedOnBucket: readonly string[];
  readonly deniedOnObject: readonly string[];
}

const EXPECTED: Readonly<Record<TemplateName, Expectation>> = {
  'append-only': {
    bucket: [...LOOKING, 'ListBucketMultipartUploads'],
    object: [...READING, ...WRITING],
    deniedOnBucket: RULES,
    deniedOnObject: [...DELETING, 'DeleteObjectTagging', ...RETENTION, ...OBJECT_RULES],
  },
  'read-only': {
    bucket: LOOKING,
    object: READING,
    deniedOnBucket: [...RULES, 'CreateBucket'],
    deniedOnObject: [...WRITING.slice(0, 2), ...DELETING, ...RETENTION, ...OBJECT_RULES],
  },
  'bucket-admin': {
    bucket: [...LOOKING, ...RULES],
    object: [...READING, ...WRITING, ...DELETING, ...RETENTION, ...OBJECT_RULES],
    deniedOnBucket: [],
    deniedOnObject: [],
  },
  restic: {
    bucket: [...LOOKING, 'ListBucketMultipartUploads'],
    object: [...READING, ...WRITING],
    deniedOnBucket: RULES,
    deniedOnObject: [...DELETING, 'DeleteObjectTagging', ...RETENTION, ...OBJECT_RULES],
  },
  veeam: {
    bucket: [...LOOKING, 'GetBucketObjectLockConfiguration'],
    object: [...READING, ...WRITING, ...DELETING, ...RETENTION, 'GetObjectRetention'],
    deniedOnBucket: RULES,
    deniedOnObject: OBJECT_RULES,
  },
};

describe.each(TEMPLATE_NAMES)('%s', (name) => {
  const { bucket, object, deniedOnBucket, deniedOnObject } = EXPECTED[name];
  const key = `${ARN}/data/a/b`;

  test.each(bucket)('may s3:%s', (action) => {
    expect(isAllowed(name, `s3:${action}`, ARN)).toBe(true);
  });

  test.each(object)('may s3:%s', (action) => {
    expect(isAllowed(name, `s3:${action}`, key)).toBe(true);
  });

  test('is denied what it forbids, whatever else allows it', () => {
    const open = [
      ...deniedOnBucket.filter((action) => !isDenied(name, `s3:${action}`, ARN)),
      ...deniedOnObject.filter((action) => !isDenied(name, `s3:${action}`, key)),
    ];
    expect(open).toEqual([]);
  });

  test('reaches no other bucket, no user and no key', () => {
    const reached = ACTIONS.filter(({ action, resources }) => {
      const resource = resources.includes('bucket')
        ? `${ARN}-other`
        : resources.includes('object')
          ? `${ARN}-other/key`
          : resources.includes('user')
            ? `arn:aws:iam::${ACCOUNT}:user/backup`
            : '*';
      return isAllowed(name, action, resource);
    }).map(({ action }) => action);
    expect(reached).toEqual(name === 'veeam' ? ['s3:ListAllMyBuckets'] : []);
  });

  test('is taken as a policy of a user, for the longest name of a bucket too', () => {
    const text = policyOfTemplate(name, 'b'.repeat(63));
    expect(compilePolicy(text, { type: 'identity' }).kind).toBe('compiled');
    expect(countCharacters(text)).toBeLessThanOrEqual(POLICY_SIZES.userInlineCharactersMax);
  });
});

test('all that changes or deletes is denied to append-only but for writing objects', () => {
  const changing = ACTIONS.filter(({ action }) => /^s3:(?!Get|List)/.test(action)).filter(({ resources }) =>
    resources.some((type) => type === 'bucket' || type === 'object'),
  );
  const open = changing
    .filter(({ action, resources, isInert }) => {
      const resource = resources.includes('bucket') ? ARN : `${ARN}/key`;
      return !isInert && !isDenied('append-only', action, resource);
    })
    .map(({ action }) => action);
  expect(open.sort()).toEqual(['s3:AbortMultipartUpload', 's3:CreateBucket', 's3:PutObject']);
});

test('restic deletes its locks alone', () => {
  expect(isAllowed('restic', 's3:DeleteObject', `${ARN}/locks/abc`)).toBe(true);
  for (const key of ['locks', 'data/locks/abc', 'snapshots/abc', 'lock/abc'])
    expect(isDenied('restic', 's3:DeleteObject', `${ARN}/${key}`), key).toBe(true);
  expect(isDenied('restic', 's3:DeleteObjectVersion', `${ARN}/locks/abc`)).toBe(true);
});

test('names that are no template are none', () => {
  expect(['append-only', 'toString', ''].map(isTemplateName)).toEqual([true, false, false]);
});
