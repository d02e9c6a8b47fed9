// PUT ?compose: an object of the data of others, in the same bucket (service 4.2). The story goes on in
// objects/compose-object.ts.

import { must } from '../../../base/assert.ts';
import { composedAnswer } from '../../../objects/composition-rules.ts';
import type { CopyFrom, Written } from '../../../objects/object-store.ts';
import { MemoryTooSmall } from '../../../objects/object-store.ts';
import type { AccessPair } from '../../../policy/authorize.ts';
import type { IdempotencyToken } from '../../../ports/metadata/jobs.ts';
import type { ComposedVersion } from '../../../ports/metadata/versions.ts';
import { AppError } from '../../../types/errors.ts';
import { LIMITS } from '../../../types/limits.ts';
import type { BucketName, ObjectKey } from '../../../types/names.ts';
import { checkWriteConditions } from '../../../types/preconditions.ts';
import type { VersionLock } from '../../../types/protection.ts';
import type { VersionRecord } from '../../../types/version.ts';
import type { OperationContext } from '../context.ts';
import { findComponents, requireJudged } from '../objects/find-version.ts';
import { madeExpiration } from '../objects/made-expiration.ts';
import { defineOperation, type OperationResult, objectArn } from '../operation.ts';
import { copySourceValues } from '../request/copy-source.ts';
import { idempotencyToken, parseTokenHeader, TOKEN_HEADER } from '../request/idempotency-token.ts';
import { parseUserMetadata } from '../request/object-headers.ts';
import { admitLock, LOCK_HEADERS, lockAccess, parseLockHeaders } from '../request/object-lock.ts';
import { parseTaggingHeader, taggingAccess } from '../request/tagging.ts';
import {
  conditionAccess,
  parseWriteConditions,
  WRITE_CONDITION_HEADERS,
} from '../request/write-conditions.ts';
import { admitWriter } from '../sharing/resolve-acl.ts';
import { type Component, parseComposeBody } from '../xml/compose-body.ts';
import { composedAccess, composedHeaders, refuseCopySource, refuseCustomerKeys } from './composed-object.ts';

export const composeObject = defineOperation({
  name: 'ComposeObject',
  match: { method: 'PUT', on: 'object', query: ['compose'] },
  logName: 'REST.PUT.COMPOSE',
  body: 'xml',
  bodyBytesMax: LIMITS.composeBodyBytesMax,
  conditions: WRITE_CONDITION_HEADERS,
  options: [TOKEN_HEADER, ...LOCK_HEADERS],
  errors: [
    'BadDigest',
    'EncryptionNotAllowed',
    'EntityTooLarge',
    'IdempotencyParameterMismatch',
    'InvalidArgument',
    'InvalidRequest',
    'InvalidTag',
    'MalformedXML',
    'MetadataTooLarge',
    'NoSuchKey',
    'NoSuchVersion',
    'PreconditionFailed',
    'QuotaExceeded',
  ],
  differences:
    'Not of AWS: an object of the data of up to 32 others in the bucket, of which nothing is read or copied ([extensions.md](extensions.md#compose)).',
  parse: ({ bucket, key, headers }) => {
    refuseCustomerKeys(headers);
    refuseCopySource(headers);
    return {
      bucket,
      key,
      resource: objectArn({ bucket, key }),
      userMetadata: parseUserMetadata(headers),
      tags: parseTaggingHeader(headers),
      lock: parseLockHeaders(headers),
      conditions: parseWriteConditions(headers),
      token: parseTokenHeader(headers),
    };
  },
  access: ({ resource, tags, lock, conditions }, bucket) => [
    ...composedAccess(resource, bucket, { isBeforeDocument: true }),
    ...conditionAccess(resource, conditions),
    ...taggingAccess(resource, tags),
    ...lockAccess(resource, lock),
  ],
  parseDocument: (xmlBody) => parseComposeBody(xmlBody),
  // The rule asks for s3:PutObject (service 4.2, compose rule 1): of a component, too, where it may not be read. Of the target it
  // is asked for each component, as for a copy of it.
  documentAccess: ({ bucket, resource, tags }, components) => [
    ...components.map((component) => readAccess(bucket, component, 'component')),
    ...components.flatMap(({ key, versionId, conditions }) =>
      conditionAccess(objectArn({ bucket, key }), conditions, versionId),
    ),
    ...sourcesOf(bucket, components).map((values): AccessPair => {
      return ['s3:PutObject', resource, undefined, { values, givenTags: tags }];
    }),
  ],
  async run(context, { bucket, key, resource, userMetadata, tags, conditions, token, ...input }, components) {
    const made = { bucket, key, resource, components };
    // Neither the order of headers nor that of tags means anything.
    const headers = [
      userMetadata && sortedByName(Object.entries(userMetadata)),
      tags && sortedByName(tags.map(({ key, value }) => [key, value])),
      ...(input.lock ? [input.lock] : []),
    ];
    const asked = idempotencyToken(token, ['ComposeObject', key, components, ...headers, conditions]);
    /** What became of the same request before, which may end while this one waits, or is why it fails. */
    const repeated = async () => asked && (await findStoredOutcome(context, asked));
    const compose = async (countedBytes: number, lock: VersionLock | undefined) =>
      (await repeated()) ??
      context.objects.composeObject({
        calls: context.metadata,
        components: await openAll(context, components),
        bucket: context.bucket(),
        key,
        owner: await admitWriter(context),
        ...(userMetadata && { userMetadata }),
        ...(tags && { tags }),
        lock,
        ...(conditions && { conditions }),
        token: asked,
        turn: context.turn,
        countedBytes,
      });
    const composeOnce = async () => {
      const stored = await repeated();
      if (stored !== undefined) return stored;
      const lock = await admitLock(context, input.lock);
      const sizeBytes = components.length * LIMITS.sourceMemoryBytes;
      return inMemory(context, sizeBytes, (countedBytes) => compose(countedBytes, lock));
    };
    const orStored = async (error: unknown) => {
      const stored = error instanceof AppError ? await repeated() : undefined;
      if (stored === undefined) throw error;
      return stored;
    };
    return answer(context, made, await composeOnce().catch(orStored));
  },
});

