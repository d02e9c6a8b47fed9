// Runs behind all other tests: every operation has been seen to succeed, and to end with each error that its row lists
// (style 3); none ended with an error that neither its row nor the pipeline knows; and every error of the catalogue was
// the answer to some request.
import { expect, test } from 'vitest';
import { OPERATIONS } from '../../src/gateway/s3/registry.ts';
import { ERRORS, type ErrorCode } from '../../src/types/errors.ts';
import { ANYTHING, readCoverage, SUCCESS } from '../support/run/operation-coverage.ts';

/** What any operation may end with before it runs, or because the service cannot go on. */
const PIPELINE_ERRORS: readonly ErrorCode[] = [
  'AccessDenied',
  'AccountProblem',
  'AuthenticationLockout',
  'AuthorizationHeaderMalformed',
  'AuthorizationQueryParametersError',
  'BadRequest',
  'ExpiredToken',
  'IncompleteBody',
  'InsufficientStorage',
  'InvalidAccessKeyId',
  'InvalidArgument',
  'InvalidBucketName',
  'InvalidChunkSizeError',
  'InvalidDigest',
  'InvalidRequest',
  'InvalidStorageClass',
  'InvalidToken',
  'InvalidURI',
  'KeyTooLongError',
  'MalformedTrailerError',
  'MaxMessageLengthExceeded',
  'MethodNotAllowed',
  'MissingContentLength',
  'NoSuchBucket',
  'NotImplemented',
  'RequestHeaderSectionTooLarge',
  'RequestTimeTooSkewed',
  'RequestTimeout',
  'ServiceUnavailable',
  'SignatureDoesNotMatch',
  'SlowDown',
  'XAmzContentSHA256Mismatch',
];

const coverage = await readCoverage();

test.each(OPERATIONS.map((row) => [row.name, row] as const))('%s', (name, row) => {
  const seen = coverage.get(name) ?? new Set();
  const listed = row.neverSucceeds === true ? row.errors : [SUCCESS, ...row.errors];
  expect(
    listed.filter((outcome) => !seen.has(outcome)),
    'listed, and never seen',
  ).toEqual([]);
  const known = new Set<string>([...listed, ...PIPELINE_ERRORS]);
  expect(
    [...seen].filter((outcome) => !known.has(outcome)),
    'seen, and not listed',
  ).toEqual([]);
});

test('every error of the catalogue', () => {
  const seen = coverage.get(ANYTHING) ?? new Set();
  expect(
    Object.keys(ERRORS).filter((code) => !seen.has(code)),
    'no request was answered so',
  ).toEqual([]);
});
