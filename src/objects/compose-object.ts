// THE COMPOSE STORY: lay the segments of all components behind one another, under the first one's key, which the new object
// keeps; data keys of the others are wrapped anew. Claim the data at its homes, commit; no byte of it is read. If data is
// gone meanwhile, read the components again, as for a copy.
import { equalBytes } from '../base/bytes/bytes.ts';
import type { CommandOf } from '../ports/metadata/port.ts';
import type { ComposedVersion } from '../ports/metadata/versions.ts';
import { AppError } from '../types/errors.ts';
import { joinChecksums } from '../types/join-checksums.ts';
import { LIMITS } from '../types/limits.ts';
import {
  composedETag,
  countOriginals,
  isPacked,
  joinOriginals,
  NO_ORIGINALS,
  type Originals,
} from '../types/originals.ts';
import type { ManifestBody, VersionRecord } from '../types/version.ts';
import { claimLinks, newLinkId, relink } from './claim-links.ts';
import { composedAnswer, refusedComposition, requireMasterKey } from './composition-rules.ts';
import { readAgain } from './copy-object.ts';
import type { DataPath } from './data-path.ts';
import { isSameUse, requireBeginnings } from './grown-uses.ts';
import { type BlobRun, directRuns, locateBlobRuns, MissingPage } from './locate-runs.ts';
import { type ComposeObject, type CopyFrom, MemoryTooSmall, type Written } from './object-store.ts';

/** Composing this many segments takes a millisecond or two. */
const SHORT_SEGMENTS_MAX = 500;
/** Of a segment with the use of its blob, as they are read, with links of their own, and on their way to the shard. */
const SEGMENT_MEMORY_BYTES = 1024;
type Version = CommandOf<'compose-version'>['version'];

/**
 * Throws AppError InvalidRequest (too many originals or segments), EntityTooLarge, EncryptionNotAllowed, NoSuchKey when a
 * component is deleted meanwhile, IdempotencyParameterMismatch, PreconditionFailed; and MemoryTooSmall.
 */
export async function composeObject(path: DataPath, input: ComposeObject): Promise<Written> {
  let { components } = input;
  for (let attempt = 0; attempt < LIMITS.linkAttemptsMax; attempt++) {
    const count = sum(components.map(segmentCountOf));
    const neededBytes = Math.min(count, LIMITS.composeSegmentsMax) * SEGMENT_MEMORY_BYTES;
    if (neededBytes > (input.countedBytes ?? Number.POSITIVE_INFINITY)) throw new MemoryTooSmall(neededBytes);
    const outcome = await composeOnce(path, input, components);
    if (outcome !== undefined) return composedAnswer(outcome);
    components = await Promise.all(components.map((component) => readAgain(input, component)));
  }
  throw new AppError('ServiceUnavailable');
}

