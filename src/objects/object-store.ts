// The data path as the gateway sees it: what it asks of src/objects. Types only; create-object-store.ts builds it.
// Every call ends well or throws AppError (BadDigest, IncompleteBody, NoSuchKey, SlowDown, InsufficientStorage ...)
// having left nothing behind that a client could see.
import type { Readable } from 'node:stream';
import type { IdempotencyToken } from '../ports/extension-calls.ts';
import type {
  BucketClaim,
  CommandName,
  CommandOf,
  OutcomeOf,
  QueryName,
  QueryOf,
  ResultOf,
} from '../ports/metadata.ts';
import type { FoundVersion } from '../ports/metadata-queries.ts';
import type { Checksum, ChecksumAlgorithm, ChecksumType } from '../types/checksums.ts';
import type { ETag } from '../types/etag.ts';
import type { AccountId, ObjectKey, VersionId } from '../types/names.ts';
import type { WriteConditions } from '../types/preconditions.ts';
import type { BucketRecord, UploadRecord } from '../types/records/rows.ts';
import type { Tag } from '../types/tags.ts';
import type { Tenant } from '../types/tenant.ts';
import type { ObjectHeaders, VersionRecord } from '../types/version.ts';
import type { CustomerKey, KeyFit } from './customer-keys.ts';

/** Where a bucket's shard is and what the request believes of the bucket. */
export interface BucketTarget {
  homeShard: number;
  claim: BucketClaim;
}

/**
 * Metadata calls as a request makes them: replies that are not `done` have become AppErrors, and a stale bucket has
 * been authorised anew and retried.
 */
export interface MetadataCalls {
  execute<N extends CommandName>(
    target: { shard: number; bucket?: BucketClaim },
    name: N,
    command: CommandOf<N>,
  ): Promise<{ value: OutcomeOf<N>; timeMs: number }>;
  query<N extends QueryName>(
    target: { shard: number; bucket?: BucketClaim },
    name: N,
    query: QueryOf<N>,
  ): Promise<{ value: ResultOf<N>; timeMs: number }>;
  readonly shardCount: number;
  /** Whom the request counts against: what its bodies take is of this tenant's share. */
  readonly tenant: Tenant;
}

/** A body and what the client said of it (gateway/s3/request/request-body.ts fits). */
export interface BodySource {
  readonly stream: AsyncIterable<Buffer>;
  /** Undefined: as many as come. */
  readonly sizeBytes: number | undefined;
  /** Nothing of it has been sent, nor will be before the stream is read. */
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
}

export interface Written {
  versionId: VersionId;
  versioning: BucketRecord['versioning'];
  etag: ETag;
  sizeBytes: number;
  modifiedAtMs: number;
  checksum?: Checksum;
}

/** What a copy was taken from: another version than `found` where that was replaced meanwhile. */
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
  customerKey?: CustomerKey | undefined;
  body: BodySource;
  conditions?: WriteConditions;
  signal: AbortSignal;
}

/** What a copy takes its data from. It is read again when it was replaced meanwhile. */
export interface CopyFrom {
  bucket: BucketTarget;
  key: ObjectKey;
  versionId?: VersionId;
  found: FoundVersion;
  /** Has been judged; that of a version that is read again is judged by `requireFit`. */
  customerKey?: CustomerKey | undefined;
  /** Throws the answer where what is read again may not be copied. `found` has passed. */
  requireFit?(version: VersionRecord): void;
}

export interface CopyObject {
  calls: MetadataCalls;
  source: CopyFrom;
  bucket: BucketTarget;
  key: ObjectKey;
  owner: AccountId;
  /** Absent: COPY the source's headers; else REPLACE. */
  headers?: ObjectHeaders;
  /** Absent: COPY the source's tags; else REPLACE, by none where it is empty. */
  tags?: Tag[];
  /** What the copy is stored under, whatever the source is. */
  customerKey?: CustomerKey | undefined;
  /** Another algorithm than the source's: computed by reading it. */
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
  /** Absent: the first component's. Its other headers are the first component's in any case. */
  userMetadata?: ObjectHeaders['userMetadata'];
  /** Never empty. */
  tags?: Tag[];
  conditions?: WriteConditions;
  token?: IdempotencyToken | undefined;
  /** Awaited before thousands of pieces are put together. Default: it goes on at once. */
  turn?(): Promise<void>;
}

