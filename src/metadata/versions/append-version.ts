// Append: the version that is current in this moment, with one more piece behind its bytes (service 4.2). Where the
// bucket keeps versions it stays, and the new one has links of its own to its data; else the new one takes its links over.

import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { AppendedPiece, AppendedVersion, NewVersion } from '../../ports/metadata/versions.ts';
import type { DecideContext, RowPut } from '../../ports/state-machine.ts';
import { type Checksum, isCrc } from '../../types/checksums.ts';
import { joinChecksums } from '../../types/join-checksums.ts';
import { LIMITS } from '../../types/limits.ts';
import { paddedBytesOf, paddedTo } from '../../types/metered.ts';
import type { BlobId } from '../../types/names.ts';
import { composedETag, joinOriginals, packOriginals } from '../../types/originals.ts';
import { piecesOf, planCompaction } from '../../types/plan-compaction.ts';
import { checkWriteConditions } from '../../types/preconditions.ts';
import {
  growingUse,
  isComposed,
  isSameKek,
  linksOf,
  type Manifest,
  ownBody,
  type VersionRecord,
} from '../../types/version.ts';
import { mayHaveOlderVersions } from '../../types/versioning.ts';
import { isLaidAlready, layPiece, lookAtPiece } from '../blobs/grow-blob.ts';
import { grantLocks, ownLinkPut } from '../blobs/links.ts';
import { joinChanges } from '../blobs/repair-entries.ts';
import { findBucket, openBucket } from '../buckets/buckets.ts';
import { noteCreated } from '../events/note-events.ts';
import { mayBeStored } from '../outcomes/outcome-bounds.ts';
import { keepOutcome, lookAtToken, storedOutcome, tokenLocks } from '../outcomes/tokens.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { loadHistory, lookAtHistory } from './key-history.ts';
import { putHistories } from './put-histories.ts';
import { beginLinks, lookAtLinked, takesPlaceOf, withLink } from './take-over-links.ts';
import { refuse, writeScope, writeVersion } from './write-version.ts';

type Command = CommandOf<'append-version'>;
type Outcome = OutcomeOf<'append-version'>;

export const appendVersion = defineCommand<Command, Outcome>({
  locks: (command) => [
    shared(LOCK.bucket(command.bucketId)),
    exclusive(LOCK.key(command.bucketId, command.key)),
    ...grantLocks(grantOf(command)),
    // Copies of the object use its last blob, too: who lets it grow has it alone.
    ...(command.growingId === undefined ? [] : [exclusive(LOCK.blob(command.growingId))]),
    ...tokenLocks(command),
  ],

  look(command, view) {
    const { bucketId, key } = command;
    const bucket = findBucket(view, bucketId);
    const scope = writeScope(bucketId, key, bucket?.versioning);
    lookAtHistory(view, scope);
    lookAtPiece(pieceToLay(command), view);
    lookAtToken(command, view);
    // Elsewhere what is written always replaces what is there.
    if (bucket === undefined || !mayHaveOlderVersions(bucket.versioning)) return;
    const before = loadHistory(view, bucket, scope).currentObject;
    if (before !== undefined && !takesPlaceOf(before, bucket.versioning)) lookAtLinked(before.manifest, view);
  },

  decide(command, view, context) {
    const { bucketId, key, piece } = command;
    if (isLaidAlready(piece, view)) return refuse({ kind: 'exists' });
    const stored = storedOutcome<AppendedVersion>(command, view, context.nowMs);
    if (stored !== undefined) return refuse(stored);
    const bucket = openBucket(view, bucketId);
    const history = loadHistory(view, bucket, writeScope(bucketId, key, bucket.versioning));
    const before = history.currentObject;
    const refusal = refusalOf(command, before);
    if (refusal !== undefined || before === undefined) return refuse(refusal ?? { kind: 'no-such-key' });
    const { sizeBytes } = before;
    const takesItsPlace = takesPlaceOf(before, bucket.versioning);
    const carried = takesItsPlace ? before.manifest : withLink(before.manifest, command.linkId);
    const laid = layPiece({ ...pieceToLay(command), carried, sizeBytes, bucketId, view, context });
    if (laid.kind === 'ends-with-other') return refuse({ kind: 'other-key' });
    if (laid.kind !== 'laid') return refuse(laid);
    const version = extend(before, command, { manifest: laid.manifest, takesItsPlace });
    const written = writeVersion({ bucket, history, version, context });
    if (written.kind === 'blocked') return refuse(written);
    const outcome = outcomeOf(written, version);
    const grownId = grownIn(carried, laid.manifest);
    const links = takesItsPlace
      ? [...markComposed(before, bucketId, context), ...markGrown(before, grownId, { bucketId, context })]
      : beginLinks(carried, { view, context, composedIn: bucketId, chargedId: grownId });
    const placed = putHistories({ bucket, histories: [history], context });
    const { owner } = bucket;
    const keeping = keepOutcome(command, outcome, { owner, nowMs: context.nowMs, view });
    if (!mayBeStored(owner, keeping.counters, context)) return refuse({ kind: 'too-much-kept' });
    const noted = noteCreated(bucket, context, { type: 's3:ObjectCreated:Put', key, version, written });
    return { outcome, ...joinChanges([laid, placed, { puts: links, counters: [] }, keeping, noted]) };
  },
});

