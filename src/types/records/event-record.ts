// Rows of events and of how far their consumers have come.
import { defineRecord } from '../../base/record-codec.ts';
import type { ETag } from '../etag.ts';
import type { EventType, RequestOrigin } from '../events.ts';
import type { AccountId, BucketId, BucketName, ObjectKey, VersionId } from '../names.ts';

/** Something that happened to an object, a bucket or an account, written by the entry that did it. */
export interface EventRecord {
  type: EventType;
  /** Of a bucket or an object. */
  bucketId?: BucketId;
  /** The name that the bucket had. */
  bucket?: BucketName;
  /** Of an object. */
  key?: ObjectKey;
  /** Of an account. */
  ofAccount?: AccountId;
  /** Shard time of the entry. */
  timeMs: number;
  /** Absent where the bucket never kept versions. */
  versionId?: VersionId;
  /** Of the version that came or went; absent for delete markers and tags. */
  sizeBytes?: number;
  etag?: ETag;
  /** Of a rename, which is two events: the key that the object had before, or has now. */
  otherKey?: ObjectKey;
  /** Absent for what no request asked for. */
  origin?: RequestOrigin;
}
export const eventCodec = defineRecord<EventRecord>({ name: 'event', version: 1 });

/** How far a consumer has taken its events. */
export interface EventCursorRecord {
  /** The number of the first event that it has not taken. */
  takenTo: number;
  takenAtMs: number;
}
export const eventCursorCodec = defineRecord<EventCursorRecord>({ name: 'event-cursor', version: 1 });
