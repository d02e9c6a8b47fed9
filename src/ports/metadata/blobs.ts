// Commands and queries about blobs, the links and claims that hold them (R24 to R33), and the keys that wrap theirs.
import type { ChecksumAlgorithm } from '../../types/checksums.ts';
import type { BlobId, BucketId, LinkId } from '../../types/names.ts';
import type { HeldMasterKeys, MasterKeysRecord } from '../../types/records/master-keys-record.ts';
import type { BlobRecord, ForeignRecord, HistoryRecord } from '../../types/records/rows.ts';
import type { PlacedChunks } from '../../types/repair-entries.ts';
import type { BlobUse, WrappedKek } from '../../types/version.ts';

/** A new blob of this shard, with its own link, created by the entry that commits its version or part (R25). */
export interface NewBlob {
  use: BlobUse;
  chunkCrc32?: Uint8Array;
  chunkCrcs?: { algorithm: ChecksumAlgorithm; values: Uint8Array };
  /** Sealed bytes; present exactly when the layout says `inline`. */
  body?: Uint8Array;
  /** Where a placement map says which disks have its chunks: missing copies get a repair entry at once (R36). */
  placed?: PlacedChunks;
}

/** A link to existing data: `local` when this shard is the blob's home, else a claim made there (R26-R28). */
export interface LinkGrant {
  blobId: BlobId;
  linkId: LinkId;
  /** Absent for `local`. */
  claim?: ForeignRecord;
}

/** How the data of a new version or part is accounted for. Every use of the manifest is in exactly one list. */
export interface DataGrant {
  births: NewBlob[];
  links: LinkGrant[];
}

export type GrantRefusal =
  /** These blobs are marked for deletion or unknown: re-read the source (R26, R27). */
  | { kind: 'gone'; blobIds: BlobId[] }
  /** An id is too old or too new for this shard's time (R25, R28): begin again. */
  | { kind: 'late' }
  /** A blob of this id exists already (R24): its chunks may be in use, so nobody may drop them for this refusal. */
  | { kind: 'exists' };

/** A link that an entry ended; its blob may be without links now. */
export interface EndedLink {
  endedAtMs: number;
  blobId: BlobId;
  linkId: LinkId;
}

/** A claim as its holder has it. */
export interface HeldClaim {
  blobId: BlobId;
  linkId: LinkId;
  layout: ForeignRecord['layout'];
}

/** R23: nothing of this home may go before the operator has confirmed its history. */
export interface Unconfirmed {
  kind: 'unconfirmed';
}

/** The position of a blob in the queue of those that are marked for deletion. */
export interface MarkedBlobPlace {
  condemnedAtMs: number;
  blobId: BlobId;
}

/** Asks for what is charged as orphaned at the end of `day`: of what was stored `minimumDays` before that (extensions 6). */
export interface Charging {
  day: number;
  minimumDays: number;
}

export interface ComposedOnly {
  bucketId: BucketId;
  sizeBytes: number;
  blobCount: number;
}

/** Another shard has links to this blob. */
export interface BlobClaim {
  blobId: BlobId;
  shard: number;
}

/** Nothing of its home but compositions holds it, if anything does; the rest is known elsewhere. */
export interface ClaimedBlob {
  blobId: BlobId;
  sizeBytes: number;
  /** On itself; while no composition of its home is known to hold it also on manifests whose pages do. */
  claims: BlobClaim[];
  /** Of a composition of its home. */
  bucketId?: BucketId;
}

/**
 * `composition`: nothing but compositions, the first one of this bucket. `claimed`: nothing but pages of compositions' manifests,
 * which others have links to. `none`: the claim is one of a copy under way, or will be released.
 */
export type CompositionHolder =
  | { kind: 'composition'; bucketId: BucketId }
  | { kind: 'claimed'; claims: BlobClaim[] }
  | { kind: 'other' }
  | { kind: 'none' };

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
export interface ClaimVerdict extends AskedClaim {
  verdict: 'confirmed' | 'dropped';
}

