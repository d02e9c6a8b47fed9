// A version's data under its next version: copy onto itself, append. Where the old one goes, the new one has its links;
// where it stays, links of its own. There is no moment without any, and that is why no blob needs a lock: of one that is not
// shared yet everybody writes the row with the same note, and that of one that grows is never written for it (grow-blob.ts).
// Two uses of a blob of pieces, which saw it at different times, come to have one link, and it ends with the last of them.

import type { DecideContext, RowPut, View } from '../../ports/state-machine.ts';
import { type BlobId, type BucketId, type LinkId, NULL_VERSION } from '../../types/names.ts';
import { linksOf, type Manifest, type VersionRecord } from '../../types/version.ts';
import { type Versioning, writesNullVersion } from '../../types/versioning.ts';
import { ownLinkPut, sharePuts } from '../blobs/links.ts';
import { blobRow } from '../schema/keyspace.ts';

/** Whether what is written next replaces `source`, the latest version. */
export function takesPlaceOf(source: Pick<VersionRecord, 'versionId'>, versioning: Versioning): boolean {
  return writesNullVersion(versioning) && source.versionId === NULL_VERSION;
}

/** The same data under a link of its own on each blob; a link id distinguishes links of one blob. */
export function withLink(manifest: Manifest, linkId: LinkId): Manifest {
  if (manifest.kind === 'direct')
    return { ...manifest, uses: manifest.uses.map((use) => ({ ...use, linkId })) };
  const { tail } = manifest;
  return {
    ...manifest,
    linkId,
    ...(tail && { tail: { ...tail, uses: tail.uses.map((use) => ({ ...use, linkId })) } }),
  };
}

/** What `beginLinks` looks at. */
export function lookAtLinked(manifest: Manifest, view: View): void {
  for (const { blobId } of linksOf(manifest)) view.row(blobRow(blobId));
}

/** The rows of a manifest's links, all of them new. `chargedId`: the blob that its version has added to, and is charged for. */
export function beginLinks(
  manifest: Manifest,
  options: {
    view: View;
    context: DecideContext;
    composedIn?: BucketId | undefined;
    chargedId?: BlobId | undefined;
  },
): RowPut[] {
  const { view, context, composedIn, chargedId } = options;
  const names = linksOf(manifest);
  const puts = names.map((name) => {
    const isCharged = name.blobId === chargedId ? true : undefined;
    return ownLinkPut(name, context.shard, { composedIn, isCharged });
  });
  return [...puts, ...sharePuts(names, view)];
}
