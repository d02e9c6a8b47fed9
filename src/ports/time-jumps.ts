// What a jump of the clock by more than 7 days means for data (R19): nothing goes by age alone until the
// operator has confirmed the new time. Workers that remove by age (abandoned uploads, stored outcomes, retention,
// lifecycle) ask here first; what a client or a bucket's end removes does not wait.

export interface TimeJumps {
  /** Asked before every step: time is not trusted in a shard with a jump that is not accepted. */
  mayRemoveByAge(shard: number): boolean;
  /** The largest that waits for the operator's word, ms; 0 when none does. Throws AppError ServiceUnavailable. */
  unacceptedMs(): Promise<number>;
  /** The operator's word, on all of them; durable when it resolves. Throws AppError ServiceUnavailable. */
  accept(): Promise<void>;
}
