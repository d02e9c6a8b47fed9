// What documents AWS takes and refuses, in its words; the messages are those that its users report, and that Moto and others
// have recorded of it.
import { expect, test } from 'vitest';
import { cutOut, keptBytesOf } from '../../../tests/support/run/kept-memory.ts';
import { displayKey } from '../condition-keys.ts';
import { compilePolicy, compileStoredPolicy, countCharacters, POLICY_SIZES } from './compile-policy.ts';

const ALLOW = { Effect: 'Allow', Action: 's3:ListBucket', Resource: 'arn:aws:s3:::b' };
const of2012 = (Statement: unknown) => ({ Version: '2012-10-17', Statement });
const changed = (change: object) => of2012({ ...ALLOW, ...change });
const textOf = (document: unknown) => (typeof document === 'string' ? document : JSON.stringify(document));

function identityFault(document: unknown): string {
  const outcome = compilePolicy(textOf(document), { type: 'identity' });
  return outcome.kind === 'compiled' ? 'compiled' : `${outcome.message} | ${outcome.place}`;
}

const SYNTAX = 'Syntax errors in policy.';
const LEGACY = 'The policy failed legacy parsing';
const NO_VENDOR = 'Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc.';

test.each<[title: string, document: unknown, fault: string]>([
  ['no JSON', 'This is not JSON', `${SYNTAX} | line 1, column 1`],
  ['JSON that ends too early', '{\n "Version": "2012-10-17",\n "Stat', `${SYNTAX} | line 3, column 7`],
  ['text behind the document', '{} x', `${SYNTAX} | line 1, column 4`],
  ['a list', '[]', `${SYNTAX} | document`],
  ['null', 'null', `${SYNTAX} | document`],
  ['an unknown version', { ...of2012(ALLOW), Version: '2013-10-17' }, `${SYNTAX} | Version`],
  ['a version that is no text', { ...of2012(ALLOW), Version: 2012 }, `${SYNTAX} | Version`],
  ['no version', { Statement: ALLOW }, 'Policy document must be version 2012-10-17 or greater. | Version'],
  [
    'the version of 2008',
    { ...of2012(ALLOW), Version: '2008-10-17' },
    'Policy document must be version 2012-10-17 or greater. | Version',
  ],
  ['no statement', { Version: '2012-10-17' }, `${SYNTAX} | document`],
  ['no statements in a list', of2012([]), `${SYNTAX} | Statement`],
  ['a statement that is none', of2012(['x']), `${SYNTAX} | Statement[0]`],
  ['an unknown element', { ...of2012(ALLOW), Extra: 1 }, `${SYNTAX} | document.Extra`],
  ['an unknown element of a statement', changed({ Extra: 1 }), `${SYNTAX} | Statement[0].Extra`],
  ['an element in another case', changed({ resource: '*' }), `${SYNTAX} | Statement[0].resource`],
  [
    'an element twice',
    '{"Version":"2012-10-17","Version":"2012-10-17","Statement":[]}',
    `${SYNTAX} | line 1, column 25`,
  ],
  ['an Id that is no text', { ...of2012(ALLOW), Id: ['x'] }, `${SYNTAX} | Id`],
  ['a Sid that is no text', changed({ Sid: {} }), `${SYNTAX} | Statement[0].Sid`],
  ['no effect', of2012({ Action: 's3:*', Resource: '*' }), `${SYNTAX} | Statement[0].Effect`],
  ['an effect that is none', changed({ Effect: 'Permit' }), `${SYNTAX} | Statement[0].Effect`],
  ['an effect in another case', changed({ Effect: 'denY' }), `${LEGACY} | Statement[0].Effect`],
  ['Action beside NotAction', changed({ NotAction: 's3:*' }), `${SYNTAX} | Statement[0].NotAction`],
  ['Resource beside NotResource', changed({ NotResource: '*' }), `${SYNTAX} | Statement[0].NotResource`],
  ['an action that is no text', changed({ Action: ['s3:*', {}] }), `${SYNTAX} | Statement[0].Action[1]`],
  ['a resource that is an object', changed({ Resource: { a: '*' } }), `${SYNTAX} | Statement[0].Resource`],
  [
    'no action',
    of2012({ Effect: 'Allow', Resource: '*' }),
    'Policy statement must contain actions. | Statement[0]',
  ],
  ['no action in a list', changed({ Action: [] }), 'Policy statement must contain actions. | Statement[0]'],
  [
    'no resource',
    of2012([ALLOW, { Effect: 'Deny', Action: 's3:*' }]),
    'Policy statement must contain resources. | Statement[1]',
  ],
  [
    'no resource in a list',
    changed({ Resource: [] }),
    'Policy statement must contain resources. | Statement[0]',
  ],
  ['an action without a vendor', changed({ Action: 'x' }), `${NO_VENDOR} | Statement[0].Action`],
  ['an empty action', changed({ Action: '' }), `${NO_VENDOR} | Statement[0].Action`],
  [
    'an action without a vendor, and no resource',
    of2012({ Effect: 'Allow', Action: 'x' }),
    `${NO_VENDOR} | Statement[0].Action`,
  ],
  [
    'an action with two colons',
    changed({ Action: ['s3:*', 's3:List:Bucket'] }),
    'Actions/Condition can contain only one colon. | Statement[0].Action[1]',
  ],
  [
    'a vendor that is none',
    changed({ Action: 'a a:ListBucket' }),
    'Vendor a a is not valid | Statement[0].Action',
  ],
  [
    'a resource that is no ARN',
    changed({ Resource: ['*', 'x y'] }),
    'Resource x y must be in ARN format or "*". | Statement[0].Resource[1]',
  ],
  [
    'an empty resource',
    changed({ Resource: '' }),
    'Resource  must be in ARN format or "*". | Statement[0].Resource',
  ],
  [
    'a partition that is none',
    changed({ Resource: 'a:b:c:d:e:f:g:h' }),
    'Partition "b" is not valid for resource "arn:b:c:d:e:f:g:h". | Statement[0].Resource',
  ],
  [
    'a partition that is none, of a short ARN',
    changed({ Resource: 'aws:s3:::bucket' }),
    'Partition "s3" is not valid for resource "arn:s3:::bucket:*". | Statement[0].Resource',
  ],
  [
    'no vendor of a resource',
    changed({ Resource: 'arn:aws' }),
    'Resource vendor must be fully qualified and cannot contain regexes. | Statement[0].Resource',
  ],
  [
    'a bucket with a region',
    changed({ Resource: 'arn:aws:s3:us-east-1::b' }),
    'Resource arn:aws:s3:us-east-1::b can not contain region information. | Statement[0].Resource',
  ],
  [
    'a user with a region',
    changed({ Resource: 'arn:aws:iam:us-east-1::b' }),
    'IAM resource arn:aws:iam:us-east-1::b cannot contain region information. | Statement[0].Resource',
  ],
  [
    'a resource of IAM without a type',
    changed({ Resource: 'arn:aws:iam:::b' }),
    'IAM resource path must either be "*" or start with user/, federated-user/, role/, group/, instance-profile/, mfa/, ' +
      'server-certificate/, policy/, sms-mfa/, saml-provider/, oidc-provider/, report/, access-report/. | Statement[0].Resource',
  ],
  ['an ARN that is too short', changed({ Resource: 'arn:aws:s3::b' }), `${LEGACY} | Statement[0].Resource`],
  ['an ARN with an empty vendor', changed({ Resource: 'arn:aws::::b' }), `${LEGACY} | Statement[0].Resource`],
  ['a condition that is a list', changed({ Condition: [] }), `${SYNTAX} | Statement[0].Condition`],
  [
    'an operator that is no object',
    changed({ Condition: { Bool: 'b' } }),
    `${SYNTAX} | Statement[0].Condition.Bool`,
  ],
  [
    'an unknown operator',
    changed({ Condition: { 'ForAnyValue::StringEquals': { a: 'x' } } }),
    `${SYNTAX} | Statement[0].Condition.ForAnyValue::StringEquals`,
  ],
  [
    'Null with IfExists',
    changed({ Condition: { NullIfExists: { a: 'true' } } }),
    `${SYNTAX} | Statement[0].Condition.NullIfExists`,
  ],
  [
    'a value that is an object',
    changed({ Condition: { StringLike: { a: {} } } }),
    `${SYNTAX} | Statement[0].Condition.StringLike.a`,
  ],
  ...(
    [
      ['DateGreaterThan', 'soon'],
      ['DateLessThan', '2016-13-01'],
      ['DateLessThan', '2016-02-30'],
      ['NumericEquals', 'ten'],
      ['Bool', 'yes'],
      ['Null', 'maybe'],
      ['IpAddress', '300.0.0.1/8'],
      ['BinaryEquals', '*'],
    ] as const
  ).map(([operator, value]): [string, unknown, string] => [
    `${operator} of ${value}`,
    changed({ Condition: { [operator]: { a: value } } }),
    `${LEGACY} | Statement[0].Condition.${operator}.a`,
  ]),
  [
    'a Sid twice',
    of2012([
      { ...ALLOW, Sid: 'x' },
      { Effect: 'Allow', Sid: 'x' },
    ]),
    'Statement IDs (SID) in a single policy must be unique. | Statement[1].Sid',
  ],
  [
    'a Sid with a blank',
    changed({ Sid: 'a b' }),
    'Statement IDs (SID) must be alpha-numeric. Check that your input satisfies the regular expression [0-9A-Za-z]* | Statement[0].Sid',
  ],
  [
    'a principal',
    changed({ Principal: '*' }),
    'Policy document should not specify a principal. | Statement[0].Principal',
  ],
])('IAM refuses a policy with %s', (_title, document, fault) => {
  expect(identityFault(document)).toBe(fault);
});

