// THE COPY STORY: a copy is links to the data of its source, so its cost does not depend on size. Claim the data at its
// homes, commit the version or part; if data is gone meanwhile, read the source again (R27). Headers are sealed by the
// object's key, which the copy keeps; only the wrapping of that key changes, also when a customer's key comes or goes. Only
// a part gets its data keys wrapped by another key.
import { createHash } from 'node:crypto';
import type { CommandOf } from '../ports/metadata/port.ts';
import type { FoundVersion, NewVersion } from '../ports/metadata/versions.ts';
import { AppError } from '../types/errors.ts';
import { type ETag, isPlainMd5 } from '../types/etag.ts';
import { LIMITS } from '../types/limits.ts';
import { dataLinkId, isComposed, linksOf, type ManifestBody, ownBody } from '../types/version.ts';
import { claimLinks, newLinkId, relink, relinkManifest } from './claim-links.ts';
import type { DataPath } from './data-path.ts';
import { isSameUse, requireBeginnings } from './grown-uses.ts';
import { locateBlobRuns } from './locate-runs.ts';
import type {
  ByteRange,
  Copied,
  CopyFrom,
  CopyObject,
  ObjectStore,
  PartTarget,
  Written,
  WrittenPart,
} from './object-store.ts';
import { checksumOfRange } from './range-checksum.ts';
import { rereadManifest } from './read-object.ts';
import { refusedCommit, refusedPart } from './write-object.ts';

type CopyPart = Parameters<ObjectStore['copyPart']>[0];
type Source = CopyFrom;

/**
 * Throws AppError NoSuchKey when the source is deleted meanwhile; EncryptionNotAllowed for a customer's key on a copy of a
 * composed or appended object.
 */
export async function copyObject(path: DataPath, input: CopyObject): Promise<Written & Copied> {
  let { source } = input;
  for (let attempt = 0; attempt < LIMITS.linkAttemptsMax; attempt++) {
    const version = await versionOfCopy(path, input, source);
    const outcome = isOntoItself(input, source)
      ? await recommit(path, input, source, version)
      : await commitCopy(path, input, version);
    if (outcome.kind === 'committed') {
      const { versionId, versioning, modifiedAtMs } = outcome;
      const { etag, sizeBytes, checksum } = version;
      return {
        versionId,
        versioning,
        modifiedAtMs,
        etag,
        sizeBytes,
        ...(checksum && { checksum }),
        sourceVersionId: source.found.version.versionId,
      };
    }
    if (outcome.kind !== 'gone' && outcome.kind !== 'late' && outcome.kind !== 'changed')
      throw refusedCommit(outcome, input.key);
    source = await readAgain(input, source);
  }
  throw new AppError('ServiceUnavailable');
}

/** The source as the target's version: its data, and its headers unless the request replaces them. */
async function versionOfCopy(path: DataPath, input: CopyObject, source: Source): Promise<NewVersion> {
  const { version } = source.found;
  // A composed object cannot be under a customer's key, not even by a copy (service 4.2, compose rule 5).
  if (isComposed(version) && input.customerKey !== undefined) throw new AppError('EncryptionNotAllowed');
  const { sizeBytes, etag, originals, appendCount, manifest, kek, sealedHeaders, checksum } = version;
  const { headers, tags = version.tags, checksumAlgorithm, owner } = input;
  const copy: NewVersion = { sizeBytes, etag, owner, originals, manifest };
  if (appendCount !== undefined) copy.appendCount = appendCount;
  const { customerKey } = source;
  if (kek !== undefined) copy.kek = path.keys.renewKek(kek, { from: customerKey, to: input.customerKey });
  const sealed =
    headers === undefined
      ? sealedHeaders
      : path.keys.sealHeaders(path.keys.openKek(kek, customerKey), headers);
  if (sealed !== undefined) copy.sealedHeaders = sealed;
  if (tags !== undefined && tags.length > 0) copy.tags = tags;
  if (input.acl !== undefined) copy.acl = input.acl;
  if (input.lock !== undefined) copy.protection = input.lock;
  if (checksumAlgorithm === undefined || checksumAlgorithm === checksum?.algorithm) {
    if (checksum !== undefined) copy.checksum = checksum;
  } else {
    const value = await checksumOfSource(path, input, source, {
      algorithm: checksumAlgorithm,
      range: { offsetBytes: 0, sizeBytes },
    });
    copy.checksum = { algorithm: checksumAlgorithm, type: 'FULL_OBJECT', value };
  }
  return copy;
}

