// THE APPEND STORY: find the object and its key, or remember them from the last append; take in the body like a PUT, but
// under that key; commit. The shard appends the piece to whatever object is current then, so appends do not block each
// other. If an object with another key replaced it meanwhile, only the key of the piece is wrapped anew. Small pieces are
// compacted afterwards.
import { must } from '../base/assert.ts';
import { BoundedMap } from '../base/bounded-map.ts';
import { ownBytes } from '../base/bytes/bytes.ts';
import type { CommandOf, OutcomeOf } from '../ports/metadata/port.ts';
import type { AppendedPiece, AppendedVersion } from '../ports/metadata/versions.ts';
import { type ChecksumAlgorithm, isCrc } from '../types/checksums.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import type { BlobId } from '../types/names.ts';
import { COMPACT_APPENDED } from '../types/plan-compaction.ts';
import { checkWriteConditions } from '../types/preconditions.ts';
import { growingUse, type VersionRecord, type WrappedKek } from '../types/version.ts';
import { newLinkId } from './claim-links.ts';
import type { PieceCompactor } from './compact-pieces.ts';
import { composedAnswer, refusedComposition, requireMasterKey } from './composition-rules.ts';
import type { DataPath } from './data-path.ts';
import { checksumOf, declaredAlgorithm, md5Hex } from './digests.ts';
import type { AppendObject, MetadataCalls, Written } from './object-store.ts';
import { checksumOfRange } from './range-checksum.ts';
import type { WrittenBody } from './write-body.ts';
import { abandonRefused, refusedCommit, sendCommit, takeIn } from './write-object.ts';

type Outcome = OutcomeOf<'append-version'>;
type CommandKek = CommandOf<'append-version'>['kek'];
type Refusal = Exclude<Outcome, { kind: 'committed' } | { kind: 'other-key' }>;

/** Throws AppError as putObject does, and NoSuchKey, InvalidWriteOffset, EncryptionNotAllowed, InvalidRequest, EntityTooLarge. */
export async function appendObject(
  path: DataPath,
  after: { compactor: PieceCompactor; recent: RecentAppends },
  input: AppendObject,
): Promise<Written> {
  const { bucket, body } = input;
  const shard = bucket.homeShard;
  const id = idOf(input);
  const current = await findFirst(path, input, after.recent.get(id));
  // An append that starts during this one, or after its failure, looks up the object itself.
  after.recent.delete(id);
  const kek = path.keys.openKek(current.kek);
  const storedAlgorithm = current.algorithm ?? declaredAlgorithm(body);
  const grownPieceBytesMax = Math.min(path.settings.inlineBodyBytesMax, LIMITS.grownPieceBytesMax);
  const storing = { shard, kek, body, storedAlgorithm, grownPieceBytesMax };
  return takeIn(path, input, storing, (written) =>
    appendPiece(path, after, input, { written, found: current, kek }),
  );
}

/** Commits the piece, to another object where that has replaced the one that was found. */
async function appendPiece(
  path: DataPath,
  after: { compactor: PieceCompactor; recent: RecentAppends },
  input: AppendObject,
  { written, found, kek: first }: { written: WrittenBody; found: Grown; kek: Uint8Array },
): Promise<Written> {
  const { calls, bucket, key } = input;
  let current = found;
  let kek = first;
  let piece = pieceOf(written);
  let beginsAnew = false;
  for (let attempt = 0; attempt < LIMITS.linkAttemptsMax; attempt++) {
    const renewed = path.keys.renewKek(current.kek);
    const { growingId } = current;
    const value = await sendPiece(path, input, {
      written,
      piece,
      growingId,
      beginsAnew,
      kek: { found: current.kek, renewed },
    });
    if (value.kind === 'committed') {
      if (value.mayFold) after.compactor.schedule({ calls, bucket, key, rule: COMPACT_APPENDED });
      const { checksum } = value;
      const kept = { ...renewed, wrapped: ownBytes(renewed.wrapped) };
      after.recent.set(idOf(input), {
        kek: kept,
        algorithm: checksum?.algorithm,
        growingId: value.growingId,
      });
      return composedAnswer(value);
    }
    if (value.kind !== 'other-key') return refuse(written, value, key);
    if (attempt + 1 === LIMITS.linkAttemptsMax) break;
    try {
      current = grownOf(await findCurrent(input));
      // Other gateways, or other requests, may append to it, too. A blob that is named again did not take the piece: a copy
      // made it a shared one.
      const isNamedAgain = growingId !== undefined && current.growingId === growingId;
      beginsAnew = isNamedAgain || attempt + 1 >= LOOKS_MAX;
      const next = path.keys.openKek(current.kek);
      piece = rewrap(path, piece, { from: kek, to: next });
      kek = next;
      piece = await withChecksum(path, piece, { calls, kek, current });
    } catch (error) {
      await written.abandon();
      throw error;
    }
  }
  await written.abandon();
  throw new AppError('ServiceUnavailable');
}