test.each<[title: string, document: unknown]>([
  ['one statement that is not in a list', of2012(ALLOW)],
  ['every element', { ...of2012([{ ...ALLOW, Sid: 'x', Condition: {} }]), Id: 'x y' }],
  ['white space around it', ` \n${textOf(of2012(ALLOW))}\n`],
  [
    'empty Sids',
    of2012([
      { ...ALLOW, Sid: '' },
      { ...ALLOW, Sid: '' },
    ]),
  ],
  ['all actions', changed({ Action: '*' })],
  ['an action that nobody has', changed({ Action: 'iam: as df ' })],
  ['NotAction and NotResource', of2012({ Effect: 'Deny', NotAction: ['s3:*'], NotResource: ['*'] })],
  ['a resource of an unknown vendor', changed({ Resource: 'arn:aws:fdsasf' })],
  ['a resource with a variable', changed({ Resource: 'arn:aws:iam::*:user/${aws:username}' })],
  ['an unknown condition key', changed({ Condition: { StringEquals: { 'ec2:Vpc': 'x' } } })],
  ['conditions that ask nothing', changed({ Condition: { DateGreaterThan: {}, x: {} } })],
  ['a key with no values', changed({ Condition: { DateGreaterThan: { a: [] } } })],
  [
    'values that are no texts',
    changed({ Condition: { Bool: { a: [true, 'False'] }, NumericEquals: { b: 7 } } }),
  ],
  ['a date with a zone', changed({ Condition: { DateLessThan: { a: '2016-12-13t02:00:00.593194+23' } } })],
])('IAM takes a policy with %s', (_title, document) => {
  expect(identityFault(document)).toBe('compiled');
});

