// One request for each S3 operation and for each form of it that needs other actions, with the actions that it needs and the
// answers that are not the usual ones: for tests of who may do what. Written from AWS's Service Authorization Reference and from
// service 3 and 4.2, not from the rows of the registry.
import { createHash } from 'node:crypto';
import type { OperationName } from '../../../src/gateway/s3/registry.ts';
import type { PolicyAction } from '../../../src/types/policy/actions.ts';
import type { Fields } from '../servers/forms.ts';

/**
 * What requests are about: a bucket with versions, an object of two versions, and an upload of one part for its key. Where the
 * bucket has an object lock, the older version is under GOVERNANCE, and the newer one under a legal hold.
 */
export interface Fixture {
  bucket: string;
  key: string;
  /** The older one. */
  versionId: string;
  uploadId: string;
  /** Of the upload's part. */
  etag: string;
}

export interface OperationRequest {
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: Buffer;
  /** It is a form of these fields. */
  form?: Fields;
}

/**
 * Who asks. `allowed`: a user who may do what the request needs, and nothing else. `stranger`: another account's root, whom no
 * policy of the bucket names; `guest`: the same, allowed by one; `powerless`: its user, whom it allows nothing. `anybody` and `public`: anonymous, without and with one.
 */
export type Caller = 'root' | 'allowed' | 'stranger' | 'guest' | 'powerless' | 'anybody' | 'public';

export interface RequestCase {
  operation: OperationName;
  /** Which form of it. */
  form?: string;
  /** In a bucket with an object lock. */
  isLocked?: true;
  /** Each of them must be allowed. */
  needs: readonly PolicyAction[];
  /** Callers of the bucket's account need these only not to be denied, all others need them, too. */
  othersNeed?: readonly PolicyAction[];
  /** These are not asked of the bucket, so its policy says nothing about them. */
  notOfBucket?: readonly PolicyAction[];
  /** Asked once the object is known to be missing: a refusal does not name them. */
  unnamed?: readonly PolicyAction[];
  request(fixture: Fixture): OperationRequest;
  /** Of whoever may. Default 200. */
  answer?: string;
  /** Of whoever may not. Default 403 AccessDenied. */
  refusal?: string;
  /** Of callers that are answered otherwise. */
  answers?: Partial<Record<Caller, string>>;
}

const at = ({ bucket }: Fixture, rest = '') => `/${bucket}${rest}`;
const xml = (text: string) => Buffer.from(text);
const BODY = Buffer.from('a body');
const REFUSED = '403 AccessDenied';

type Case = Omit<RequestCase, 'operation' | 'needs' | 'request'>;
type Needs = PolicyAction | readonly PolicyAction[];

/** `rest`: behind the bucket in the path, with KEY, VERSION and UPLOAD. */
function row(
  operation: OperationName,
  needs: Needs,
  method: string,
  rest: string,
  more: Case & { headers?: Record<string, string>; body?: Buffer | ((fixture: Fixture) => Buffer) } = {},
): RequestCase {
  const { headers, body, ...others } = more;
  return {
    operation,
    needs: typeof needs === 'string' ? [needs] : needs,
    request(fixture) {
      const fill = (text: string) =>
        text
          .replace('BUCKET', fixture.bucket)
          .replace('KEY', fixture.key)
          .replace('VERSION', fixture.versionId)
          .replace('UPLOAD', fixture.uploadId);
      const sent = typeof body === 'function' ? body(fixture) : body;
      const filled = Object.entries(headers ?? {}).map(([name, value]) => [name, fill(value)]);
      return {
        method,
        path: at(fixture, fill(rest)),
        ...(headers && { headers: Object.fromEntries(filled) }),
        ...(sent && { body: sent }),
      };
    },
    ...others,
  };
}

const deleteBody = ({ key }: Fixture, version = '') =>
  xml(`<Delete><Object><Key>${key}</Key>${version}</Object></Delete>`);
const digestOf = (body: Buffer) => createHash('md5').update(body).digest('base64');

