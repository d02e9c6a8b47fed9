// What a jump of the clock over the time that the server was off means for data (R19): nothing goes by age alone until
// the operator has said that the new time is right. Whoever removes by age (uploads that were left, answers that were
// kept long enough, retention, lifecycle) asks here first; what was asked to go by a client or a bucket's end does not.

export interface TimeJumps {
  /** Asked before every step: time is not trusted in a shard with a jump that is not accepted. */
  mayRemoveByAge(shard: number): boolean;
  /** The largest that waits for the operator's word, ms; 0 when none does. */
  unacceptedMs(): number;
  /** The operator's word, on all of them; durable when it resolves. Throws AppError ServiceUnavailable. */
  accept(): Promise<void>;
}