test('a document that no entity may have is too large, and is not read', () => {
  const tooLarge = { kind: 'too-large', message: 'Cannot exceed quota for PolicySize: 6144' };
  const { documentCharactersMax, roleInlineCharactersMax } = POLICY_SIZES;
  expect(compilePolicy(' '.repeat(documentCharactersMax + 1), { type: 'identity' })).toMatchObject(tooLarge);
  expect(compilePolicy('x'.repeat(roleInlineCharactersMax + 1), { type: 'trust' })).toMatchObject(tooLarge);
  expect(compilePolicy(' x'.repeat(roleInlineCharactersMax), { type: 'trust' }).kind).toBe('malformed');
});

test('IAM counts characters without white space', () => {
  expect(countCharacters('{ "a":\n\t"ö b" }')).toBe('{"a":"öb"}'.length);
});

const TRUST = { Effect: 'Allow', Principal: { AWS: '111111111111' }, Action: 'sts:AssumeRole' };

function trustFault(statement: object): string {
  const outcome = compilePolicy(textOf(of2012(statement)), { type: 'trust' });
  return outcome.kind === 'compiled' ? 'compiled' : `${outcome.message} | ${outcome.place}`;
}

test.each<[title: string, statement: object, fault: string]>([
  ['a resource', { ...TRUST, Resource: '*' }, 'Has prohibited field Resource | Statement[0].Resource'],
  [
    'NotResource',
    { ...TRUST, NotResource: '*' },
    'AssumeRole policy must not contain resources. | Statement[0].NotResource',
  ],
  [
    'no principal',
    { Effect: 'Allow', Action: 'sts:AssumeRole' },
    'Missing required field Principal | Statement[0]',
  ],
  [
    'NotPrincipal',
    { Effect: 'Deny', NotPrincipal: '*', Action: 'sts:AssumeRole' },
    'Has prohibited field NotPrincipal | Statement[0].NotPrincipal',
  ],
  [
    'an action of S3',
    { ...TRUST, Action: ['sts:AssumeRole', 's3:GetObject'] },
    'AssumeRole policy may only specify STS AssumeRole actions. | Statement[0].Action[1]',
  ],
  [
    'all actions',
    { ...TRUST, Action: '*' },
    'AssumeRole policy may only specify STS AssumeRole actions. | Statement[0].Action',
  ],
  [
    'a wildcard in a principal',
    { ...TRUST, Principal: { AWS: 'arn:aws:iam::111111111111:user/*' } },
    'Invalid principal in policy: "AWS":"arn:aws:iam::111111111111:user/*" | Statement[0].Principal.AWS',
  ],
  [
    'a canonical user',
    { ...TRUST, Principal: { CanonicalUser: 'a'.repeat(64) } },
    `Invalid principal in policy: "CanonicalUser":"${'a'.repeat(64)}" | Statement[0].Principal.CanonicalUser`,
  ],
  [
    'an unknown type of principal',
    { ...TRUST, Principal: { User: 'x' } },
    `${SYNTAX} | Statement[0].Principal.User`,
  ],
])('IAM refuses a trust policy with %s', (_title, statement, fault) => {
  expect(trustFault(statement)).toBe(fault);
});

