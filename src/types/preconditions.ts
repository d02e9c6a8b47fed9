// Conditions on writes and deletes, decided inside the commit (s3-behaviour 25-28). Conditions on reads are the
// gateway's, which has the version in hand.
import type { ETag } from './etag.ts';

/** ETags, unquoted, of which one is to be the target's; '*': any. Of none nothing is. */
export type ETagChoice = '*' | readonly string[];

/** All that are given must hold. */
export interface WriteConditions {
  ifMatch?: ETagChoice;
  ifNoneMatch?: ETagChoice;
  /** To the second, as HTTP dates are. */
  ifMatchLastModifiedMs?: number;
  ifMatchSizeBytes?: number;
}

export type ConditionRefusal = { kind: 'precondition-failed'; condition: string } | { kind: 'no-such-key' };

/** What conditions look at. */
export interface ConditionTarget {
  etag: ETag;
  modifiedAtMs: number;
  sizeBytes: number;
}

/**
 * For PUT, copy and Complete. `current` is undefined where the key has no version or its latest is a delete marker:
 * then what asks for a match is NoSuchKey (s3-behaviour 27).
 */
export function checkWriteConditions(
  current: ConditionTarget | undefined,
  conditions: WriteConditions | undefined,
): ConditionRefusal | undefined {
  if (conditions === undefined) return undefined;
  if (current !== undefined) return checkTarget(current, conditions);
  const { ifMatch, ifMatchLastModifiedMs, ifMatchSizeBytes } = conditions;
  const needsObject = ifMatch ?? ifMatchLastModifiedMs ?? ifMatchSizeBytes;
  return needsObject === undefined ? undefined : { kind: 'no-such-key' };
}

/** For deletes: what is not there satisfies every condition, because deleting it changes nothing (s3-behaviour 25). */
export function checkDeleteConditions(
  target: ConditionTarget | undefined,
  conditions: WriteConditions | undefined,
): ConditionRefusal | undefined {
  if (conditions === undefined || target === undefined) return undefined;
  return checkTarget(target, conditions);
}

function checkTarget(target: ConditionTarget, conditions: WriteConditions): ConditionRefusal | undefined {
  const { ifMatch, ifNoneMatch, ifMatchLastModifiedMs, ifMatchSizeBytes } = conditions;
  if (ifMatch !== undefined && !matchesETag(target, ifMatch)) return failed('If-Match');
  if (ifNoneMatch !== undefined && matchesETag(target, ifNoneMatch)) return failed('If-None-Match');
  if (
    ifMatchLastModifiedMs !== undefined &&
    toSecond(ifMatchLastModifiedMs) !== toSecond(target.modifiedAtMs)
  ) {
    return failed('x-amz-if-match-last-modified-time');
  }
  if (ifMatchSizeBytes !== undefined && ifMatchSizeBytes !== target.sizeBytes) {
    return failed('x-amz-if-match-size');
  }
  return undefined;
}

function matchesETag(target: ConditionTarget, choice: ETagChoice): boolean {
  return choice === '*' || choice.includes(target.etag);
}

function toSecond(timeMs: number): number {
  return Math.floor(timeMs / 1000);
}

function failed(condition: string): ConditionRefusal {
  return { kind: 'precondition-failed', condition };
}
