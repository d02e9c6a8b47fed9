// Keeps the log of a replica from growing (R15): what is in the state may go, but for an end that is kept in any case, and
// what others may still need of a primary, within bounds.
import type { Logger } from '../../ports/telemetry.ts';
import { LOG_KEPT_BYTES, LOG_KEPT_FOR_OTHERS_BYTES } from '../engine/timing.ts';
import type { Applier } from './applier.ts';
import type { LogStore } from './log-store.ts';

/** How much of a log stays: in any case, and for others that lack it. */
export interface LogRetention {
  bytes: number;
  forOthersBytes: number;
}

export const LOG_RETENTION: LogRetention = {
  bytes: LOG_KEPT_BYTES,
  forOthersBytes: LOG_KEPT_FOR_OTHERS_BYTES,
};

export interface LogTrimmerParts {
  shard: number;
  log: LogStore;
  applier: Applier;
  logger: Logger;
  retention: LogRetention;
}

export class LogTrimmer {
  readonly #parts: LogTrimmerParts;
  #isTrimming = false;

  constructor(parts: LogTrimmerParts) {
    this.#parts = parts;
  }

  /** `neededSeq`: what others have at least; undefined: nobody is served from here. */
  trim(neededSeq: number | undefined): void {
    const { log, applier, retention } = this.#parts;
    const { seq: appliedSeq } = applier.applied;
    if (this.#isTrimming || log.trimmableSeq(retention.bytes) <= log.base.seq) return;
    const seq = Math.max(
      Math.min(log.trimmableSeq(retention.bytes), neededSeq ?? appliedSeq),
      log.trimmableSeq(retention.forOthersBytes),
    );
    if (seq > log.base.seq) void this.trimTo(seq);
  }

  /** Up to `seq` at most; what is not in the state stays. */
  async trimTo(seq: number): Promise<void> {
    const { shard, log, applier, logger } = this.#parts;
    const toSeq = Math.min(seq, applier.applied.seq);
    const epoch = log.epochAt(toSeq);
    if (epoch === undefined || this.#isTrimming || toSeq <= log.base.seq) return;
    this.#isTrimming = true;
    try {
      await log.trim({ seq: toSeq, epoch });
    } catch (error) {
      logger.error({ shard, err: error }, 'replica-failed');
    } finally {
      this.#isTrimming = false;
    }
  }
}
