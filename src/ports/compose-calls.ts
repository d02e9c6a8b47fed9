// The commands and queries of objects that are made of others: compositions, appends, and the folding of small pieces
// (service 4.2). Part of the tables in metadata-commands.ts and metadata-queries.ts, as plain data.
import type { Checksum, ChecksumAlgorithm } from '../types/checksums.ts';
import type { DeleteBlocker } from '../types/delete-blocker.ts';
import type { BlobId, BucketId, LinkId, ObjectKey } from '../types/names.ts';
import type { ConditionRefusal, WriteConditions } from '../types/preconditions.ts';
import type { ManifestBody, VersionRecord, WrappedKek } from '../types/version.ts';
import type { IdempotencyToken } from './extension-calls.ts';
import type { CommittedVersion, DataGrant, GrantRefusal, NewBlob, NewVersion } from './metadata-commands.ts';

/** The version that a composition or an append made. */
export type ComposedVersion = CommittedVersion &
  Pick<VersionRecord, 'etag' | 'sizeBytes'> & { checksum?: Checksum };

/**
 * `mayFold`: it has small pieces that are worth folding (types/plan-fold.ts). `growingId`: the blob of pieces that it ends with,
 * which the next append may let grow.
 */
export type AppendedVersion = ComposedVersion & { mayFold: boolean; growingId?: BlobId };

/** What a token stands for already, or that it was another request's. */
export type TokenAnswer<Outcome> = { kind: 'repeated'; outcome: Outcome } | { kind: 'token-reused' };

/** So much is kept of earlier requests that nothing may be kept of this one: it is not done. */
export interface OutcomeStoreFull {
  kind: 'too-much-kept';
}

/** Bytes to append: one blob that is born with them, or none where there are no bytes. */
export interface AppendedPiece {
  sizeBytes: number;
  /** hex */
  md5: string;
  births: NewBlob[];
  /** base64, by algorithm: as many as were computed. */
  crcs: Partial<Record<ChecksumAlgorithm, string>>;
}

/** A piece of a version that is to be folded: by its data, whatever link a version has to it. */
export interface CompactedSegment {
  blobId: BlobId;
  offsetBytes: number;
  sizeBytes: number;
  /** Of a blob of pieces: the last one that the version sees, as it tells them from those of a forgotten history (R23). */
  lastPieceId?: BlobId;
}

export interface ComposeCommands {
  /** A version of the data of others (service 4.2): `body` is in order, its links are granted by `data`. */
  'compose-version': {
    command: {
      bucketId: BucketId;
      key: ObjectKey;
      version: Omit<NewVersion, 'manifest' | 'appendCount'>;
      body: ManifestBody;
      data: DataGrant;
      conditions?: WriteConditions;
      token?: IdempotencyToken;
    };
    outcome:
      | ComposedVersion
      | GrantRefusal
      | ConditionRefusal
      | { kind: 'blocked'; blocker: DeleteBlocker }
      | OutcomeStoreFull
      | TokenAnswer<ComposedVersion>;
  };
  /** Extends what is the current version when it is evaluated, so that appends do not get into each other's way. */
  'append-version': {
    command: {
      bucketId: BucketId;
      key: ObjectKey;
      piece: AppendedPiece;
      /** The object's key as it was read: it wraps the data key of the piece. `renewed`: what the new version has of it. */
      kek: { found: WrappedKek; renewed: WrappedKek };
      /** Of the new version on each blob that the old one keeps. */
      linkId: LinkId;
      /** The blob of pieces that the object ended with when it was read: a small piece goes into it where it still does. */
      growingId?: BlobId;
      /** A small piece begins a blob where the object ends with another one than `growingId`: it has changed again and again. */
      beginsAnew?: true;
      /** Where the piece is to begin. */
      offsetBytes?: number;
      conditions?: WriteConditions;
      token?: IdempotencyToken;
    };
    outcome:
      | AppendedVersion
      /** No object, or a delete marker. */
      | { kind: 'no-such-key' }
      /**
       * The current version has another key, or has it wrapped anew, or the piece lacks the CRC that goes on, or the object ends
       * with another blob that may grow: read it, wrap the data key by it, ask again.
       */
      | { kind: 'other-key' }
      | { kind: 'wrong-offset'; sizeBytes: number }
      | { kind: 'too-many-appends' }
      | { kind: 'too-large' }
      | GrantRefusal
      | ConditionRefusal
      | { kind: 'blocked'; blocker: DeleteBlocker }
      | OutcomeStoreFull
      | TokenAnswer<AppendedVersion>;
  };
  /**
   * One blob of the same bytes in place of a run of pieces, in the version that is current when it is evaluated: appends may
   * have made newer ones of the same pieces. It stays what it is in all else.
   */
  'fold-version': {
    command: {
      bucketId: BucketId;
      key: ObjectKey;
      /** The object's key as it was read: it wraps the data key of the new blob. */
      kek: WrappedKek;
      run: CompactedSegment[];
      /** Its link is that of the first piece that it replaces. */
      birth: NewBlob;
    };
    outcome:
      | { kind: 'folded' }
      /** The pieces do not stand in the current version, or it has another key, or has it wrapped anew. */
      | { kind: 'changed' }
      | GrantRefusal;
  };
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

export interface ComposeQueries {
  /**
   * Of a page of blobs of this home: the bytes that compositions of this shard alone hold (service 4.2, compose rule
   * 6), by the bucket of these, and the blobs of which other shards have to say; `next` is absent at the end.
   */
  'count-composed-only': {
    query: { after?: BlobId; limit: number };
    result: { buckets: ComposedOnly[]; claimed: ClaimedBlob[]; next?: BlobId };
  };
  /** What this shard holds blobs by, of whichever home: an answer for each, or for the first ones where they have many links. */
  'find-compositions': { query: { blobIds: BlobId[] }; result: { holders: CompositionHolder[] } };
}
