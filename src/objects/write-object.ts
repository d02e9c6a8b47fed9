// THE PUT STORY: refuse what must fail, take in the body (split, digest, seal, store: write-body.ts), verify what the
// client declared, commit; else abandon. The data is written first and the pointer to it last, in one entry, so no reader
// ever sees a part.

import type { GrantRefusal } from '../ports/metadata/blobs.ts';
import type { CommandOf, OutcomeOf } from '../ports/metadata/port.ts';
import type { QuotaRefusal } from '../ports/metadata/quotas.ts';
import type { ChecksumAlgorithm } from '../types/checksums.ts';
import { blockedRemoval } from '../types/delete-blocker.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import { packOriginals } from '../types/originals.ts';
import { checkWriteConditions } from '../types/preconditions.ts';
import { overQuotaError } from '../types/quota.ts';
import type { UploadRecord } from '../types/records/rows.ts';
import type { WrappedKek } from '../types/version.ts';
import type { DataPath } from './data-path.ts';
import { checksumOf, declaredAlgorithm, md5Hex, sha256Hex, verifyDigests, wantedDigests } from './digests.ts';
import { wasNotEvaluated } from './metadata-calls.ts';
import type { BodySource, ObjectStore, PartTarget, PutObject, Written, WrittenPart } from './object-store.ts';
import { type WrittenBody, writeBody } from './write-body.ts';

/** Writes a body as the next version of a key. */
export async function putObject(path: DataPath, input: PutObject): Promise<Written> {
  const { bucket, key, body, conditions } = input;
  const shard = bucket.homeShard;
  if (conditions !== undefined && body.awaitsContinue) await refuseEarly(input, conditions);
  await requireRoom(input, { bucketId: bucket.believed.bucketId, key, sizeBytes: body.sizeBytes });
  const algorithm = declaredAlgorithm(body);
  const { kek, wrapped } = path.keys.newKek(input.customerKey);
  const storing = { shard, kek, body, storedAlgorithm: algorithm };
  return takeIn(path, input, storing, (written) =>
    commitPut(path, input, { written, kek, wrapped, algorithm }),
  );
}

async function commitPut(
  path: DataPath,
  input: PutObject,
  of: {
    written: WrittenBody;
    kek: Uint8Array;
    wrapped: WrappedKek;
    algorithm: ChecksumAlgorithm | undefined;
  },
): Promise<Written> {
  const { calls, bucket, key, owner, headers, tags, acl, lock, conditions, event } = input;
  const { written, kek, wrapped, algorithm } = of;
  const shard = bucket.homeShard;
  const etag = md5Hex(written);
  const { sizeBytes } = written;
  const checksum = algorithm && {
    algorithm,
    type: 'FULL_OBJECT' as const,
    value: checksumOf(written, algorithm),
  };
  // The shard keeps it where the bucket is protected by compliance, which it alone knows for sure.
  const sha256 = sha256Hex(written);
  const version = {
    sizeBytes,
    etag,
    owner,
    kek: wrapped,
    sealedHeaders: path.keys.sealHeaders(kek, headers),
    ...(tags && { tags }),
    ...(acl && { acl }),
    ...((lock || sha256) && { protection: { ...lock, ...(sha256 && { compliance: { sha256 } }) } }),
    originals: packOriginals({ sizeBytes, md5: etag }),
    manifest: { kind: 'direct' as const, parts: [], ...written.data },
    ...(checksum && { checksum }),
  };
  const reply = await sendCommit(written, () =>
    calls.execute({ shard, bucket: bucket.believed }, 'commit-version', {
      bucketId: bucket.believed.bucketId,
      key,
      version,
      data: { births: written.births, links: [] },
      ...(conditions && { conditions }),
      ...(event && { event }),
    }),
  );
  if (reply.value.kind !== 'committed') {
    await abandonRefused(written, reply.value);
    throw refusedCommit(reply.value, key);
  }
  const { versionId, versioning, modifiedAtMs } = reply.value;
  return { versionId, versioning, modifiedAtMs, etag, sizeBytes, ...(checksum && { checksum }) };
}

