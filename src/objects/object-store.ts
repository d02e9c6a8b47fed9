// The data path as the gateway sees it. Types only; create-object-store.ts builds it. Every call succeeds, or throws
// AppError (BadDigest, IncompleteBody, NoSuchKey, SlowDown, InsufficientStorage ...) and leaves nothing that a client could
// see.
import type { Patience } from '../base/async/patience.ts';
import type { BatchReadable } from '../base/bytes/batch-stream.ts';
import type { IdempotencyToken } from '../ports/metadata/jobs.ts';
import type {
  BelievedBucket,
  CommandName,
  CommandOf,
  OutcomeOf,
  QueryName,
  QueryOf,
  ResultOf,
} from '../ports/metadata/port.ts';
import type { FoundVersion } from '../ports/metadata/versions.ts';
import type { Grant } from '../types/acl.ts';
import type { Checksum, ChecksumAlgorithm, ChecksumType } from '../types/checksums.ts';
import type { ETag } from '../types/etag.ts';
import type { AccountId, ObjectKey, VersionId } from '../types/names.ts';
import type { WriteConditions } from '../types/preconditions.ts';
import type { VersionLock } from '../types/protection.ts';
import type { BucketRecord, UploadRecord } from '../types/records/rows.ts';
import type { Tag } from '../types/tags.ts';
import type { Tenant } from '../types/tenant.ts';
import type { ObjectHeaders, VersionRecord } from '../types/version.ts';
import type { CustomerKey, KeyFit } from './customer-keys.ts';

/** The shard of a bucket, and what the request believes about the bucket. */
export interface BucketTarget {
  homeShard: number;
  believed: BelievedBucket;
}

/**
 * Metadata calls of a request: replies that are not `done` become AppErrors; for an outdated bucket the request is
 * authorised again and the call repeated.
 */
export interface MetadataCalls {
  execute<N extends CommandName>(
    target: { shard: number; bucket?: BelievedBucket },
    name: N,
    command: CommandOf<N>,
  ): Promise<{ value: OutcomeOf<N>; timeMs: number }>;
  query<N extends QueryName>(
    target: { shard: number; bucket?: BelievedBucket },
    name: N,
    query: QueryOf<N>,
  ): Promise<{ value: ResultOf<N>; timeMs: number }>;
  readonly shardCount: number;
  /** Of the request. */
  readonly patience: Patience;
  /** The tenant of the request: its bodies take memory from this tenant's share. */
  readonly tenant: Tenant;
}

/** A body and what the client declared about it (gateway/s3/request/request-body.ts implements it). */
export interface BodySource {
  readonly stream: AsyncIterable<Buffer>;
  /** Undefined: unknown. */
  readonly sizeBytes: number | undefined;
  /** The client waits for 100 Continue: it sends nothing before the stream is read. */
  readonly awaitsContinue: boolean;
  /** hex */
  readonly contentMd5?: string;
  /** hex; verified: XAmzContentSHA256Mismatch */
  readonly contentSha256?: string;
  /** base64; verified: BadDigest */
  readonly checksum?: { algorithm: ChecksumAlgorithm; value: string };
  readonly trailerAlgorithm?: ChecksumAlgorithm;
  /** After the end of the stream: base64. */
  trailerChecksum(): string | undefined;
  /** Of a body in signed pieces: a stream to be read in place of `stream`, whose reader checks the pieces. */
  deferSignatures?(): { stream: AsyncIterable<Buffer>; deferred: SignedPieces };
}

/** Pieces of a body that the client has signed, each by its SHA-256. Nothing of the body may be kept before `isDone`. */
export interface SignedPieces {
  /** Where the pieces end that have begun, up to `uptoBytes` of the body, in order; each is told once. */
  takeEnds(uptoBytes: number): number[];
  /** The SHA-256 of the next pieces, in the order of their ends. Rejects with AppError SignatureDoesNotMatch. */
  check(sha256s: Uint8Array): Promise<void>;
  /** Memory that those take that are not checked yet. */
  heldBytes(): number;
  /** All pieces so far have been checked. */
  isDone(): boolean;
}

