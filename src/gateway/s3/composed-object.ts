// What ComposeObject and AppendObject have in common on the wire: whose keys they refuse, whom they ask, what they answer.
import { AppError } from '../../model/errors.ts';
import type { BucketRecord } from '../../model/records/rows.ts';
import { writesNullVersion } from '../../model/versioning.ts';
import type { Written } from '../../objects/object-store.ts';
import type { AccessPair } from './caller.ts';
import { addChecksum } from './checksum-headers.ts';
import { CUSTOMER_KEY_HEADERS } from './customer-key.ts';
import { shownVersionId } from './find-version.ts';
import type { AnswerHeaders } from './object-headers.ts';

/** EncryptionNotAllowed where the request brings a customer's key (service.txt 4.2, compose rule 5). */
export function refuseCustomerKeys(headers: Readonly<Record<string, string>>): void {
  if (CUSTOMER_KEY_HEADERS.some((name) => headers[name] !== undefined))
    throw new AppError('EncryptionNotAllowed');
}

/**
 * s3:PutObject. Where no version is kept, the object that is there goes: who may not delete it is refused if a rule says
 * so, and needs no right of his own (service.txt 4.2, append rule 3).
 */
export function composedAccess(resource: string, bucket: BucketRecord | undefined): AccessPair[] {
  const pairs: AccessPair[] = [['s3:PutObject', resource]];
  const mayReplace = bucket === undefined || writesNullVersion(bucket.versioning);
  if (mayReplace) pairs.push(['s3:DeleteObject', resource, 'not-denied']);
  return pairs;
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
