// GetObjectCompliance: what keeps an object in effect, and the SHA-256 that proves its bytes (extensions 2.6). The digest was
// kept when the object was put, if its request had one; else the first who asks has it computed, and it is kept from then on.
import { createHash } from 'node:crypto';
import { AppError } from '../../../types/errors.ts';
import { isPlainMd5 } from '../../../types/etag.ts';
import type { ObjectKey } from '../../../types/names.ts';
import { type BucketCompliance, complianceEndMs } from '../../../types/retention.ts';
import { dataLinkId, isComposed, type VersionRecord } from '../../../types/version.ts';
import { presentBucket } from '../buckets/present-bucket.ts';
import type { OperationContext } from '../context.ts';
import { answerWhenDone } from '../extensions/answer-when-done.ts';
import { findVersion, parseVersionAddress, shownVersionId } from '../objects/find-version.ts';
import { defineOperation, type OperationResult } from '../operation.ts';
import { type CustomerKey, parseCustomerKey, requireObjectKey } from '../request/customer-key.ts';
import { noCompliance, objectComplianceDocument } from './compliance-xml.ts';

export const getObjectCompliance = defineOperation({
  name: 'GetObjectCompliance',
  match: { method: 'GET', on: 'object', query: ['compliance'] },
  logName: 'REST.GET.COMPLIANCE',
  body: 'none',
  decidesInRun: true,
  parameters: ['versionId'],
  errors: [
    'InvalidArgument',
    'InvalidEncryptionAlgorithmError',
    'InvalidRequest',
    'MethodNotAllowed',
    'NoSuchComplianceConfiguration',
    'NoSuchKey',
    'NoSuchVersion',
  ],
  differences:
    'Not in S3: the compliance settings of an object, and its SHA-256. An answer that takes long begins with 200 and white space; then an error is its body.',
  parse: (request) => ({ ...parseVersionAddress(request), customerKey: parseCustomerKey(request) }),
  access: ({ resource, versionId }) => [['s3:GetObjectCompliance', resource, undefined, { versionId }]],
  async run(context, { key, versionId, customerKey }) {
    const settings = await requireCompliance(context);
    const { version, isLatest } = await findVersion(context, { key, versionId, includeBody: false });
    if (customerKey !== undefined) requireObjectKey(context, version, customerKey);
    context.record.objectSizeBytes = version.sizeBytes;
    const headers = {
      'x-amz-version-id': shownVersionId(context.bucket().record.versioning, version.versionId),
    };
    const answer = (sha256: string | undefined): OperationResult => ({
      status: 200,
      headers,
      body: { kind: 'xml', text: documentOf(version, settings, sha256) },
    });
    if (!mayBeDigested(version, customerKey)) return answer(undefined);
    const kept = version.protection?.compliance?.sha256;
    if (kept !== undefined) return answer(kept);
    const end = context.beginDigest();
    const work = digest(context, { key, version, isLatest, customerKey }).finally(end).then(answer);
    return answerWhenDone(context, work, headers);
  },
});

/** NoSuchComplianceConfiguration. A cached bucket refuses nobody. */
async function requireCompliance(context: OperationContext): Promise<BucketCompliance> {
  const cached = context.bucket().record.compliance;
  if (cached?.isEnabled) return cached;
  const { compliance, name } = await presentBucket(context);
  if (compliance?.isEnabled) return compliance;
  throw noCompliance(name);
}

function documentOf(version: VersionRecord, settings: BucketCompliance, sha256: string | undefined): string {
  const {
    conditionalHold,
    holdReleasedAtMs,
    retainUntilMs,
    legalHold = false,
  } = version.protection?.compliance ?? {};
  const isHeld = conditionalHold === true && holdReleasedAtMs === undefined;
  return objectComplianceDocument({
    // The days of the bucket have not begun under a hold: only what was put for the object itself is known.
    retainUntilMs: isHeld ? retainUntilMs : complianceEndMs(version, settings),
    isHeld,
    legalHold,
    sha256,
  });
}

/** Only what came in one PUT, and copies of it; what is under a customer's key only for who has the key. */
function mayBeDigested(version: VersionRecord, customerKey: CustomerKey | undefined): boolean {
  const isOnePiece = isPlainMd5(version.etag) && !isComposed(version);
  return isOnePiece && (version.kek?.by !== 'customer' || customerKey !== undefined);
}

interface Digested {
  key: ObjectKey;
  version: VersionRecord;
  isLatest: boolean;
  customerKey: CustomerKey | undefined;
}

/** Reads the object as a GET does, one piece after the other. Rejects as that. */
async function digest(context: OperationContext, digested: Digested): Promise<string> {
  const { key, version, isLatest, customerKey } = digested;
  const body = await context.objects.openObject({
    calls: context.metadata,
    bucket: context.bucket(),
    key,
    found: { kind: 'found', version, isLatest },
    customerKey: customerKey?.secret,
    range: { offsetBytes: 0, sizeBytes: version.sizeBytes },
    signal: context.signal(),
  });
  const hash = createHash('sha256');
  if (body.kind === 'bytes') hash.update(body.bytes);
  else
    for await (const buffer of body.stream) {
      // Nobody waits for it any more.
      context.signal().throwIfAborted();
      await context.turn();
      hash.update(buffer);
    }
  const sha256 = hash.digest('hex');
  await keep(context, { key, version, sha256 });
  return sha256;
}

/** Where it cannot be kept, because the version has gone or its shard does not take it now, it is computed again another time. */
async function keep(
  context: OperationContext,
  { key, version, sha256 }: Pick<Digested, 'key' | 'version'> & { sha256: string },
): Promise<void> {
  const { homeShard, believed } = context.bucket();
  const { versionId, order, manifest } = version;
  const of = { versionId, order, dataLinkId: dataLinkId(manifest) };
  try {
    await context.metadata.execute({ shard: homeShard, bucket: believed }, 'set-protection', {
      bucketId: believed.bucketId,
      key,
      versionId,
      change: { kind: 'sha256', sha256, of },
    });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
  }
}