/**
 * Refuses before the body is requested. A body that comes without 100 Continue is read to its end: not every client reads
 * an answer before it has sent everything. Conditions that hold now are checked again by the commit (s3-behaviour 28).
 */
async function refuseEarly(
  { calls, bucket, key }: PutObject,
  conditions: NonNullable<PutObject['conditions']>,
): Promise<void> {
  const { value } = await calls.query({ shard: bucket.homeShard, bucket: bucket.believed }, 'get-version', {
    bucketId: bucket.believed.bucketId,
    key,
    includeBody: false,
  });
  const refusal = checkWriteConditions(value.kind === 'found' ? value.version : undefined, conditions);
  if (refusal !== undefined) throw refusedCommit(refusal, key);
}

/** Refuses a large body that does not fit under a quota, before it is taken in: the commit would, at its end. QuotaExceeded. */
async function requireRoom(
  { calls, bucket }: Pick<PutObject, 'calls' | 'bucket'>,
  asked: Omit<CommandOf<'check-room'>, 'sizeBytes'> & { sizeBytes: number | undefined },
): Promise<void> {
  const { sizeBytes = 0 } = asked;
  if (sizeBytes < LIMITS.quotaCheckBytesMin) return;
  const target = { shard: bucket.homeShard, bucket: bucket.believed };
  const { value } = await calls.execute(target, 'check-room', { ...asked, sizeBytes });
  if (value.kind !== 'room') throw overQuotaError(value);
}

/** Writes a body as a part of an upload: the same story, with the upload's key. */
export async function putPart(
  path: DataPath,
  input: PartTarget & { body: BodySource },
): Promise<WrittenPart> {
  const { bucket, upload, body } = input;
  await requireRoom(input, {
    bucketId: upload.bucketId,
    key: upload.key,
    sizeBytes: body.sizeBytes,
    isPart: true,
  });
  const algorithm = upload.checksum?.algorithm ?? declaredAlgorithm(body);
  const kek = path.keys.openKek(upload.kek, input.customerKey);
  const storing = { shard: bucket.homeShard, kek, body, storedAlgorithm: algorithm };
  return takeIn(path, input, storing, (written) => commitPart(input, written, algorithm));
}

async function commitPart(
  { calls, bucket, upload, partNumber }: PartTarget,
  written: WrittenBody,
  algorithm: ChecksumAlgorithm | undefined,
): Promise<WrittenPart> {
  const shard = bucket.homeShard;
  const etag = md5Hex(written);
  const checksum = algorithm && { algorithm, value: checksumOf(written, algorithm) };
  const { bucketId, key, uploadId } = upload;
  const part = {
    partNumber,
    sizeBytes: written.sizeBytes,
    etag,
    ...written.data,
    ...(checksum && { checksum }),
  };
  const reply = await sendCommit(written, () =>
    calls.execute({ shard, bucket: bucket.believed }, 'commit-part', {
      bucketId,
      key,
      uploadId,
      part,
      data: { births: written.births, links: [] },
    }),
  );
  if (reply.value.kind !== 'committed') {
    await abandonRefused(written, reply.value);
    throw refusedPart(reply.value, upload);
  }
  const { modifiedAtMs } = reply.value;
  return { etag, sizeBytes: written.sizeBytes, modifiedAtMs, ...(checksum && { checksum }) };
}

/** Begins an upload: its key and headers become those of the version that Complete makes. */
export async function createUpload(
  path: DataPath,
  input: Parameters<ObjectStore['createUpload']>[0],
): Promise<UploadRecord> {
  const { calls, bucket, key, owner, initiator, headers, tags, acl, lock, checksum } = input;
  const { kek, wrapped } = path.keys.newKek(input.customerKey);
  const reply = await calls.execute({ shard: bucket.homeShard, bucket: bucket.believed }, 'create-upload', {
    bucketId: bucket.believed.bucketId,
    upload: {
      key,
      owner,
      initiator,
      kek: wrapped,
      sealedHeaders: path.keys.sealHeaders(kek, headers),
      ...(tags && { tags }),
      ...(acl && { acl }),
      ...(lock && { protection: lock }),
      ...(checksum && { checksum }),
    },
  });
  if (reply.value.kind === 'blocked') throw blockedRemoval(reply.value.blocker);
  return reply.value.upload;
}

