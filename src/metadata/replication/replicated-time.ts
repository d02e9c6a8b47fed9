// Shard time with several voters (R19): the wall clock while a majority of voters' wall clocks agrees with ours; else the
// last time plus what has passed since. Entries carry it, so it never decreases, whoever leads. A jump of more than 7 days
// is noted before it is followed: what goes by age waits for the operator's word then.
import type { ClockPort } from '../../ports/clock.ts';
import { JUMP_MS } from '../engine/shard-time.ts';

/** A new shard's time begins at the epoch: below this it has never been a clock's, and whatever a clock says is no jump. */
const CLOCKLESS_MS = 365 * 24 * 3600_000;

/** Notes a jump of so many ms, to `timeMs`. */
type NoteJump = (jumpMs: number, timeMs: number) => void;

export class ReplicatedTime {
  readonly #clock: ClockPort;
  readonly #isClockBelieved: () => boolean;
  #timeMs: number;
  #atMonotonicMs: number;
  #noteJump: NoteJump | undefined;

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
    const passedMs = this.#timeMs + elapsedMs;
    const clockMs = this.#isClockBelieved() ? this.#clock.wallMs() : passedMs;
    const jumpMs = clockMs - passedMs;
    if (jumpMs <= JUMP_MS || passedMs < CLOCKLESS_MS) {
      this.#timeMs = Math.max(this.#timeMs, clockMs);
    } else if (this.#noteJump === undefined) {
      this.#timeMs = passedMs;
    } else {
      this.#timeMs = clockMs;
      this.#noteJump(Math.floor(jumpMs), Math.floor(clockMs));
    }
    return Math.floor(this.#timeMs);
  }

  /** Follows jumps from now on. Until then, before the shard is open, nobody could note one, and none is followed. */
  followJumps(noteJump: NoteJump): void {
    this.#noteJump = noteJump;
  }

  /** The epoch is over: nobody notes anything any more. */
  end(): void {
    this.#noteJump = undefined;
  }
}
