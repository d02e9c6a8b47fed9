// Links to existing data, which a copy needs before its commit (R26-R28). The commit itself links blobs of the target's
// shard; blobs of other homes are claimed there first.
import { must } from '../base/assert.ts';
import type { LinkGrant } from '../ports/metadata/blobs.ts';
import { type BlobId, homeShardOf, type LinkId, makeLinkId } from '../types/names.ts';
import { type Manifest, type ManifestBody, type Segment, widerUse } from '../types/version.ts';
import type { DataPath } from './data-path.ts';
import type { MetadataCalls } from './object-store.ts';

/** Blobs per command: bounds what one entry writes. */
const CLAIM_BLOBS_MAX = 500;

/** One link id serves all blobs of a version or part: it distinguishes links of one blob. */
export function newLinkId(path: DataPath, timeMs: number): LinkId {
  return makeLinkId({ timeMs, random: path.random.bytes(10) });
}

/**
 * Grants for a commit in `shard`. `gone`: a home no longer has one of the blobs; links that were claimed before are
 * resolved by R30.
 */
export async function claimLinks(options: {
  calls: MetadataCalls;
  /** The shard of the new version or part. */
  shard: number;
  linkId: LinkId;
  /** Each once. */
  blobIds: readonly BlobId[];
}): Promise<{ kind: 'claimed'; links: LinkGrant[] } | { kind: 'gone' }> {
  const { calls, shard, linkId, blobIds } = options;
  const links: LinkGrant[] = [];
  for (const [home, ofHome] of Map.groupBy(blobIds, homeShardOf)) {
    if (home === shard) {
      links.push(...ofHome.map((blobId) => ({ blobId, linkId })));
      continue;
    }
    for (let at = 0; at < ofHome.length; at += CLAIM_BLOBS_MAX) {
      const some = ofHome.slice(at, at + CLAIM_BLOBS_MAX);
      const { value } = await calls.execute({ shard: home }, 'claim-links', {
        shard,
        linkId,
        blobIds: some,
      });
      if (value.kind === 'gone') return { kind: 'gone' };
      links.push(
        ...some.map((blobId, index) => ({
          blobId,
          linkId,
          claim: must(value.layouts[index], 'a layout each'),
        })),
      );
    }
  }
  return { kind: 'claimed', links };
}

/** The same data under a new link; each blob is used once however many segments it has (R26). */
export function relink(body: ManifestBody, linkId: LinkId): ManifestBody {
  const indexOf = new Map<BlobId, number>();
  const uses: ManifestBody['uses'] = [];
  const segments = body.segments.map(({ use, offsetBytes, sizeBytes }): Segment => {
    const source = must(body.uses[use], 'a segment names a use of its manifest');
    let index = indexOf.get(source.blobId);
    if (index === undefined) {
      index = uses.push({ ...source, linkId }) - 1;
      indexOf.set(source.blobId, index);
    } else {
      const known = must(uses[index], 'a use that was laid');
      uses[index] = { ...widerUse(known, source), linkId };
    }
    return { use: index, offsetBytes, sizeBytes };
  });
  return { uses, segments };
}

/** The data of a manifest under new links: one for the blobs that the version names, or one for its pages. */
export function relinkManifest(manifest: Manifest, linkId: LinkId): Manifest {
  if (manifest.kind === 'direct') return { ...manifest, ...relink(manifest, linkId) };
  const { tail } = manifest;
  return { ...manifest, linkId, ...(tail && { tail: { ...tail, ...relink(tail, linkId) } }) };
}