export interface BlobCommands {
  /** R27, in the blobs' home: a pending link for `shard` on each, or `gone` and none at all (also for a link id too old). */
  'claim-links': {
    command: { shard: number; linkId: LinkId; blobIds: BlobId[] };
    outcome: { kind: 'claimed'; layouts: ForeignRecord[] } | { kind: 'gone'; blobIds: BlobId[] };
  };
  /** R29: absent ones are done. `left`: of blobs that others held. */
  'release-links': {
    command: { links: { blobId: BlobId; linkId: LinkId }[]; leavesBusy?: true };
    outcome: { kind: 'released'; left?: { blobId: BlobId; linkId: LinkId }[] };
  };
  /**
   * R30: the claiming shard's verdicts on pending links, each with the nonce of the link that it was asked about. `left`: on
   * those of blobs that others held.
   */
  'settle-claims': {
    command: { claims: ClaimVerdict[]; leavesBusy?: true };
    outcome: { kind: 'settled'; left?: ClaimVerdict[] };
  };
  /** Ends the links of a paged manifest that is marked for deletion, a page at a time. */
  'release-manifest-page': {
    command: { manifestId: BlobId; page: number };
    outcome: { kind: 'released'; isLast: boolean };
  };
  /**
   * R26, some moments after the entries that ended these links: a blob of this home without any link is marked for
   * deletion; a foreign row without any local link is removed, and its claim released (R29). A step of its own, because
   * only here is the blob known before anything is read, so that it can be locked against new links. `left`: of those that others held.
   */
  'condemn-blobs': {
    command: { ended: EndedLink[]; leavesBusy?: true };
    outcome: { kind: 'settled'; condemnedCount: number; left?: EndedLink[] } | Unconfirmed;
  };
  /** R31, after the drops were answered: deletes the rows of blobs that are marked for deletion. */
  'erase-blobs': { command: { blobIds: BlobId[] }; outcome: { kind: 'erased' } | Unconfirmed };
  /** In a shard that claims: commits no claim of an earlier history of this home any more. */
  'learn-history': { command: { homeShard: number; incarnation: number }; outcome: { kind: 'learned' } };
  /**
   * In the home: `shard` holds these. Missing links are added as pending ones, missing rows of blobs made anew while the
   * history is not confirmed; `gone`: of those whose blobs are not here and may not be made. `pending`: those that are not
   * confirmed now, of which `shard` may be asked; absent from a home of the version before.
   */
  'assert-links': {
    command: { shard: number; claims: HeldClaim[] };
    outcome: { kind: 'asserted'; gone: BlobId[]; pending?: AskedClaim[] };
  };
  /** In the home: `shard` has asserted everything. */
  'note-asserted': { command: { shard: number; incarnation: number }; outcome: { kind: 'noted' } };
  /** The operator's word that what is lost is lost. */
  'confirm-history': {
    command: Record<never, never>;
    outcome:
      | { kind: 'confirmed'; history: HistoryRecord }
      /** These shards have not asserted everything yet. */
      | { kind: 'waiting'; shards: number[] }
      /** There is nothing to confirm. */
      | { kind: 'no-doubt' };
  };
  /**
   * Key rotation: exchanges a wrapped key where it still is the expected one. `row` is opaque, from list-wrapped-keys. `left`:
   * places in `items` of those that others held.
   */
  'rewrap-keys': {
    command: {
      items: { row: Uint8Array; expected: WrappedKek; replacement: WrappedKek }[];
      leavesBusy?: true;
    };
    outcome: { kind: 'rewrapped'; count: number; left?: number[] };
  };
  /** Of the system shard of a cluster: replaces the record where it still has this revision; 0: there is none yet. */
  'set-master-keys': {
    command: { ifRevision: number; masterKeys: Omit<MasterKeysRecord, 'revision'> };
    outcome: { kind: 'set'; masterKeys: MasterKeysRecord } | { kind: 'conflict' };
  };
}