test.each<[title: string, statement: object]>([
  ['an account', TRUST],
  ['everybody', { ...TRUST, Principal: '*', Action: 'sts:*' }],
  ['a service of AWS', { ...TRUST, Principal: { Service: 'ec2.amazonaws.com' } }],
  [
    'a federated identity',
    {
      ...TRUST,
      Principal: { Federated: 'arn:aws:iam::111111111111:oidc-provider/example.com' },
      Action: 'sts:AssumeRoleWithWebIdentity',
    },
  ],
  ['an external id', { ...TRUST, Condition: { StringEquals: { 'sts:ExternalId': 'x' } } }],
])('IAM takes a trust policy with %s', (_title, statement) => {
  expect(trustFault(statement)).toBe('compiled');
});

const GRANT = {
  Effect: 'Allow',
  Principal: { AWS: 'arn:aws:iam::111111111111:user/path/ann' },
  Action: 's3:GetObject',
  Resource: 'arn:aws:s3:::b/*',
};
const granted = (change: object) => of2012({ ...GRANT, ...change });

function bucketFault(document: unknown): string {
  const outcome = compilePolicy(textOf(document), { type: 'resource', bucket: 'b' });
  return outcome.kind === 'compiled' ? 'compiled' : `${outcome.message} | ${outcome.place}`;
}

