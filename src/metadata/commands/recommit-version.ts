// Copy onto itself with new headers: the same data under another version. There is no moment at which its blobs are
// without a link of this key, and that is why none of them needs a lock.
import { assert } from '../../lib/assert.ts';
import { type LinkId, NULL_VERSION } from '../../model/names.ts';
import { dataLinkId, linksOf, type Manifest, type VersionRecord } from '../../model/version.ts';
import { writesNullVersion } from '../../model/versioning.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata.ts';
import type { DecideContext, RowPut, View } from '../../ports/state-machine.ts';
import { findBucket, openBucket } from '../buckets.ts';
import { defineCommand, exclusive, LOCK, shared } from '../define-command.ts';
import { loadHistory, lookAtHistory } from '../key-history.ts';
import { blobRow } from '../keyspace.ts';
import { ownLinkPut, sharePuts } from '../links.ts';
import { settleHistories } from '../settle-histories.ts';
import { refuse, writeScope, writeVersion } from '../write-version.ts';

type Command = CommandOf<'recommit-version'>;

export const recommitVersion = defineCommand<Command, OutcomeOf<'recommit-version'>>({
  locks: ({ bucketId, key }) => [shared(LOCK.bucket(bucketId)), exclusive(LOCK.key(bucketId, key))],

  look({ bucketId, key }, view) {
    const bucket = findBucket(view, bucketId);
    const scope = writeScope(bucketId, key, bucket?.versioning);
    lookAtHistory(view, scope);
    const source = bucket && loadHistory(view, bucket, scope).currentObject;
    if (source !== undefined) for (const { blobId } of linksOf(source.manifest)) view.row(blobRow(blobId));
  },

  decide({ bucketId, key, expected, version, linkId, ...command }, view, context) {
    assert(version.kek !== undefined, 'an object has a key');
    const bucket = openBucket(view, bucketId);
    const history = loadHistory(view, bucket, writeScope(bucketId, key, bucket.versioning));
    const source = history.currentObject;
    if (source === undefined || !isExpected(source, expected)) return refuse({ kind: 'changed' });
    const takesItsPlace = writesNullVersion(bucket.versioning) && source.versionId === NULL_VERSION;
    const manifest = takesItsPlace ? source.manifest : withLink(source.manifest, linkId);
    const { sizeBytes, etag, originals } = source;
    const { tags = source.tags } = command;
    const outcome = writeVersion({
      bucket,
      history,
      version: { sizeBytes, etag, originals, manifest, ...version, ...(tags?.length && { tags }) },
      context,
    });
    if (outcome.kind === 'blocked') return refuse(outcome);
    const begun = takesItsPlace ? [] : beginLinks(manifest, view, context);
    const settled = settleHistories({ bucketId, histories: [history], nowMs: context.nowMs });
    return { outcome, puts: [...begun, ...settled.puts], counters: settled.counters };
  },
});

function beginLinks(manifest: Manifest, view: View, { shard }: DecideContext): RowPut[] {
  const names = linksOf(manifest);
  return [...names.map((name) => ownLinkPut(name, shard)), ...sharePuts(names, view)];
}

function isExpected(version: VersionRecord, expected: Command['expected']): boolean {
  return (
    version.versionId === expected.versionId &&
    version.order === expected.order &&
    dataLinkId(version.manifest) === expected.dataLinkId
  );
}

/** The same data under a link of its own on each blob; a link id tells links of one blob apart. */
function withLink(manifest: Manifest, linkId: LinkId): Manifest {
  if (manifest.kind === 'paged') return { ...manifest, linkId };
  return { ...manifest, uses: manifest.uses.map((use) => ({ ...use, linkId })) };
}
