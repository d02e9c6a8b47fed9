// When a command that revokes rights may be answered (R46): once every gateway that may use its cache has processed the
// change, which the system shard's primary sees by the positions with which they ask; and after a bounded time in any case,
// with the time after which a gateway that does not ask has stopped to trust its cache by itself (identity-feed.ts). In memory
// only: a primary that has just opened knows no gateways, and waits for the bound. By the same questions it knows which master
// keys the gateways have.

import type { ClockPort } from '../ports/clock.ts';
import { LIMITS } from '../types/limits.ts';
import type { HeldMasterKeys } from '../types/records/master-keys-record.ts';

export interface RevocationWait {
  /** `gateway` asks for changes. Call it before the question is evaluated, so that no command slips in between. */
  hasAsked(gateway: string, held?: HeldMasterKeys): void;
  /** Its question had a position in this history: it has processed all changes up to `seq`. */
  hasApplied(gateway: string, seq: number): void;
  /**
   * Resolves when every gateway has the change `seq`, or has stopped to use its cache, and after `revocationWaitMaxMs` at the
   * latest: with the ms after which that is so. Call it as soon as the command is committed.
   */
  untilApplied(seq: number): Promise<number>;
  /**
   * The gateways that have asked lately, with what they said last of their master keys: none, where they said nothing. While it
   * cannot know all of them: in how many ms it will. `mark` is another one once a gateway has come, or has not been settled.
   */
  holders(): { holders: ({ gateway: string } & HeldMasterKeys)[]; mark: string; knownInMs?: number };
}

interface TrackedGateway {
  atMs: number;
  /** Undefined: it is not known to have processed anything. */
  seq: number | undefined;
  held: HeldMasterKeys;
}

const NO_KEYS: HeldMasterKeys = { keyIds: [] };

export function createRevocationWait(deps: {
  clock: ClockPort;
  /** The epoch in which the system shard is open here; undefined: it is not open. Another epoch forgets all gateways. */
  epoch(): number | undefined;
}): RevocationWait {
  return new Waits(deps);
}

class Waits implements RevocationWait {
  readonly #clock: ClockPort;
  readonly #epoch: () => number | undefined;
  /** In the order of their last questions, the latest last. */
  readonly #gateways = new Map<string, TrackedGateway>();
  /** When the wait for each change began: a repeated command continues its wait. */
  readonly #begun = new Map<number, number>();
  /** How often a gateway came, or was not settled on the master key of before, in this epoch. */
  #unsettledCount = 0;
  #knownEpoch: number | undefined;
  /** Gateways that asked before this time are not known. */
  #knownSinceMs: number;
  #news = new AbortController();

  constructor(deps: { clock: ClockPort; epoch(): number | undefined }) {
    this.#clock = deps.clock;
    this.#epoch = deps.epoch;
    this.#knownEpoch = deps.epoch();
    this.#knownSinceMs = this.#clock.monotonicMs();
  }

  hasAsked(gateway: string, held = NO_KEYS): void {
    this.#noticeEpoch();
    const nowMs = this.#clock.monotonicMs();
    this.#forgetSilent(nowMs);
    const before = this.#gateways.get(gateway);
    const known = before ?? { atMs: nowMs, seq: undefined, held };
    const { settledKeyId } = held;
    if (settledKeyId === undefined || before?.held.settledKeyId !== settledKeyId) this.#unsettledCount++;
    known.atMs = nowMs;
    known.held = held;
    this.#gateways.delete(gateway);
    this.#gateways.set(gateway, known);
    if (this.#gateways.size <= LIMITS.gatewaysTrackedMax) return;
    const [oldest = gateway] = this.#gateways.keys();
    this.#gateways.delete(oldest);
    this.#knownSinceMs = nowMs;
  }

  hasApplied(gateway: string, seq: number): void {
    const known = this.#gateways.get(gateway);
    if (known === undefined || (known.seq ?? 0) >= seq) return;
    known.seq = seq;
    this.#news.abort();
    this.#news = new AbortController();
  }

  async untilApplied(seq: number): Promise<number> {
    this.#noticeEpoch();
    const begunMs = this.#beginning(seq);
    const endMs = begunMs + LIMITS.revocationWaitMaxMs;
    // Unknown gateways cannot be waited for one by one.
    const isBlind = begunMs - this.#knownSinceMs < LIMITS.gatewayTrackedMs;
    // They have asked before this time for the last time.
    const unknownStoppedMs = isBlind ? this.#knownSinceMs + LIMITS.gatewayTrackedMs : begunMs;
    // A gateway that asks for the first time from now on has nothing older in its cache. Gateways that are forgotten
    // meanwhile still count here.
    const waited = [...this.#gateways.values()];
    for (;;) {
      const nowMs = this.#clock.monotonicMs();
      const settledMs = Math.max(unknownStoppedMs, stoppedBy(waited, seq));
      const untilMs = isBlind ? endMs : Math.min(endMs, settledMs);
      if (untilMs <= nowMs) return Math.max(0, settledMs - nowMs);
      await this.#clock.sleep(untilMs - nowMs, this.#news.signal);
    }
  }

  holders(): ReturnType<RevocationWait['holders']> {
    this.#noticeEpoch();
    const nowMs = this.#clock.monotonicMs();
    this.#forgetSilent(nowMs);
    const holders = [...this.#gateways].map(([gateway, { held }]) => ({ gateway, ...held }));
    const knownInMs = this.#knownSinceMs + LIMITS.gatewayTrackedMs - nowMs;
    const mark = `${this.#knownEpoch} ${this.#unsettledCount}`;
    return { holders, mark, ...(knownInMs > 0 && { knownInMs }) };
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
    for (const [gateway, { atMs }] of this.#gateways) {
      if (nowMs - atMs <= LIMITS.gatewayTrackedMs) return;
      this.#gateways.delete(gateway);
    }
  }

  #noticeEpoch(): void {
    const epoch = this.#epoch();
    if (epoch === this.#knownEpoch) return;
    this.#knownEpoch = epoch;
    this.#knownSinceMs = this.#clock.monotonicMs();
    this.#gateways.clear();
    this.#unsettledCount = 0;
    this.#begun.clear();
  }
}

/** When the last gateway without the change will have stopped to use its cache, if it does not ask again. */
function stoppedBy(gateways: readonly TrackedGateway[], seq: number): number {
  let untilMs = Number.NEGATIVE_INFINITY;
  for (const known of gateways) {
    if ((known.seq ?? 0) < seq) untilMs = Math.max(untilMs, known.atMs + LIMITS.gatewayTrackedMs);
  }
  return untilMs;
}
