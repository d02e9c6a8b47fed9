// Answers that clients have not taken yet, those that wait for the rest of a request among them, counted for each tenant: a
// client that has more of them unsent than its share is not answered until it has taken some. Objects that are streamed are
// not counted: their memory is that of bodies (objects/body-budget.ts). It measures what connections hold, a moment old: to
// add up anew for each of a crowd of requests would cost more than they do.
import { compareHeld, createFairShare, type FairShare } from '../../base/async/fair-share.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { LIMITS } from '../../types/limits.ts';
import { SHARE_WEIGHTS, sharePathOf } from '../../types/tenant.ts';
import { shareOfThread } from '../../types/thread-share.ts';
import type { Exchange } from './exchange.ts';

/** How old the sums may be. */
const SUMS_CACHED_MS = 20;

export class UnsentAnswers {
  readonly #clock: Pick<ClockPort, 'monotonicMs'>;
  readonly #exchanges: Iterable<Exchange>;
  readonly #bytesMax: number;
  #sums: FairShare | undefined;
  #summedAtMs = Number.NEGATIVE_INFINITY;

  /** `exchanges`: those that are under way, at any time. `threads`: as in types/thread-share.ts. */
  constructor(
    clock: Pick<ClockPort, 'monotonicMs'>,
    exchanges: Iterable<Exchange>,
    threads: number | undefined,
  ) {
    this.#clock = clock;
    this.#exchanges = exchanges;
    this.#bytesMax = shareOfThread(LIMITS.unsentBytesMax, { threads });
  }

  /** Of all together. */
  get bytes(): number {
    return this.#measured().used;
  }

  /**
   * Whether the tenant of an exchange has read too little of its answers to get more. Never true below
   * LIMITS.unsentAtLeastBytes of its signer, whatever others do.
   */
  isOverShare({ tenant }: Pick<Exchange, 'tenant'>): boolean {
    const sums = this.#measured();
    const path = sharePathOf(tenant);
    return sums.usedBy(path.slice(0, 2)) > LIMITS.unsentAtLeastBytes && !sums.mayTake(path, 1);
  }

  /**
   * Those whose connections are to end while there are more bytes than its share of LIMITS.unsentBytesMax, and no more than that takes:
   * they have taken nothing for LIMITS.bodyStalledMs, and the tenants who have left most come first.
   */
  tooMany(): Exchange[] {
    let tooManyBytes = this.bytes - this.#bytesMax;
    if (tooManyBytes <= 0) return [];
    const nowMs = this.#clock.monotonicMs();
    const sums = this.#measured();
    const sinceMs = ({ ready, sendingSinceMs }: Exchange) => sendingSinceMs ?? ready?.sinceMs ?? nowMs;
    const heldBy = new Map<Exchange, number[]>();
    for (const exchange of this.#exchanges) {
      if (bytesOf(exchange) === 0 || nowMs - sinceMs(exchange) < LIMITS.bodyStalledMs) continue;
      heldBy.set(exchange, sums.heldAlong(sharePathOf(exchange.tenant).slice(0, 2)));
    }
    const ranked = [...heldBy.keys()].sort(
      (a, b) => compareHeld(heldBy.get(a) ?? [], heldBy.get(b) ?? []) || sinceMs(a) - sinceMs(b),
    );
    return ranked.filter((exchange) => {
      if (tooManyBytes <= 0) return false;
      tooManyBytes -= bytesOf(exchange);
      return true;
    });
  }

  #measured(): FairShare {
    const nowMs = this.#clock.monotonicMs();
    if (this.#sums !== undefined && nowMs - this.#summedAtMs <= SUMS_CACHED_MS) return this.#sums;
    const sums = createFairShare({ limit: this.#bytesMax, weights: SHARE_WEIGHTS });
    for (const exchange of this.#exchanges) {
      const bytes = bytesOf(exchange);
      if (bytes > 0) sums.take(sharePathOf(exchange.tenant), bytes);
    }
    this.#sums = sums;
    this.#summedAtMs = nowMs;
    return sums;
  }
}

function bytesOf({ isBodyMemory, ready, response }: Exchange): number {
  return isBodyMemory ? 0 : response.writableLength + (ready?.bytes ?? 0);
}
