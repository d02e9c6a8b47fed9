// Multipart uploads over the object world: all steps of one, for tests that need an object of parts.

import type { BucketTarget, ByteRange, PartTarget, WrittenPart } from '../../../src/objects/object-store.ts';
import type { ChecksumAlgorithm, ChecksumType } from '../../../src/types/checksums.ts';
import type { ObjectKey } from '../../../src/types/names.ts';
import type { UploadRecord } from '../../../src/types/records/rows.ts';
import { OWNER } from '../metadata/metadata-shards.ts';
import { HEADERS, type ObjectWorld } from './object-world.ts';

export async function beginUpload(
  world: ObjectWorld,
  key: string,
  options: { bucket?: BucketTarget; checksum?: { algorithm: ChecksumAlgorithm; type: ChecksumType } } = {},
): Promise<(partNumber: number) => PartTarget> {
  const { bucket = world.bucket(), checksum } = options;
  const { calls } = world;
  const upload: UploadRecord = await world.store.createUpload({
    calls,
    bucket,
    key: key as ObjectKey,
    owner: OWNER,
    initiator: OWNER,
    headers: HEADERS,
    ...(checksum && { checksum }),
  });
  return (partNumber) => ({ calls, bucket, upload, partNumber, signal: new AbortController().signal });
}

export async function completeUpload(
  world: ObjectWorld,
  { bucket, upload }: PartTarget,
  parts: readonly WrittenPart[],
) {
  return world.metadata.execute(
    'complete-upload',
    {
      bucketId: bucket.believed.bucketId,
      key: upload.key,
      uploadId: upload.uploadId,
      parts: parts.map(({ etag, checksum }, at) => ({
        partNumber: at + 1,
        etag,
        ...(checksum && { checksum }),
      })),
    },
    bucket.homeShard,
  );
}

/** An object whose parts are ranges of another one of the same bucket. */
export async function uploadCopies(
  world: ObjectWorld,
  options: { from: string; to: string; ranges: readonly ByteRange[] },
): Promise<void> {
  const part = await beginUpload(world, options.to);
  const bucket = world.bucket();
  const source = { bucket, key: options.from as ObjectKey, found: await world.find(options.from) };
  const parts: WrittenPart[] = [];
  for (const [at, range] of options.ranges.entries())
    parts.push(await world.store.copyPart({ ...part(at + 1), source, range }));
  const outcome = await completeUpload(world, part(1), parts);
  if (outcome.kind !== 'committed') throw new Error(outcome.kind);
}