const NO_ACTION_HERE = 'Action does not apply to any resource(s) in statement';
const NO_KEY = 'Policy has an invalid condition key';
const NO_KEY_HERE = 'Conditions do not apply to combination of actions and resources in statement';

test.each<[title: string, document: unknown, fault: string]>([
  ['nothing', '', "Policies must be valid JSON and the first byte must be '{' | line 1, column 1"],
  [
    'white space first',
    ' {}',
    "Policies must be valid JSON and the first byte must be '{' | line 1, column 1",
  ],
  ['broken JSON', '{"Statement": [}', 'This policy contains invalid Json | line 1, column 16'],
  ['a member twice', '{"Id": "x", "Id": "x"}', 'This policy contains invalid Json | line 1, column 13'],
  ['an unknown version', { Version: '2020' }, 'The policy must contain a valid version string | Version'],
  ['no statement', {}, 'Missing required field Statement | document'],
  ['no statements in a list', of2012([]), 'Could not parse the policy: Statement is empty! | Statement'],
  ['an unknown element', granted({ Resources: '*' }), 'Unknown field Resources | Statement[0].Resources'],
  ['an effect in another case', granted({ Effect: 'allow' }), 'Invalid effect: allow | Statement[0].Effect'],
  ['an Id that is no text', { ...of2012(GRANT), Id: 7 }, 'Invalid policy syntax. | Id'],
  [
    'no effect',
    of2012({ Principal: '*', Action: 's3:*', Resource: '*' }),
    'Missing required field Effect | Statement[0].Effect',
  ],
  ['no principal', of2012(ALLOW), 'Missing required field Principal | Statement[0]'],
  [
    'an empty principal',
    granted({ Principal: { AWS: [] } }),
    'Missing required field Principal cannot be empty! | Statement[0].Principal',
  ],
  [
    'a principal that is a word',
    granted({ Principal: 'ann' }),
    'Invalid principal in policy | Statement[0].Principal',
  ],
  [
    'a principal that is no name',
    granted({ Principal: { AWS: ['*', 'ann'] } }),
    'Invalid principal in policy | Statement[0].Principal.AWS[1]',
  ],
  [
    'NotPrincipal that allows',
    of2012({ Effect: 'Allow', NotPrincipal: { AWS: '111111111111' }, Action: 's3:*', Resource: '*' }),
    'Allow with NotPrincipal is not allowed. | Statement[0].NotPrincipal',
  ],
  ['no action', granted({ Action: [] }), 'Missing required field Action | Statement[0]'],
  [
    'an unknown action',
    granted({ Action: ['s3:GetObject', 's3:Fetch'] }),
    'Policy has invalid action | Statement[0].Action[1]',
  ],
  ['an action of IAM', granted({ Action: 'iam:GetUser' }), 'Policy has invalid action | Statement[0].Action'],
  ['no resource', granted({ Resource: [] }), 'Missing required field Resource | Statement[0]'],
  [
    'another bucket',
    granted({ Resource: 'arn:aws:s3:::c/*' }),
    'Policy has invalid resource | Statement[0].Resource',
  ],
  [
    'a resource that is no ARN',
    granted({ Resource: 'b/*' }),
    'Policy has invalid resource | Statement[0].Resource',
  ],
  [
    'an object action on the bucket',
    granted({ Resource: 'arn:aws:s3:::b' }),
    `${NO_ACTION_HERE} | Statement[0].Action`,
  ],
  [
    'a bucket action on objects, beside one that fits',
    granted({ Action: ['s3:GetObject', 's3:ListBucket'] }),
    `${NO_ACTION_HERE} | Statement[0].Action[1]`,
  ],
  [
    'an action of no bucket',
    granted({ Action: 's3:ListAllMyBuckets', Resource: '*' }),
    `${NO_ACTION_HERE} | Statement[0].Action`,
  ],
  [
    'an operator in another case',
    granted({ Condition: { stringequals: { 's3:prefix': 'x' } } }),
    'Invalid Condition type : stringequals | Statement[0].Condition.stringequals',
  ],
  [
    'an unknown key of S3',
    granted({ Condition: { StringEquals: { 's3:x-acl': 'x' } } }),
    `${NO_KEY} | Statement[0].Condition.StringEquals.s3:x-acl`,
  ],
  [
    'a key of another service',
    granted({ Condition: { StringEquals: { 'sts:ExternalId': 'x' } } }),
    `${NO_KEY} | Statement[0].Condition.StringEquals.sts:ExternalId`,
  ],
  [
    'a family of keys without a tag',
    granted({ Condition: { StringEquals: { 's3:ExistingObjectTag/': 'x' } } }),
    `${NO_KEY} | Statement[0].Condition.StringEquals.s3:ExistingObjectTag/`,
  ],
  [
    'a key that the action lacks',
    granted({ Condition: { StringEquals: { 's3:prefix': 'x' } } }),
    `${NO_KEY_HERE} | Statement[0].Condition.StringEquals.s3:prefix`,
  ],
  [
    'a range that is none',
    granted({ Condition: { NotIpAddress: { 'aws:SourceIp': ['10.0.0.0/8', '10.0.0.0/33'] } } }),
    'Invalid IP address in Conditions | Statement[0].Condition.NotIpAddress.aws:SourceIp',
  ],
  [
    'a number that is none',
    granted({ Condition: { NumericLessThan: { 's3:signatureAge': 'x' } } }),
    'Invalid value in Conditions for operator NumericLessThan | Statement[0].Condition.NumericLessThan.s3:signatureAge',
  ],
  [
    'a Sid twice',
    of2012([
      { ...GRANT, Sid: 'a b' },
      { ...GRANT, Sid: 'a b' },
    ]),
    'Statement IDs (SID) in a single policy must be unique. | Statement[1].Sid',
  ],
])('S3 refuses a bucket policy with %s', (_title, document, fault) => {
  expect(bucketFault(document)).toBe(fault);
});

