// Compacts small pieces of the current version into one blob of the same bytes, so that readers need fewer look-ups.
// Neither ETag nor version id, times or originals change; what was appended meanwhile lies behind the pieces and is not
// touched. Where the bucket keeps versions, each append has made another one of the same pieces under links of its own: the
// older ones keep those, and what is appended from here on has the compacted blob. Compacting a version that is no longer
// current would help nobody, and its blob would stay for as long as that version does.

import { assert } from '../../base/assert.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { CompactedSegment } from '../../ports/metadata/versions.ts';
import type { DecideContext, View } from '../../ports/state-machine.ts';
import { type CompactedSource, compactedRanges, packRanges } from '../../types/compacted-from.ts';
import { paddedTo } from '../../types/metered.ts';
import { homeShardOf } from '../../types/names.ts';
import { chargedOf } from '../../types/records/rows.ts';
import { isSameKek, linksOf, mayBeCompacted, type VersionRecord } from '../../types/version.ts';
import {
  admitGrant,
  endLinks,
  existsAlready,
  findBlob,
  grantLocks,
  linksOnlyIn,
  lookAtGrant,
} from '../blobs/links.ts';
import { joinChanges } from '../blobs/repair-entries.ts';
import { findBucket } from '../buckets/buckets.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { blobRow } from '../schema/keyspace.ts';
import { replaceRun } from './grow-manifest.ts';
import { type HistoryScope, loadHistory, lookAtHistory } from './key-history.ts';
import { refuse } from './write-version.ts';

type Command = CommandOf<'fold-version'>;

export const compactVersion = defineCommand<Command, OutcomeOf<'fold-version'>>({
  locks: (command) => [
    shared(LOCK.bucket(command.bucketId)),
    exclusive(LOCK.key(command.bucketId, command.key)),
    ...grantLocks(grantOf(command)),
  ],

  look(command, view) {
    lookAtHistory(view, scopeOf(command, findBucket(view, command.bucketId)?.versioning));
    lookAtGrant(grantOf(command), view);
    for (const { blobId } of command.run) view.row(blobRow(blobId));
  },

  decide(command, view, context) {
    const { bucketId, run, birth } = command;
    const grant = grantOf(command);
    if (existsAlready(grant, view)) return refuse({ kind: 'exists' });
    // It bears no claim on the bucket's name and settings, which matter to nobody here (R45).
    const bucket = findBucket(view, bucketId);
    if (bucket?.state !== 'open') return refuse({ kind: 'changed' });
    const history = loadHistory(view, bucket, scopeOf(command, bucket.versioning));
    const version = sameObject(history.currentObject, command);
    const replaced = version && replaceRun(version.manifest, run, birth.use);
    if (version === undefined || replaced === undefined) return refuse({ kind: 'changed' });
    const { manifest, use } = replaced;
    const runBytes = run.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    assert(runBytes === birth.use.sizeBytes, 'what is folded keeps its size');
    const compactedGrant = { births: [{ ...birth, use }], links: [] };
    const ranges = compactedRanges(run.map((segment) => sourceOf(segment, view, context)));
    const foldedFrom = ranges.length > 0 ? packRanges(ranges) : undefined;
    const chargedBytes = run.reduce((sum, segment) => sum + chargedIn(segment, view), 0);
    const holder = { composedIn: bucketId, isCharged: true as const };
    const grants = { grant: compactedGrant, names: [use], ...holder, foldedFrom, chargedBytes };
    const admitted = admitGrant({ ...grants, view, context });
    if (admitted.kind !== 'admitted') return refuse(admitted);
    const ended = linksOnlyIn(linksOf(version.manifest), linksOf(manifest));
    const kin = {
      puts: [history.rewritten(version, { ...version, manifest }), ...endLinks(ended, context.nowMs)],
      counters: [],
    };
    return { outcome: { kind: 'folded' }, ...joinChanges([admitted, kin]) };
  },
});

function grantOf({ birth }: Command) {
  return { births: [birth], links: [] };
}

/** Another one may have come in its place, of the same data even: what was composed, and not appended to, stays as it is. */
function sameObject(version: VersionRecord | undefined, { kek }: Command): VersionRecord | undefined {
  return version !== undefined && isSameKek(version.kek, kek) && mayBeCompacted(version)
    ? version
    : undefined;
}

/**
 * What becomes of its blob: it lives on where it was ever shared, as in each version that an append made. Blobs are not locked
 * for that: with a link that is begun at this moment its bytes are counted twice, and no worse.
 */
function sourceOf(segment: CompactedSegment, view: View, { shard }: DecideContext): CompactedSource {
  const { blobId, offsetBytes, sizeBytes } = segment;
  const blob = findBlob(view, blobId);
  // Of another home only that is known which this shard holds of it.
  const livesOn = homeShardOf(blobId) === shard ? blob?.isShared === true : true;
  return { blobId, offsetBytes, sizeBytes, livesOn, foldedFrom: blob?.foldedFrom };
}

/** Of a blob that is compacted as a whole all that it is charged by, however many pieces are in it. */
function chargedIn({ blobId, sizeBytes }: CompactedSegment, view: View): number {
  const blob = findBlob(view, blobId);
  return blob?.sizeBytes === sizeBytes ? chargedOf(blob) : paddedTo(sizeBytes);
}

function scopeOf({ bucketId, key }: Command, versioning: HistoryScope['versioning']): HistoryScope {
  return { bucketId, key, versioning, versionIds: [], removalsMax: 0 };
}
