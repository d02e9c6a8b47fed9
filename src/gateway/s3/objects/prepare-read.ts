// What GET and HEAD of an object have in common: find the version, judge the conditions, choose the bytes, and say all
// that the answer's head says. GET then opens the bytes; HEAD is done.

import { httpDate } from '../../../base/text/http-dates.ts';
import type { ByteRange } from '../../../objects/object-store.ts';
import type { AccessPair } from '../../../policy/authorize.ts';
import type { FoundVersion } from '../../../ports/metadata/versions.ts';
import { AppError } from '../../../types/errors.ts';
import { isPlainMd5 } from '../../../types/etag.ts';
import type { VersionRecord } from '../../../types/version.ts';
import type { OperationContext } from '../context.ts';
import type { OperationRequest, QueryParameters } from '../operation.ts';
import { parsePartNumber } from '../request/arguments.ts';
import { addChecksum, wantsChecksum } from '../request/checksum-headers.ts';
import {
  addCustomerKey,
  type CustomerKey,
  parseCustomerKey,
  requireObjectKey,
} from '../request/customer-key.ts';
import { expirationHeader } from '../request/lifecycle-headers.ts';
import { type AnswerHeaders, addObjectHeaders } from '../request/object-headers.ts';
import { addLock } from '../request/object-lock.ts';
import { contentRange, resolveRange } from '../request/ranges.ts';
import { isRangeStillWanted, judgeRead, type Validators } from '../request/read-conditions.ts';
import { addResponseOverrides, RESPONSE_PARAMETERS } from '../request/response-overrides.ts';
import { mayReadTags } from '../request/tagging.ts';
import { findVersion, parseVersionAddress, shownVersionId, type VersionAddress } from './find-version.ts';

export interface ReadInput extends VersionAddress {
  resource: string;
  partNumber?: number;
  wantsChecksum: boolean;
  customerKey: CustomerKey | undefined;
  query: QueryParameters;
  headers: Readonly<Record<string, string>>;
}

export interface PreparedRead {
  status: 200 | 206;
  headers: AnswerHeaders;
  found: FoundVersion;
  range: ByteRange;
}

/** Parameters of GET and HEAD beside those that select the operation. */
export const READ_PARAMETERS: readonly string[] = ['versionId', 'partNumber', ...RESPONSE_PARAMETERS];

export function parseRead(request: OperationRequest): ReadInput {
  const { query, headers } = request;
  const input: ReadInput = {
    ...parseVersionAddress(request),
    wantsChecksum: wantsChecksum(headers),
    customerKey: parseCustomerKey(request),
    query,
    headers,
  };
  const partNumber = query.get('partNumber');
  if (partNumber !== undefined) {
    input.partNumber = parsePartNumber(partNumber);
    if (headers.range !== undefined) {
      const message = 'Cannot specify both Range header and partNumber query parameter';
      throw new AppError('InvalidRequest', { message });
    }
  }
  return input;
}

export function readAccess({ resource, versionId }: ReadInput): readonly AccessPair[] {
  const action = versionId === undefined ? 's3:GetObject' : 's3:GetObjectVersion';
  return [[action, resource, undefined, { versionId }]];
}

/**
 * Throws NotModified and PreconditionFailed, all errors of `findVersion`, InvalidRange and InvalidPart; before them
 * InvalidRequest, because a caller without its key learns nothing about an object.
 */
