// The actions that S3 operations ask for, as AWS names them (Service Authorization Reference, Amazon S3). Each of them is asked
// for by an operation, and operations ask for no others: src/gateway/s3/registry.test.ts compares them.
//
// src/policy/actions.ts has a longer list: what policies may name. It adds IAM, STS, the operator API and operations that are
// not here. The two are not one, because a row there says how policies treat an action, and not whether anybody asks for it.
// src/policy/actions.test.ts says that every action of this list has a row there.

export const POLICY_ACTIONS = [
  's3:AbortMultipartUpload',
  's3:CreateBucket',
  's3:DeleteBucket',
  's3:DeleteBucketPolicy',
  's3:DeleteObject',
  's3:DeleteObjectTagging',
  's3:DeleteObjectVersion',
  's3:DeleteObjectVersionTagging',
  's3:GetBucketAcl',
  's3:GetBucketCompliance',
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
  's3:GetObjectCompliance',
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
  's3:PutBucketAcl',
  's3:PutBucketCompliance',
  's3:PutBucketPolicy',
  's3:PutBucketVersioning',
  's3:PutLifecycleConfiguration',
  's3:PutObject',
  's3:PutObjectAcl',
  's3:PutObjectCompliance',
  's3:PutObjectTagging',
  's3:PutObjectVersionAcl',
  's3:PutObjectVersionTagging',
  's3:PutReplicationConfiguration',
] as const;

export type PolicyAction = (typeof POLICY_ACTIONS)[number];
