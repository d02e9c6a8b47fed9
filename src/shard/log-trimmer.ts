// Keeps a replica's log from growing (R15): what is in the state may go, but for what others may still need.
import type { Logger } from '../ports/telemetry.ts';
import type { Applier } from './applier.ts';
import type { LogStore } from './log-store.ts';
import { LOG_KEPT_BYTES, LOG_KEPT_FOR_OTHERS_BYTES } from './timing.ts';

export class LogTrimmer {
  readonly #parts: { shard: number; log: LogStore; applier: Applier; logger: Logger };
  #isTrimming = false;

  constructor(parts: { shard: number; log: LogStore; applier: Applier; logger: Logger }) {
    this.#parts = parts;
  }

  /** `neededSeq`: of a primary, what followers may ask for. */
  tick(neededSeq: () => number | undefined): void {
    const { log, applier } = this.#parts;
    const { seq: appliedSeq } = applier.applied;
    if (this.#isTrimming || log.trimmableSeq(LOG_KEPT_BYTES) <= log.base.seq) return;
    const seq = Math.max(
      Math.min(log.trimmableSeq(LOG_KEPT_BYTES), appliedSeq, neededSeq() ?? appliedSeq),
      Math.min(log.trimmableSeq(LOG_KEPT_FOR_OTHERS_BYTES), appliedSeq),
    );
    if (seq > log.base.seq) void this.trim(seq);
  }

  /** Up to `seq` at most; what is not in the state stays. */
  async trim(seq: number): Promise<void> {
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
