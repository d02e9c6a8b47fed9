import { describe, expect, test } from 'vitest';
import { AppError } from '../../types/errors.ts';
import { createMatcher, type MatchRow } from './matcher.ts';
import type { Level } from './operation.ts';
import { parseTarget } from './request/target.ts';
import { UNSUPPORTED } from './unsupported.ts';

const ROWS: MatchRow[] = [
  { name: 'ListBuckets', match: { method: 'GET', on: 'service' } },
  { name: 'Preflight', match: { method: 'OPTIONS', on: 'object' }, parameters: ['*'] },
  { name: 'CreateBucket', match: { method: 'PUT', on: 'bucket' } },
  { name: 'DeleteBucket', match: { method: 'DELETE', on: 'bucket' }, parameters: ['force_delete'] },
  { name: 'ForceDeleteBucket', match: { method: 'DELETE', on: 'bucket', query: ['force_delete=true'] } },
  { name: 'MoveBucket', match: { method: 'MOVE', on: 'bucket' } },
  { name: 'PostObject', match: { method: 'POST', on: 'bucket' } },
  { name: 'ListObjects', match: { method: 'GET', on: 'bucket' } },
  { name: 'ListObjectsV2', match: { method: 'GET', on: 'bucket', query: ['list-type=2'] } },
  { name: 'ListMultipartUploads', match: { method: 'GET', on: 'bucket', query: ['uploads'] } },
  { name: 'GetBucketAcl', match: { method: 'GET', on: 'bucket', query: ['acl'] } },
  { name: 'PutBucketAcl', match: { method: 'PUT', on: 'bucket', query: ['acl'] } },
  { name: 'GetObjectAcl', match: { method: 'GET', on: 'object', query: ['acl'] } },
  { name: 'PutObjectAcl', match: { method: 'PUT', on: 'object', query: ['acl'] } },
  { name: 'GetObject', match: { method: 'GET', on: 'object' }, parameters: ['versionId', 'partNumber'] },
  {
    name: 'GetFixed',
    match: { method: 'GET', on: 'object', keys: new Set(['fixed']) },
    parameters: ['partNumber'],
  },
  { name: 'PutObject', match: { method: 'PUT', on: 'object' } },
  { name: 'CopyObject', match: { method: 'PUT', on: 'object', header: 'x-amz-copy-source' } },
  { name: 'UploadPart', match: { method: 'PUT', on: 'object', query: ['partNumber', 'uploadId'] } },
  {
    name: 'UploadPartCopy',
    match: { method: 'PUT', on: 'object', query: ['partNumber', 'uploadId'], header: 'x-amz-copy-source' },
  },
  { name: 'MoveObject', match: { method: 'MOVE', on: 'object' } },
  { name: 'PutObjectTagging', match: { method: 'PUT', on: 'object', query: ['tagging'] } },
  { name: 'DeleteObject', match: { method: 'DELETE', on: 'object' }, parameters: ['versionId'] },
  { name: 'CompleteMultipartUpload', match: { method: 'POST', on: 'object', query: ['uploadId'] } },
];
const all = [...ROWS, ...UNSUPPORTED];

function run(line: string, rows: readonly MatchRow[] = all): string {
  const [method = '', uri = '', header] = line.split(' ');
  const { level, key, query } = parseTarget(uri, undefined);
  const headers = header === undefined ? {} : { [header]: 'x' };
  try {
    return createMatcher(rows)({ method, level, key, query: query.parameters, headers }).name;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return `${error.status} ${error.code}${error.headers.Allow === undefined ? '' : ` ${error.headers.Allow}`}`;
  }
}

