// THE APPEND STORY: find the object and its key, or remember them from the last append; take the body in as for a PUT but
// under that key, commit: the shard puts the piece behind whatever is current then, so appends do not get into each other's
// way. Where the object was replaced meanwhile, by one with another key, only the key of the piece is wrapped anew. Small
// pieces are folded afterwards.
import { must } from '../base/assert.ts';
import { BoundedMap } from '../base/bounded-map.ts';
import type { AppendedPiece, AppendedVersion } from '../ports/compose-calls.ts';
import type { CommandOf, OutcomeOf } from '../ports/metadata.ts';
import { type ChecksumAlgorithm, isCrc } from '../types/checksums.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import type { BlobId } from '../types/names.ts';
import { FOLD_APPENDED } from '../types/plan-fold.ts';
import { checkWriteConditions } from '../types/preconditions.ts';
import { growingUse, type VersionRecord, type WrappedKek } from '../types/version.ts';
import { newLinkId } from './claim-links.ts';
import { composedAnswer, refusedComposition, requireMasterKey } from './composed-answer.ts';
import type { DataPath } from './data-path.ts';
import { checksumOf, claimedAlgorithm, md5Hex } from './digests.ts';
import type { FoldPieces } from './fold-pieces.ts';
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
  after: { folding: FoldPieces; recent: RecentAppends },
  input: AppendObject,
): Promise<Written> {
  const { calls, bucket, key, body } = input;
  const shard = bucket.homeShard;
  const id = `${bucket.claim.bucketId}/${key}`;
  let current = await findFirst(path, input, after.recent.get(id));
  // Who comes while this one is under way, or after it failed, looks for itself.
  after.recent.delete(id);
  let kek = path.keys.openKek(current.kek);
  const kept = current.algorithm ?? claimedAlgorithm(body);
  const grownPieceBytesMax = Math.min(path.settings.inlineBodyBytesMax, LIMITS.grownPieceBytesMax);
  const written = await takeIn(path, input, { shard, kek, body, kept, grownPieceBytesMax });
  let piece = pieceOf(written);
  let beginsAnew = false;
  for (let attempt = 0; attempt < LIMITS.linkAttemptsMax; attempt++) {
    const renewed = path.keys.renewKek(current.kek);
    const { growingId } = current;
    const value = await sendPiece(path, input, {
      ...{ written, piece, growingId, beginsAnew },
      kek: { found: current.kek, renewed },
    });
    if (value.kind === 'committed') {
      if (value.mayFold) after.folding.schedule({ calls, bucket, key, rule: FOLD_APPENDED });
      const { checksum } = value;
      after.recent.set(id, { kek: renewed, algorithm: checksum?.algorithm, growingId: value.growingId });
      return composedAnswer(value);
    }
    if (value.kind !== 'other-key') return refuse(written, value, key);
    if (attempt + 1 === LIMITS.linkAttemptsMax) break;
    try {
      current = grownOf(await findCurrent(input));
      // Others append to it, too, by other gateways or at once. A blob that is named again did not take the piece: a copy
      // has let it grow.
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

/** Of an append, at the object that it is for: behind them a piece goes where it can. */
const LOOKS_MAX = 2;

/** What the piece is made for. */
interface Grown {
  kek: WrappedKek;
  /** Of the object's checksum. */
  algorithm: ChecksumAlgorithm | undefined;
  /** The blob of pieces that it ends with. */
  growingId: BlobId | undefined;
}

function grownOf({ kek, checksum, manifest }: VersionRecord): Grown {
  const growingId = growingUse(manifest)?.blobId;
  return { kek: must(kek, 'a version with data has a key'), algorithm: checksum?.algorithm, growingId };
}

/**
 * Objects as a gateway's last appends have left them, so that the next one need not look them up. The shard compares: where
 * the object is another one by now, the append is as one whose object was replaced while its body came.
 */
export type RecentAppends = BoundedMap<string, Grown>;

export function createRecentAppends(): RecentAppends {
  return new BoundedMap(LIMITS.recentAppendsMax);
}

/**
 * As findCurrent, and what fails now is refused: what is remembered does where nobody waits to hear of that. With a token it
 * may be a request that has been answered already, whatever has become of the object since (extensions 2.1): that is known
 * with its body, to the shard alone.
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

/** The version that is to grow. NoSuchKey, also for a delete marker. */
async function findCurrent({ calls, bucket, key }: AppendObject): Promise<VersionRecord> {
  const { value } = await calls.query({ shard: bucket.homeShard, bucket: bucket.claim }, 'get-version', {
    ...{ bucketId: bucket.claim.bucketId, key, includeBody: false },
  });
  if (value.kind !== 'found') throw new AppError('NoSuchKey', { fields: { Key: key } });
  requireMasterKey(value.version);
  return value.version;
}

/** What fails now is refused before its body is asked for; who sends it unasked is heard to the end. */
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
    ...{ sizeBytes, births, md5: md5Hex(written) },
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
    calls.execute({ shard, bucket: bucket.claim }, 'append-version', {
      ...{ bucketId: bucket.claim.bucketId, key, piece, linkId, kek },
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

/** The object that has come in the place of the one that was found may have a checksum of another algorithm. */
async function withChecksum(
  path: DataPath,
  piece: AppendedPiece,
  { calls, kek, current }: { calls: MetadataCalls; kek: Uint8Array; current: Grown },
): Promise<AppendedPiece> {
  const { algorithm } = current;
  const [birth] = piece.births;
  const isThere = algorithm === undefined || piece.crcs[algorithm] !== undefined;
  if (isThere || birth === undefined || !isCrc(algorithm)) return piece;
  const { use, body } = birth;
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

/** The piece with its data key under another object's key. */
function rewrap(
  { keys }: DataPath,
  piece: AppendedPiece,
  { from, to }: { from: Uint8Array; to: Uint8Array },
): AppendedPiece {
  const births = piece.births.map((birth) => ({ ...birth, use: keys.rewrapUse(birth.use, { from, to }) }));
  return { ...piece, births };
}