function deleteObjects(
  form: string | undefined,
  needs: PolicyAction,
  body: (of: Fixture) => Buffer,
): RequestCase {
  return {
    operation: 'DeleteObjects',
    ...(form !== undefined && { form }),
    needs: [needs],
    // Of keys that may not be deleted the document says so; who may delete nothing at all is refused as a whole.
    refusal: '200 AccessDenied',
    answers: { stranger: REFUSED, powerless: REFUSED, anybody: REFUSED },
    request: (fixture) => ({
      method: 'POST',
      path: at(fixture, '?delete'),
      headers: { 'content-md5': digestOf(body(fixture)) },
      body: body(fixture),
    }),
  };
}

const OWN_ONLY = { guest: '405 MethodNotAllowed', public: '405 MethodNotAllowed' };
const TAGGING = xml('<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>');
const VERSIONING = xml('<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>');
const RULES = xml(
  '<LifecycleConfiguration><Rule><Filter/><Status>Disabled</Status><Expiration><Days>1</Days></Expiration></Rule></LifecycleConfiguration>',
);
const COMPLIANCE = xml(
  '<BucketComplianceConfiguration><Status>enabled</Status><RetentionDays>1</RetentionDays></BucketComplianceConfiguration>',
);
const DELETING_COMPLIANCE = xml(
  '<BucketComplianceConfiguration><Status>enabled</Status><RetentionDays>1</RetentionDays><DeleteAfterRetention>true</DeleteAfterRetention></BucketComplianceConfiguration>',
);
const LEGAL_HOLD = xml(
  '<ObjectComplianceConfiguration><LegalHold>true</LegalHold></ObjectComplianceConfiguration>',
);
const NO_COMPLIANCE = '404 NoSuchComplianceConfiguration';
const OBJECT_LOCK = xml(
  '<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>',
);
/** That fixtures have: extended only, without a bypass. */
export const LOCKED_UNTIL = '2100-01-01T00:00:00Z';
export const RETENTION = xml(
  `<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>${LOCKED_UNTIL}</RetainUntilDate></Retention>`,
);
const LOCK = {
  'x-amz-object-lock-mode': 'GOVERNANCE',
  'x-amz-object-lock-retain-until-date': LOCKED_UNTIL,
  'x-amz-object-lock-legal-hold': 'ON',
};
const LOCK_ACTIONS = ['s3:PutObjectRetention', 's3:PutObjectLegalHold'] as const;
const BYPASS = { 'x-amz-bypass-governance-retention': 'true' };
const TAGS = { 'x-amz-tagging': 'a=b' };
const PUBLIC = { 'x-amz-acl': 'public-read' };
const PRIVATE = { 'x-amz-acl': 'private' };
const COMPONENT = xml('<ComposeRequest><Component><Key>beside</Key></Component></ComposeRequest>');
const COMPONENT_VERSION = ({ key, versionId }: Fixture) =>
  xml(
    `<ComposeRequest><Component><Key>${key}</Key><VersionId>${versionId}</VersionId></Component></ComposeRequest>`,
  );
const SOURCE = { 'x-amz-copy-source': '/BUCKET/beside' };
const SOURCE_VERSION = { 'x-amz-copy-source': '/BUCKET/KEY?versionId=VERSION' };
const SOURCE_WITH_TAGS = { 'x-amz-copy-source': '/BUCKET/KEY' };
const SOS_KEY = '.system-d26a9498-cb7c-4a87-a44a-8ae204f5ba6c/system.xml';
const ANSWERS_ALL = { stranger: '200', anybody: '200' };
const policyFor = ({ bucket }: Fixture) =>
  xml(
    JSON.stringify({
      Version: '2012-10-17',
      Statement: [
        {
          Effect: 'Allow',
          Principal: { AWS: '*' },
          Action: 's3:ListBucket',
          Resource: `arn:aws:s3:::${bucket}`,
          Condition: { IpAddress: { 'aws:SourceIp': '192.0.2.0/24' } },
        },
      ],
    }),
  );