export interface AppendObject {
  calls: MetadataCalls;
  bucket: BucketTarget;
  key: ObjectKey;
  body: BodySource;
  /** Where it is to begin; absent: wherever the object ends. */
  offsetBytes?: number | undefined;
  conditions?: WriteConditions;
  /** The token of the request that has this body. */
  tokenOf?(body: { md5: string; sizeBytes: number }): IdempotencyToken | undefined;
  signal: AbortSignal;
}

export interface PartTarget {
  calls: MetadataCalls;
  bucket: BucketTarget;
  upload: UploadRecord;
  /** The upload's; has been judged. */
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

/** A version ready to be read: its headers are open, and the first piece of the range is fetched and verified. */
export type OpenObject =
  | { kind: 'bytes'; bytes: Buffer }
  | { kind: 'stream'; stream: Readable; sizeBytes: number };

export interface ByteRange {
  offsetBytes: number;
  sizeBytes: number;
}

export interface ObjectStore {
  /** The pieces of a document, in the memory for bodies. Rejects as the stream does, or with SlowDown. */
  collectBody<T>(
    body: Pick<BodySource, 'stream'> & { sizeBytes: number },
    tenant: Tenant,
    use: (pieces: Buffer[]) => Promise<T>,
  ): Promise<T>;
  putObject(input: PutObject): Promise<Written>;
  /** A link, any size (service 4.2). A source that goes away meanwhile is NoSuchKey. */
  copyObject(input: CopyObject): Promise<Written & Copied>;
  /** Links to the data of the components (service 4.2); of any size, nothing is read. */
  composeObject(input: ComposeObject): Promise<Written>;
  /** The body behind the bytes of the object that is there when it is committed. `sizeBytes` is the new size. */
  appendObject(input: AppendObject): Promise<Written>;
  /** Resolves when no small pieces wait to be folded. */
  foldingSettled(): Promise<void>;
  /** No small pieces are folded any more; resolves when none are being folded. */
  stopFolding(): Promise<void>;
  createUpload(input: {
    calls: MetadataCalls;
    bucket: BucketTarget;
    key: ObjectKey;
    owner: AccountId;
    initiator: AccountId;
    headers: ObjectHeaders;
    /** Never empty. */
    tags?: Tag[];
    customerKey?: CustomerKey | undefined;
    checksum?: { algorithm: ChecksumAlgorithm; type: ChecksumType };
  }): Promise<UploadRecord>;
  putPart(input: PartTarget & { body: BodySource }): Promise<WrittenPart>;
  /** A link; the range is of the source's bytes and has been checked against its size. */
  copyPart(
    input: PartTarget & {
      source: CopyFrom;
      range?: ByteRange;
    },
  ): Promise<WrittenPart & Copied>;
  /** Whether this key, or none, opens the version or upload: asked before anything else is done with a customer's key. */
  judgeKey(sealed: Pick<VersionRecord, 'kek'>, customerKey: CustomerKey | undefined): KeyFit;
  /** Unseals what the version keeps beside its bytes. */
  headersOf(version: Pick<VersionRecord, 'kek' | 'sealedHeaders'>, customerKey?: CustomerKey): ObjectHeaders;
  /** Resolves when the first bytes are verified; the caller consumes or destroys the stream. */
  openObject(input: {
    calls: MetadataCalls;
    bucket: BucketTarget;
    key: ObjectKey;
    found: FoundVersion;
    customerKey?: CustomerKey | undefined;
    range: ByteRange;
    signal: AbortSignal;
  }): Promise<OpenObject>;
  /** Boundaries for partNumber: undefined beyond the last part. Part 1 of an object that is no multipart is the whole. */
  partRange(input: {
    calls: MetadataCalls;
    bucket: BucketTarget;
    version: VersionRecord;
    partNumber: number;
  }): Promise<{ range: ByteRange; partCount: number; checksum?: string } | undefined>;
}