describe('the most specific row wins', () => {
  test.each([
    ['GET /', 'ListBuckets'],
    ['GET /b', 'ListObjects'],
    ['GET /b?list-type=2&prefix=x', 'ListObjectsV2'],
    ['GET /b?list-type=1', 'ListObjects'],
    ['GET /b?uploads&list-type=2', 'ListMultipartUploads'],
    ['GET /b?x-id=ListObjects', 'ListObjects'],
    ['GET /b/fixed', 'GetFixed'],
    ['GET /b/fixed?partNumber=1&x-id=GetObject', 'GetFixed'],
    ['GET /b/fixed?versionId=v', 'GetObject'],
    ['GET /b/fixed?acl', 'GetObjectAcl'],
    ['GET /b/fixed/k', 'GetObject'],
    ['PUT /b/fixed', 'PutObject'],
    ['PUT /b/k', 'PutObject'],
    ['PUT /b/k x-amz-copy-source', 'CopyObject'],
    ['PUT /b/k?partNumber=1&uploadId=u', 'UploadPart'],
    ['PUT /b/k?partNumber=1&uploadId=u x-amz-copy-source', 'UploadPartCopy'],
    ['PUT /b/k?tagging x-amz-copy-source', 'PutObjectTagging'],
    ['GET /b/k?versionId=v&partNumber=1', 'GetObject'],
    ['DELETE /b?force_delete=false', 'DeleteBucket'],
    ['DELETE /b?force_delete=true', 'ForceDeleteBucket'],
    ['GET /b?analytics', 'ListBucketAnalyticsConfigurations'],
    ['GET /b?analytics&id=1', 'GetBucketAnalyticsConfiguration'],
    ['POST /WriteGetObjectResponse x-amz-request-route', 'WriteGetObjectResponse'],
    ['OPTIONS /b/k?uploadId=u&partNumber=1&acl', 'Preflight'],
  ])('%s: %s', (line, name) => {
    expect(run(line)).toBe(name);
  });

  test('independent of the order of the list', () => {
    expect(run('PUT /b/k?partNumber=1&uploadId=u x-amz-copy-source', all.toReversed())).toBe(
      'UploadPartCopy',
    );
  });
});

describe('parameters that no row accepts are refused', () => {
  test.each([
    ['PUT /b/k?torrent', '405 MethodNotAllowed GET'],
    ['GET /b/k?torrent', 'GetObjectTorrent'],
    ['DELETE /b?acl', '405 MethodNotAllowed GET, PUT'],
    ['GET /b/k?lifecycle', '400 InvalidArgument'],
    ['GET /?acl', '400 InvalidArgument'],
    ['PUT /b/k?versionId=v', '400 InvalidArgument'],
    ['PUT /b/k?uploadId=u', '400 InvalidArgument'],
    ['PUT /b/k?compose&partNumber=1&uploadId=u', '400 InvalidArgument'],
    ['GET /b?acl&policy', '400 InvalidArgument'],
    ['GET /b?uploads&versions', '400 InvalidArgument'],
    ['PUT /b?delete', '400 InvalidArgument'],
    ['HEAD /b/k?acl', '405 MethodNotAllowed GET, PUT'],
  ])('%s: %s', (line, answer) => {
    expect(run(line)).toBe(answer);
  });
});

test.each([
  ['PUT /', '405 MethodNotAllowed GET, POST'],
  ['PATCH /b', '405 MethodNotAllowed DELETE, GET, MOVE, POST, PUT'],
  ['POST /b/k', '405 MethodNotAllowed DELETE, GET, MOVE, OPTIONS, PUT'],
  ['PROPFIND /b/k', '405 MethodNotAllowed DELETE, GET, MOVE, OPTIONS, PUT'],
])('%s: no such method on this level', (line, answer) => {
  expect(run(line)).toBe(answer);
});

test('rows that match the same requests are refused when the matcher is made', () => {
  const on: Level = 'bucket';
  const clash = (one: MatchRow['match'], other: MatchRow['match']) => () =>
    createMatcher([
      { name: 'A', match: one },
      { name: 'B', match: other },
    ]);
  expect(clash({ method: 'GET', on }, { method: 'GET', on })).toThrow('A and B');
  expect(clash({ method: 'GET', on, header: 'a' }, { method: 'GET', on, header: 'b' })).toThrow('A and B');
  expect(clash({ method: 'GET', on, query: ['x'] }, { method: 'GET', on, query: ['y'] })).toThrow('A and B');
  expect(clash({ method: 'GET', on, query: ['acl'] }, { method: 'GET', on, query: ['cors'] })).not.toThrow();
  expect(clash({ method: 'GET', on, query: ['x=1'] }, { method: 'GET', on, query: ['x=2'] })).not.toThrow();
});
