// The queries of a full comparison (`holdfast fsck`): each checks a page of rows and everything that must agree with them
// within the shard, at one moment, so that nothing under way can look like damage. Data elsewhere (other shards, chunks,
// bodies) is returned as facts, which the caller compares.
import type { Finding, FindingPlace, Pending } from '../../types/findings.ts';
import type { BlobId, BucketId, BucketName, LinkId } from '../../types/names.ts';
import type {
  BlobRecord,
  BucketRecord,
  ForeignRecord,
  LinkRecord,
  NameRecord,
} from '../../types/records/rows.ts';
import type { BlobLayout } from '../../types/version.ts';

/** The tables of a shard by the names of metadata/schema/keyspace.ts. */
export type CheckedTable =
  | 'objects'
  | 'versionIds'
  | 'buckets'
  | 'deletedBuckets'
  | 'bucketConfigs'
  | 'lifecycles'
  | 'lifecycleTimes'
  | 'uploads'
  | 'uploadTimes'
  | 'parts'
  | 'completedUploads'
  | 'completedTimes'
  | 'endedUploads'
  | 'blobs'
  | 'links'
  | 'foreign'
  | 'manifestPages'
  | 'endedLinks'
  | 'condemned'
  | 'pendingClaims'
  | 'outbox'
  | 'debts'
  | 'debtQueue'
  | 'jobs'
  | 'openJobs'
  | 'endedJobs'
  | 'jobErrors'
  | 'events'
  | 'eventCursors'
  | 'tokens'
  | 'tokenTimes'
  | 'names'
  | 'accounts'
  | 'accountNames'
  | 'accountEmails'
  | 'canonicalIds'
  | 'accessKeys'
  | 'accountAccessKeys'
  | 'accountBuckets'
  | 'identityChanges'
  | 'identities'
  | 'identityRevisions'
  | 'accountAliases'
  | 'accountQuotas'
  | 'keyUses'
  | 'tenancy'
  | 'tenancyWords'
  | 'tenancyChanges'
  | 'accountCustomers'
  | 'tenancySequence'
  | 'accountRemovals'
  | 'mails'
  | 'masterKeys'
  | 'priceLists'
  | 'invoices'
  | 'customerInvoices'
  | 'controlInvoices'
  | 'billing'
  | 'usageStates'
  | 'usageRecords'
  | 'usageClosed';

export interface BucketUsage {
  bucketId: BucketId;
  objectCount: number;
  sizeBytes: number;
}

export interface ClaimFact extends LinkRecord {
  blobId: BlobId;
  linkId: LinkId;
}

export interface BlobFact {
  blobId: BlobId;
  blob: Pick<BlobRecord, 'kind' | 'condemnedAtMs' | keyof BlobLayout>;
}

/** What a use says of the last piece that it sees. */
export interface PieceUse {
  blobId: BlobId;
  pieceCount: number;
  lastPieceId: BlobId;
  /** Of its user. */
  place: FindingPlace;
}

/** Of a piece: its blob, and which one of its pieces it is. */
export interface PiecePlace {
  blobId: BlobId;
  index: number;
}

export interface ForeignFact extends ForeignRecord {
  blobId: BlobId;
}

/** What a page of rows says that must agree with something outside of the shard's rows. */
export interface CheckFacts {
  /** Links that the rows hold, 32 bytes each: blob | link. */
  uses: Uint8Array;
  /** Links of this shard's own versions and parts, in the same form and in order. */
  ownLinks: Uint8Array;
  /** Of uses of blobs of pieces, which see but their beginning, or blobs of other shards. */
  pieceUses: PieceUse[];
  /** Links of other shards. */
  claims: ClaimFact[];
  blobs: BlobFact[];
  foreign: ForeignFact[];
  /** Blobs and foreign rows that no link holds at that moment: an ended one may wait for its turn. */
  unlinked: BlobId[];
  usage: BucketUsage[];
  buckets: BucketRecord[];
  names: { name: BucketName; record: NameRecord }[];
}

export interface BlobHolders {
  shards: { shard: number; linkCount: number }[];
  manifests: BlobId[];
}

export interface CheckQueries {
  /** `next` is absent at the end of the table. */
  'check-rows': {
    /** `keyIds`: the master keys that there are; other ones are found. */
    query: { table: CheckedTable; after?: Uint8Array; limit: number; keyIds: readonly string[] };
    result: { findings: Finding[]; facts: CheckFacts; rowCount: number; next?: Uint8Array };
  };
  /** Of these, what is there without any link, and without an ended link that waits for its turn. */
  'check-unlinked': { query: { blobIds: BlobId[] }; result: { blobIds: BlobId[] } };
  /** Compares counters with `counted`, and counts anew at one moment where they differ: rows may have changed since. */
  'check-counters': { query: { counted: BucketUsage[] }; result: { findings: Finding[] } };
  /** Outcomes kept for retries, and the index by which they are forgotten (R18). The engine's own. */
  'check-outcomes': { query: Record<never, never>; result: { findings: Finding[] } };
  'get-links': {
    query: { links: { blobId: BlobId; linkId: LinkId }[] };
    result: { links: (LinkRecord | null)[] };
  };
  /** Of these links, those that are there and that nothing holds, at one moment. Reads all versions of the shard. */
  'find-strays': {
    query: { links: { blobId: BlobId; linkId: LinkId }[] };
    result: { links: { blobId: BlobId; linkId: LinkId }[] };
  };
  /** Of versions, of parts of uploads, or of manifests: those that use one of `blobIds`, of a page of rows. */
  'find-users': {
    query: {
      blobIds: BlobId[];
      table: 'objects' | 'parts' | 'manifestPages';
      after?: Uint8Array;
      limit: number;
    };
    result: { users: { blobId: BlobId; place: FindingPlace }[]; rowCount: number; next?: Uint8Array };
  };
  /**
   * Who holds links to these blobs of the shard, of each: shards with so many links, and manifests of compositions. A link does
   * not say which version holds it. Of a blob with very many links the first ones.
   */
  'find-holders': { query: { blobIds: BlobId[] }; result: { holders: BlobHolders[] } };
  /** Bodies in the order of their blobs. `sizeBytes` only where asked for: it takes reading them. */
  'list-bodies': {
    query: { after?: BlobId; limit: number; withSizes: boolean };
    result: { bodies: { blobId: BlobId; sizeBytes?: number }[] };
  };
  /** Pieces of blobs, in the order of these, from one place on. */
  'list-pieces': { query: { from?: PiecePlace; limit: number }; result: { pieces: PiecePlace[] } };
  /** The ids under which pieces were sealed; null for one that is not there, `broken` for a row that is no piece's. */
  'get-piece-ids': { query: { pieces: PiecePlace[] }; result: { pieceIds: (BlobId | 'broken' | null)[] } };
  /** What waits in the shard's queues. */
  'count-pending': { query: Record<never, never>; result: { pending: Pending[] } };
}