/** Stores the body and verifies its digests, or leaves nothing and throws; then the result of `use`, as writeBody has it. */
export async function takeIn<T>(
  path: DataPath,
  input: Pick<PutObject, 'calls' | 'signal'>,
  options: {
    shard: number;
    kek: Uint8Array;
    body: BodySource;
    storedAlgorithm: ChecksumAlgorithm | undefined;
    grownPieceBytesMax?: number;
  },
  use: (written: WrittenBody) => Promise<T>,
): Promise<T> {
  const { shard, kek, body, storedAlgorithm, grownPieceBytesMax } = options;
  // What is sealed on another thread has its digests there as well.
  const isSealedElsewhere = (body.sizeBytes ?? 0) > LIMITS.codecInlineBytesMax;
  const signed = isSealedElsewhere ? body.deferSignatures?.() : undefined;
  const toWrite = {
    tenant: input.calls.tenant,
    patience: input.calls.patience,
    stream: signed?.stream ?? body.stream,
    ...(signed && { pieces: signed.deferred }),
    sizeBytes: body.sizeBytes,
    wanted: wantedDigests(body, storedAlgorithm),
    shard,
    timeMs: await path.times.timeMs(input.calls, shard),
    kek,
    ...(grownPieceBytesMax !== undefined && { grownPieceBytesMax }),
    signal: input.signal,
  };
  return writeBody(path, toWrite, async (written) => {
    try {
      // After the stream: only now the trailer is known.
      verifyDigests(body, written);
    } catch (error) {
      await written.abandon();
      throw error;
    }
    return use(written);
  });
}

/**
 * From here on a lost answer may hide a commit: then the stored data stays, and the sweep decides (R32). It is dropped at
 * once if no shard has evaluated the command.
 */
export async function sendCommit<T>(written: WrittenBody, send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    if (wasNotEvaluated(error)) await written.abandon();
    throw error;
  }
}

/** `exists` means that the blob is committed already: then only the sweep, which asks about it, may drop anything. */
export async function abandonRefused(written: WrittenBody, refusal: { kind: string }): Promise<void> {
  if (refusal.kind !== 'exists') await written.abandon();
}

type CommitRefusal = Exclude<OutcomeOf<'commit-version'>, { kind: 'committed' }>;

/** The error for a refused commit. */
export function refusedCommit(refusal: CommitRefusal, key: string): AppError {
  switch (refusal.kind) {
    case 'precondition-failed':
      return new AppError('PreconditionFailed', { fields: { Condition: refusal.condition } });
    case 'no-such-key':
      return new AppError('NoSuchKey', { fields: { Key: key } });
    case 'blocked':
      return blockedRemoval(refusal.blocker);
    case 'over-quota':
    case 'over-lease':
      return overQuotaError(refusal);
    default:
      return refusedData(refusal);
  }
}

export function refusedPart(
  refusal: GrantRefusal | QuotaRefusal | { kind: 'no-such-upload' },
  upload: Pick<UploadRecord, 'uploadId'>,
): AppError {
  if (refusal.kind === 'over-quota' || refusal.kind === 'over-lease') return overQuotaError(refusal);
  if (refusal.kind === 'no-such-upload')
    return new AppError('NoSuchUpload', { fields: { UploadId: upload.uploadId } });
  return refusedData(refusal);
}

/** `late`: the request took longer than a blob id is valid (R25). `exists`: the outcome of an earlier try is unknown. */
function refusedData(refusal: GrantRefusal): AppError {
  if (refusal.kind === 'late') return new AppError('RequestTimeout');
  return new AppError('ServiceUnavailable', { cause: new Error('data of the request is gone') });
}
