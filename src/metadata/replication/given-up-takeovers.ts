// Logs epochs that a candidate of one shard took and gave up before it opened (R12): each is a time in which nobody could
// lead. Where that happens again and again, the log has one line a minute, which counts those that it leaves out.
import type { ClockPort } from '../../ports/clock.ts';
import type { Logger } from '../../ports/telemetry.ts';

const LOG_EVERY_MS = 60_000;

export class GivenUpTakeovers {
  readonly #parts: { shard: number; clock: Pick<ClockPort, 'monotonicMs'>; logger: Logger };
  #loggedAtMs = Number.NEGATIVE_INFINITY;
  #omittedCount = 0;

  constructor(parts: { shard: number; clock: Pick<ClockPort, 'monotonicMs'>; logger: Logger }) {
    this.#parts = parts;
  }

  /** `epoch` 0: none was taken, as by a candidate that voters refused before. */
  note(epoch: number, why: string): void {
    const { shard, clock, logger } = this.#parts;
    if (epoch === 0) return;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#loggedAtMs < LOG_EVERY_MS) {
      this.#omittedCount++;
      return;
    }
    const omitted = this.#omittedCount > 0 && { omittedCount: this.#omittedCount };
    logger.info({ shard, epoch, why, ...omitted }, 'takeover-given-up');
    this.#loggedAtMs = nowMs;
    this.#omittedCount = 0;
  }
}
