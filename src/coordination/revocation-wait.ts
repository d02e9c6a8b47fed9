// When a command that takes rights away may be answered (R46): once every gateway that may serve from its cache has
// digested the change, which the primary of the system shard knows by what they ask with; and after a bounded time in any
// case, because a gateway that does not ask stops to trust its cache by itself (identity-feed.ts). In memory only: a
// primary that has just opened knows nobody, and waits for all.

import type { ClockPort } from '../ports/clock.ts';
import { LIMITS } from '../types/limits.ts';

export interface RevocationWait {
  /** `gateway` asks for changes. To be called before its question is evaluated: no command may slip in between. */
  hears(gateway: string): void;
  /** What it asked with was a place in this history: it has digested all changes up to `seq`. */
  hasDigested(gateway: string, seq: number): void;
  /** Resolves when the command whose change is `seq` may be answered; to be called as soon as it is committed. */
  settle(seq: number): Promise<void>;
}

interface Heard {
  atMs: number;
  /** Undefined: not known to have digested anything. */
  seq: number | undefined;
}

export function createRevocationWait(deps: {
  clock: ClockPort;
  /** In which the system shard is open here; undefined: it is not. Another one means that nobody is known any more. */
  epoch(): number | undefined;
}): RevocationWait {
  return new Waits(deps);
}

class Waits implements RevocationWait {
  readonly #clock: ClockPort;
  readonly #epoch: () => number | undefined;
  /** In the order of hearing, the latest last. */
  readonly #heard = new Map<string, Heard>();
  /** When each change was first waited for: a command that is asked for again goes on waiting. */
  readonly #begun = new Map<number, number>();
  #knownEpoch: number | undefined;
  /** Who was heard before that is not known. */
  #knownSinceMs: number;
  #news = new AbortController();

  constructor(deps: { clock: ClockPort; epoch(): number | undefined }) {
    this.#clock = deps.clock;
    this.#epoch = deps.epoch;
    this.#knownEpoch = deps.epoch();
    this.#knownSinceMs = this.#clock.monotonicMs();
  }

  hears(gateway: string): void {
    this.#noticeEpoch();
    const nowMs = this.#clock.monotonicMs();
    this.#forgetSilent(nowMs);
    const heard = this.#heard.get(gateway) ?? { atMs: nowMs, seq: undefined };
    heard.atMs = nowMs;
    this.#heard.delete(gateway);
    this.#heard.set(gateway, heard);
    if (this.#heard.size <= LIMITS.gatewaysHeardMax) return;
    const [oldest = gateway] = this.#heard.keys();
    this.#heard.delete(oldest);
    this.#knownSinceMs = nowMs;
  }

  hasDigested(gateway: string, seq: number): void {
    const heard = this.#heard.get(gateway);
    if (heard === undefined || (heard.seq ?? 0) >= seq) return;
    heard.seq = seq;
    this.#news.abort();
    this.#news = new AbortController();
  }

  async settle(seq: number): Promise<void> {
    this.#noticeEpoch();
    const begunMs = this.#beginning(seq);
    const endMs = begunMs + LIMITS.revocationWaitMaxMs;
    // Whom we do not know we cannot wait for.
    const isBlind = begunMs - this.#knownSinceMs < LIMITS.gatewayHeardMs;
    // Who asks for the first time from now on has nothing in its cache that is older. What is forgotten of the others
    // meanwhile stays as it was for us.
    const waited = [...this.#heard.values()];
    for (;;) {
      const nowMs = this.#clock.monotonicMs();
      const untilMs = isBlind ? endMs : Math.min(endMs, silentBy(waited, seq));
      if (untilMs <= nowMs) return;
      await this.#clock.sleep(untilMs - nowMs, this.#news.signal);
    }
  }

  #beginning(seq: number): number {
    const nowMs = this.#clock.monotonicMs();
    for (const [other, begunMs] of this.#begun) {
      if (nowMs - begunMs < LIMITS.requestIdKeptMs) break;
      this.#begun.delete(other);
    }
    const begunMs = this.#begun.get(seq) ?? nowMs;
    this.#begun.set(seq, begunMs);
    return begunMs;
  }

  #forgetSilent(nowMs: number): void {
    for (const [gateway, { atMs }] of this.#heard) {
      if (nowMs - atMs <= LIMITS.gatewayHeardMs) return;
      this.#heard.delete(gateway);
    }
  }

  #noticeEpoch(): void {
    const epoch = this.#epoch();
    if (epoch === this.#knownEpoch) return;
    this.#knownEpoch = epoch;
    this.#knownSinceMs = this.#clock.monotonicMs();
    this.#heard.clear();
    this.#begun.clear();
  }
}

/** When the last of those that lack the change will have stopped to serve without it, should they not ask again. */
function silentBy(gateways: readonly Heard[], seq: number): number {
  let untilMs = Number.NEGATIVE_INFINITY;
  for (const heard of gateways) {
    if ((heard.seq ?? 0) < seq) untilMs = Math.max(untilMs, heard.atMs + LIMITS.gatewayHeardMs);
  }
  return untilMs;
}