/** Complete: tests compare its operations with those of the registry. */
export const REQUESTS: readonly RequestCase[] = [
  {
    operation: 'ListBuckets',
    needs: ['s3:ListAllMyBuckets'],
    notOfBucket: ['s3:ListAllMyBuckets'],
    request: () => ({ method: 'GET', path: '/' }),
    // Of another account it lists that account's own.
    answers: { stranger: '200', guest: '200', public: REFUSED },
  },
  {
    operation: 'CreateBucket',
    needs: ['s3:CreateBucket'],
    notOfBucket: ['s3:CreateBucket'],
    request: ({ bucket }) => ({ method: 'PUT', path: `/${bucket}-more` }),
    // In another account, for that account.
    answers: { stranger: '200', guest: '200', public: REFUSED },
  },
  {
    operation: 'CreateBucket',
    form: 'of a taken name',
    needs: ['s3:CreateBucket'],
    notOfBucket: ['s3:CreateBucket'],
    request: ({ bucket }) => ({ method: 'PUT', path: `/${bucket}` }),
    answers: { stranger: '409 BucketAlreadyExists', guest: '409 BucketAlreadyExists', public: REFUSED },
  },
  row('CreateBucket', ['s3:CreateBucket', 's3:PutBucketAcl'], 'PUT', '-more', {
    form: 'with an ACL',
    notOfBucket: ['s3:CreateBucket', 's3:PutBucketAcl'],
    headers: PUBLIC,
    answers: { stranger: '200', guest: '200', public: REFUSED },
  }),
  row(
    'CreateBucket',
    ['s3:CreateBucket', 's3:PutBucketObjectLockConfiguration', 's3:PutBucketVersioning'],
    'PUT',
    '-more',
    {
      form: 'with an object lock',
      notOfBucket: ['s3:CreateBucket', 's3:PutBucketObjectLockConfiguration', 's3:PutBucketVersioning'],
      headers: { 'x-amz-bucket-object-lock-enabled': 'true' },
      answers: { stranger: '200', guest: '200', public: REFUSED },
    },
  ),
  row('HeadBucket', 's3:ListBucket', 'HEAD', ''),
  row('DeleteBucket', 's3:DeleteBucket', 'DELETE', '', { answer: '409 BucketNotEmpty' }),
  row(
    'ForceDeleteBucket',
    ['s3:DeleteBucket', 's3:DeleteObject', 's3:DeleteObjectVersion'],
    'DELETE',
    '?force_delete=true',
    {
      answer: '204',
    },
  ),
  row('MoveBucket', 's3:CreateBucket', 'MOVE', '', {
    othersNeed: ['s3:DeleteBucket', 's3:PutBucketPolicy', 's3:PutBucketAcl'],
    notOfBucket: ['s3:CreateBucket', 's3:PutBucketPolicy', 's3:PutBucketAcl'],
    headers: { destination: '/BUCKET-moved' },
    // Only the owner's account, whatever a policy allows (extensions 2.2).
    answers: { guest: REFUSED, public: REFUSED },
  }),
  row('GetBucketLocation', 's3:GetBucketLocation', 'GET', '?location'),
  row('GetBucketVersioning', 's3:GetBucketVersioning', 'GET', '?versioning'),
  row('PutBucketVersioning', 's3:PutBucketVersioning', 'PUT', '?versioning', { body: VERSIONING }),
  row('GetBucketAcl', 's3:GetBucketAcl', 'GET', '?acl'),
  row('PutBucketAcl', 's3:PutBucketAcl', 'PUT', '?acl', { headers: PRIVATE }),
  row('GetBucketPolicy', 's3:GetBucketPolicy', 'GET', '?policy', {
    answer: '404 NoSuchBucketPolicy',
    answers: OWN_ONLY,
  }),
  row('PutBucketPolicy', 's3:PutBucketPolicy', 'PUT', '?policy', {
    body: policyFor,
    answer: '204',
    answers: OWN_ONLY,
  }),
  row('DeleteBucketPolicy', 's3:DeleteBucketPolicy', 'DELETE', '?policy', {
    answer: '204',
    answers: OWN_ONLY,
  }),
  row('GetBucketCompliance', 's3:GetBucketCompliance', 'GET', '?compliance'),
  row('PutBucketCompliance', 's3:PutBucketCompliance', 'PUT', '?compliance', { body: COMPLIANCE }),
  row(
    'PutBucketCompliance',
    ['s3:PutBucketCompliance', 's3:DeleteObject', 's3:DeleteObjectVersion'],
    'PUT',
    '?compliance',
    { form: 'that deletes after retention', body: DELETING_COMPLIANCE },
  ),
  row('GetBucketWebsite', 's3:GetBucketWebsite', 'GET', '?website', {
    answer: '404 NoSuchWebsiteConfiguration',
  }),
  row('GetBucketReplication', 's3:GetReplicationConfiguration', 'GET', '?replication', {
    answer: '404 ReplicationConfigurationNotFoundError',
  }),
  row('DeleteBucketReplication', 's3:PutReplicationConfiguration', 'DELETE', '?replication', {
    answer: '204',
  }),
  row('ListBucketInventoryConfigurations', 's3:GetInventoryConfiguration', 'GET', '?inventory'),
  row('GetBucketInventoryConfiguration', 's3:GetInventoryConfiguration', 'GET', '?id=a&inventory', {
    answer: '404 NoSuchConfiguration',
  }),
  row('GetBucketLifecycleConfiguration', 's3:GetLifecycleConfiguration', 'GET', '?lifecycle', {
    answer: '404 NoSuchLifecycleConfiguration',
  }),
  row('PutBucketLifecycleConfiguration', 's3:PutLifecycleConfiguration', 'PUT', '?lifecycle', {
    body: RULES,
  }),
  row('DeleteBucketLifecycle', 's3:PutLifecycleConfiguration', 'DELETE', '?lifecycle', { answer: '204' }),
  row('GetBucketLogging', 's3:GetBucketLogging', 'GET', '?logging'),
  row('GetBucketNotificationConfiguration', 's3:GetBucketNotification', 'GET', '?notification'),
  row('GetObjectLockConfiguration', 's3:GetBucketObjectLockConfiguration', 'GET', '?object-lock', {
    answer: '404 ObjectLockConfigurationNotFoundError',
  }),
  row('PutObjectLockConfiguration', 's3:PutBucketObjectLockConfiguration', 'PUT', '?object-lock', {
    body: OBJECT_LOCK,
  }),
  row('ListObjects', 's3:ListBucket', 'GET', ''),
  row('ListObjectsV2', 's3:ListBucket', 'GET', '?list-type=2'),
  row('ListObjectVersions', 's3:ListBucketVersions', 'GET', '?versions'),
  row('ListMultipartUploads', 's3:ListBucketMultipartUploads', 'GET', '?uploads'),
  row('GetObject', 's3:GetObject', 'GET', '/KEY'),
  row('GetObject', 's3:GetObjectVersion', 'GET', '/KEY?versionId=VERSION', { form: 'of a version' }),
  // Who may list learns that there is none (s3-behaviour 11 and 23).
  row('GetObject', ['s3:GetObject', 's3:ListBucket'], 'GET', '/none', {
    form: 'of a missing key',
    unnamed: ['s3:ListBucket'],
    answer: '404 NoSuchKey',
  }),
  row('HeadObject', 's3:GetObject', 'HEAD', '/KEY'),
  row('HeadObject', 's3:GetObjectVersion', 'HEAD', '/KEY?versionId=VERSION', { form: 'of a version' }),
  row('HeadObject', ['s3:GetObject', 's3:ListBucket'], 'HEAD', '/none', {
    form: 'of a missing key',
    answer: '404',
  }),
  // Whatever the bucket shares with everybody.
  row('GetSosObject', 's3:GetObject', 'GET', `/${SOS_KEY}`, { answers: { public: REFUSED } }),
  row('HeadSosObject', 's3:GetObject', 'HEAD', `/${SOS_KEY}`, { answers: { public: '403' } }),
  row('GetObjectTagging', 's3:GetObjectTagging', 'GET', '/KEY?tagging'),
  row('GetObjectTagging', 's3:GetObjectVersionTagging', 'GET', '/KEY?tagging&versionId=VERSION', {
    form: 'of a version',
  }),
  row('PutObjectTagging', 's3:PutObjectTagging', 'PUT', '/KEY?tagging', { body: TAGGING }),
  row('PutObjectTagging', 's3:PutObjectVersionTagging', 'PUT', '/KEY?tagging&versionId=VERSION', {
    form: 'of a version',
    body: TAGGING,
  }),
  row('DeleteObjectTagging', 's3:DeleteObjectTagging', 'DELETE', '/KEY?tagging', { answer: '204' }),
  row('DeleteObjectTagging', 's3:DeleteObjectVersionTagging', 'DELETE', '/KEY?tagging&versionId=VERSION', {
    form: 'of a version',
    answer: '204',
  }),
  row('GetObjectAcl', 's3:GetObjectAcl', 'GET', '/KEY?acl'),
  row('GetObjectAcl', 's3:GetObjectVersionAcl', 'GET', '/KEY?acl&versionId=VERSION', {
    form: 'of a version',
  }),
  row('PutObjectAcl', 's3:PutObjectAcl', 'PUT', '/KEY?acl', { headers: PRIVATE }),
  row('PutObjectAcl', 's3:PutObjectVersionAcl', 'PUT', '/KEY?acl&versionId=VERSION', {
    form: 'of a version',
    headers: PRIVATE,
  }),
  row('GetObjectCompliance', 's3:GetObjectCompliance', 'GET', '/KEY?compliance', { answer: NO_COMPLIANCE }),
  row('GetObjectCompliance', 's3:GetObjectCompliance', 'GET', '/KEY?compliance&versionId=VERSION', {
    form: 'of a version',
    answer: NO_COMPLIANCE,
  }),
  row('PutObjectCompliance', 's3:PutObjectCompliance', 'PUT', '/KEY?compliance', {
    body: LEGAL_HOLD,
    answer: NO_COMPLIANCE,
  }),
  row('PutObjectCompliance', 's3:PutObjectCompliance', 'PUT', '/KEY?compliance&versionId=VERSION', {
    form: 'of a version',
    body: LEGAL_HOLD,
    answer: NO_COMPLIANCE,
  }),
  row('GetObjectRetention', 's3:GetObjectRetention', 'GET', '/KEY?retention&versionId=VERSION', {
    isLocked: true,
  }),
  row('PutObjectRetention', 's3:PutObjectRetention', 'PUT', '/KEY?retention', {
    isLocked: true,
    body: RETENTION,
  }),
  row(
    'PutObjectRetention',
    ['s3:PutObjectRetention', 's3:BypassGovernanceRetention'],
    'PUT',
    '/KEY?retention&versionId=VERSION',
    {
      form: 'that takes it away',
      isLocked: true,
      // Without the bypass the shard refuses it.
      unnamed: ['s3:BypassGovernanceRetention'],
      headers: BYPASS,
      body: xml('<Retention/>'),
    },
  ),
  row('GetObjectLegalHold', 's3:GetObjectLegalHold', 'GET', '/KEY?legal-hold', { isLocked: true }),
  row('PutObjectLegalHold', 's3:PutObjectLegalHold', 'PUT', '/KEY?legal-hold', {
    isLocked: true,
    body: xml('<LegalHold><Status>OFF</Status></LegalHold>'),
  }),
  row('PutObject', 's3:PutObject', 'PUT', '/KEY', { body: BODY }),
  row('PutObject', ['s3:PutObject', 's3:PutObjectTagging'], 'PUT', '/KEY', {
    form: 'with tags',
    body: BODY,
    headers: TAGS,
  }),
  row('PutObject', ['s3:PutObject', 's3:PutObjectAcl'], 'PUT', '/KEY', {
    form: 'with an ACL',
    body: BODY,
    headers: PUBLIC,
  }),
  row('PutObject', ['s3:PutObject', ...LOCK_ACTIONS], 'PUT', '/KEY', {
    form: 'with a lock',
    isLocked: true,
    body: BODY,
    headers: LOCK,
  }),
  {
    operation: 'PostObject',
    needs: ['s3:PutObject'],
    answer: '204',
    request: (fixture) => ({ method: 'POST', path: at(fixture), form: [['key', fixture.key]] }),
  },
  {
    operation: 'PostObject',
    form: 'with tags and an ACL',
    needs: ['s3:PutObject', 's3:PutObjectTagging', 's3:PutObjectAcl'],
    answer: '204',
    request: (fixture) => ({
      method: 'POST',
      path: at(fixture),
      form: [
        ['key', fixture.key],
        ['tagging', String(TAGGING)],
        ['acl', 'public-read'],
      ],
    }),
  },
  {
    operation: 'PostObject',
    form: 'with a lock',
    isLocked: true,
    needs: ['s3:PutObject', ...LOCK_ACTIONS],
    answer: '204',
    request: (fixture) => ({
      method: 'POST',
      path: at(fixture),
      form: [['key', fixture.key], ...Object.entries(LOCK)],
    }),
  },
  row('DeleteObject', 's3:DeleteObject', 'DELETE', '/KEY', { answer: '204' }),
  row('DeleteObject', 's3:DeleteObjectVersion', 'DELETE', '/KEY?versionId=VERSION', {
    form: 'of a version that needs no bypass',
    headers: BYPASS,
    answer: '204',
  }),
  row(
    'DeleteObject',
    ['s3:DeleteObjectVersion', 's3:BypassGovernanceRetention'],
    'DELETE',
    '/KEY?versionId=VERSION',
    {
      form: 'of a version under GOVERNANCE',
      isLocked: true,
      // Without the bypass the shard refuses it.
      unnamed: ['s3:BypassGovernanceRetention'],
      headers: BYPASS,
      answer: '204',
    },
  ),
  row('DeleteObject', 's3:DeleteObjectVersion', 'DELETE', '/KEY?versionId=VERSION', {
    form: 'of a version',
    answer: '204',
  }),
  deleteObjects(undefined, 's3:DeleteObject', deleteBody),
  deleteObjects('of a version', 's3:DeleteObjectVersion', (fixture) =>
    deleteBody(fixture, `<VersionId>${fixture.versionId}</VersionId>`),
  ),
  row('CopyObject', ['s3:PutObject', 's3:GetObject'], 'PUT', '/KEY', { headers: SOURCE }),
  row('CopyObject', ['s3:PutObject', 's3:GetObjectVersion'], 'PUT', '/new', {
    form: 'of a version',
    headers: SOURCE_VERSION,
  }),
  row(
    'CopyObject',
    ['s3:PutObject', 's3:GetObject', 's3:GetObjectTagging', 's3:PutObjectTagging'],
    'PUT',
    '/new',
    {
      form: 'of an object with tags',
      headers: SOURCE_WITH_TAGS,
    },
  ),
  row('CopyObject', ['s3:PutObject', 's3:GetObject', 's3:PutObjectTagging'], 'PUT', '/new', {
    form: 'with new tags',
    headers: { ...SOURCE, ...TAGS, 'x-amz-tagging-directive': 'REPLACE' },
  }),
  row('CopyObject', ['s3:PutObject', 's3:GetObject', 's3:PutObjectAcl'], 'PUT', '/new', {
    form: 'with an ACL',
    headers: { ...SOURCE, ...PUBLIC },
  }),
  row('CopyObject', ['s3:PutObject', 's3:GetObject', ...LOCK_ACTIONS], 'PUT', '/KEY', {
    form: 'with a lock',
    isLocked: true,
    headers: { ...SOURCE, ...LOCK },
  }),
  row('MoveObject', 's3:PutObject', 'MOVE', '/KEY', {
    othersNeed: [
      's3:DeleteObject',
      's3:DeleteObjectVersion',
      's3:GetObject',
      's3:GetObjectVersion',
      's3:GetObjectTagging',
      's3:GetObjectVersionTagging',
      's3:PutObjectTagging',
    ],
    headers: { destination: '/BUCKET/KEY-moved' },
  }),
  row('ComposeObject', 's3:PutObject', 'PUT', '/KEY?compose', {
    othersNeed: ['s3:GetObject'],
    body: COMPONENT,
  }),
  row('ComposeObject', 's3:PutObject', 'PUT', '/KEY?compose', {
    form: 'of a version',
    othersNeed: ['s3:GetObjectVersion'],
    body: COMPONENT_VERSION,
  }),
  row('ComposeObject', ['s3:PutObject', 's3:PutObjectTagging'], 'PUT', '/KEY?compose', {
    form: 'with tags',
    othersNeed: ['s3:GetObject'],
    headers: TAGS,
    body: COMPONENT,
  }),
  row('ComposeObject', ['s3:PutObject', ...LOCK_ACTIONS], 'PUT', '/KEY?compose', {
    form: 'with a lock',
    isLocked: true,
    othersNeed: ['s3:GetObject'],
    headers: LOCK,
    body: COMPONENT,
  }),
  row('AppendObject', 's3:PutObject', 'PUT', '/KEY?append', { body: BODY }),
  row('CreateMultipartUpload', 's3:PutObject', 'POST', '/KEY?uploads'),
  row('CreateMultipartUpload', ['s3:PutObject', 's3:PutObjectTagging'], 'POST', '/KEY?uploads', {
    form: 'with tags',
    headers: TAGS,
  }),
  row('CreateMultipartUpload', ['s3:PutObject', 's3:PutObjectAcl'], 'POST', '/KEY?uploads', {
    form: 'with an ACL',
    headers: PUBLIC,
  }),
  row('CreateMultipartUpload', ['s3:PutObject', ...LOCK_ACTIONS], 'POST', '/KEY?uploads', {
    form: 'with a lock',
    isLocked: true,
    headers: LOCK,
  }),
  row('UploadPart', 's3:PutObject', 'PUT', '/KEY?partNumber=2&uploadId=UPLOAD', { body: BODY }),
  row('UploadPartCopy', ['s3:PutObject', 's3:GetObject'], 'PUT', '/KEY?partNumber=2&uploadId=UPLOAD', {
    headers: SOURCE,
  }),
  row('UploadPartCopy', ['s3:PutObject', 's3:GetObjectVersion'], 'PUT', '/KEY?partNumber=2&uploadId=UPLOAD', {
    form: 'of a version',
    headers: SOURCE_VERSION,
  }),
  row('CompleteMultipartUpload', 's3:PutObject', 'POST', '/KEY?uploadId=UPLOAD', {
    body: ({ etag }) =>
      xml(
        `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${etag}</ETag></Part></CompleteMultipartUpload>`,
      ),
  }),
  row('AbortMultipartUpload', 's3:AbortMultipartUpload', 'DELETE', '/KEY?uploadId=UPLOAD', { answer: '204' }),
  row('ListParts', 's3:ListMultipartUploadParts', 'GET', '/KEY?uploadId=UPLOAD'),
  // The answer is the same for any bucket and any caller (service 4.4).
  {
    operation: 'PreflightService',
    needs: [],
    request: () => ({ method: 'OPTIONS', path: '/', headers: { origin: 'http://a' } }),
    answers: ANSWERS_ALL,
  },
  row('PreflightBucket', [], 'OPTIONS', '', { answers: ANSWERS_ALL, headers: { origin: 'http://a' } }),
  row('PreflightObject', [], 'OPTIONS', '/KEY', { answers: ANSWERS_ALL, headers: { origin: 'http://a' } }),
];
