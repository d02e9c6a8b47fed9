// What is said of claims on blobs of other homes (R30), as plain data: by commands and queries of metadata-commands.ts and
// metadata-queries.ts.
import type { BlobId, LinkId } from '../types/names.ts';

/** A claim that nobody has confirmed yet: what is asked about. */
export interface AskedClaim {
  blobId: BlobId;
  linkId: LinkId;
  /** Of this making of the claim: the same id may be claimed again. Absent where it was made before there were any. */
  nonce?: string;
}

export interface PendingClaim extends AskedClaim {
  /** Who has made it. */
  shard: number;
}

/** What the claiming shard said of the claim that it was asked about. */
export interface SettledClaim extends AskedClaim {
  verdict: 'confirmed' | 'dropped';
}