test('service 4.6: Null on the key of SSE-C is refused, other operators are not', () => {
  const key = 's3:x-amz-server-side-encryption-customer-algorithm';
  const put = (operator: string, value: string) =>
    bucketFault(granted({ Action: 's3:PutObject', Condition: { [operator]: { [key]: value } } }));
  expect(put('Null', 'true')).toBe(`${NO_KEY} | Statement[0].Condition.Null.${key}`);
  expect(put('ForAnyValue:Null', 'false')).toBe(`${NO_KEY} | Statement[0].Condition.ForAnyValue:Null.${key}`);
  expect(put('StringNotEquals', 'AES256')).toBe('compiled');
});

test.each<[title: string, document: unknown]>([
  ['the version of 2008', { ...of2012(GRANT), Version: '2008-10-17' }],
  ['no version', { Statement: [GRANT] }],
  ['everybody', granted({ Principal: '*' })],
  ['a canonical user', granted({ Principal: { CanonicalUser: '0a'.repeat(32) } })],
  [
    'a service, a session and a root',
    granted({
      Principal: {
        Service: 'logging.s3.amazonaws.com',
        AWS: ['arn:aws:sts::111111111111:assumed-role/r/s1', 'arn:aws:iam::111111111111:root'],
      },
    }),
  ],
  [
    'NotPrincipal that denies',
    of2012({ Effect: 'Deny', NotPrincipal: { AWS: '111111111111' }, Action: 's3:*', Resource: '*' }),
  ],
  [
    'both kinds of resources and of actions',
    granted({ Action: ['s3:*'], Resource: ['arn:aws:s3:::b', 'arn:aws:s3:::b/*'] }),
  ],
  ['resources of all buckets', granted({ Action: 's3:*', Resource: 'arn:aws:s3:::*/*' })],
  ['a pattern of the bucket', granted({ Resource: 'arn:aws:s3:::?/${aws:username}/*' })],
  ['actions in another case', granted({ Action: 'S3:getobject' })],
  ['an action of AWS alone', granted({ Action: 's3:RestoreObject' })],
  [
    'NotAction and NotResource',
    of2012({ Effect: 'Deny', Principal: '*', NotAction: 's3:Get*', NotResource: 'arn:aws:s3:::b/x' }),
  ],
  ['an unknown global key', granted({ Condition: { StringEquals: { 'aws:SourceVpce': 'x' } } })],
  [
    'a key that one of the actions has',
    granted({ Action: 's3:*', Resource: 'arn:aws:s3:::b', Condition: { StringLike: { 's3:prefix': 'x*' } } }),
  ],
  ['a tag as a key', granted({ Condition: { StringEquals: { 's3:ExistingObjectTag/Team': 'x' } } })],
])('S3 takes a bucket policy with %s', (_title, document) => {
  expect(bucketFault(document)).toBe('compiled');
});

