// Steps ahead of the clock that time has followed without having passed (R19). One of more than 7 days waits for the
// operator's word. Smaller ones are followed at once, and add up: a clock that is set ahead again and again comes to the
// same. The sum lessens by a part of the time that passes, so that what a server is off now and then is forgotten.
import type { TimeJumpRecord } from './entry-rows.ts';

/** A jump ahead beyond it waits for the operator's word, for all that goes by age. */
export const JUMP_MS = 7 * 24 * 3600 * 1000;
/** 7 days of steps are forgotten in 28 days. */
const FORGOTTEN_SHARE = 1 / 4;
/** Steps that come to less are not kept over restarts and takeovers. */
export const STEPS_KEPT_MS = 60_000;

export class ClockSteps {
  #sumMs = 0;
  /** Of it what the row does not say. */
  #unkeptMs = 0;

  /** ms; 0 when there are none. */
  get sumMs(): number {
    return Math.floor(this.#sumMs);
  }

  /** So much time has passed. */
  passed(elapsedMs: number): void {
    this.#sumMs = Math.max(0, this.#sumMs - elapsedMs * FORGOTTEN_SHARE);
  }

  /** `timeMs`: the shard's, now. Steps that have been added already stay. */
  restore({ stepsMs, timeMs: keptAtMs }: TimeJumpRecord, timeMs: number): void {
    this.#sumMs += Math.max(0, stepsMs - Math.max(0, timeMs - keptAtMs) * FORGOTTEN_SHARE);
  }

  /**
   * Time has followed the clock by so much. `jump`: all steps together are one, which begins anew; `jumpMs` says how far it goes.
   * `keep`: the row should say the sum.
   */
  add(stepMs: number): { kind: 'jump'; jumpMs: number } | { kind: 'keep' | 'small' } {
    this.#sumMs += stepMs;
    this.#unkeptMs += stepMs;
    if (this.#sumMs > JUMP_MS) {
      const jumpMs = Math.floor(this.#sumMs);
      this.forget();
      return { kind: 'jump', jumpMs };
    }
    if (this.#unkeptMs < STEPS_KEPT_MS) return { kind: 'small' };
    this.#unkeptMs = 0;
    return { kind: 'keep' };
  }

  /** The operator has said that time is right, or they have become a jump. */
  forget(): void {
    this.#sumMs = 0;
    this.#unkeptMs = 0;
  }
}