async function commitCopy(path: DataPath, input: CopyObject, version: NewVersion) {
  const { calls, bucket, key, conditions } = input;
  const shard = bucket.homeShard;
  const linkId = newLinkId(path, await path.times.timeMs(calls, shard));
  // Parts may have taken one blob at different times (metadata/uploads/join-parts.ts).
  const seen = await requireBeginnings(calls, ownBody(version.manifest)?.uses ?? []);
  if (seen === 'gone') return { kind: 'gone' as const };
  const manifest = relinkManifest(version.manifest, linkId);
  const blobIds = linksOf(manifest).map(({ blobId }) => blobId);
  const claimed = await claimLinks({ calls, shard, linkId, blobIds });
  if (claimed.kind === 'gone') return claimed;
  const reply = await calls.execute({ shard, bucket: bucket.believed }, 'commit-version', {
    bucketId: bucket.believed.bucketId,
    key,
    version: { ...version, manifest },
    data: { births: [], links: claimed.links },
    event: 's3:ObjectCreated:Copy',
    ...(conditions && { conditions }),
  });
  return reply.value;
}

/** A copy of the current version onto its own key keeps its links, so the data is linked all the time (R26). */
function isOntoItself({ bucket, key, conditions }: CopyObject, source: Source): boolean {
  const isSameKey = source.bucket.believed.bucketId === bucket.believed.bucketId && source.key === key;
  return isSameKey && source.found.isLatest && conditions === undefined;
}

async function recommit(path: DataPath, input: CopyObject, source: Source, version: NewVersion) {
  const { calls, bucket, key, tags } = input;
  const shard = bucket.homeShard;
  const { versionId, order, manifest } = source.found.version;
  const { owner, acl, kek, sealedHeaders, checksum, protection } = version;
  const command: CommandOf<'recommit-version'> = {
    bucketId: bucket.believed.bucketId,
    key,
    expected: { versionId, order, dataLinkId: dataLinkId(manifest) },
    version: {
      owner,
      ...(acl && { acl }),
      ...(kek && { kek }),
      ...(sealedHeaders && { sealedHeaders }),
      ...(checksum && { checksum }),
      ...(protection && { protection }),
    },
    ...(tags && { tags }),
    linkId: newLinkId(path, await path.times.timeMs(calls, shard)),
  };
  const reply = await calls.execute({ shard, bucket: bucket.believed }, 'recommit-version', command);
  return reply.value;
}

/** The current source: the one that was read has been replaced or deleted. */
export async function readAgain(input: Pick<CopyObject, 'calls'>, source: Source): Promise<Source> {
  const { bucket, key, versionId } = source;
  const { value } = await input.calls.query(
    { shard: bucket.homeShard, bucket: bucket.believed },
    'get-version',
    {
      bucketId: bucket.believed.bucketId,
      key,
      ...(versionId && { versionId }),
      includeBody: false,
    },
  );
  if (value.kind !== 'found') throw new AppError('NoSuchKey', { fields: { Key: key } });
  source.requireFit?.(value.version);
  return { ...source, found: value };
}

