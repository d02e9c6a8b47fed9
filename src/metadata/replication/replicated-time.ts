// Shard time with several voters (R19): the wall clock while a majority of voters' wall clocks agrees with ours; else the
// last time plus what has passed since. A clock that is behind is waited for at our own pace. Entries carry time, so it never
// decreases, whoever leads. Each step ahead is noted before it is followed: of what comes to more than 7 days, what goes by age
// waits for the operator's word.
import type { ClockPort } from '../../ports/clock.ts';
import { type ClockSteps, STEPS_KEPT_MS } from '../engine/clock-steps.ts';
import { BELIEVED_GAP_MS, SLEW } from '../engine/shard-time.ts';

/** A new shard's time begins at the epoch: below this it has never been a clock's, and whatever a clock says is no step. */
const CLOCKLESS_MS = 365 * 24 * 3600_000;

/** Notes a step of so many ms, to `timeMs`. */
type NoteStep = (stepMs: number, timeMs: number) => void;

export class ReplicatedTime {
  readonly #clock: ClockPort;
  readonly #isClockBelieved: () => boolean;
  readonly #steps: ClockSteps;
  #timeMs: number;
  #atMonotonicMs: number;
  #noteStep: NoteStep | undefined;

  /** `timeMs`: of the last entry. `steps`: of which it says how much time has passed. */
  constructor(parts: { clock: ClockPort; timeMs: number; isClockBelieved(): boolean; steps: ClockSteps }) {
    this.#clock = parts.clock;
    this.#isClockBelieved = parts.isClockBelieved;
    this.#steps = parts.steps;
    this.#timeMs = parts.timeMs;
    this.#atMonotonicMs = parts.clock.monotonicMs();
  }

  /** False while our clock goes its own way: an alarm. */
  get isBelieved(): boolean {
    return this.#isClockBelieved();
  }

  /** Now, whole ms: never less than before. */
  nowMs(): number {
    const monotonicMs = this.#clock.monotonicMs();
    const elapsedMs = Math.max(0, monotonicMs - this.#atMonotonicMs);
    this.#atMonotonicMs = monotonicMs;
    this.#steps.passed(elapsedMs);
    const passedMs = this.#timeMs + elapsedMs;
    const gapMs = this.#isClockBelieved() ? this.#clock.wallMs() - passedMs : 0;
    this.#timeMs = passedMs + this.#followed(gapMs, elapsedMs, passedMs);
    return Math.floor(this.#timeMs);
  }

  /** By how much time goes otherwise than at its own pace, where the clock is so much ahead. */
  #followed(gapMs: number, elapsedMs: number, passedMs: number): number {
    if (gapMs <= 0) return gapMs < -BELIEVED_GAP_MS ? 0 : Math.max(gapMs, -elapsedMs * SLEW);
    if (passedMs < CLOCKLESS_MS) return gapMs;
    if (this.#noteStep !== undefined) this.#noteStep(gapMs, Math.floor(passedMs + gapMs));
    else if (gapMs > STEPS_KEPT_MS) return 0;
    return gapMs;
  }

  /** Follows steps from now on. Until then, before the shard is open, nobody could note them, and only small ones are followed. */
  followSteps(noteStep: NoteStep): void {
    this.#noteStep = noteStep;
  }

  /** The epoch is over: nobody notes anything any more. */
  end(): void {
    this.#noteStep = undefined;
  }
}
