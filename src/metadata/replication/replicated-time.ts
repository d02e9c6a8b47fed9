// Shard time with several voters (R19): the wall clock, as long as a majority of voters' wall clocks agrees with ours;
// else the last time and what has passed since. Entries carry it, so it never decreases whoever leads.
import type { ClockPort } from '../../ports/clock.ts';

export class ReplicatedTime {
  readonly #clock: ClockPort;
  readonly #isWallBelieved: () => boolean;
  #timeMs: number;
  #atMonotonicMs: number;

  /** `timeMs`: of the last entry. */
  constructor(parts: { clock: ClockPort; timeMs: number; isWallBelieved(): boolean }) {
    this.#clock = parts.clock;
    this.#isWallBelieved = parts.isWallBelieved;
    this.#timeMs = parts.timeMs;
    this.#atMonotonicMs = parts.clock.monotonicMs();
  }

  /** False while our clock goes its own way: an alarm. */
  get isBelieved(): boolean {
    return this.#isWallBelieved();
  }

  /** Now, whole ms: never less than before. */
  nowMs(): number {
    const monotonicMs = this.#clock.monotonicMs();
    const elapsedMs = Math.max(0, monotonicMs - this.#atMonotonicMs);
    this.#atMonotonicMs = monotonicMs;
    const clockMs = this.#isWallBelieved() ? this.#clock.wallMs() : this.#timeMs + elapsedMs;
    this.#timeMs = Math.max(this.#timeMs, clockMs);
    return Math.floor(this.#timeMs);
  }
}
