// Shard time with several voters (R19): the wall clock while a majority of voters' wall clocks agrees with ours; else the
// last time plus what has passed since. Entries carry it, so it never decreases, whoever leads.
import type { ClockPort } from '../../ports/clock.ts';

export class ReplicatedTime {
  readonly #clock: ClockPort;
  readonly #isClockBelieved: () => boolean;
  #timeMs: number;
  #atMonotonicMs: number;

  /** `timeMs`: of the last entry. */
  constructor(parts: { clock: ClockPort; timeMs: number; isClockBelieved(): boolean }) {
    this.#clock = parts.clock;
    this.#isClockBelieved = parts.isClockBelieved;
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
    const clockMs = this.#isClockBelieved() ? this.#clock.wallMs() : this.#timeMs + elapsedMs;
    this.#timeMs = Math.max(this.#timeMs, clockMs);
    return Math.floor(this.#timeMs);
  }
}
