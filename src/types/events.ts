// Events: what happened to the objects of a bucket, as S3 names it (AWS "Amazon S3 event notifications"). The commands of
// src/metadata write them, and so decide which change is which event.
import type { AccountId } from './names.ts';

export const EVENT_TYPES = [
  's3:ObjectCreated:Put',
  /** An upload by a form of a browser. */
  's3:ObjectCreated:Post',
  's3:ObjectCreated:Copy',
  's3:ObjectCreated:CompleteMultipartUpload',
  's3:ObjectRemoved:Delete',
  's3:ObjectRemoved:DeleteMarkerCreated',
  's3:ObjectTagging:Put',
  's3:ObjectTagging:Delete',
  's3:ObjectAcl:Put',
  /** By a rule of the bucket's lifecycle, or because compliance retention has ended. */
  's3:LifecycleExpiration:Delete',
  's3:LifecycleExpiration:DeleteMarkerCreated',
  /** A bucket, or an account, holds more than its soft quota. Of no object. */
  'holdfast:SoftQuota:Passed',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** The numbers by which rows name the consumers of events. They are stored, so a number is never given to another consumer. */
export const EVENT_CONSUMER_IDS = {
  /** What operators look at (`holdfast events`). */
  feed: 1,
} as const;
export type EventConsumer = keyof typeof EVENT_CONSUMER_IDS;
export const EVENT_CONSUMERS = Object.keys(EVENT_CONSUMER_IDS) as readonly EventConsumer[];

/** The request that a command is made for. */
export interface RequestOrigin {
  /** As in x-amz-request-id. */
  requestId: string;
  /** Absent: anonymous. */
  accountId?: AccountId;
  /** Of the client. */
  address?: string;
}