function idOf({ bucket, key }: AppendObject): string {
  return `${bucket.believed.bucketId}/${key}`;
}

/** Attempts to find the object; after that the append is committed to whatever is there. */
const LOOKS_MAX = 2;

/** The object for which the piece was made. */
interface Grown {
  kek: WrappedKek;
  /** Algorithm of the object's checksum. */
  algorithm: ChecksumAlgorithm | undefined;
  /** The growing blob at its end. */
  growingId: BlobId | undefined;
}

function grownOf({ kek, checksum, manifest }: VersionRecord): Grown {
  const growingId = growingUse(manifest)?.blobId;
  return { kek: must(kek, 'a version with data has a key'), algorithm: checksum?.algorithm, growingId };
}

/**
 * Objects as the last appends of this gateway left them, so that the next append need not look them up. The shard compares:
 * if the object has changed, the append proceeds as if the object was replaced during its body.
 */
export type RecentAppends = BoundedMap<string, Grown>;

export function createRecentAppends(): RecentAppends {
  return new BoundedMap(LIMITS.recentAppendsMax);
}

/**
 * Like findCurrent, and refuses what must fail now; a remembered object is enough for a client that does not wait for 100
 * Continue. A request with a token may have been answered already, whatever has become of the object since (extensions
 * 2.1): only the shard knows that, with the body.
 */
async function findFirst(path: DataPath, input: AppendObject, remembered: Grown | undefined): Promise<Grown> {
  const mayBeRepeated = input.tokenOf !== undefined;
  if (remembered !== undefined && !input.body.awaitsContinue) return remembered;
  try {
    const current = await findCurrent(input);
    if (input.body.awaitsContinue && !mayBeRepeated) refuseEarly(input, current);
    return grownOf(current);
  } catch (error) {
    const isNone = error instanceof AppError && ['NoSuchKey', 'EncryptionNotAllowed'].includes(error.code);
    if (mayBeRepeated && isNone)
      return { kek: path.keys.newKek().wrapped, algorithm: undefined, growingId: undefined };
    throw error;
  }
}

/** The version to append to. NoSuchKey, also for a delete marker. */
async function findCurrent({ calls, bucket, key }: AppendObject): Promise<VersionRecord> {
  const { value } = await calls.query({ shard: bucket.homeShard, bucket: bucket.believed }, 'get-version', {
    bucketId: bucket.believed.bucketId,
    key,
    includeBody: false,
  });
  if (value.kind !== 'found') throw new AppError('NoSuchKey', { fields: { Key: key } });
  requireMasterKey(value.version);
  return value.version;
}

/** Refuses before the body is requested; a body that is sent without 100 Continue is read to its end. */
function refuseEarly({ key, conditions, offsetBytes, body }: AppendObject, current: VersionRecord): void {
  const refusal = checkWriteConditions(current, conditions);
  if (refusal !== undefined) throw refusedCommit(refusal, key);
  const { sizeBytes, appendCount = 0 } = current;
  if (offsetBytes !== undefined && offsetBytes !== sizeBytes)
    throw refusedAppend({ kind: 'wrong-offset', sizeBytes }, key);
  if (appendCount >= LIMITS.appendCountMax) throw refusedAppend({ kind: 'too-many-appends' }, key);
  if (sizeBytes + (body.sizeBytes ?? 0) > LIMITS.objectBytesMax)
    throw refusedAppend({ kind: 'too-large' }, key);
}