export async function prepareRead(
  context: OperationContext,
  input: ReadInput,
  options: { includeBody: boolean },
): Promise<PreparedRead> {
  const { key, versionId, customerKey } = input;
  const found = await findVersion(context, { key, versionId, includeBody: options.includeBody });
  const { version } = found;
  requireObjectKey(context, version, customerKey);
  context.record.objectSizeBytes = version.sizeBytes;
  const headers: AnswerHeaders = {
    'Last-Modified': httpDate(version.modifiedAtMs),
    ETag: `"${version.etag}"`,
    'Accept-Ranges': 'bytes',
    'x-amz-version-id': shownVersionId(context.bucket().record.versioning, version.versionId),
  };
  addObjectHeaders(headers, context.objects.headersOf(version, customerKey?.secret));
  addCustomerKey(headers, customerKey);
  if (version.tags !== undefined && (await mayReadTags(context, input))) {
    headers['x-amz-tagging-count'] = version.tags.length;
  }
  const { protection } = version;
  if (protection !== undefined)
    await addLock(headers, context, { resource: input.resource, versionId, protection });
  if (versionId === undefined) headers['x-amz-expiration'] = expirationHeader(context, { ...version, key });
  requireConditions(input, { version, headers, nowMs: context.clock.wallMs() });
  addResponseOverrides(headers, {
    query: input.query,
    headers: input.headers,
    isSigned: context.caller.kind === 'account',
  });
  const range = await chooseBytes(context, input, { version, headers });
  if (range === undefined) {
    if (input.wantsChecksum) addChecksum(headers, version.checksum);
    return { status: 200, headers, found, range: { offsetBytes: 0, sizeBytes: version.sizeBytes } };
  }
  headers['Content-Range'] = contentRange(range, version.sizeBytes);
  return { status: 206, headers, found, range };
}

/** Throws NotModified and PreconditionFailed. `headers`: of the answer, which 304 repeats in part. */
export function requireConditions(
  input: Pick<ReadInput, 'headers'>,
  read: { version: Validators; headers: AnswerHeaders; nowMs: number },
): void {
  const { version, headers, nowMs } = read;
  const verdict = judgeRead(input.headers, version, nowMs);
  if (verdict.kind === 'met') return;
  if (verdict.kind === 'precondition-failed') {
    throw new AppError('PreconditionFailed', { fields: { Condition: verdict.condition } });
  }
  throw new AppError('NotModified', { headers: revalidationHeaders(headers) });
}

/** What a 304 repeats of the 200 (RFC 9110 15.4.5). */
function revalidationHeaders(headers: AnswerHeaders): Record<string, string> {
  const stored: Record<string, string> = {};
  for (const name of ['Last-Modified', 'ETag', 'Cache-Control', 'Expires', 'x-amz-version-id']) {
    if (headers[name] !== undefined) stored[name] = String(headers[name]);
  }
  return stored;
}

/** The part or range that is wanted; undefined: the whole. */
async function chooseBytes(
  context: OperationContext,
  input: ReadInput,
  read: { version: VersionRecord; headers: AnswerHeaders },
): Promise<ByteRange | undefined> {
  const { version } = read;
  if (input.partNumber !== undefined)
    return choosePart(context, input, { ...read, partNumber: input.partNumber });
  return chooseRange(input, version);
}

/** The range that is wanted; undefined: the whole. InvalidRange. */
export function chooseRange(
  input: Pick<ReadInput, 'headers'>,
  version: Validators & { sizeBytes: number },
): ByteRange | undefined {
  const header = input.headers.range;
  if (header === undefined || !isRangeStillWanted(input.headers['if-range'], version)) return undefined;
  const outcome = resolveRange(header, version.sizeBytes);
  if (outcome.kind === 'range') return outcome.range;
  if (outcome.kind === 'whole') return undefined;
  throw new AppError('InvalidRange', {
    fields: { RangeRequested: header, ActualObjectSize: version.sizeBytes },
    headers: { 'Content-Range': `bytes */${version.sizeBytes}` },
  });
}

/** s3-behaviour 31. A part shows its own checksum; beyond the last one is InvalidPart. */
async function choosePart(
  context: OperationContext,
  input: ReadInput,
  read: { version: VersionRecord; headers: AnswerHeaders; partNumber: number },
): Promise<ByteRange | undefined> {
  const { version, headers, partNumber } = read;
  const bucket = context.bucket();
  const part = await context.objects.partRange({ calls: context.metadata, bucket, version, partNumber });
  if (part === undefined) throw new AppError('InvalidPart', { fields: { PartNumber: partNumber } });
  const isMultipart = !isPlainMd5(version.etag);
  if (isMultipart) headers['x-amz-mp-parts-count'] = part.partCount;
  if (input.wantsChecksum && version.checksum !== undefined) {
    const value = isMultipart ? part.checksum : version.checksum.value;
    if (value !== undefined) addChecksum(headers, { ...version.checksum, value });
  }
  return version.sizeBytes === 0 ? undefined : part.range;
}
