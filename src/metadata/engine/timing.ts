// The times of the cluster protocol (1.1). Clocks drift by less than 5 %.

/** L: how long a voter keeps silent to others after an entry or heartbeat of a primary (R9). */
export const SILENCE_MS = 3000;
/** E: by so much a lease ends before the silence it rests on (R10). */
export const LEASE_MARGIN_MS = 500;
export const HEARTBEAT_MS = 300;
/**
 * A primary without a majority for this time steps down (R13, which says twice the silence): its lease has ended by then,
 * and where the others still receive its messages (B9) nothing commits until it releases them.
 */
export const LONELY_MAX_MS = SILENCE_MS;
/** A replica that was silent for this time is not counted on. */
export const UNHEARD_MAX_MS = 2 * SILENCE_MS;
/** Without an answer for so long, entries are sent again from the last that was acknowledged. */
export const RESEND_MS = 1000;
/** How long one round of questions to the voters may take before it is given up. */
export const ROUND_MS = 1500;
/** Between two tries to become primary, and how far a candidate waits behind a lapsed promise at most. */
export const CANDIDATE_JITTER_MS = 300;
/** A wall clock within this of a majority of voters' is believed (R19). */
export const WALL_AGREES_MS = 10_000;

/** Unanswered bytes on the way to one follower (R20). */
export const UNANSWERED_BYTES_MAX = 64 * 1024 * 1024;
/** Bytes of logs that wait for the disk of a process: beyond, entries of others are not taken (R20). */
export const UNSYNCED_BYTES_MAX = 64 * 1024 * 1024;
/** Entries that the logs of a process keep in memory beside the disk, about. */
export const TAILS_BYTES_MAX = 128 * 1024 * 1024;
/** Entries of one message. */
export const APPEND_BYTES_MAX = 1024 * 1024;
/** One is being synced while the next one is on its way; further entries gather, unless messages are larger than this. */
export const APPENDS_UNDER_WAY_MAX = 2;
export const APPEND_BYTES_SMALL = 128 * 1024;

/** R15: the end of the log that is kept in any case, and for a voter that lacks it. */
export const LOG_KEPT_BYTES = 64 * 1024 * 1024;
export const LOG_KEPT_FOR_OTHERS_BYTES = 1024 * 1024 * 1024;

/** R14: how long the rows of a replica are kept that its shard does not list any more. */
export const UNLISTED_KEPT_MS = 24 * 60 * 60_000;

/** R22: how fast replicas compare their states. */
export interface VerifyPace {
  /** Between two ranges of a shard. */
  pauseMs: number;
  /** From the beginning of one pass over a shard to that of the next, at least: shard time. */
  passMs: number;
  /** Of one range, about: nothing is applied while it is hashed. */
  rowsMax: number;
  bytesMax: number;
}
export const VERIFY_PACE: VerifyPace = {
  pauseMs: 10_000,
  passMs: 24 * 60 * 60_000,
  rowsMax: 2000,
  bytesMax: 1024 * 1024,
};
/** A replica that has not sent its digest by then is passed over. */
export const VERIFY_PATIENCE_MS = 5000;
