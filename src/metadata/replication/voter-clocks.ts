// The wall clocks of voters, as a primary knows them, and whether it trusts its own by them (R19).
import { type Moment, momentNow } from '../../base/moment.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { ReplicaId } from '../../ports/replication.ts';
import { WALL_AGREES_MS } from '../engine/timing.ts';
import { reachedByMajority, type VoterSets } from './quorum.ts';

export class VoterClocks {
  readonly #clock: ClockPort;
  /** What each has said last, and when it had been asked by our monotonic clock. */
  readonly #known = new Map<ReplicaId, Moment & { askedMs: number }>();
  /** The last look at our own. */
  #seen: Moment;
  /** When our own was set, as far as we have seen. */
  #setMs = Number.NEGATIVE_INFINITY;

  constructor(clock: ClockPort) {
    this.#clock = clock;
    this.#seen = momentNow(clock);
  }

  noteClock(replicaId: ReplicaId, { wallMs, askedMs }: { wallMs: number; askedMs: number }): void {
    // Answers may be doubled and late.
    if (askedMs < (this.#known.get(replicaId)?.askedMs ?? askedMs)) return;
    this.#known.set(replicaId, { wallMs, askedMs, monotonicMs: this.#clock.monotonicMs() });
  }

  forget(replicaId: ReplicaId): void {
    this.#known.delete(replicaId);
  }

  /** Whether a majority of voters' clocks agrees with ours. */
  isOwnBelieved(self: ReplicaId, sets: VoterSets): boolean {
    const now = momentNow(this.#clock);
    this.#noteSetting(now);
    const agrees = (id: ReplicaId) => {
      if (id === self) return 1;
      const known = this.#known.get(id);
      // One that was wrong before, and may be right by now, is no witness for ours, which was right before.
      if (known === undefined || known.askedMs <= this.#setMs) return 0;
      // Carried on to this moment.
      const theirsMs = known.wallMs + now.monotonicMs - known.monotonicMs;
      return Math.abs(theirsMs - now.wallMs) <= WALL_AGREES_MS ? 1 : 0;
    };
    return reachedByMajority(sets, agrees) === 1;
  }

  /** Ours was set when it has gone on by something else than the time that has passed. */
  #noteSetting(now: Moment): void {
    const { wallMs, monotonicMs } = this.#seen;
    const setByMs = now.wallMs - wallMs - (now.monotonicMs - monotonicMs);
    if (Math.abs(setByMs) > WALL_AGREES_MS) this.#setMs = now.monotonicMs;
    this.#seen = now;
  }
}