function pieceOf(written: WrittenBody): AppendedPiece {
  const { sizeBytes, births, crcs } = written;
  const algorithms = Object.keys(crcs) as (keyof typeof crcs)[];
  return {
    sizeBytes,
    births,
    md5: md5Hex(written),
    crcs: Object.fromEntries(algorithms.map((algorithm) => [algorithm, checksumOf(written, algorithm)])),
  };
}

async function sendPiece(
  path: DataPath,
  { calls, bucket, key, offsetBytes, conditions, tokenOf }: AppendObject,
  {
    written,
    piece,
    kek,
    growingId,
    beginsAnew,
  }: {
    written: WrittenBody;
    piece: AppendedPiece;
    kek: CommandKek;
    growingId: BlobId | undefined;
    beginsAnew: boolean;
  },
): Promise<Outcome> {
  const shard = bucket.homeShard;
  const token = tokenOf?.(piece);
  const linkId = newLinkId(path, await path.times.timeMs(calls, shard));
  const { value } = await sendCommit(written, () =>
    calls.execute({ shard, bucket: bucket.believed }, 'append-version', {
      bucketId: bucket.believed.bucketId,
      key,
      piece,
      linkId,
      kek,
      ...(growingId && { growingId }),
      ...(beginsAnew && { beginsAnew }),
      ...(offsetBytes !== undefined && { offsetBytes }),
      ...(conditions && { conditions }),
      ...(token && { token }),
    }),
  );
  return value;
}

async function refuse(written: WrittenBody, refusal: Refusal, key: string): Promise<Written> {
  await abandonRefused(written, refusal);
  if (refusal.kind === 'repeated') return composedAnswer(refusal.outcome satisfies AppendedVersion);
  throw refusedAppend(refusal, key);
}

function refusedAppend(refusal: Exclude<Refusal, { kind: 'repeated' }>, key: string): AppError {
  switch (refusal.kind) {
    case 'wrong-offset':
      return new AppError('InvalidWriteOffset', { fields: { ObjectSize: refusal.sizeBytes } });
    case 'too-many-appends':
      return new AppError('InvalidRequest', {
        message: `The object has been appended to ${LIMITS.appendCountMax} times, which is as often as an object may be.`,
      });
    case 'too-large':
      return new AppError('EntityTooLarge', { fields: { MaxSizeAllowed: LIMITS.objectBytesMax } });
    default:
      return refusedComposition(refusal, key);
  }
}

/** The new object's checksum may have another algorithm than the one that was found before. */
async function withChecksum(
  path: DataPath,
  piece: AppendedPiece,
  { calls, kek, current }: { calls: MetadataCalls; kek: Uint8Array; current: Grown },
): Promise<AppendedPiece> {
  const { algorithm } = current;
  const [newBlob] = piece.births;
  const isThere = algorithm === undefined || piece.crcs[algorithm] !== undefined;
  if (isThere || newBlob === undefined || !isCrc(algorithm)) return piece;
  const { use, body } = newBlob;
  const range = { offsetBytes: 0, sizeBytes: piece.sizeBytes };
  const manifest = { kind: 'direct' as const, uses: [use], segments: [{ use: 0, ...range }], parts: [] };
  const bytes = {
    calls,
    kek,
    manifest,
    range,
    reread: async () => manifest,
    ...(body && { inlineBody: body }),
  };
  const crc = await checksumOfRange(path, bytes, algorithm);
  return { ...piece, crcs: { ...piece.crcs, [algorithm]: crc } };
}

/** Moves the piece's data key under another object's key. */
function rewrap(
  { keys }: DataPath,
  piece: AppendedPiece,
  { from, to }: { from: Uint8Array; to: Uint8Array },
): AppendedPiece {
  const births = piece.births.map((newBlob) => ({
    ...newBlob,
    use: keys.rewrapUse(newBlob.use, { from, to }),
  }));
  return { ...piece, births };
}
