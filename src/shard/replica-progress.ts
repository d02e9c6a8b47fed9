// What a primary knows of another replica in its epoch. It moves with each answer, in primary-term.ts.
import type { ReplicaRef } from '../ports/replication.ts';
import type { LogStore } from './log-store.ts';

/** What the primary knows of another replica. */
export interface Progress {
  readonly ref: ReplicaRef;
  nextSeq: number;
  matchSeq: number;
  /** `matchSeq` is what it has said, and not only what is not known yet. */
  hasMatched: boolean;
  /** False until it has been heard in this epoch, and while it may not count (R5). */
  counts: boolean;
  /** R17: not before it has begun anew is it as good as the others. */
  isDamaged: boolean;
  /** The latest send time that it has answered; -Infinity until it has. */
  answeredMs: number;
  /** When anything was heard of it last, by our clock. */
  heardMs: number;
  /** Its wall clock when it was last heard, and when that was by our monotonic clock. */
  wall: { wallMs: number; monotonicMs: number } | undefined;
  /** Where its log agrees is not known yet: one message at a time. */
  isProbing: boolean;
  /** Sent and not acknowledged, in order. */
  readonly unanswered: { seq: number; sizeBytes: number }[];
  unansweredBytes: number;
  /** Since when something sent is not answered. */
  waitsSinceMs: number | undefined;
  sentAtMs: number;
  isReading: boolean;
}

/** Before anything is heard of it. */
export function newProgress(ref: ReplicaRef, log: LogStore): Progress {
  return {
    ref,
    nextSeq: log.last.seq + 1,
    matchSeq: 0,
    hasMatched: false,
    counts: false,
    isDamaged: false,
    answeredMs: Number.NEGATIVE_INFINITY,
    heardMs: Number.NEGATIVE_INFINITY,
    wall: undefined,
    isProbing: true,
    unanswered: [],
    unansweredBytes: 0,
    waitsSinceMs: undefined,
    sentAtMs: Number.NEGATIVE_INFINITY,
    isReading: false,
  };
}