function grantOf({ piece }: Command) {
  return { births: piece.births, links: [] };
}

function pieceToLay({ piece, growingId, beginsAnew }: Command) {
  return { piece, growingId, beginsAnew: beginsAnew === true };
}

function refusalOf(command: Command, before: VersionRecord | undefined): Outcome | undefined {
  const { piece, kek, offsetBytes, conditions } = command;
  if (before === undefined) return { kind: 'no-such-key' };
  const refusal = checkWriteConditions(before, conditions);
  if (refusal !== undefined) return refusal;
  const { sizeBytes, appendCount = 0 } = before;
  if (offsetBytes !== undefined && offsetBytes !== sizeBytes) return { kind: 'wrong-offset', sizeBytes };
  if (appendCount >= LIMITS.appendCountMax) return { kind: 'too-many-appends' };
  if (sizeBytes + piece.sizeBytes > LIMITS.objectBytesMax) return { kind: 'too-large' };
  const isMadeForIt = isSameKek(before.kek, kek.found) && !endsChecksum(piece, before);
  return isMadeForIt ? undefined : { kind: 'other-key' };
}

/** A copy may have given the object a checksum of another algorithm, under the same key. */
function endsChecksum(piece: AppendedPiece, before: VersionRecord): boolean {
  const { checksum } = before;
  const couldGoOn = checksum?.type === 'FULL_OBJECT' && isCrc(checksum.algorithm);
  return couldGoOn && piece.sizeBytes > 0 && crcOf(piece, before) === undefined;
}

/** An append without bytes leaves the data as it is, with its ETag and checksum: only the version is another one. */
function extend(
  before: VersionRecord,
  { piece, kek }: Command,
  { manifest, takesItsPlace }: { manifest: Manifest; takesItsPlace: boolean },
): NewVersion {
  const { owner, sealedHeaders, tags, acl, appendCount = 0 } = before;
  const ofPiece = piece.sizeBytes === 0 ? 0 : paddedTo(piece.sizeBytes);
  const stored = {
    owner,
    kek: kek.renewed,
    ...(sealedHeaders && { sealedHeaders }),
    ...(tags && { tags }),
    ...(acl && { acl }),
    appendCount: appendCount + 1,
    chargedBytes: ofPiece + (takesItsPlace ? paddedBytesOf(before) : 0),
    manifest,
  };
  if (piece.sizeBytes === 0) {
    const { sizeBytes, etag, originals, checksum } = before;
    return { ...stored, sizeBytes, etag, originals, ...(checksum && { checksum }) };
  }
  const originals = joinOriginals(before.originals, packOriginals(piece));
  const checksum = joinChecksums([before, { sizeBytes: piece.sizeBytes, checksum: crcOf(piece, before) }]);
  return {
    ...stored,
    sizeBytes: before.sizeBytes + piece.sizeBytes,
    etag: composedETag(originals),
    originals,
    ...(checksum && { checksum }),
  };
}

/** In the algorithm of the object's own. */
function crcOf({ crcs }: AppendedPiece, { checksum }: VersionRecord): Checksum | undefined {
  if (checksum === undefined) return undefined;
  const { algorithm } = checksum;
  const { [algorithm]: value } = crcs;
  return value === undefined ? undefined : { algorithm, type: 'FULL_OBJECT', value };
}

function outcomeOf(
  written: { kind: 'committed' } & Pick<AppendedVersion, 'versionId' | 'versioning' | 'modifiedAtMs'>,
  { etag, sizeBytes, checksum, appendCount, manifest }: NewVersion,
): AppendedVersion {
  const mayFold = planCompaction(piecesOf(ownBody(manifest), appendCount)) !== undefined;
  const growingId = growingUse(manifest)?.blobId;
  return {
    ...written,
    etag,
    sizeBytes,
    ...(checksum && { checksum }),
    mayFold,
    ...(growingId && { growingId }),
  };
}

/** The blob that the piece was laid into, where that was there before. */
function grownIn(carried: Manifest, after: Manifest): BlobId | undefined {
  const [before, now] = [growingUse(carried), growingUse(after)];
  return before !== undefined && before.blobId === now?.blobId ? now.blobId : undefined;
}

/**
 * A copy of what was appended to, which is charged for nothing: from here on it is for what has come into the blob of pieces that
 * it shares. The pieces of others in it are not orphaned as long as it is there.
 */
function markGrown(
  before: VersionRecord,
  grownId: BlobId | undefined,
  { bucketId, context }: { bucketId: Command['bucketId']; context: DecideContext },
): RowPut[] {
  if (!isComposed(before) || (before.chargedBytes ?? 0) > 0) return [];
  return linksOf(before.manifest)
    .filter(({ blobId }) => blobId === grownId)
    .map((name) => ownLinkPut(name, context.shard, { composedIn: bucketId, isCharged: true }));
}

/**
 * From here on its links are those of a composition, which goes on being charged for what it has taken over. Those of pages
 * stay: there may be thousands.
 */
function markComposed(
  before: VersionRecord,
  bucketId: Command['bucketId'],
  context: DecideContext,
): RowPut[] {
  if (isComposed(before)) return [];
  return linksOf(before.manifest).map((name) =>
    ownLinkPut(name, context.shard, { composedIn: bucketId, isCharged: true }),
  );
}
