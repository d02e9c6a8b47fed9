// What service 4.6 rules out answers 501, its GETs too; what is ruled out as a header, likewise. The table says each
// operation of that section once, in its words.
import { beforeAll, describe, expect, test } from 'vitest';
import { createMatcher } from '../../src/gateway/s3/matcher.ts';
import type { OperationMatch } from '../../src/gateway/s3/operation.ts';
import { OPERATIONS } from '../../src/gateway/s3/registry.ts';
import { parseTarget } from '../../src/gateway/s3/request/target.ts';
import { UNSUPPORTED } from '../../src/gateway/s3/unsupported.ts';
import { pathOf } from '../support/servers/raw-s3.ts';
import { expectError, useApi } from '../support/servers/s3-api.ts';

const api = useApi();
let bucket: string;
beforeAll(async () => {
  bucket = await api.makeBucket();
  await api.put(bucket, 'k', 'bytes');
});

type Request = [method: string, target: string, headers?: Record<string, string>];

/** `?…` is of the bucket, `k…` of the object. */
const RULED_OUT: Record<string, Record<string, Request>> = {
  'Bucket accelerate': {
    GetBucketAccelerateConfiguration: ['GET', '?accelerate'],
    PutBucketAccelerateConfiguration: ['PUT', '?accelerate'],
  },
  'Bucket analytics': {
    DeleteBucketAnalyticsConfiguration: ['DELETE', '?analytics&id=1'],
    GetBucketAnalyticsConfiguration: ['GET', '?analytics&id=1'],
    ListBucketAnalyticsConfigurations: ['GET', '?analytics'],
    PutBucketAnalyticsConfiguration: ['PUT', '?analytics&id=1'],
  },
  'Bucket encryption': {
    DeleteBucketEncryption: ['DELETE', '?encryption'],
    GetBucketEncryption: ['GET', '?encryption'],
    PutBucketEncryption: ['PUT', '?encryption'],
  },
  'Intelligent tiering': {
    DeleteBucketIntelligentTieringConfiguration: ['DELETE', '?intelligent-tiering&id=1'],
    GetBucketIntelligentTieringConfiguration: ['GET', '?intelligent-tiering&id=1'],
    ListBucketIntelligentTieringConfigurations: ['GET', '?intelligent-tiering'],
    PutBucketIntelligentTieringConfiguration: ['PUT', '?intelligent-tiering&id=1'],
  },
  'Bucket metadata table': {
    CreateBucketMetadataTableConfiguration: ['POST', '?metadataTable'],
    DeleteBucketMetadataTableConfiguration: ['DELETE', '?metadataTable'],
    GetBucketMetadataTableConfiguration: ['GET', '?metadataTable'],
    CreateBucketMetadataConfiguration: ['POST', '?metadataConfiguration'],
    DeleteBucketMetadataConfiguration: ['DELETE', '?metadataConfiguration'],
    GetBucketMetadataConfiguration: ['GET', '?metadataConfiguration'],
  },
  'Bucket metrics': {
    DeleteBucketMetricsConfiguration: ['DELETE', '?metrics&id=1'],
    GetBucketMetricsConfiguration: ['GET', '?metrics&id=1'],
    ListBucketMetricsConfigurations: ['GET', '?metrics'],
    PutBucketMetricsConfiguration: ['PUT', '?metrics&id=1'],
  },
  'Ownership controls': {
    DeleteBucketOwnershipControls: ['DELETE', '?ownershipControls'],
    GetBucketOwnershipControls: ['GET', '?ownershipControls'],
    PutBucketOwnershipControls: ['PUT', '?ownershipControls'],
  },
  'Request payment': {
    GetBucketRequestPayment: ['GET', '?requestPayment'],
    PutBucketRequestPayment: ['PUT', '?requestPayment'],
  },
  Website: { DeleteBucketWebsite: ['DELETE', '?website'], PutBucketWebsite: ['PUT', '?website'] },
  'Block public access': {
    DeletePublicAccessBlock: ['DELETE', '?publicAccessBlock'],
    GetPublicAccessBlock: ['GET', '?publicAccessBlock'],
    PutPublicAccessBlock: ['PUT', '?publicAccessBlock'],
    GetBucketPolicyStatus: ['GET', '?policyStatus'],
  },
  'Object operations': {
    GetObjectAttributes: ['GET', 'k?attributes', { 'x-amz-object-attributes': 'ETag' }],
    GetObjectTorrent: ['GET', 'k?torrent'],
    RestoreObject: ['POST', 'k?restore'],
    WriteGetObjectResponse: ['POST', '', { 'x-amz-request-route': 'r', 'x-amz-request-token': 't' }],
  },
  Select: { SelectObjectContent: ['POST', 'k?select&select-type=2'] },
  Sessions: { CreateSession: ['GET', '?session'] },
  'Batch operations': {
    CreateJob: ['POST', 'k', { 'x-amz-account-id': '1' }],
    ListJobs: ['GET', 'k', { 'x-amz-account-id': '1' }],
  },
  'Bucket tagging': {
    DeleteBucketTagging: ['DELETE', '?tagging'],
    GetBucketTagging: ['GET', '?tagging'],
    PutBucketTagging: ['PUT', '?tagging'],
  },
  'Bucket CORS configuration': {
    DeleteBucketCors: ['DELETE', '?cors'],
    GetBucketCors: ['GET', '?cors'],
    PutBucketCors: ['PUT', '?cors'],
  },
};

