// How events are had from a shard, and done with (src/metadata/events). Commands write them by themselves.
import type { EventConsumer } from '../../types/events.ts';
import type { BucketId } from '../../types/names.ts';
import type { EventRecord } from '../../types/records/event-record.ts';

/** A place among a consumer's events of one shard: behind those of lower numbers. */
export interface EventPosition {
  /** Of the shard's history (R23): numbers of another one mean nothing. */
  incarnation: number;
  seq: number;
}

export interface EventCommands {
  /** The consumer has done with what is before `upTo`, or with the first of it: ask again until `isAll`. */
  'take-events': {
    command: { consumer: EventConsumer; upTo: EventPosition };
    outcome: { kind: 'taken'; takenTo: number; isAll: boolean } | { kind: 'other-history' };
  };
}

export interface EventQueries {
  /** In their order; `from`: absent, or of another history: from the oldest that is kept and not taken. */
  'list-events': {
    query: { consumer: EventConsumer; from?: EventPosition; bucketId?: BucketId; limit: number };
    result: {
      /** `seq` of each. Those of one bucket alone where one was asked for: a page may have none and yet not be the last. */
      events: { seq: number; event: EventRecord }[];
      next: EventPosition;
      /** Nothing is behind `next`. */
      isAll: boolean;
      /** Events from `from` on that have gone before they were taken, of all buckets. */
      lostCount: number;
    };
  };
}