/** Writes a part that is a range of another object. */
export async function copyPart(path: DataPath, input: CopyPart): Promise<WrittenPart & Copied> {
  const { calls, bucket, upload, partNumber } = input;
  const shard = bucket.homeShard;
  let { source } = input;
  for (let attempt = 0; attempt < LIMITS.linkAttemptsMax; attempt++) {
    const { version } = source.found;
    const range = input.range ?? { offsetBytes: 0, sizeBytes: version.sizeBytes };
    if (range.offsetBytes + range.sizeBytes > version.sizeBytes) throw new AppError('InvalidRange');
    const linkId = newLinkId(path, await path.times.timeMs(calls, shard));
    const data = await dataOfRange(path, input, { source, range });
    const relinked = relink(data, linkId);
    const blobIds = relinked.uses.map(({ blobId }) => blobId);
    const isSound = (await requireBeginnings(calls, data.uses)) === 'sound';
    const claimed = isSound ? await claimLinks({ calls, shard, linkId, blobIds }) : undefined;
    if (claimed?.kind === 'claimed') {
      const etag = etagOfRange(source.found, range, data);
      const algorithm = upload.checksum?.algorithm;
      const checksum = algorithm && {
        algorithm,
        value: await checksumOfSource(path, input, source, { algorithm, range }),
      };
      const part = {
        partNumber,
        sizeBytes: range.sizeBytes,
        etag,
        ...relinked,
        ...(checksum && { checksum }),
      };
      const reply = await calls.execute({ shard, bucket: bucket.believed }, 'commit-part', {
        bucketId: upload.bucketId,
        key: upload.key,
        uploadId: upload.uploadId,
        part,
        data: { births: [], links: claimed.links },
      });
      const { value } = reply;
      if (value.kind === 'committed') {
        const { modifiedAtMs } = value;
        const sourceVersionId = version.versionId;
        return {
          etag,
          sizeBytes: range.sizeBytes,
          modifiedAtMs,
          ...(checksum && { checksum }),
          sourceVersionId,
        };
      }
      if (value.kind === 'no-such-upload' || value.kind === 'over-quota' || value.kind === 'over-lease')
        throw refusedPart(value, upload);
    }
    source = await readAgain(input, source);
  }
  throw new AppError('ServiceUnavailable');
}

/** The segments of the range, with the data keys of its blobs under the upload's key. */
async function dataOfRange(
  path: DataPath,
  { calls, upload, customerKey }: PartTarget,
  of: { source: Source; range: ByteRange },
): Promise<ManifestBody> {
  const { version } = of.source.found;
  const data: ManifestBody = { uses: [], segments: [] };
  if (of.range.sizeBytes === 0) return data;
  const from = path.keys.openKek(version.kek, of.source.customerKey);
  const to = path.keys.openKek(upload.kek, customerKey);
  for await (const runs of locateBlobRuns(calls, version.manifest, of.range)) {
    for (const { use, offsetBytes, sizeBytes } of runs) {
      if (!isSameUse(data.uses.at(-1), use)) data.uses.push(path.keys.rewrapUse(use, { from, to }));
      data.segments.push({ use: data.uses.length - 1, offsetBytes, sizeBytes });
      if (data.segments.length > LIMITS.partSegmentsMax) throw tooManySegments();
    }
  }
  return data;
}

/** A part is one row and a Complete one entry, so their size is bounded. */
function tooManySegments(): AppError {
  return new AppError('InvalidRequest', {
    message: `The range of the copy source consists of more than ${LIMITS.partSegmentsMax} pieces that were stored one by one. Copy it in smaller ranges.`,
  });
}

/** Architecture 3: the MD5 where it is known, else 32 digits that only this data gives. */
function etagOfRange({ version }: FoundVersion, range: ByteRange, data: ManifestBody): ETag {
  if (range.sizeBytes === version.sizeBytes && isPlainMd5(version.etag)) return version.etag;
  const hash = createHash('sha256');
  for (const { use, offsetBytes, sizeBytes } of data.segments)
    hash.update(`${data.uses[use]?.blobId} ${offsetBytes} ${sizeBytes}\n`);
  return hash.digest('hex').slice(0, 32);
}

function checksumOfSource(
  path: DataPath,
  { calls }: Pick<CopyObject, 'calls'>,
  source: Source,
  of: { algorithm: NonNullable<CopyObject['checksumAlgorithm']>; range: ByteRange },
): Promise<string> {
  const { bucket, key, found, customerKey } = source;
  const body = {
    calls,
    kek: path.keys.openKek(found.version.kek, customerKey),
    manifest: found.version.manifest,
    range: of.range,
    reread: () => rereadManifest({ calls, bucket, key, found }),
  };
  return checksumOfRange(path, body, of.algorithm);
}