export interface Written {
  versionId: VersionId;
  versioning: BucketRecord['versioning'];
  etag: ETag;
  sizeBytes: number;
  modifiedAtMs: number;
  checksum?: Checksum;
}

/** The source of a copy: another version than `found` if that was replaced meanwhile. */
export interface Copied {
  sourceVersionId: VersionId;
}

export interface PutObject {
  calls: MetadataCalls;
  bucket: BucketTarget;
  key: ObjectKey;
  owner: AccountId;
  headers: ObjectHeaders;
  /** Never empty. */
  tags?: Tag[];
  /** Absent: what `private` means. */
  acl?: Grant[] | undefined;
  /** In buckets with object lock only. */
  lock?: VersionLock | undefined;
  customerKey?: CustomerKey | undefined;
  body: BodySource;
  conditions?: WriteConditions;
  /** What the bucket's events call it. Default: a PUT. */
  event?: 's3:ObjectCreated:Post';
  signal: AbortSignal;
}

/** The source of a copy. It is read again if it was replaced meanwhile. */
export interface CopyFrom {
  bucket: BucketTarget;
  key: ObjectKey;
  versionId?: VersionId;
  found: FoundVersion;
  /** It fits the version; for a version that is read again `requireFit` decides. */
  customerKey?: CustomerKey | undefined;
  /** Throws if a version that was read again may not be copied. `found` has passed. */
  requireFit?(version: VersionRecord): void;
}

export interface CopyObject {
  calls: MetadataCalls;
  source: CopyFrom;
  bucket: BucketTarget;
  key: ObjectKey;
  owner: AccountId;
  /** Absent: COPY the source's headers; else REPLACE them. */
  headers?: ObjectHeaders;
  /** Absent: COPY the source's tags; else REPLACE them; empty: by none. */
  tags?: Tag[];
  /** The source's is never copied. Absent: what `private` means. */
  acl?: Grant[] | undefined;
  /** Likewise. In buckets with object lock only. */
  lock?: VersionLock | undefined;
  /** The key for the copy, whatever key the source has. */
  customerKey?: CustomerKey | undefined;
  /** An algorithm other than the source's: computed by reading it. */
  checksumAlgorithm?: ChecksumAlgorithm;
  conditions?: WriteConditions;
  signal: AbortSignal;
}

export interface ComposeObject {
  calls: MetadataCalls;
  /** Of the bucket, in order; at least one. */
  components: readonly CopyFrom[];
  bucket: BucketTarget;
  key: ObjectKey;
  owner: AccountId;
  /** Absent: the first component's. Other headers are always the first component's. */
  userMetadata?: ObjectHeaders['userMetadata'];
  /** Never empty. */
  tags?: Tag[];
  /** In buckets with object lock only. */
  lock?: VersionLock | undefined;
  conditions?: WriteConditions;
  token?: IdempotencyToken | undefined;
  /** Awaited before thousands of segments are put together. Default: no wait. */
  turn?(): Promise<void>;
  /** What counts for it in the memory for bodies. Throws MemoryTooSmall where it needs more. Default: whatever it needs. */
  countedBytes?: number;
}

/** So much is to be counted before it is tried again, with nothing held meanwhile. */
export class MemoryTooSmall extends Error {
  readonly neededBytes: number;

  constructor(neededBytes: number) {
    super(`it needs ${neededBytes} bytes`);
    this.neededBytes = neededBytes;
  }
}

export interface AppendObject {
  calls: MetadataCalls;
  bucket: BucketTarget;
  key: ObjectKey;
  body: BodySource;
  /** The expected end of the object; absent: any. */
  offsetBytes?: number | undefined;
  conditions?: WriteConditions;
  /** The idempotency token for the request with this body. */
  tokenOf?(body: { md5: string; sizeBytes: number }): IdempotencyToken | undefined;
  signal: AbortSignal;
}

export interface PartTarget {
  calls: MetadataCalls;
  bucket: BucketTarget;
  upload: UploadRecord;
  /** The upload's; it fits. */
  customerKey?: CustomerKey | undefined;
  partNumber: number;
  signal: AbortSignal;
}

