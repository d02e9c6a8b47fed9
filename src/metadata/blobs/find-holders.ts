// Who holds the links to certain blobs, as far as links say so: the shards, and manifests of compositions. By it a search for
// the versions that use a blob knows where to look, and when it has found all.
import type { BlobHolders } from '../../ports/metadata/checks.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, StateReader } from '../../ports/state-machine.ts';
import type { BlobId } from '../../types/names.ts';
import { linkCodec } from '../../types/records/rows.ts';
import { linkRange } from '../schema/keyspace.ts';

/** Of one blob. */
const LINKS_READ_MAX = 1000;

export const findHolders: QuerySpec<QueryOf<'find-holders'>, ResultOf<'find-holders'>> = {
  async run({ blobIds }, state) {
    return { holders: await Promise.all(blobIds.map((blobId) => holdersOf(blobId, state))) };
  },
};

async function holdersOf(blobId: BlobId, state: Pick<StateReader, 'range'>): Promise<BlobHolders> {
  const counts = new Map<number, number>();
  const manifests = new Set<BlobId>();
  for (const { value } of await state.range(linkRange(blobId, LINKS_READ_MAX))) {
    const { shard, inManifest } = linkCodec.decode(value);
    counts.set(shard, (counts.get(shard) ?? 0) + 1);
    if (inManifest !== undefined) manifests.add(inManifest);
  }
  const shards = [...counts].map(([shard, linkCount]) => ({ shard, linkCount }));
  return { shards, manifests: [...manifests] };
}
