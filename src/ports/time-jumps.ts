// What a jump of the clock by more than 7 days means for data (R19): nothing goes by age alone until the
// operator has confirmed the new time. Workers that remove by age (abandoned uploads, stored outcomes, retention,
// lifecycle) ask here first; what a client or a bucket's end removes does not wait.
import type { AcceptedJumps } from '../types/accepted-jumps.ts';

export interface TimeJumps {
  /** Asked before every step: time is not trusted in a shard with a jump that is not accepted. */
  mayRemoveByAge(shard: number): boolean;
  /** The largest that waits for the operator's word, ms; 0 when none does. Throws AppError ServiceUnavailable. */
  unacceptedMs(): Promise<number>;
  /**
   * The operator's word, on all that are no larger than what was shown to it; durable when it resolves. Returns the largest that was
   * accepted, and of those that are larger, and wait on. Throws AppError ServiceUnavailable.
   */
  accept(atMostMs: number): Promise<AcceptedJumps>;
}