test('the size of a bucket policy is that of the document without white space between tokens', () => {
  const withId = (length: number) => ({ ...of2012(GRANT), Id: 'x'.repeat(length) });
  const rest = textOf(withId(0)).length;
  const largest = withId(POLICY_SIZES.bucketBytesMax - rest);
  expect(bucketFault(JSON.stringify(largest, null, 8))).toBe('compiled');
  const tooLarge = 'Normalized policy document exceeds the maximum allowed size of 20480 bytes | document';
  expect(bucketFault(withId(POLICY_SIZES.bucketBytesMax - rest + 1))).toBe(tooLarge);
  expect(bucketFault({ ...of2012(GRANT), Id: 'ö'.repeat(POLICY_SIZES.bucketBytesMax / 2) })).toBe(tooLarge);
  expect(bucketFault(`{${' '.repeat(POLICY_SIZES.documentCharactersMax)}}`)).toBe(tooLarge);
});

test('messages repeat no more of a document than a line', () => {
  const outcome = compilePolicy(textOf(granted({ ['x'.repeat(5000)]: 1 })), {
    type: 'resource',
    bucket: 'b',
  });
  expect(outcome.kind === 'malformed' && outcome.message.length + outcome.place.length).toBeLessThan(700);
});

test('a stored policy compiles although its bucket has another name by now', () => {
  const text = textOf(granted({ Resource: 'arn:aws:s3:::old-name/*' }));
  expect(bucketFault(text)).toContain('invalid resource');
  expect(compileStoredPolicy(text, 'resource').kind).toBe('compiled');
  expect(compileStoredPolicy('{', 'resource').kind).toBe('malformed');
});

test('a compiled policy says which condition keys and variables it looks at', () => {
  const text = textOf(
    of2012({
      ...ALLOW,
      Resource: 'arn:aws:s3:::b/${aws:UserName}',
      Condition: {
        StringEquals: { 's3:ExistingObjectTag/A': "${aws:PrincipalTag/B, 'x'}", 'X:Unknown': 'y' },
      },
    }),
  );
  const outcome = compilePolicy(text, { type: 'identity' });
  if (outcome.kind !== 'compiled') throw new Error(outcome.message);
  const { keys, families } = outcome.policy;
  expect([...families].sort()).toEqual([
    'aws:principaltag/',
    'aws:username',
    's3:existingobjecttag/',
    'x:unknown',
  ]);
  expect([...keys].map(displayKey).sort()).toEqual([
    'aws:PrincipalTag/B',
    'aws:username',
    's3:ExistingObjectTag/A',
    'x:unknown',
  ]);
});

test('a policy keeps nothing of the requests that named actions', async () => {
  const outcome = compileStoredPolicy(textOf(of2012(ALLOW)), 'identity');
  if (outcome.kind !== 'compiled') throw new Error(outcome.message);
  const MiB = 1024 * 1024;
  const keptBytes = await keptBytesOf(() => outcome.policy.about(cutOut('s3:WhatNobodyKnows', 32 * MiB)));
  expect(keptBytes).toBeLessThan(16 * MiB);
  expect(outcome.policy.about('s3:ListBucket').allows).toHaveLength(1);
});
