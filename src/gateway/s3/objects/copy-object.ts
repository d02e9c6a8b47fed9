// PUT of an object from another one: a link to its data, whatever its size (service 4.2). The story goes on in
// objects/copy-object.ts.

import { isoSeconds } from '../../../base/text/http-dates.ts';
import { xmlText } from '../../../base/xml/write-xml.ts';
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { Tag } from '../../../types/tags.ts';
import type { ObjectHeaders, VersionRecord } from '../../../types/version.ts';
import type { OperationContext } from '../context.ts';
import { answerWhenDone } from '../extensions/answer-when-done.ts';
import { defineOperation, type OperationRequest, type OperationResult, objectArn } from '../operation.ts';
import { ACL_HEADERS, aclAccess, parseAclHeaders } from '../request/acl-headers.ts';
import { invalidArgument } from '../request/arguments.ts';
import { checksumXml, parseChecksumAlgorithm } from '../request/checksum-headers.ts';
import {
  COPY_CONDITION_HEADERS,
  parseCopyConditions,
  requireCopyConditions,
} from '../request/copy-conditions.ts';
import { copySourceValues, parseCopySource } from '../request/copy-source.ts';
import {
  customerKeyAnswer,
  parseCustomerKey,
  parseSourceKey,
  requireObjectKey,
} from '../request/customer-key.ts';
import { expirationHeader } from '../request/lifecycle-headers.ts';
import { parseObjectHeaders } from '../request/object-headers.ts';
import { admitLock, LOCK_HEADERS, lockAccess, parseLockHeaders } from '../request/object-lock.ts';
import { parseTaggingHeader, requireTaggingAccess, taggingAccess } from '../request/tagging.ts';
import { s3Document } from '../request/vendor.ts';
import {
  conditionAccess,
  parseWriteConditions,
  WRITE_CONDITION_HEADERS,
} from '../request/write-conditions.ts';
import { admitWriter, resolveAcl } from '../sharing/resolve-acl.ts';
import { requireJudged, shownVersionId } from './find-version.ts';
import { addressOf, copiedVersionHeader, type OpenCopySource, openCopySource } from './open-copy-source.ts';

type CopyInput = ReturnType<typeof parse>;

export const copyObject = defineOperation({
  name: 'CopyObject',
  match: { method: 'PUT', on: 'object', header: 'x-amz-copy-source' },
  logName: 'REST.COPY.OBJECT',
  body: 'none',
  // Where it is to have a checksum that the source has not.
  takesLong: true,
  conditions: [...WRITE_CONDITION_HEADERS, ...COPY_CONDITION_HEADERS],
  options: [...ACL_HEADERS, ...LOCK_HEADERS],
  errors: [
    'EncryptionNotAllowed',
    'InvalidArgument',
    'InvalidEncryptionAlgorithmError',
    'InvalidRequest',
    'InvalidTag',
    'MalformedACLError',
    'MetadataTooLarge',
    'NoSuchKey',
    'NoSuchVersion',
    'PreconditionFailed',
    'QuotaExceeded',
    'UnresolvableGrantByEmailAddress',
  ],
  differences:
    'Any size in one request: only metadata is written. A copy of a multipart object keeps its ETag `…-N` and its parts, where AWS makes a new ETag. Conditions on the target as for PutObject.',
  parse,
  access: ({ resource, tags, acl, lock, source, directive, conditions }) => [
    [
      's3:PutObject',
      resource,
      undefined,
      {
        givenTags: tags,
        values: {
          ...copySourceValues(source),
          ...(directive && { 's3:x-amz-metadata-directive': directive }),
        },
      },
    ],
    ...conditionAccess(resource, conditions),
    ...taggingAccess(resource, tags),
    ...aclAccess(resource, acl),
    ...lockAccess(resource, lock),
  ],
  run: (context, input) =>
    answerWhenDone(
      context,
      context.withMemory({ sizeBytes: LIMITS.sourceMemoryBytes }, () => copy(context, input)),
      customerKeyAnswer(input.customerKey),
    ),
});

