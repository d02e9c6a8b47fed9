// The operations of S3 that are not there, as rows of the same form: each answers 501 NotImplemented instead of being
// taken for another operation. The first list is for good (service 4.6), the second shrinks as features are built. To
// read what can never have been set is there all the same (buckets/unset-configurations.ts).
import type { Level, OperationMatch } from './operation.ts';

export interface UnsupportedOperation {
  readonly name: string;
  readonly match: OperationMatch;
}

type Method = OperationMatch['method'];

/** One row for each method of a sub-resource: `names` are by method. */
function subResource(
  on: Level,
  query: string,
  names: Partial<Record<Method, string>>,
): UnsupportedOperation[] {
  return Object.entries(names).map(([method, name]) => ({
    name,
    match: { method: method as Method, on, query: [query] },
  }));
}

/** Configurations that a bucket has many of: listed without an id, else addressed by one. */
function numbered(query: string, noun: string): UnsupportedOperation[] {
  const one = { PUT: `PutBucket${noun}`, DELETE: `DeleteBucket${noun}`, GET: `ListBucket${noun}s` };
  return [
    ...subResource('bucket', query, one),
    { name: `GetBucket${noun}`, match: { method: 'GET', on: 'bucket', query: [query, 'id'] } },
  ];
}

/** service 4.6. */
const NEVER: readonly UnsupportedOperation[] = [
  ...subResource('bucket', 'accelerate', {
    GET: 'GetBucketAccelerateConfiguration',
    PUT: 'PutBucketAccelerateConfiguration',
  }),
  ...numbered('analytics', 'AnalyticsConfiguration'),
  ...subResource('bucket', 'encryption', {
    GET: 'GetBucketEncryption',
    PUT: 'PutBucketEncryption',
    DELETE: 'DeleteBucketEncryption',
  }),
  ...numbered('intelligent-tiering', 'IntelligentTieringConfiguration'),
  ...subResource('bucket', 'metadataTable', {
    GET: 'GetBucketMetadataTableConfiguration',
    POST: 'CreateBucketMetadataTableConfiguration',
    DELETE: 'DeleteBucketMetadataTableConfiguration',
  }),
  ...subResource('bucket', 'metadataConfiguration', {
    GET: 'GetBucketMetadataConfiguration',
    POST: 'CreateBucketMetadataConfiguration',
    DELETE: 'DeleteBucketMetadataConfiguration',
  }),
  ...subResource('bucket', 'metadataInventoryTable', { PUT: 'UpdateBucketMetadataInventoryTable' }),
  ...subResource('bucket', 'metadataJournalTable', { PUT: 'UpdateBucketMetadataJournalTable' }),
  ...subResource('bucket', 'metadataAnnotationTable', { PUT: 'UpdateBucketMetadataAnnotationTable' }),
  ...numbered('metrics', 'MetricsConfiguration'),
  ...subResource('bucket', 'ownershipControls', {
    GET: 'GetBucketOwnershipControls',
    PUT: 'PutBucketOwnershipControls',
    DELETE: 'DeleteBucketOwnershipControls',
  }),
  ...subResource('bucket', 'requestPayment', {
    GET: 'GetBucketRequestPayment',
    PUT: 'PutBucketRequestPayment',
  }),
  ...subResource('bucket', 'publicAccessBlock', {
    GET: 'GetPublicAccessBlock',
    PUT: 'PutPublicAccessBlock',
    DELETE: 'DeletePublicAccessBlock',
  }),
  ...subResource('bucket', 'policyStatus', { GET: 'GetBucketPolicyStatus' }),
  ...subResource('bucket', 'session', { GET: 'CreateSession' }),
  ...subResource('bucket', 'tagging', {
    GET: 'GetBucketTagging',
    PUT: 'PutBucketTagging',
    DELETE: 'DeleteBucketTagging',
  }),
  ...subResource('bucket', 'cors', {
    GET: 'GetBucketCors',
    PUT: 'PutBucketCors',
    DELETE: 'DeleteBucketCors',
  }),
  ...subResource('bucket', 'abac', { GET: 'GetBucketAbac', PUT: 'PutBucketAbac' }),
  ...subResource('bucket', 'website', { PUT: 'PutBucketWebsite', DELETE: 'DeleteBucketWebsite' }),
  ...subResource('bucket', 'inventory', {
    PUT: 'PutBucketInventoryConfiguration',
    DELETE: 'DeleteBucketInventoryConfiguration',
  }),
  ...subResource('bucket', 'replication', { PUT: 'PutBucketReplication' }),
  ...subResource('object', 'attributes', { GET: 'GetObjectAttributes' }),
  ...subResource('object', 'torrent', { GET: 'GetObjectTorrent' }),
  ...subResource('object', 'restore', { POST: 'RestoreObject' }),
  ...subResource('object', 'select', { POST: 'SelectObjectContent' }),
  ...subResource('object', 'renameObject', { PUT: 'RenameObject' }),
  ...subResource('object', 'encryption', { PUT: 'UpdateObjectEncryption' }),
  ...subResource('object', 'annotation', {
    GET: 'GetObjectAnnotation',
    PUT: 'PutObjectAnnotation',
    DELETE: 'DeleteObjectAnnotation',
  }),
  { name: 'WriteGetObjectResponse', match: { method: 'POST', on: 'bucket', header: 'x-amz-request-route' } },
  { name: 'CreateJob', match: { method: 'POST', on: 'object', header: 'x-amz-account-id' } },
  { name: 'ListJobs', match: { method: 'GET', on: 'object', header: 'x-amz-account-id' } },
];

const LATER: readonly UnsupportedOperation[] = [
  { name: 'QueryApi', match: { method: 'POST', on: 'service' } },
  ...subResource('bucket', 'logging', { PUT: 'PutBucketLogging' }),
  ...subResource('bucket', 'notification', { PUT: 'PutBucketNotificationConfiguration' }),
];

export const UNSUPPORTED: readonly UnsupportedOperation[] = [...NEVER, ...LATER];