export interface WrittenPart {
  etag: ETag;
  sizeBytes: number;
  modifiedAtMs: number;
  checksum?: Omit<Checksum, 'type'>;
}

/** A version ready for reading: its headers are open, and the first bytes of the range are fetched and verified. */
export type OpenObject =
  | { kind: 'bytes'; bytes: Buffer }
  | { kind: 'stream'; stream: BatchReadable; sizeBytes: number };

export interface ByteRange {
  offsetBytes: number;
  sizeBytes: number;
}

export interface ObjectStore {
  /** The buffers of a document, counted in the memory for bodies. Rejects as the stream does, or with SlowDown. */
  collectBody<T>(
    body: Pick<BodySource, 'stream'> & { sizeBytes: number; patience?: Patience },
    tenant: Tenant,
    use: (buffers: Buffer[]) => Promise<T>,
  ): Promise<T>;
  /** What `work` gives, with so much counted in the memory for bodies. Rejects as it does, or with SlowDown. */
  withMemory<T>(
    needs: { sizeBytes: number; tenant: Tenant; isWithin?: boolean; patience?: Patience },
    work: () => Promise<T>,
  ): Promise<T>;
  putObject(input: PutObject): Promise<Written>;
  /** A link, of any size (service 4.2). A source that is deleted meanwhile is NoSuchKey. */
  copyObject(input: CopyObject): Promise<Written & Copied>;
  /** Links to the data of the components (service 4.2), of any size; nothing is read. */
  composeObject(input: ComposeObject): Promise<Written>;
  /** Appends the body to the object that is current at the commit. `sizeBytes` is the new size. */
  appendObject(input: AppendObject): Promise<Written>;
  /** Resolves when no small pieces wait for compaction. */
  compactionIdle(): Promise<void>;
  /** Ends compaction; resolves when the current one has ended. */
  stopCompaction(): Promise<void>;
  createUpload(input: {
    calls: MetadataCalls;
    bucket: BucketTarget;
    key: ObjectKey;
    owner: AccountId;
    initiator: AccountId;
    headers: ObjectHeaders;
    /** Never empty. */
    tags?: Tag[];
    /** Of the object. Absent: what `private` means. */
    acl?: Grant[] | undefined;
    /** Likewise, in buckets with object lock only. */
    lock?: VersionLock | undefined;
    customerKey?: CustomerKey | undefined;
    checksum?: { algorithm: ChecksumAlgorithm; type: ChecksumType };
  }): Promise<UploadRecord>;
  putPart(input: PartTarget & { body: BodySource }): Promise<WrittenPart>;
  /** A link; the range is of the source's bytes and fits its size. */
  copyPart(
    input: PartTarget & {
      source: CopyFrom;
      range?: ByteRange;
    },
  ): Promise<WrittenPart & Copied>;
  /** Whether this key, or none, opens the version or upload. Call it before anything else is done with a customer's key. */
  judgeKey(sealed: Pick<VersionRecord, 'kek'>, customerKey: CustomerKey | undefined): KeyFit;
  /** Unseals the headers of the version. */
  headersOf(version: Pick<VersionRecord, 'kek' | 'sealedHeaders'>, customerKey?: CustomerKey): ObjectHeaders;
  /** Resolves when the first bytes are verified; the caller reads or destroys the stream. */
  openObject(input: {
    calls: MetadataCalls;
    bucket: BucketTarget;
    key: ObjectKey;
    found: FoundVersion;
    customerKey?: CustomerKey | undefined;
    range: ByteRange;
    signal: AbortSignal;
  }): Promise<OpenObject>;
  /** The range of a part (partNumber): undefined beyond the last one. Part 1 of an object without parts is the whole. */
  partRange(input: {
    calls: MetadataCalls;
    bucket: BucketTarget;
    version: VersionRecord;
    partNumber: number;
  }): Promise<{ range: ByteRange; partCount: number; checksum?: string } | undefined>;
}