function parse(request: OperationRequest) {
  const { bucket, key, headers } = request;
  return {
    key,
    resource: objectArn({ bucket, key }),
    source: parseCopySource(headers['x-amz-copy-source'] ?? ''),
    expectedOwner: headers['x-amz-source-expected-bucket-owner'],
    conditions: parseWriteConditions(headers),
    sourceConditions: parseCopyConditions(headers),
    directive: headers['x-amz-metadata-directive'],
    replacement: parseReplacement(headers),
    tags: parseReplacementTags(headers),
    acl: parseAclHeaders(headers),
    lock: parseLockHeaders(headers),
    checksumAlgorithm: parseChecksumAlgorithm(headers),
    customerKey: parseCustomerKey(request),
    sourceKey: parseSourceKey(request),
    // Naming a class or an encryption is a change to AWS, also when it is the one that the object has.
    namesStorage:
      headers['x-amz-storage-class'] !== undefined || headers['x-amz-server-side-encryption'] !== undefined,
  };
}

/** The new object's own headers, or undefined where it takes the source's. */
function parseReplacement(headers: OperationRequest['headers']): ObjectHeaders | undefined {
  return isReplaced(headers, 'metadata') ? parseObjectHeaders(headers) : undefined;
}

/** Likewise its own tags, which may be none. */
function parseReplacementTags(headers: OperationRequest['headers']): Tag[] | undefined {
  return isReplaced(headers, 'tagging') ? (parseTaggingHeader(headers) ?? []) : undefined;
}

function isReplaced(headers: OperationRequest['headers'], what: 'metadata' | 'tagging'): boolean {
  const name = `x-amz-${what}-directive`;
  const directive = headers[name] ?? 'COPY';
  if (directive === 'COPY' || directive === 'REPLACE') return directive === 'REPLACE';
  throw invalidArgument({ name, value: directive, message: `Unknown ${what} directive.` });
}

async function copy(context: OperationContext, input: CopyInput): Promise<OperationResult> {
  const { key, conditions, replacement, tags, checksumAlgorithm, customerKey, sourceKey } = input;
  const lock = await admitLock(context, input.lock);
  const source = await openCopySource(context, input.source, input.expectedOwner);
  let takenTags = tags;
  const requireFit = (version: VersionRecord) => {
    takenTags = tags ?? version.tags;
    requireJudged(context, addressOf(source), version);
    requireObjectKey(context, version, sourceKey);
    requireCopyConditions(input.sourceConditions, version, context.clock.wallMs());
  };
  requireFit(source.found.version);
  requireChange(context, input, source);
  if (tags === undefined) await requireTaggingAccess(context, input, source);
  const { versionId } = source;
  const owner = await admitWriter(context);
  const bucketOwner = context.bucket().record.owner;
  const written = await context.objects.copyObject({
    calls: context.metadata,
    source: {
      bucket: source.bucketRow,
      key: source.key,
      found: source.found,
      customerKey: sourceKey?.secret,
      requireFit,
      ...(versionId !== undefined && { versionId }),
    },
    bucket: context.bucket(),
    key,
    owner,
    acl: await resolveAcl(context, input.acl, { owner, bucketOwner }),
    lock,
    customerKey: customerKey?.secret,
    ...(replacement && { headers: replacement }),
    ...(tags && { tags }),
    ...(checksumAlgorithm && { checksumAlgorithm }),
    ...(conditions && { conditions }),
    signal: context.signal(),
  });
  const text = s3Document(
    'CopyObjectResult',
    xmlText('LastModified', isoSeconds(written.modifiedAtMs)),
    xmlText('ETag', `"${written.etag}"`),
    checksumXml(written.checksum),
  );
  return {
    status: 200,
    headers: {
      'x-amz-version-id': shownVersionId(written.versioning, written.versionId),
      ...copiedVersionHeader(source, written),
      'x-amz-expiration': expirationHeader(context, { key, tags: takenTags, ...written }),
      ...customerKeyAnswer(customerKey),
    },
    body: { kind: 'xml', text },
  };
}

/** A copy of the current version onto itself must change something, as AWS has it. */
function requireChange(context: OperationContext, input: CopyInput, source: OpenCopySource): void {
  const isSameObject =
    source.bucketRow.record.bucketId === context.bucket().record.bucketId &&
    source.key === input.key &&
    source.found.isLatest;
  const { checksumAlgorithm } = input;
  const changesChecksum =
    checksumAlgorithm !== undefined && checksumAlgorithm !== source.found.version.checksum?.algorithm;
  const namesKey = input.customerKey !== undefined || input.sourceKey !== undefined;
  if (!isSameObject || input.replacement !== undefined || input.namesStorage || namesKey || changesChecksum)
    return;
  throw new AppError('InvalidRequest', {
    message:
      "This copy request is illegal because it is trying to copy an object to itself without changing the object's metadata, storage class, website redirect location or encryption attributes.",
  });
}