function segmentCountOf({ found: { version } }: CopyFrom): number {
  const { manifest } = version;
  if (manifest.kind === 'direct') return manifest.segments.length;
  return manifest.segmentCount + (manifest.tail?.segments.length ?? 0);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

/** Undefined: data is gone, or the claims are too old; look again. */
async function composeOnce(
  path: DataPath,
  input: ComposeObject,
  components: readonly CopyFrom[],
): Promise<ComposedVersion | undefined> {
  const { calls, bucket } = input;
  const shard = bucket.homeShard;
  const version = versionOf(path, input, components);
  const body = await bodyOf(path, input, components);
  if (body === undefined) return undefined;
  // Linking, granting and laying out thousands of segments blocks the thread for a while.
  if (body.segments.length > SHORT_SEGMENTS_MAX) await input.turn?.();
  const linkId = newLinkId(path, await path.times.timeMs(calls, shard));
  const relinked = relink(body, linkId);
  const blobIds = relinked.uses.map(({ blobId }) => blobId);
  const claimed = await claimLinks({ calls, shard, linkId, blobIds });
  if (claimed.kind !== 'claimed') return undefined;
  const data = { births: [], links: claimed.links };
  return commit(input, { version, body: relinked, data });
}

/** Undefined: the data is gone, or the claims are too old; look again. */
async function commit(
  { calls, bucket, key, conditions, token }: ComposeObject,
  made: Pick<CommandOf<'compose-version'>, 'version' | 'body' | 'data'>,
): Promise<ComposedVersion | undefined> {
  const target = { shard: bucket.homeShard, bucket: bucket.believed };
  const { value } = await calls.execute(target, 'compose-version', {
    bucketId: bucket.believed.bucketId,
    key,
    ...made,
    ...(conditions && { conditions }),
    ...(token && { token }),
  });
  if (value.kind === 'committed') return value;
  if (value.kind === 'repeated') return value.outcome;
  if (value.kind === 'gone' || value.kind === 'late') return undefined;
  throw refusedComposition(value, key);
}

/** The version without its data: headers are the first component's, whose key seals them. */
function versionOf(path: DataPath, input: ComposeObject, components: readonly CopyFrom[]): Version {
  const versions = components.map(({ found }) => found.version);
  const [first] = versions;
  if (first?.kek === undefined) throw new AppError('InvalidRequest');
  for (const version of versions) requireMasterKey(version);
  const originals = joinFew(versions.map((version) => version.originals));
  const sizeBytes = versions.reduce((sum, version) => sum + version.sizeBytes, 0);
  if (sizeBytes > LIMITS.objectBytesMax) {
    throw new AppError('EntityTooLarge', {
      fields: { ProposedSize: sizeBytes, MaxSizeAllowed: LIMITS.objectBytesMax },
    });
  }
  const { owner, tags, lock } = input;
  const checksum = joinChecksums(versions);
  const sealedHeaders = sealHeaders(path, first, input.userMetadata);
  return {
    sizeBytes,
    owner,
    originals,
    etag: composedETag(originals),
    kek: path.keys.renewKek(first.kek),
    ...(sealedHeaders && { sealedHeaders }),
    ...(tags && { tags }),
    ...(lock && { protection: lock }),
    ...(checksum && { checksum }),
  };
}

function joinFew(originals: readonly Originals[]): Originals {
  const count = originals.reduce((sum, some) => sum + countOriginals(some), 0);
  if (count <= LIMITS.composeOriginalsMax) return joinOriginals(NO_ORIGINALS, ...originals.filter(isPacked));
  throw new AppError('InvalidRequest', {
    message: `The components consist of ${count} original data objects. A composed object consists of ${LIMITS.composeOriginalsMax} at most.`,
  });
}

function sealHeaders(
  { keys }: DataPath,
  first: VersionRecord,
  userMetadata: ComposeObject['userMetadata'],
): Uint8Array | undefined {
  if (userMetadata === undefined) return first.sealedHeaders;
  return keys.sealHeaders(keys.openKek(first.kek), { ...keys.openHeaders(first), userMetadata });
}

/** The segments of all components; undefined when one of them is gone. */
async function bodyOf(
  path: DataPath,
  { calls, turn }: ComposeObject,
  components: readonly CopyFrom[],
): Promise<ManifestBody | undefined> {
  const { keys } = path;
  const body: ManifestBody = { uses: [], segments: [] };
  const to = keys.openKek(components[0]?.found.version.kek);
  const add = (runs: readonly BlobRun[], from: Uint8Array) => {
    for (const { use, ...segment } of runs) {
      if (!isSameUse(body.uses.at(-1), use))
        body.uses.push(from === to ? use : keys.rewrapUse(use, { from, to }));
      body.segments.push({ ...segment, use: body.uses.length - 1 });
    }
    if (body.segments.length > LIMITS.composeSegmentsMax) throw tooManySegments();
  };
  try {
    for (const { found } of components) {
      const { manifest, sizeBytes, kek } = found.version;
      const range = { offsetBytes: 0, sizeBytes };
      const opened = keys.openKek(kek);
      const from = equalBytes(opened, to) ? to : opened;
      if (manifest.kind === 'direct') add(directRuns(manifest, range), from);
      else
        for await (const runs of locateBlobRuns(calls, manifest, range)) {
          add(runs, from);
          await turn?.();
        }
    }
  } catch (error) {
    if (error instanceof MissingPage) return undefined;
    throw error;
  }
  return (await requireBeginnings(calls, body.uses)) === 'sound' ? body : undefined;
}

function tooManySegments(): AppError {
  return new AppError('InvalidRequest', {
    message: `The components consist of more than ${LIMITS.composeSegmentsMax} pieces that were stored one by one. Compose fewer of them.`,
  });
}
