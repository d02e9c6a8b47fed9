// What ComposeObject and AppendObject have in common on the wire: whose keys they refuse, whom they ask, what they answer.

import type { Written } from '../../../objects/object-store.ts';
import type { AccessPair, PairOptions } from '../../../policy/authorize.ts';
import type { ContextValue } from '../../../policy/patterns.ts';
import { AppError } from '../../../types/errors.ts';
import type { BucketRecord } from '../../../types/records/rows.ts';
import { writesNullVersion } from '../../../types/versioning.ts';
import { shownVersionId } from '../objects/find-version.ts';
import { invalidArgument } from '../request/arguments.ts';
import { addChecksum } from '../request/checksum-headers.ts';
import { CUSTOMER_KEY_HEADERS } from '../request/customer-key.ts';
import type { AnswerHeaders } from '../request/object-headers.ts';

const COPY_SOURCE = 'x-amz-copy-source';

/** EncryptionNotAllowed where the request brings a customer's key (service 4.2, compose rule 5). */
export function refuseCustomerKeys(headers: Readonly<Record<string, string>>): void {
  if (CUSTOMER_KEY_HEADERS.some((name) => headers[name] !== undefined))
    throw new AppError('EncryptionNotAllowed');
}

/** InvalidArgument for the source of a copy: passed over, it would be other data than was asked for. */
export function refuseCopySource(headers: Readonly<Record<string, string>>): void {
  const { [COPY_SOURCE]: value } = headers;
  if (value === undefined) return;
  const message = 'A composition or an append has no copy source.';
  throw invalidArgument({ name: COPY_SOURCE, value, message });
}

/**
 * Of what leaves the object's list and its encryption as they are: a condition on such a header would be met by one that nothing is
 * done with (x-amz-acl: private and, of a MOVE, a customer's key are passed over; all others are refused).
 */
export const NOT_APPLIED: Readonly<Record<string, ContextValue>> = {
  's3:x-amz-acl': [],
  's3:x-amz-server-side-encryption-customer-algorithm': [],
};

/**
 * s3:PutObject. Where no version is kept, the object that is there goes: who may not delete it is refused if a rule says
 * so, and needs no right of his own (service 4.2, append rule 3).
 */
export function composedAccess(
  resource: string,
  bucket: BucketRecord | undefined,
  options?: Pick<PairOptions, 'isBeforeDocument' | 'givenTags' | 'values'>,
): AccessPair[] {
  const pairs: AccessPair[] = [
    options ? ['s3:PutObject', resource, undefined, options] : ['s3:PutObject', resource],
  ];
  const mayReplace = bucket === undefined || writesNullVersion(bucket.versioning);
  if (mayReplace) pairs.push(['s3:DeleteObject', resource, 'unless-denied']);
  return pairs;
}

/** The same of an append, which takes neither a list nor tags. */
export function appendAccess(resource: string, bucket: BucketRecord | undefined): AccessPair[] {
  return composedAccess(resource, bucket, { values: NOT_APPLIED });
}

/** The head of an answer that has no body. */
export function composedHeaders(written: Written): AnswerHeaders {
  const answer: AnswerHeaders = {
    ETag: `"${written.etag}"`,
    'x-amz-version-id': shownVersionId(written.versioning, written.versionId),
  };
  addChecksum(answer, written.checksum);
  return answer;
}
