// All that a handler can reach. It gets nothing by hooks or globals.

import type { MetadataCalls, ObjectStore } from '../../objects/object-store.ts';
import type { AccessPair } from '../../policy/authorize.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { BelievedBucket } from '../../ports/metadata/port.ts';
import type { ConfigsOfBucket } from '../../types/bucket-config.ts';
import type { AccountId } from '../../types/names.ts';
import type { AccountRecord, BucketRecord } from '../../types/records/rows.ts';
import type { AccessRecord } from './access-record.ts';
import type { Caller } from './caller.ts';
import type { MovePlaces } from './extensions/move-places.ts';
import type { SeenObjects } from './seen-objects.ts';
import type { StoreFacts } from './sosapi/store-facts.ts';

/** A bucket as resolved in step 5: its home, and the row the request was authorised by. */
export interface ResolvedBucket {
  record: BucketRecord;
  /** The documents that it is configured by. */
  configs: ConfigsOfBucket;
  homeShard: number;
  /** What commands and queries carry (R45). */
  believed: BelievedBucket;
}

export interface OperationContext {
  readonly requestId: string;
  readonly caller: Caller;
  /** The caller's account. Throws AccessDenied for an anonymous caller. */
  account(): AccountRecord;
  /** Step 5's bucket; a broken invariant on service level. */
  bucket(): ResolvedBucket;
  /**
   * Another bucket (copy source): NoSuchBucket when missing, AccessDenied unless `mayUse` says so, which is asked again
   * whenever a shard says that the bucket has changed (R45). Gives the bucket as it was judged last.
   */
  resolveBucket(
    name: string,
    mayUse: (bucket: ResolvedBucket) => Promise<boolean>,
  ): Promise<() => ResolvedBucket>;
  /** The bucket is gone: the next look-up of its name reads the present one. */
  forgetBucket(name: string): void;
  /** The same decision as step 7, for pairs known only in `run` (copy source, each key of DeleteObjects). */
  authorize(pairs: readonly AccessPair[], bucket: ResolvedBucket): Promise<boolean>;
  /**
   * The request needs these on its own bucket, too: now, and whenever a shard says that the bucket has changed (R45). Throws
   * AccessDenied.
   */
  alsoNeed(pairs: readonly AccessPair[]): Promise<void>;
  /**
   * As `authorize`, for a part that the request can do without: a header of the answer, one key of many. A refusal is not noted
   * in the request's record.
   */
  mayAlso(pairs: readonly AccessPair[], bucket: ResolvedBucket): Promise<boolean>;
  /**
   * Behind work that has taken long: who asks is looked up and judged again. Throws where its key or its rights are gone since.
   * Operations that take a stream, or `takesLong`, have it before each of their commands.
   */
  requireStill(): Promise<void>;
  /** What decisions have seen of stored objects: what is read is held against it (find-version.ts). */
  readonly seen: SeenObjects;
  /** Whether the request has a second factor (second-factor.ts); the same answer each time. */
  hasSecondFactor(): Promise<boolean>;
  /** Whether the bucket's owner is the one that a request expects, by account id or canonical id. */
  isOwner(expected: string, bucket: ResolvedBucket): Promise<boolean>;
  /** Owner elements: canonical id and display name. */
  ownerOf(accountId: AccountId): Promise<{ id: string; displayName: string }>;
  readonly metadata: MetadataCalls;
  readonly objects: ObjectStore;
  readonly store: StoreFacts;
  readonly clock: ClockPort;
  readonly random: RandomPort;
  /** Length of a day as lifecycle rules count them. */
  readonly lifecycleDayMs: number;
  readonly record: AccessRecord;
  /** Aborts when the client goes away. */
  signal(): AbortSignal;
  /** Resolves when it is the caller's turn to keep the thread for some ms (the page of a listing, a long composition). */
  turn(): Promise<void>;
  /**
   * Does the work while so much counts in the memory for bodies, by tenant. `isWithin`: the request's document counts meanwhile.
   * Rejects as it does, or with SlowDown: also where the client has gone before there was room.
   */
  withMemory<T>(needs: { sizeBytes: number; isWithin?: boolean }, work: () => Promise<T>): Promise<T>;
  /** A place to compute a digest of an object of step 5's bucket; returns what gives it back. Throws SlowDown. */
  beginDigest(): () => void;
  /** For calls of MOVEs that go on over many of them. */
  readonly movePlaces: MovePlaces;
  /** Whether this gateway has other requests under way: for work that may take its time. */
  hasCompany(): boolean;
  /** Headers by which a browser keeps a stored page apart from what else this host serves. `contentType`: of the answer. */
  pageGuard(contentType: unknown): Readonly<Record<string, string>>;
  /** Where the client sees step 5's bucket, in path or virtual-host style, without a slash behind: for Location elements. */
  bucketUrl(): string;
}
