// What a primary knows of another replica in its epoch. It moves with each answer, in primary-term.ts.
import { must } from '../../base/assert.ts';
import type { LogPosition, ReplicaRef } from '../../ports/replication.ts';
import {
  APPEND_BYTES_SMALL,
  APPENDS_UNDER_WAY_MAX,
  HEARTBEAT_MS,
  RESEND_MS,
  UNANSWERED_BYTES_MAX,
} from '../engine/timing.ts';
import type { LogStore } from './log-store.ts';

/** What the primary knows of another replica. */
export interface Progress {
  readonly ref: ReplicaRef;
  nextSeq: number;
  matchSeq: number;
  /** `matchSeq` is what it has said, and not only what is not known yet. */
  hasMatched: boolean;
  /** False until it has answered in this epoch, and while it may not count (R5). */
  counts: boolean;
  /** R17: not before it has begun anew is it as good as the others. */
  isDamaged: boolean;
  /** The latest send time that it has answered; -Infinity until it has. */
  answeredMs: number;
  /** When its last message was received, by our clock. */
  receivedMs: number;
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

/** Before any message of it. */
export function newProgress(ref: ReplicaRef, log: LogStore): Progress {
  return {
    ref,
    nextSeq: log.last.seq + 1,
    matchSeq: 0,
    hasMatched: false,
    counts: false,
    isDamaged: false,
    answeredMs: Number.NEGATIVE_INFINITY,
    receivedMs: Number.NEGATIVE_INFINITY,
    isProbing: true,
    unanswered: [],
    unansweredBytes: 0,
    waitsSinceMs: undefined,
    sentAtMs: Number.NEGATIVE_INFINITY,
    isReading: false,
  };
}

/** Where its log agrees is to be found out anew. */
export function probe(progress: Progress): void {
  progress.isProbing = true;
  progress.unanswered.length = 0;
  progress.unansweredBytes = 0;
  progress.waitsSinceMs = undefined;
}

/** What it has matched is answered. */
export function removeAnswered(progress: Progress, nowMs: number): void {
  const { unanswered } = progress;
  let count = 0;
  while (count < unanswered.length && must(unanswered[count], 'one').seq <= progress.matchSeq) {
    progress.unansweredBytes -= must(unanswered[count], 'one').sizeBytes;
    count++;
  }
  if (count > 0) unanswered.splice(0, count);
  // Heartbeats are answered also where entries were lost: those are what is waited for.
  if (unanswered.length === 0) progress.waitsSinceMs = undefined;
  else if (count > 0) progress.waitsSinceMs = nowMs;
}

/** It sent a message a moment ago, and lacks nothing that the log does not have; or nobody knows yet what it lacks. */
export function mayFollowByLog(progress: Progress | undefined, base: LogPosition, nowMs: number): boolean {
  if (progress === undefined || nowMs - progress.receivedMs >= 2 * RESEND_MS) return false;
  return !progress.counts || progress.nextSeq > base.seq;
}

/** Small messages wait for one another, so the busier the shard, the more entries share one; large ones do not wait. */
export function mayPush({ unanswered, unansweredBytes }: Progress): boolean {
  if (unansweredBytes >= UNANSWERED_BYTES_MAX) return false;
  const isFew = unanswered.length < APPENDS_UNDER_WAY_MAX;
  return isFew || unansweredBytes >= unanswered.length * APPEND_BYTES_SMALL;
}

/** All shards beat at the same time, so that a frame to a node carries the heartbeats of all of them (R20). */
export function isBeatDue({ sentAtMs }: Progress, nowMs: number): boolean {
  return Math.floor(nowMs / HEARTBEAT_MS) > Math.floor(sentAtMs / HEARTBEAT_MS);
}
