// What clients have gateways do, from its beginning to its end: while it may go on, a body that it has stored may be
// committed.
import { LIMITS } from '../../src/types/limits.ts';

/** Of a gateway that has gone: what it sent is evaluated no later (R48), by clocks that differ. */
const COMMIT_LATE_MAX_MS = 2 * LIMITS.metadataAnswerMaxMs;
/** Of one that has answered: what a read has found to be folded is so behind it. */
const GOES_ON_MAX_MS = 3000;

export class Attempts {
  /** Of true time. */
  readonly #spans: { fromMs: number; untilMs: number }[] = [];

  /** Returns what to record of its end, and whether its gateway has answered. */
  begin(fromMs: number): (endMs: number, hasAnswered: boolean) => void {
    const span = { fromMs, untilMs: Number.POSITIVE_INFINITY };
    this.#spans.push(span);
    return (endMs, hasAnswered) => {
      span.untilMs = endMs + (hasAnswered ? GOES_ON_MAX_MS : COMMIT_LATE_MAX_MS);
    };
  }

  /** Whether something that was under way at `atMs` may be so at `nowMs`. */
  mayGoOn(atMs: number, nowMs: number): boolean {
    return this.#spans.some(({ fromMs, untilMs }) => fromMs <= atMs && atMs < untilMs && nowMs < untilMs);
  }
}