/** What AWS has, the specification does not name, and nothing here stands for. */
const BEYOND: Record<string, Request> = {
  PutBucketReplication: ['PUT', '?replication'],
  PutBucketInventoryConfiguration: ['PUT', '?inventory&id=1'],
  DeleteBucketInventoryConfiguration: ['DELETE', '?inventory&id=1'],
  GetBucketAbac: ['GET', '?abac'],
  PutBucketAbac: ['PUT', '?abac'],
  UpdateBucketMetadataInventoryTable: ['PUT', '?metadataInventoryTable'],
  UpdateBucketMetadataJournalTable: ['PUT', '?metadataJournalTable'],
  UpdateBucketMetadataAnnotationTable: ['PUT', '?metadataAnnotationTable'],
  RenameObject: ['PUT', 'k?renameObject'],
  UpdateObjectEncryption: ['PUT', 'k?encryption'],
  GetObjectAnnotation: ['GET', 'k?annotation'],
  PutObjectAnnotation: ['PUT', 'k?annotation'],
  DeleteObjectAnnotation: ['DELETE', 'k?annotation'],
};

/** Of later issues, which take their lines out of here. */
const LATER: Record<string, Request> = {
  QueryApi: ['POST', '/'],
  PutBucketLogging: ['PUT', '?logging'],
  PutBucketNotificationConfiguration: ['PUT', '?notification'],
};

const NOT_IMPLEMENTED = { status: 501, code: 'NotImplemented' } as const;

const match = createMatcher<{ name: string; match: OperationMatch }>([...OPERATIONS, ...UNSUPPORTED]);

const all = Object.entries({ ...Object.assign({}, ...Object.values(RULED_OUT)), ...BEYOND, ...LATER }) as [
  string,
  Request,
][];

test.each(all)('%s is 501', async (name, [method, target, headers = {}]) => {
  const path = target === '/' ? target : `/${bucket}${target.startsWith('k') ? `/${target}` : target}`;
  expectError(await api.send({ method, path, headers }), NOT_IMPLEMENTED);
  const { level, key, query } = parseTarget(path, undefined);
  expect(match({ method, level, key, query: query.parameters, headers }).name).toBe(name);
});

test('each row that is not there is in a table', () => {
  expect(UNSUPPORTED.map(({ name }) => name).sort()).toEqual(all.map(([name]) => name).sort());
});

describe('headers', () => {
  const put = (headers: Record<string, string>) =>
    api.send({ method: 'PUT', path: pathOf(bucket, 'h'), headers, body: Buffer.from('x') });

  test.each(['aws:kms', 'aws:kms:dsse'])('encryption by %s is 501', async (value) => {
    const name = 'x-amz-server-side-encryption';
    expectError(await put({ [name]: value }), { ...NOT_IMPLEMENTED, Header: name });
    expectError(await put({ 'x-std-server-side-encryption': value }), { ...NOT_IMPLEMENTED, Header: name });
    const begun = await api.send({
      method: 'POST',
      path: `/${bucket}/h?uploads`,
      headers: { [name]: value },
    });
    expectError(begun, NOT_IMPLEMENTED);
  });

  test.each([
    'x-amz-server-side-encryption-aws-kms-key-id',
    'x-amz-server-side-encryption-context',
    'x-amz-server-side-encryption-bucket-key-enabled',
  ])('%s is 501', async (name) => {
    expectError(await put({ [name]: 'true' }), { ...NOT_IMPLEMENTED, Header: name });
  });
});