export interface BlobQueries {
  /** `isUnconfirmed`: those that are not there may have been lost (R23). */
  'get-blobs': {
    query: { blobIds: BlobId[] };
    result: { blobs: (Omit<BlobRecord, 'foldedFrom'> | null)[]; isUnconfirmed?: true };
  };
  /** R23; null: the shard began with nothing, and nothing of it was given up. */
  'get-history': { query: Record<never, never>; result: { history: HistoryRecord | null } };
  /** What the shard holds of other homes, by blob id; `homeShard`: of that one alone. `next` is absent at the end. */
  'list-claims': {
    query: { homeShard?: number; after?: BlobId; limit: number };
    result: { claims: HeldClaim[]; next?: BlobId };
  };
  'list-ended-links': {
    query: { fromMs?: number; after?: EndedLink; limit: number };
    result: { ended: EndedLink[] };
  };
  'list-condemned': {
    query: { fromMs?: number; after?: MarkedBlobPlace; olderThanMs: number; limit: number };
    /**
     * Marked for deletion for longer than `olderThanMs`; `totalCount` of all, also of those that are not listed. A page may
     * have fewer than `limit` and yet not be the last: `next` is absent at the end.
     */
    result: { blobs: { blobId: BlobId; blob: BlobRecord }[]; totalCount: number; next?: MarkedBlobPlace };
  };
  /**
   * Claims whose link ids are older than `olderThanMs`. A page may have fewer than `limit` and yet not be the last: `next` is
   * absent at the end.
   */
  'list-pending-claims': {
    query: {
      fromMs?: number;
      after?: { blobId: BlobId; linkId: LinkId };
      olderThanMs: number;
      limit: number;
    };
    result: {
      claims: PendingClaim[];
      next?: { blobId: BlobId; linkId: LinkId };
    };
  };
  /** R30, asked of the claiming shard. `timeMs` of the reply is committed time. */
  'resolve-claims': {
    query: { claims: { blobId: BlobId; linkId: LinkId }[] };
    result: { held: boolean[] };
  };
  /**
   * Of the system shard. `holders`: the gateways that have asked for changes of identities lately, from the memory of the
   * shard's primary; while it has not been primary for long enough, `knownInMs` says when it will know all of them. `mark` is
   * another one once a gateway has come, or has had requests that began under another key.
   */
  'get-master-keys': {
    query: Record<never, never>;
    result: {
      masterKeys: MasterKeysRecord | null;
      holders?: ({ gateway: string } & HeldMasterKeys)[];
      mark?: string;
      knownInMs?: number;
    };
  };
  'list-wrapped-keys': {
    query: { notKeyId: string; after?: Uint8Array; limit: number };
    /**
     * `next` is absent at the end of the scan. `moveCounts`: the shard's MOVEs of keys, before and after this page: one
     * between them may have carried a key from ahead of the scan to behind it.
     */
    result: {
      items: { row: Uint8Array; wrapped: WrappedKek }[];
      next?: Uint8Array;
      scannedCount: number;
      moveCounts: readonly [before: number, after: number];
    };
  };
  /**
   * Of a page of blobs of this home: the bytes that compositions of this shard alone hold (service 4.2, compose rule
   * 6), by the bucket of these, and the blobs of which other shards have to say; `next` is absent at the end. With `charging`
   * the charged bytes, and of those blobs alone that no object is charged for.
   */
  'count-composed-only': {
    query: { after?: BlobId; limit: number; charging?: Charging };
    result: { buckets: ComposedOnly[]; claimed: ClaimedBlob[]; next?: BlobId };
  };
  /** What this shard holds blobs by, of whichever home: an answer for each, or for the first ones where they have many links. */
  'find-compositions': {
    query: { blobIds: BlobId[]; isCharging?: true };
    result: { holders: CompositionHolder[] };
  };
}
