// What is said of claims on blobs of other homes (R30), as plain data: by commands and queries of metadata-commands.ts and
// metadata-queries.ts.
import type { BlobId, LinkId } from '../model/names.ts';

/** A claim that nobody has confirmed yet. */
export interface PendingClaim {
  blobId: BlobId;
  linkId: LinkId;
  /** Who has made it. */
  shard: number;
  /** By the home's time; absent where a shard has told anew what it holds (R23). */
  claimedAtMs?: number;
}

/** What the claiming shard said of it. One that was claimed at another time than this is not meant. */
export interface SettledClaim {
  blobId: BlobId;
  linkId: LinkId;
  verdict: 'confirmed' | 'dropped';
  claimedAtMs?: number;
}
