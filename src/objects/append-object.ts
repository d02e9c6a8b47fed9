// THE APPEND STORY: find the object and its key, take the body in as for a PUT but under that key, commit: the shard puts
// the piece behind whatever is current then, so appends do not get into each other's way. Where the object was replaced
// meanwhile, by one with another key, only the key of the piece is wrapped anew. Small pieces are folded afterwards.
import { AppError } from '../model/errors.ts';
import { LIMITS } from '../model/limits.ts';
import { FOLD_APPENDED } from '../model/plan-fold.ts';
import { checkWriteConditions } from '../model/preconditions.ts';
import type { VersionRecord } from '../model/version.ts';
import type { AppendedPiece, AppendedVersion } from '../ports/compose-calls.ts';
import type { OutcomeOf } from '../ports/metadata.ts';
import { newLinkId } from './claim-links.ts';
import { composedAnswer, refusedComposition, requireMasterKey } from './composed-answer.ts';
import type { DataPath } from './data-path.ts';
import { checksumOf, claimedAlgorithm, md5Hex } from './digests.ts';
import type { FoldPieces } from './fold-pieces.ts';
import type { AppendObject, Written } from './object-store.ts';
import type { WrittenBody } from './write-body.ts';
import { abandonRefused, refusedCommit, sendCommit, takeIn } from './write-object.ts';

type Outcome = OutcomeOf<'append-version'>;
type Refusal = Exclude<Outcome, { kind: 'committed' } | { kind: 'other-key' }>;

/** Throws AppError as putObject does, and NoSuchKey, InvalidWriteOffset, EncryptionNotAllowed, InvalidRequest, EntityTooLarge. */
export async function appendObject(
  path: DataPath,
  folding: FoldPieces,
  input: AppendObject,
): Promise<Written> {
  const { calls, bucket, key, body } = input;
  const shard = bucket.homeShard;
  let current = await findFirst(path, input);
  let kek = path.keys.openKek(current.kek);
  const kept = current.checksum?.algorithm ?? claimedAlgorithm(body);
  const written = await takeIn(path, input, { shard, kek, body, kept });
  let piece = pieceOf(written);
  for (let attempt = 0; attempt < LIMITS.linkAttemptsMax; attempt++) {
    const value = await sendPiece(path, input, { written, piece, current });
    if (value.kind === 'committed') {
      if (value.mayFold) folding.schedule({ calls, bucket, key, rule: FOLD_APPENDED });
      return composedAnswer(value);
    }
    if (value.kind !== 'other-key') return refuse(written, value, key);
    try {
      current = await findCurrent(input);
    } catch (error) {
      await written.abandon();
      throw error;
    }
    const next = path.keys.openKek(current.kek);
    piece = rewrap(path, piece, { from: kek, to: next });
    kek = next;
  }
  await written.abandon();
  throw new AppError('ServiceUnavailable');
}

/** What the piece is made for. */
type Grown = Pick<VersionRecord, 'kek' | 'checksum'>;

/**
 * As findCurrent, and what fails now is refused. With a token it may be a request that has been answered already, whatever
 * has become of the object since (extensions.md 2.1): that is known with its body, to the shard alone.
 */
async function findFirst(path: DataPath, input: AppendObject): Promise<Grown> {
  const mayBeRepeated = input.tokenOf !== undefined;
  try {
    const current = await findCurrent(input);
    if (input.body.isUnasked && !mayBeRepeated) refuseEarly(input, current);
    return current;
  } catch (error) {
    const isNone = error instanceof AppError && ['NoSuchKey', 'EncryptionNotAllowed'].includes(error.code);
    if (mayBeRepeated && isNone) return { kek: path.keys.newKek().wrapped };
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
  if (sizeBytes + body.sizeBytes > LIMITS.objectBytesMax) throw refusedAppend({ kind: 'too-large' }, key);
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
  { written, piece, current }: { written: WrittenBody; piece: AppendedPiece; current: Grown },
): Promise<Outcome> {
  const shard = bucket.homeShard;
  const { kek: found } = current;
  if (found === undefined) throw new AppError('InternalError');
  const token = tokenOf?.(piece);
  const linkId = newLinkId(path, await path.times.timeMs(calls, shard));
  const { value } = await sendCommit(written, () =>
    calls.execute({ shard, bucket: bucket.claim }, 'append-version', {
      ...{ bucketId: bucket.claim.bucketId, key, piece, linkId },
      kek: { found, renewed: path.keys.renewKek(found) },
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

/** The piece with its data key under another object's key. */
function rewrap(
  { keys }: DataPath,
  piece: AppendedPiece,
  { from, to }: { from: Uint8Array; to: Uint8Array },
): AppendedPiece {
  const births = piece.births.map((birth) => {
    const { use } = birth;
    const wrappedDataKey = keys.wrapDataKey(to, use.blobId, keys.openDataKey(from, use));
    return { ...birth, use: { ...use, wrappedDataKey } };
  });
  return { ...piece, births };
}
