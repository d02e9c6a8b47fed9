// Names what is damaged or missing in the words of its owner: which versions, and parts of open uploads, use the data that
// was found so. That is what has to be uploaded again.

import type { QueryOf, ResultOf } from '../ports/metadata/port.ts';
import type { FindingPlace } from '../types/findings.ts';
import type { BlobId } from '../types/names.ts';
import type { FsckRun } from './run.ts';

/** Asked for in one pass over all versions. */
const BLOBS_AT_ONCE = 1000;
/** Only uses are read of them. */
const PAGE_ROWS = 200;

type User = ResultOf<'find-users'>['users'][number];

/** Reports each version and part that uses one of `run.lostBlobs`, once for each of these. */
export async function nameDamage(run: FsckRun): Promise<void> {
  const all = [...run.lostBlobs];
  for (let from = 0; from < all.length; from += BLOBS_AT_ONCE)
    await nameUsers(run, new Set(all.slice(from, from + BLOBS_AT_ONCE)));
}

async function nameUsers(run: FsckRun, blobs: ReadonlySet<BlobId>): Promise<void> {
  /** Blobs that a manifest leads to, by the manifest: a version knows of that alone. */
  const within = new Map<BlobId, Set<BlobId>>();
  for await (const { blobId, place } of usersOf(run, 'manifestPages', [...blobs])) {
    const manifest = place.manifest as BlobId;
    within.set(manifest, (within.get(manifest) ?? new Set()).add(blobId));
  }
  const asked = [...blobs, ...within.keys()];
  for (const table of ['objects', 'parts'] as const)
    for await (const { blobId, place } of usersOf(run, table, asked))
      for (const blob of within.get(blobId) ?? [blobId]) run.found('object-damaged', { ...place, blob });
}

async function* usersOf(
  run: FsckRun,
  table: QueryOf<'find-users'>['table'],
  blobIds: BlobId[],
): AsyncGenerator<User & { place: FindingPlace }> {
  for (const shard of run.shards) {
    for (let after: Uint8Array | undefined; ; ) {
      const query = { blobIds, table, ...(after && { after }), limit: PAGE_ROWS };
      const { users, next } = await run.ask(shard, 'find-users', query);
      for (const { blobId, place } of users) yield { blobId, place: { shard, ...place } };
      if (next === undefined) break;
      after = next;
    }
  }
}
