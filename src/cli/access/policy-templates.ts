// Policies for what people give keys to: backup programs and those who look after one bucket. Each is of one bucket, small enough
// for an inline policy of a user, and denies what it must never allow, so that no other policy of the user opens it again.
// What each is for, and why, is in docs/access.md "Keys for backup programs".

export const TEMPLATE_NAMES = ['append-only', 'read-only', 'bucket-admin', 'restic', 'veeam'] as const;

export type TemplateName = (typeof TEMPLATE_NAMES)[number];

interface Statement {
  readonly Sid: string;
  readonly Effect: 'Allow' | 'Deny';
  readonly Action?: readonly string[];
  readonly NotAction?: readonly string[];
  readonly Resource?: readonly string[];
  readonly NotResource?: readonly string[];
}

interface Template {
  /** For --help and for whoever made a user by it. */
  readonly summary: string;
  /** What it promises holds only where the bucket keeps versions. */
  readonly needsVersions: boolean;
  /** restic deletes its lock behind each run, and tries for a quarter of an hour where it may not. */
  readonly keepsLocks: boolean;
  statements(bucket: string): readonly Statement[];
}

const bucketArn = (bucket: string) => `arn:aws:s3:::${bucket}`;
const keysArn = (bucket: string, keys = '*') => `arn:aws:s3:::${bucket}/${keys}`;

/** What every program asks of a bucket. */
const LOOK = ['s3:GetBucketLocation', 's3:GetBucketVersioning', 's3:ListBucket', 's3:ListBucketVersions'];
/** Versions, too: rclone looks at the one that it has written, and what was overwritten is restored by them. */
const READ = ['s3:GetObject', 's3:GetObjectTagging', 's3:GetObjectVersion', 's3:GetObjectVersionTagging'];
const WRITE = ['s3:PutObject', 's3:AbortMultipartUpload', 's3:ListMultipartUploadParts'];
const UPLOADS = ['s3:ListBucketMultipartUploads'];
/** Who is kept out, what is kept, and for how long. Deleting configurations is in `s3:DeleteBucket*`. */
const CHANGE_BUCKET_RULES = [
  's3:BypassGovernanceRetention',
  's3:DeleteBucket*',
  's3:PutBucket*',
  's3:PutLifecycleConfiguration',
  's3:PutReplicationConfiguration',
];
/** All that begins so but `s3:PutObject` itself: ACLs, tags, retention, holds and compliance. */
const CHANGE_OBJECT_RULES = 's3:PutObject?*';

const allow = (Sid: string, Action: readonly string[], Resource: readonly string[]): Statement => ({
  Sid,
  Effect: 'Allow',
  Action,
  Resource,
});

/** Listing, reading and writing, as all backup programs need. */
const work = (bucket: string): Statement[] => [
  allow('LookIntoBucket', [...LOOK, ...UPLOADS], [bucketArn(bucket)]),
  allow('ReadAndWrite', [...READ, ...WRITE], [keysArn(bucket)]),
];

export const TEMPLATES: Readonly<Record<TemplateName, Template>> = {
  'append-only': {
    summary: 'lists, reads and adds; deletes nothing',
    needsVersions: true,
    keepsLocks: true,
    statements: (bucket) => [
      ...work(bucket),
      {
        Sid: 'NeverDeleteOrChangeRules',
        Effect: 'Deny',
        Action: ['s3:Delete*', ...CHANGE_BUCKET_RULES, CHANGE_OBJECT_RULES],
        Resource: [bucketArn(bucket), keysArn(bucket)],
      },
    ],
  },
  'read-only': {
    summary: 'lists and reads, old versions too; changes nothing',
    needsVersions: false,
    keepsLocks: true,
    statements: (bucket) => [
      allow('LookIntoBucket', LOOK, [bucketArn(bucket)]),
      allow('Read', READ, [keysArn(bucket)]),
      {
        Sid: 'NeverChange',
        Effect: 'Deny',
        NotAction: ['s3:Get*', 's3:List*'],
        Resource: [bucketArn(bucket), keysArn(bucket)],
      },
    ],
  },
  'bucket-admin': {
    summary: 'everything with this bucket and what is in it; no other bucket, no users, no keys',
    needsVersions: false,
    keepsLocks: false,
    statements: (bucket) => [allow('EverythingWithBucket', ['s3:*'], [bucketArn(bucket), keysArn(bucket)])],
  },
  restic: {
    summary: 'as append-only, and deletes the locks of a restic repository at the top of the bucket',
    needsVersions: true,
    keepsLocks: false,
    statements: (bucket) => [
      ...work(bucket),
      allow('RemoveLocks', ['s3:DeleteObject'], [keysArn(bucket, 'locks/*')]),
      {
        Sid: 'NeverDeleteElse',
        Effect: 'Deny',
        Action: ['s3:DeleteObject'],
        NotResource: [keysArn(bucket, 'locks/*')],
      },
      {
        Sid: 'NeverDeleteVersionsOrChangeRules',
        Effect: 'Deny',
        Action: ['s3:DeleteObject?*', ...CHANGE_BUCKET_RULES, CHANGE_OBJECT_RULES],
        Resource: [bucketArn(bucket), keysArn(bucket)],
      },
    ],
  },
  veeam: {
    summary:
      'what Veeam needs for a repository, with immutability; retention can be set, and never be bypassed',
    needsVersions: false,
    keepsLocks: false,
    statements: (bucket) => [
      allow('ListBuckets', ['s3:ListAllMyBuckets'], ['*']),
      allow(
        'LookIntoBucket',
        [...LOOK, ...UPLOADS, 's3:GetBucketObjectLockConfiguration'],
        [bucketArn(bucket)],
      ),
      allow(
        'ReadWriteRetainAndDelete',
        [
          ...READ,
          ...WRITE,
          's3:GetObjectRetention',
          's3:GetObjectLegalHold',
          's3:PutObjectRetention',
          's3:PutObjectLegalHold',
          's3:DeleteObject',
          's3:DeleteObjectVersion',
        ],
        [keysArn(bucket)],
      ),
      {
        Sid: 'NeverChangeRules',
        Effect: 'Deny',
        Action: [...CHANGE_BUCKET_RULES, 's3:PutObject*Acl', 's3:PutObjectCompliance'],
        Resource: [bucketArn(bucket), keysArn(bucket)],
      },
    ],
  },
};

export function isTemplateName(name: string): name is TemplateName {
  return (TEMPLATE_NAMES as readonly string[]).includes(name);
}

/** The policy document of a template for one bucket. */
export function policyOfTemplate(name: TemplateName, bucket: string): string {
  const document = { Version: '2012-10-17', Statement: TEMPLATES[name].statements(bucket) };
  return JSON.stringify(document);
}
