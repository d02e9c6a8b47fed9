import { expect, test } from 'vitest';
import { AppError } from '../../../types/errors.ts';
import { screenHeaders } from './screen-headers.ts';

const PUT = { method: 'PUT', on: 'object' } as const;
const GET = { method: 'GET', on: 'object' } as const;
const DELETE = { method: 'DELETE', on: 'object' } as const;
const CREATE = { method: 'PUT', on: 'bucket' } as const;
const MOVE = { method: 'MOVE', on: 'object' } as const;
const RENAME = { method: 'MOVE', on: 'bucket' } as const;
const COMPOSE = { method: 'PUT', on: 'object', query: ['compose'] } as const;
const FORCE = { method: 'DELETE', on: 'bucket', query: ['force_delete=true'] } as const;

function answer(match: Parameters<typeof screenHeaders>[0]['match'], name: string, value: string): string {
  try {
    screenHeaders({ match }, { host: 'h', [name]: value });
  } catch (error) {
    if (error instanceof AppError) return `${error.status} ${error.code} ${error.fields.Header}`;
    throw error;
  }
  return 'passes';
}

test.each([
  [PUT, 'if-match', '"x"'],
  [PUT, 'if-none-match', '*'],
  [DELETE, 'if-match', '"x"'],
  [DELETE, 'x-amz-if-match-size', '1'],
  [PUT, 'x-amz-copy-source-if-none-match', '"x"'],
  [PUT, 'x-amz-write-offset-bytes', '0'],
  [PUT, 'x-amz-server-side-encryption', 'aws:kms'],
  [PUT, 'x-amz-server-side-encryption-aws-kms-key-id', 'k'],
  [PUT, 'x-amz-server-side-encryption-customer-hint', 'k'],
  [PUT, 'x-amz-object-lock-mode', 'GOVERNANCE'],
  [CREATE, 'x-amz-bucket-object-lock-enabled', 'true'],
  [DELETE, 'x-amz-bypass-governance-retention', 'true'],
  [PUT, 'x-amz-acl', 'public-read'],
  [CREATE, 'x-amz-acl', 'nonsense'],
  [CREATE, 'x-amz-grant-read', 'id=1'],
  [CREATE, 'x-amz-object-ownership', 'BucketOwnerPreferred'],
  [PUT, 'x-amz-checksum-xxhash64', 'AAAA'],
  [MOVE, 'x-amz-rename-source-if-match', '"x"'],
  [MOVE, 'x-amz-rename-source-if-modified-since', 'x'],
  [MOVE, 'x-amz-rename-source', '/b/k'],
  [MOVE, 'x-amz-client-token', 't'],
  [MOVE, 'x-amz-copy-source-if-match', '"x"'],
  [MOVE, 'x-amz-write-offset-bytes', '0'],
  [MOVE, 'x-amz-if-match-size', '1'],
  [MOVE, 'if-unmodified-since', 'x'],
  [MOVE, 'x-svc-source-if-match', '"x"'],
  [MOVE, 'x-svc-if-unmodified-since', 'x'],
  [RENAME, 'if-modified-since', 'x'],
  [RENAME, 'x-amz-rename-source-if-none-match', '*'],
  [COMPOSE, 'x-svc-destination-if-match', '"x"'],
  [FORCE, 'if-match', '"x"'],
  [FORCE, 'x-svc-idempotency-token', 't'],
  [DELETE, 'x-svc-idempotency-token', 't'],
  [CREATE, 'x-svc-anything', '1'],
] as const)('%j: %s %s is NotImplemented', (match, name, value) => {
  expect(answer(match, name, value)).toBe(`501 NotImplemented ${name}`);
});

test('an unknown storage class is named as such', () => {
  expect(answer(PUT, 'x-amz-storage-class', 'COLD')).toBe('400 InvalidStorageClass x-amz-storage-class');
});

test.each([
  [GET, 'if-match', '"x"'],
  [GET, 'x-svc-anything', '1'],
  [PUT, 'x-amz-client-token', 't'],
  [CREATE, 'if-match', '"x"'],
  [GET, 'if-none-match', '*'],
  [PUT, 'x-amz-acl', 'private'],
  [CREATE, 'x-amz-object-ownership', 'ObjectWriter'],
  [PUT, 'x-amz-storage-class', 'STANDARD'],
  [PUT, 'x-amz-storage-class', 'GLACIER'],
  [PUT, 'x-amz-server-side-encryption', 'AES256'],
  [PUT, 'x-amz-server-side-encryption-customer-algorithm', 'AES256'],
  [GET, 'x-amz-server-side-encryption-customer-key', 'k'],
  [PUT, 'x-amz-copy-source-server-side-encryption-customer-key-md5', 'k'],
  // Nothing of it is opened by a key, and AWS takes no notice.
  [DELETE, 'x-amz-server-side-encryption-customer-key', 'k'],
  [PUT, 'x-amz-website-redirect-location', '/x'],
  [CREATE, 'x-amz-bucket-object-lock-enabled', 'false'],
  [PUT, 'x-amz-checksum-crc64nvme', 'AAAA'],
  [GET, 'x-amz-checksum-mode', 'ENABLED'],
  [PUT, 'x-amz-meta-if-match', 'x'],
  [PUT, 'if-range', 'x'],
] as const)('%j: %s %s passes', (match, name, value) => {
  expect(answer(match, name, value)).toBe('passes');
});

test('conditions that the operation decides pass, and no others', () => {
  const row = { match: PUT, conditions: ['if-match'] };
  expect(() => screenHeaders(row, { 'if-match': '"x"' })).not.toThrow();
  expect(() => screenHeaders(row, { 'if-none-match': '*' })).toThrow(AppError);
});

test('options that the operation names pass, and no others', () => {
  const row = { match: MOVE, options: ['x-svc-prefix'] };
  expect(() => screenHeaders(row, { 'x-svc-prefix': 'true' })).not.toThrow();
  expect(() => screenHeaders(row, { 'x-svc-prefixes': 'true' })).toThrow(AppError);
});
