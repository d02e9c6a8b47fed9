// THE PUT STORY: begin (what is bound to fail ends here), take the body in (split, digest, seal, store: write-body.ts),
// check what the client said of it, commit; else abandon. Data first, the pointer to it last and in one entry, so that
// no reader ever sees a part.

import type { OutcomeOf } from '../ports/metadata.ts';
import type { GrantRefusal } from '../ports/metadata-commands.ts';
import type { ChecksumAlgorithm } from '../types/checksums.ts';
import { AppError } from '../types/errors.ts';
import { packOriginals } from '../types/originals.ts';
import { checkWriteConditions } from '../types/preconditions.ts';
import type { UploadRecord } from '../types/records/rows.ts';
import type { DataPath } from './data-path.ts';
import { checksumOf, claimedAlgorithm, md5Hex, verifyDigests, wantedDigests } from './digests.ts';
import { wasNotEvaluated } from './metadata-calls.ts';
import type { BodySource, ObjectStore, PartTarget, PutObject, Written, WrittenPart } from './object-store.ts';
import { type WrittenBody, writeBody } from './write-body.ts';

/** Writes a body as the next version of a key. */
export async function putObject(path: DataPath, input: PutObject): Promise<Written> {
  const { calls, bucket, key, owner, headers, tags, body, conditions } = input;
  const shard = bucket.homeShard;
  if (conditions !== undefined && body.awaitsContinue) await refuseEarly(input, conditions);
  const algorithm = claimedAlgorithm(body);
  const { kek, wrapped } = path.keys.newKek(input.customerKey);
  const written = await takeIn(path, input, { shard, kek, body, kept: algorithm });

  const etag = md5Hex(written);
  const { sizeBytes } = written;
  const checksum = algorithm && {
    algorithm,
    type: 'FULL_OBJECT' as const,
    value: checksumOf(written, algorithm),
  };
  const version = {
    sizeBytes,
    etag,
    owner,
    kek: wrapped,
    sealedHeaders: path.keys.sealHeaders(kek, headers),
    ...(tags && { tags }),
    originals: packOriginals({ sizeBytes, md5: etag }),
    manifest: { kind: 'direct' as const, parts: [], ...written.data },
    ...(checksum && { checksum }),
  };
  const reply = await sendCommit(written, () =>
    calls.execute({ shard, bucket: bucket.claim }, 'commit-version', {
      ...{ bucketId: bucket.claim.bucketId, key, version },
      data: { births: written.births, links: [] },
      ...(conditions && { conditions }),
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
 * What fails now is refused before its body is asked for. One that comes unasked is heard to its end: not every client
 * reads an answer before it has sent everything. Nothing is decided for conditions that hold, which may fail in the
 * commit yet (s3-behaviour 28).
 */
async function refuseEarly(
  { calls, bucket, key }: PutObject,
  conditions: NonNullable<PutObject['conditions']>,
): Promise<void> {
  const { value } = await calls.query({ shard: bucket.homeShard, bucket: bucket.claim }, 'get-version', {
    ...{ bucketId: bucket.claim.bucketId, key, includeBody: false },
  });
  const refusal = checkWriteConditions(value.kind === 'found' ? value.version : undefined, conditions);
  if (refusal !== undefined) throw refusedCommit(refusal, key);
}

/** Writes a body as a part of an upload: the same story, with the upload's key. */
export async function putPart(
  path: DataPath,
  input: PartTarget & { body: BodySource },
): Promise<WrittenPart> {
  const { calls, bucket, upload, partNumber, body } = input;
  const shard = bucket.homeShard;
  const algorithm = upload.checksum?.algorithm ?? claimedAlgorithm(body);
  const kek = path.keys.openKek(upload.kek, input.customerKey);
  const written = await takeIn(path, input, { shard, kek, body, kept: algorithm });

  const etag = md5Hex(written);
  const checksum = algorithm && { algorithm, value: checksumOf(written, algorithm) };
  const { bucketId, key, uploadId } = upload;
  const part = {
    ...{ partNumber, sizeBytes: written.sizeBytes, etag, ...written.data },
    ...(checksum && { checksum }),
  };
  const reply = await sendCommit(written, () =>
    calls.execute({ shard, bucket: bucket.claim }, 'commit-part', {
      ...{ bucketId, key, uploadId, part },
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
  const { calls, bucket, key, owner, initiator, headers, tags, checksum } = input;
  const { kek, wrapped } = path.keys.newKek(input.customerKey);
  const reply = await calls.execute({ shard: bucket.homeShard, bucket: bucket.claim }, 'create-upload', {
    bucketId: bucket.claim.bucketId,
    upload: {
      key,
      owner,
      initiator,
      kek: wrapped,
      sealedHeaders: path.keys.sealHeaders(kek, headers),
      ...(tags && { tags }),
      ...(checksum && { checksum }),
    },
  });
  return reply.value.upload;
}

/** Stores the body and checks its digests, or leaves nothing and throws. */
export async function takeIn(
  path: DataPath,
  input: Pick<PutObject, 'calls' | 'signal'>,
  options: {
    shard: number;
    kek: Uint8Array;
    body: BodySource;
    kept: ChecksumAlgorithm | undefined;
    grownPieceBytesMax?: number;
  },
): Promise<WrittenBody> {
  const { shard, kek, body, kept, grownPieceBytesMax } = options;
  const written = await writeBody(path, {
    tenant: input.calls.tenant,
    stream: body.stream,
    sizeBytes: body.sizeBytes,
    wanted: wantedDigests(body, kept),
    shard,
    timeMs: await path.times.timeMs(input.calls, shard),
    kek,
    ...(grownPieceBytesMax !== undefined && { grownPieceBytesMax }),
    signal: input.signal,
  });
  try {
    // Only now: a trailer's value is known when the stream has ended.
    verifyDigests(body, written);
    return written;
  } catch (error) {
    await written.abandon();
    throw error;
  }
}

/**
 * From here on a lost answer may hide a commit: what was stored stays then, for the sweep to judge (R32). It goes at once
 * where no shard has evaluated anything.
 */
export async function sendCommit<T>(written: WrittenBody, send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    if (wasNotEvaluated(error)) await written.abandon();
    throw error;
  }
}

/** `exists` is said of a blob that is there already: only the sweep, which asks for it, may then drop anything. */
export async function abandonRefused(written: WrittenBody, refusal: { kind: string }): Promise<void> {
  if (refusal.kind !== 'exists') await written.abandon();
}

type CommitRefusal = Exclude<OutcomeOf<'commit-version'>, { kind: 'committed' }>;

/** The error that a refused commit is answered with. */
export function refusedCommit(refusal: CommitRefusal, key: string): AppError {
  switch (refusal.kind) {
    case 'precondition-failed':
      return new AppError('PreconditionFailed', { fields: { Condition: refusal.condition } });
    case 'no-such-key':
      return new AppError('NoSuchKey', { fields: { Key: key } });
    case 'blocked':
      return new AppError('AccessDenied');
    default:
      return refusedData(refusal);
  }
}

export function refusedPart(
  refusal: GrantRefusal | { kind: 'no-such-upload' },
  upload: Pick<UploadRecord, 'uploadId'>,
): AppError {
  if (refusal.kind === 'no-such-upload')
    return new AppError('NoSuchUpload', { fields: { UploadId: upload.uploadId } });
  return refusedData(refusal);
}

/** `late`: the request took longer than a blob id lives (R25). `exists`: what became of an earlier try is not known. */
function refusedData(refusal: GrantRefusal): AppError {
  if (refusal.kind === 'late') return new AppError('RequestTimeout');
  return new AppError('ServiceUnavailable', { cause: new Error('data of the request is gone') });
}