/** Counts more where that is too little. */
async function inMemory(
  context: OperationContext,
  sizeBytes: number,
  work: (countedBytes: number) => Promise<Written>,
): Promise<Written> {
  try {
    return await context.withMemory({ sizeBytes, isWithin: true }, () => work(sizeBytes));
  } catch (error) {
    // Who waits for more holds nothing: else all who compose might wait for each other.
    if (!(error instanceof MemoryTooSmall)) throw error;
    return inMemory(context, error.neededBytes, work);
  }
}

/** Each once. */
function sourcesOf(bucket: BucketName, components: readonly Component[]) {
  const values = components.map(({ key, versionId }) =>
    copySourceValues({ bucket, key, ...(versionId !== undefined && { versionId }) }),
  );
  return [...new Map(values.map((each) => [Object.values(each)[0], each])).values()];
}

function readAccess(bucket: BucketName, { key, versionId }: Component, rule?: 'component'): AccessPair {
  const action = versionId === undefined ? 's3:GetObject' : 's3:GetObjectVersion';
  return [action, objectArn({ bucket, key }), rule, { versionId }];
}

interface Made {
  bucket: BucketName;
  key: ObjectKey;
  resource: string;
  components: readonly Component[];
}

/** ETag and checksum tell what the components are: who may read neither these nor what was made of them is not told. */
async function answer(
  context: OperationContext,
  { bucket, key, resource, components }: Made,
  written: Written,
): Promise<OperationResult> {
  context.record.objectSizeBytes = written.sizeBytes;
  const { ETag, 'x-amz-version-id': versionId, ...checksum } = composedHeaders(written);
  const mayRead = (pairs: readonly AccessPair[]) => context.mayAlso(pairs, context.bucket());
  const isTold =
    (await mayRead([['s3:GetObject', resource]])) ||
    (await mayRead(components.map((component) => readAccess(bucket, component))));
  const ofWhole = isTold && {
    ETag,
    ...checksum,
    'x-amz-expiration': await madeExpiration(context, { key, versionId: written.versionId }),
  };
  return { status: 200, headers: { 'x-amz-version-id': versionId, ...ofWhole } };
}

/**
 * The answer of the same request before: looked for before the components, which may have gone since, or have grown, as a
 * target that is one of them has. IdempotencyParameterMismatch.
 */
async function findStoredOutcome(
  context: OperationContext,
  token: IdempotencyToken,
): Promise<Written | undefined> {
  const { believed, homeShard } = context.bucket();
  const target = { shard: homeShard, bucket: believed };
  const { bucketId } = believed;
  const { value } = await context.metadata.query(target, 'get-kept-outcome', { bucketId, token });
  if (value.kind === 'none') return undefined;
  if (value.kind === 'token-reused') throw new AppError('IdempotencyParameterMismatch');
  return composedAnswer(value.outcome as ComposedVersion);
}

/** NoSuchKey, NoSuchVersion, InvalidRequest for a delete marker, PreconditionFailed. */
async function openAll(context: OperationContext, components: readonly Component[]): Promise<CopyFrom[]> {
  const versions = await findComponents(context, components);
  const bucket = context.bucket();
  return versions.map((found, at) => {
    const component = must(components[at], 'a version for each');
    const { key, versionId } = component;
    const requireFit = (version: VersionRecord) => {
      requireJudged(context, { bucketId: bucket.record.bucketId, key, versionId }, version);
      requireConditions(component, version);
    };
    requireFit(found.version);
    return { bucket, key, found, requireFit, ...(versionId !== undefined && { versionId }) };
  });
}

function requireConditions({ key, conditions }: Component, version: VersionRecord): void {
  const refusal = checkWriteConditions(version, conditions);
  if (refusal === undefined) return;
  const condition = refusal.kind === 'precondition-failed' ? refusal.condition : 'If-Match';
  throw new AppError('PreconditionFailed', { fields: { Condition: condition, Key: key } });
}

function sortedByName(pairs: [name: string, value: string][]): [name: string, value: string][] {
  return pairs.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
}
