// Whether a primary may answer a read (R10): by the lease that a majority's answers give it, else by a barrier, a round of
// heartbeats that begins after the read. primary-term.ts sends messages and collects answers.
import { must } from '../../base/assert.ts';
import { type Moment, passedMs } from '../../base/moment.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { LEASE_MARGIN_MS, SILENCE_MS, UNHEARD_MAX_MS } from '../engine/timing.ts';

/** Between two rounds that begin while the clock stands still: about a microsecond. */
const ROUND_APART_MS = 2 ** -10;

interface Barrier {
  sinceMs: number;
  resolve(isReached: boolean): void;
}

export class ReadLease {
  readonly #clock: ClockPort;
  /** Send times that may still come back in answers. */
  readonly #sent: Moment[] = [];
  /** Of growing times. */
  readonly #barriers: Barrier[] = [];
  #sentMs = Number.NEGATIVE_INFINITY;
  /** T of R10: the latest time such that a majority has answered messages sent at or after it. */
  #answeredSinceMs = Number.NEGATIVE_INFINITY;
  /** Wall clock at that sending, while it is known. */
  #answeredSinceWallMs: number | undefined;

  constructor(clock: ClockPort) {
    this.#clock = clock;
  }

  /** The send time of a message that goes out now: its answer echoes it. */
  send(): number {
    return this.#sendAt(Math.max(this.#clock.monotonicMs(), this.#sentMs));
  }

  /** Once for each answer, because every read asks for it. Infinite: nobody else is needed. */
  renew(answeredSinceMs: number): void {
    this.#answeredSinceMs = answeredSinceMs;
    if (answeredSinceMs < Number.POSITIVE_INFINITY) {
      while ((this.#sent[0]?.monotonicMs ?? Number.POSITIVE_INFINITY) < answeredSinceMs) this.#sent.shift();
      const [sent] = this.#sent;
      // Not where somebody counts no more, so that an earlier time holds: then a read waits for a round.
      this.#answeredSinceWallMs = sent?.monotonicMs === answeredSinceMs ? sent.wallMs : undefined;
    }
    this.#passBarriers();
  }

  /** Within it others keep silent (R9), and what was read may be answered at once. */
  get isHeld(): boolean {
    // Nobody else is needed.
    if (this.#answeredSinceMs === Number.POSITIVE_INFINITY) return true;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs >= this.#answeredSinceMs + SILENCE_MS - LEASE_MARGIN_MS) return false;
    const wallMs = this.#answeredSinceWallMs;
    if (wallMs === undefined) return false;
    const now = { monotonicMs: nowMs, wallMs: this.#clock.wallMs() };
    // R10; a wall clock that was set back since then hides how long the machine was stopped.
    return passedMs({ monotonicMs: this.#answeredSinceMs, wallMs }, now) <= SILENCE_MS;
  }

  /**
   * A round begins: true once a majority has answered messages that are sent from now on. Its time is later than that of all
   * before it, though the clock may not have moved: an answer that waited in a socket while the machine was suspended says
   * nothing to a read that came after that.
   */
  beginRound(): Promise<boolean> {
    const nowMs = this.#clock.monotonicMs();
    const sinceMs = this.#sendAt(nowMs > this.#sentMs ? nowMs : this.#sentMs + ROUND_APART_MS);
    return new Promise((resolve) => this.#barriers.push({ sinceMs, resolve }));
  }

  /** The epoch has ended: nothing is answered any more. */
  end(): void {
    for (const { resolve } of this.#barriers.splice(0)) resolve(false);
  }

  #sendAt(monotonicMs: number): number {
    if (monotonicMs === this.#sentMs) return monotonicMs;
    this.#sentMs = monotonicMs;
    this.#sent.push({ monotonicMs, wallMs: this.#clock.wallMs() });
    while (must(this.#sent[0], 'one').monotonicMs < monotonicMs - UNHEARD_MAX_MS) this.#sent.shift();
    return monotonicMs;
  }

  /**
   * I3: reads are answered only while the lease of the round holds. Where a process stood still or its machine was
   * suspended, the answers that it receives afterwards may be older than another primary: a later round decides. (Where
   * both clocks stood still nothing shows it, and a read that was under way then is answered as it was when it was asked.)
   */
  #passBarriers(): void {
    if (this.#barriers.length === 0 || !this.isHeld) return;
    while (this.#barriers.length > 0 && must(this.#barriers[0], 'one').sinceMs <= this.#answeredSinceMs)
      must(this.#barriers.shift(), 'one').resolve(true);
  }
}
