// What clients of the names part do with buckets, each as an operation of the product does it, and the answers that they
// get.

import { createBucket } from '../../src/gateway/s3/buckets/create-bucket.ts';
import { deleteBucket } from '../../src/gateway/s3/buckets/delete-bucket.ts';
import { presentBucket } from '../../src/gateway/s3/buckets/present-bucket.ts';
import type { OperationContext, ResolvedBucket } from '../../src/gateway/s3/context.ts';
import { forceDeleteBucket } from '../../src/gateway/s3/extensions/force-delete-bucket.ts';
import type { MetadataCalls } from '../../src/objects/object-store.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../../src/ports/metadata/port.ts';
import { AppError } from '../../src/types/errors.ts';
import type { AccountId, BucketId, BucketName, ObjectKey } from '../../src/types/names.ts';
import type { AccountRecord } from '../../src/types/records/rows.ts';
import { openObjects, type ProductGateway } from './product-gateway.ts';
import type { Ground } from './sites.ts';

const CONTENT = Buffer.from('so that it is not empty');
const never = () => new AbortController().signal;

export type Change =
  | { kind: 'create' | 'delete' | 'force-delete' | 'read'; name: BucketName }
  | { kind: 'rename'; name: BucketName; to: BucketName };

export type Answer =
  | { kind: 'led'; name: BucketName; bucketId: BucketId | undefined }
  | { kind: 'created' | 'taken' | 'under-way' | 'too-many' }
  | { kind: 'deleted'; bucketId: BucketId }
  | { kind: 'renamed'; bucketId: BucketId }
  /** Says nothing about names. */
  | { kind: 'nothing' };

export async function perform(
  gateway: ProductGateway,
  metadata: MetadataPort,
  { change, owner }: { change: Change; owner: AccountId },
): Promise<Answer> {
  const calls = gateway.calls(metadata);
  try {
    switch (change.kind) {
      case 'create':
        await createBucket.run(contextOf(gateway, calls, { owner }), targetOf(change.name), NO_DOCUMENT);
        return { kind: 'created' };
      case 'delete':
      case 'force-delete':
        return await remove(gateway, calls, { change, owner });
      case 'rename':
        return await rename(gateway, calls, change);
      case 'read':
        return await read(gateway, calls, change.name);
    }
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    if (error.code === 'BucketAlreadyExists') return { kind: 'taken' };
    if (error.code === 'TooManyBuckets') return { kind: 'too-many' };
    if (error.code === 'OperationAborted' && change.kind === 'create') return { kind: 'under-way' };
    if (error.code === 'NoSuchBucket') return { kind: 'led', name: change.name, bucketId: undefined };
    throw error;
  }
}

async function remove(
  gateway: ProductGateway,
  calls: MetadataCalls,
  { change, owner }: { change: Change; owner: AccountId },
): Promise<Answer> {
  const { name } = change;
  const found = await gateway.buckets.find(name);
  if (found === undefined) return { kind: 'led', name, bucketId: undefined };
  const context = contextOf(gateway, calls, { owner, bucket: found.bucket });
  const operation = change.kind === 'delete' ? deleteBucket : forceDeleteBucket;
  await operation.run(context, targetOf(name), NO_DOCUMENT);
  return { kind: 'deleted', bucketId: found.bucket.record.bucketId };
}

/** R43, by the row that the gateway has, which may be of an earlier rename. */
async function rename(
  gateway: ProductGateway,
  calls: MetadataCalls,
  { name: from, to }: Change & { kind: 'rename' },
): Promise<Answer> {
  const found = await gateway.buckets.find(from);
  if (found === undefined) return { kind: 'led', name: from, bucketId: undefined };
  const { record, homeShard } = found.bucket;
  const { bucketId, nameEpoch } = record;
  const names = { bucketId, from, to };
  const system = { shard: SYSTEM_SHARD };
  const { value: begun } = await calls.execute(system, 'begin-rename', { ...names, nameEpoch });
  if (begun.kind === 'taken' || begun.kind === 'owned-already') return { kind: 'taken' };
  if (begun.kind === 'in-progress') return { kind: 'under-way' };
  if (begun.kind !== 'begun') {
    gateway.buckets.forget(from);
    return { kind: 'nothing' };
  }
  const { itemId } = begun;
  const command = { ...names, nameEpoch: begun.nameEpoch };
  const { value: decided } = await calls.execute({ shard: homeShard }, 'rename-bucket', command);
  const verdict = decided.kind;
  await calls.execute(system, 'end-rename', { ...names, itemId, verdict });
  gateway.buckets.forget(from);
  return verdict === 'renamed' ? { kind: 'renamed', bucketId } : { kind: 'nothing' };
}

/** As HeadBucket does: by the cache, and asked of the home, which says when it is out of date (R45). */
async function read(gateway: ProductGateway, calls: MetadataCalls, name: BucketName): Promise<Answer> {
  const found = await gateway.buckets.find(name);
  if (found === undefined) return { kind: 'led', name, bucketId: undefined };
  const owner = found.bucket.record.owner;
  const { bucketId } = await presentBucket(contextOf(gateway, calls, { owner, bucket: found.bucket }));
  return { kind: 'led', name, bucketId };
}

/** Puts something into a bucket, if there is one of that name. */
export async function fill(
  gateway: ProductGateway,
  { name, owner, ground }: { name: BucketName; owner: AccountId; ground: Ground },
): Promise<void> {
  const found = await gateway.buckets.find(name);
  if (found === undefined) return;
  const objects = openObjects(gateway, { ground, onReleased: () => undefined, isInline: true });
  await objects.putObject({
    calls: gateway.calls(),
    bucket: found.bucket,
    key: 'content' as ObjectKey,
    owner,
    signal: never(),
    headers: { userMetadata: {} },
    body: {
      stream: once(CONTENT),
      sizeBytes: CONTENT.length,
      awaitsContinue: true,
      trailerChecksum: () => undefined,
    },
  });
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield Buffer.from(bytes);
}

/** What the operations parse from a request is sealed within them. */
function targetOf(name: BucketName): never {
  return { name, resource: `arn:aws:s3:::${name}` } as never;
}

const NO_DOCUMENT = undefined as never;

/** Of an operation, what these use. */
function contextOf(
  gateway: ProductGateway,
  calls: MetadataCalls,
  { owner, bucket }: { owner: AccountId; bucket?: ResolvedBucket },
): OperationContext {
  return {
    metadata: calls,
    account: () => ({ accountId: owner }) as AccountRecord,
    bucket: () => bucket as ResolvedBucket,
    signal: never,
    // No right goes while it works.
    requireStill: async () => {},
    forgetBucket: (name: string) => gateway.buckets.forget(name),
  } as unknown as OperationContext;
}
