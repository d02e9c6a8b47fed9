// The closed list of actions that access is decided by, as AWS names them (Service Authorization Reference, Amazon S3).
// The operations use these and no others, and each of these is used by one: the test of the registry holds both to it.

export const POLICY_ACTIONS = [
  's3:AbortMultipartUpload',
  's3:CreateBucket',
  's3:DeleteBucket',
  's3:DeleteObject',
  's3:DeleteObjectVersion',
  's3:GetBucketAcl',
  's3:GetBucketLocation',
  's3:GetBucketLogging',
  's3:GetBucketNotification',
  's3:GetBucketObjectLockConfiguration',
  's3:GetBucketPolicy',
  's3:GetBucketVersioning',
  's3:GetBucketWebsite',
  's3:GetInventoryConfiguration',
  's3:GetLifecycleConfiguration',
  's3:GetObject',
  's3:GetObjectAcl',
  's3:GetObjectLegalHold',
  's3:GetObjectRetention',
  's3:GetObjectTagging',
  's3:GetObjectVersion',
  's3:GetObjectVersionAcl',
  's3:GetObjectVersionTagging',
  's3:GetReplicationConfiguration',
  's3:ListAllMyBuckets',
  's3:ListBucket',
  's3:ListBucketMultipartUploads',
  's3:ListBucketVersions',
  's3:ListMultipartUploadParts',
  's3:PutBucketVersioning',
  's3:PutObject',
  's3:PutReplicationConfiguration',
] as const;

export type PolicyAction = (typeof POLICY_ACTIONS)[number];
