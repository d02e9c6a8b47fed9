// The identifiers of the model as branded strings, parsed once at the edge. No look-ups, no storage keys
// (those are in metadata/schema/keyspace.ts).
import { utf8 } from '../base/bytes/bytes.ts';
import { LIMITS } from './limits.ts';

declare const brand: unique symbol;
type Brand<Base, Name extends string> = Base & { readonly [brand]: Name };

/** A valid bucket name (AWS: "Bucket naming rules"). */
export type BucketName = Brand<string, 'BucketName'>;
/** An object's key: 1 to 1024 bytes of UTF-8, any code points. */
export type ObjectKey = Brand<string, 'ObjectKey'>;
/** An opaque version id, or 'null' for the null version. */
export type VersionId = Brand<string, 'VersionId'>;
/** 12 decimal digits, as in ARNs. */
export type AccountId = Brand<string, 'AccountId'>;
/** 16 hex digits; never reused, survives renames. */
export type BucketId = Brand<string, 'BucketId'>;
/** 32 hex digits: shard time in ms (12) | home shard (4) | random (16) (R24). Also names paged manifests. */
export type BlobId = Brand<string, 'BlobId'>;
/** 32 hex digits: shard time in ms (12) | random (20) (R24). */
export type LinkId = Brand<string, 'LinkId'>;
/** Opaque to clients; time-ordered, so that uploads of one key list by initiation. */
export type UploadId = Brand<string, 'UploadId'>;
/** 28 hex digits: shard time in ms (12) | a mark that distinguishes items of one ms (16). */
export type OutboxId = Brand<string, 'OutboxId'>;

/** 28 hex digits, as of outbox items: shard time in ms (12) | random (16). */
export type JobId = Brand<string, 'JobId'>;

export const NULL_VERSION = 'null' as VersionId;

const BUCKET_NAME = /^[a-z0-9](?:[a-z0-9.-]{1,61})[a-z0-9]$/;
const IPV4_LIKE = /^\d{1,3}(?:\.\d{1,3}){3}$/;
const RESERVED_PREFIXES = ['xn--', 'sthree-', 'amzn-s3-demo-', 'holdfast-'];
const RESERVED_SUFFIXES = ['-s3alias', '--ol-s3', '.mrap', '--x-s3', '--table-s3'];
/** First path segments that belong to the service itself (design "Requests"). */
const RESERVED_NAMES = new Set(['api', 'console', 'health', 'metrics', 'holdfast-admin']);

/** The bucket name in `text`, or undefined when AWS's rules or our reserved paths forbid it. */
export function parseBucketName(text: string): BucketName | undefined {
  if (!BUCKET_NAME.test(text) || text.includes('..') || text.includes('.-') || text.includes('-.'))
    return undefined;
  if (IPV4_LIKE.test(text) || RESERVED_NAMES.has(text)) return undefined;
  if (RESERVED_PREFIXES.some((prefix) => text.startsWith(prefix))) return undefined;
  if (RESERVED_SUFFIXES.some((suffix) => text.endsWith(suffix))) return undefined;
  return text as BucketName;
}

/** The object key in `text`: undefined when empty, `'too-long'` above 1024 bytes (KeyTooLongError). */
export function parseObjectKey(text: string): ObjectKey | 'too-long' | undefined {
  if (text.length === 0) return undefined;
  if (text.length > LIMITS.keyBytesMax || utf8(text).length > LIMITS.keyBytesMax) return 'too-long';
  return text as ObjectKey;
}

const ID_PATTERNS = { accountId: /^\d{12}$/, bucketId: /^[0-9a-f]{16}$/, blobId: /^[0-9a-f]{32}$/ } as const;

export function parseAccountId(text: string): AccountId | undefined {
  return ID_PATTERNS.accountId.test(text) ? (text as AccountId) : undefined;
}

/** Makes a blob id (R24). `timeMs`: the last known shard time, never the gateway's own clock. */
export function makeBlobId(options: { timeMs: number; homeShard: number; random: Uint8Array }): BlobId {
  const { timeMs, homeShard, random } = options;
  const tail = Buffer.from(random.subarray(0, 8)).toString('hex');
  return (hexOf(timeMs, 12) + hexOf(homeShard, 4) + tail) as BlobId;
}

/** Of a chunk, in maps, messages and paths. */
export function chunkName({ blobId, index }: { blobId: BlobId; index: number }): string {
  return `${blobId}.${index}`;
}

/** Below 0: `a` stands before `b` on a disk. */
export function compareChunkIds(
  a: { blobId: BlobId; index: number },
  b: { blobId: BlobId; index: number },
): number {
  if (a.blobId === b.blobId) return a.index - b.index;
  return a.blobId < b.blobId ? -1 : 1;
}

export function homeShardOf(blobId: BlobId): number {
  return Number.parseInt(blobId.slice(12, 16), 16);
}

/** Shard time in ms at which the id was minted. */
export function idTimeMs(id: BlobId | LinkId): number {
  return Number.parseInt(id.slice(0, 12), 16);
}

/** Mints a link id (R24). */
export function makeLinkId(options: { timeMs: number; random: Uint8Array }): LinkId {
  return (hexOf(options.timeMs, 12) + Buffer.from(options.random.subarray(0, 10)).toString('hex')) as LinkId;
}

/** Names an outbox item. `tail`: 8 bytes, random or of an id that the item is about. */
export function makeOutboxId(options: { timeMs: number; tail: Uint8Array }): OutboxId {
  return (hexOf(options.timeMs, 12) + Buffer.from(options.tail.subarray(0, 8)).toString('hex')) as OutboxId;
}

/** Names a job of a shard. `random`: 8 bytes. */
export function makeJobId(options: { timeMs: number; random: Uint8Array }): JobId {
  return (hexOf(options.timeMs, 12) + Buffer.from(options.random.subarray(0, 8)).toString('hex')) as JobId;
}

/** Mints an upload id: time first, so that a key's uploads list in the order of their initiation. */
export function makeUploadId(options: { timeMs: number; random: Uint8Array }): UploadId {
  return (hexOf(options.timeMs, 12) +
    Buffer.from(options.random.subarray(0, 16)).toString('hex')) as UploadId;
}

/** Mints a version id: opaque to clients, unguessable. */
export function makeVersionId(random: Uint8Array): VersionId {
  return Buffer.from(random.subarray(0, 24)).toString('base64url') as VersionId;
}

function hexOf(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
