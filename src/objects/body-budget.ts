// Memory that the bodies of all requests may hold together, shared by tenant (base/async/fair-share.ts): what one may hold shrinks
// with what is free, so that another one's body always finds room. A body takes more only while its tenant's share has
// room; those that have begun are served first, then those that come first, and tenants that wait take turns. Who waits too
// long is refused with SlowDown, and who would begin to wait behind too many of its tenant's at once. When others wait, who
// holds memory for a client that stands still or trickles gives way: what can be fetched again is given back, then the body
// ends; those of the same tenant, and of tenants that are over their share. It counts; it allocates nothing.
import { compareHeld, createFairShare, type FairShare, type SharePath } from '../base/async/fair-share.ts';
import type { Patience } from '../base/async/patience.ts';
import { createTenantQueue } from '../base/async/tenant-queue.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { TelemetryPort } from '../ports/telemetry.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import { SHARE_WEIGHTS, sharePathOf, type Tenant } from '../types/tenant.ts';
import { shareOfThread } from '../types/thread-share.ts';

/** One body's share. */
export interface BodyLease {
  /**
   * Await it before taking more; undefined when there is room. `takesBytes`: what will be taken, which is then reserved;
   * absent: a buffer of unknown size will come from the client. Rejects with AppError SlowDown after
   * LIMITS.bodyBufferWaitMaxMs, or sooner where it has not begun and its request has no patience left; at once when the
   * tenant's share of LIMITS.bodiesWaitingMax is waiting and this body has not begun and needs a place, and when the lease is
   * closed.
   */
  admit(takesBytes?: number): Promise<void> | undefined;
  /** Whether more than the least may be taken now (reading ahead). */
  hasRoom(): boolean;
  hold(sizeBytes: number): void;
  /** `endsStep` false: what it was granted for goes on. Default true. */
  release(sizeBytes: number, options?: { endsStep: boolean }): void;
  /** It takes no more of what it was admitted for. */
  hasTaken(): void;
  /** So much is held beside its bytes from here on, and it needs so much more than was said. */
  holdBeside(sizeBytes: number): void;
  /** The client has made progress, whether or not memory was released. */
  progress(): void;
  /** From here on the body waits for its client: only then may it be evicted. */
  idle(): void;
  /** The client has sent or read; the body is at work. */
  busy(): void;
  /** It takes no more: so much is held until it is closed, and it is no body at work any more. */
  keep(sizeBytes: number): void;
  /** Releases everything. Safe to repeat. */
  close(): void;
}

export interface BodyBudget {
  /** Opens a lease that holds nothing yet. */
  open(body: BodyNeeds): BodyLease;
  usedBytes(): number;
}

export interface BodyNeeds {
  /** Whose body it is. */
  tenant: Tenant;
  /** What it must hold to make progress: each step releases some of it. */
  needBytes: number;
  /** Of its request: how long it waits before it begins. Default: LIMITS.bodyBufferWaitMaxMs. */
  patience?: Patience | undefined;
  /** While it waits it holds nothing, so that it needs no waiting place. */
  needsNoPlace?: boolean;
  /** Its request holds other memory meanwhile: it may be let in beyond the limit, as who is in mid-chunk. */
  isWithin?: boolean;
  /** Its client has read nothing for LIMITS.bodyIdleMs while others wait: release what can be fetched again. */
  onShrink?(): void;
  /** The body stood still while others wait: it ends with this error, and must close the lease. */
  onEvicted(error: AppError): void;
}

const WATCH_EVERY_MS = 500;
/**
 * Share of the limit, beyond it, for bodies that could not continue otherwise. Bodies in mid-chunk that wait for more may
 * hold all memory; then some of them at a time are admitted to the end of their chunk.
 */
const GRANTS_SHARE = 1 / 8;
/**
 * Of these, for those that begin within other memory, at most; and for bodies in mid-chunk, at least. The former may keep
 * theirs as long as a key is locked.
 */
const GRANTS_OF_KIND_SHARE = 1 / 2;
/**
 * Of the limit, what the share must have room for where as much or more will be taken within other memory, as by a composition:
 * it may keep it as long as a key is locked, and were a byte enough, a crowd of them would leave nothing. All others need a
 * byte: where they needed more, those that take little would never leave it to them. So do signers, and addresses of strangers,
 * that hold nothing: n greedy accounts leave 1 / (1 + 8n), and n greedy signers of one 1 / (1 + 9n) of its part.
 */
const ROOM_SHARE = 1 / 64;

interface Share extends BodyNeeds {
  path: SharePath;
  heldBytes: number;
  /** Of these, what is no step towards what it needs. */
  besideBytes: number;
  /** What it may take without waiting, so that it makes progress. */
  grantBytes: number;
  /** Bytes from the grants, until a step is over; and the grants of its kind. */
  grantedBytes: number;
  grants: FairShare | undefined;
  /** Of the held bytes, those that are beyond the limit by the grant: they take nothing of what is free for others. */
  beyondBytes: number;
  /** Reserved for what it was admitted for and has not taken yet, so that not all rush in at once. */
  reservedBytes: number;
  /** It has been admitted: refusing it now would waste work. */
  hasBegun: boolean;
  /** When it last released memory, made progress or was admitted. A client that trickles into a chunk makes no progress. */
  progressAtMs: number;
  /** Monotonic ms since when it waits for its client. */
  idleSinceMs: number | undefined;
  /** It has released what it can fetch again, and its client has read nothing since. */
  isShrunk: boolean;
  waiter: Waiter | undefined;
  isClosed: boolean;
}

interface Waiter {
  share: Share;
  takesBytes: number;
  untilMs: number;
  /** It has not begun, and holds one of the waiting places. */
  hasPlace: boolean;
  resolve(): void;
  reject(error: AppError): void;
}

export interface BodyBudgetOptions {
  limitBytes: number;
  clock: ClockPort;
  telemetry: TelemetryPort;
  /** As in types/thread-share.ts; `limitBytes` is the share itself. */
  threads?: number | undefined;
}

export function createBodyBudget(options: BodyBudgetOptions): BodyBudget {
  const ledger = new BodyLedger(options);
  return {
    usedBytes: () => ledger.usedBytes,
    open(body) {
      const share = ledger.open(body);
      return {
        admit: (takesBytes) => ledger.admit(share, takesBytes),
        hasRoom: () => ledger.hasSpare(share),
        hold: (sizeBytes) => ledger.count(share, sizeBytes),
        release: (sizeBytes, options) => ledger.count(share, -sizeBytes, options),
        hasTaken: () => ledger.hasTaken(share),
        holdBeside: (sizeBytes) => ledger.holdBeside(share, sizeBytes),
        progress: () => ledger.progress(share),
        idle: () => ledger.idle(share),
        busy: () => ledger.busy(share),
        keep: (sizeBytes) => ledger.keep(share, sizeBytes),
        close: () => ledger.close(share),
      };
    },
  };
}

class BodyLedger {
  readonly #options: BodyBudgetOptions;
  readonly #shares = new Set<Share>();
  readonly #waiters = createTenantQueue<Waiter>();
  readonly #bytes: FairShare;
  /** Bytes beyond the limit. */
  readonly #grants: FairShare;
  /** Of these, of those who begin within other memory, and of bodies in mid-chunk. */
  readonly #beginGrants: FairShare;
  readonly #chunkGrants: FairShare;
  /** Bodies at work. Their number is bounded because each has some buffers outside of this count. */
  readonly #begun: FairShare;
  /** Waiting places of bodies that have not begun. */
  readonly #places: FairShare;
  /** Without reservations. */
  #heldBytes = 0;
  /** Of these, those beyond the limit. */
  #beyondBytes = 0;
  #isWatching = false;

  constructor(options: BodyBudgetOptions) {
    this.#options = options;
    const { limitBytes, telemetry } = options;
    const share = (limit: number) =>
      createFairShare({ limit: Math.max(1, Math.floor(limit)), weights: SHARE_WEIGHTS });
    this.#bytes = share(limitBytes);
    this.#grants = share(limitBytes * GRANTS_SHARE);
    this.#beginGrants = share(limitBytes * GRANTS_SHARE * GRANTS_OF_KIND_SHARE);
    this.#chunkGrants = share(limitBytes * GRANTS_SHARE * GRANTS_OF_KIND_SHARE);
    this.#begun = share(limitBytes / LIMITS.bodyShareBytesMin);
    this.#places = share(shareOfThread(LIMITS.bodiesWaitingMax, options));
    telemetry.gauge('holdfast_body_buffer_bytes_max', limitBytes);
    this.#report();
    telemetry.gauge('holdfast_bodies_waiting', 0);
  }

  get usedBytes(): number {
    return this.#bytes.used + this.#beyondBytes;
  }

  open(body: BodyNeeds): Share {
    const share: Share = {
      ...body,
      path: sharePathOf(body.tenant),
      heldBytes: 0,
      besideBytes: 0,
      grantBytes: 0,
      grantedBytes: 0,
      grants: undefined,
      beyondBytes: 0,
      reservedBytes: 0,
      hasBegun: false,
      progressAtMs: this.#nowMs(),
      idleSinceMs: undefined,
      isShrunk: false,
      waiter: undefined,
      isClosed: false,
    };
    this.#shares.add(share);
    return share;
  }

  count(share: Share, sizeBytes: number, { endsStep } = { endsStep: true }): void {
    if (share.isClosed || sizeBytes === 0) return;
    share.heldBytes += sizeBytes;
    this.#heldBytes += sizeBytes;
    const beyondBytes =
      sizeBytes > 0 ? Math.min(sizeBytes, share.grantBytes) : -Math.min(-sizeBytes, share.beyondBytes);
    share.beyondBytes += beyondBytes;
    this.#beyondBytes += beyondBytes;
    this.#take(share, sizeBytes - beyondBytes);
    if (sizeBytes > 0) {
      this.#reserve(share, Math.max(0, share.reservedBytes - sizeBytes));
      share.grantBytes = Math.max(0, share.grantBytes - sizeBytes);
      this.#report();
      return;
    }
    this.#reserve(share, 0);
    this.progress(share);
    if (endsStep) this.#endGrant(share);
    this.#report();
    this.#wake();
  }

  holdBeside(share: Share, sizeBytes: number): void {
    const addedBytes = sizeBytes - share.besideBytes;
    if (share.isClosed || addedBytes === 0) return;
    share.besideBytes = sizeBytes;
    share.needBytes += addedBytes;
    share.heldBytes += addedBytes;
    this.#heldBytes += addedBytes;
    this.#take(share, addedBytes);
    this.#report();
    if (addedBytes < 0) this.#wake();
  }

  hasTaken(share: Share): void {
    if (share.reservedBytes === 0) return;
    this.#reserve(share, 0);
    this.#wake();
  }

  progress(share: Share): void {
    share.progressAtMs = this.#nowMs();
  }

  idle(share: Share): void {
    share.idleSinceMs ??= this.#nowMs();
  }

  busy(share: Share): void {
    share.idleSinceMs = undefined;
    share.isShrunk = false;
  }

  /** Whether it may read ahead: while much memory is free, and its tenant is not near the end of its share. */
  hasSpare({ path, needBytes }: Share): boolean {
    return this.#bytes.used < this.#options.limitBytes / 2 && this.#bytes.mayTake(path, needBytes);
  }

  admit(share: Share, wantedBytes?: number): Promise<void> | undefined {
    if (share.isClosed) return Promise.reject(new AppError('SlowDown'));
    if (share.grantBytes > 0) return undefined;
    // The last buffer was smaller than its reservation, so there is room for the next one.
    if (wantedBytes === undefined && share.reservedBytes > 0) return undefined;
    const takesBytes = wantedBytes ?? Math.min(share.needBytes, LIMITS.chunkBytesMin);
    if (this.#isFirst(share) && this.#hasRoomFor(share, takesBytes)) {
      this.#begin(share, takesBytes);
      return undefined;
    }
    if (!share.hasBegun && share.needsNoPlace !== true && !this.#places.mayTake(share.path, 1)) {
      const labels = { reason: 'bodies', share: this.#places.usedUp(1) };
      this.#options.telemetry.count('holdfast_requests_shed_total', labels);
      return Promise.reject(new AppError('SlowDown'));
    }
    return this.#wait(share, takesBytes);
  }

  keep(share: Share, sizeBytes: number): void {
    if (share.isClosed) return;
    this.#settle(share, sizeBytes);
    this.#report();
    this.#wake();
  }

  close(share: Share): void {
    if (share.isClosed) return;
    this.#settle(share, 0);
    share.isClosed = true;
    this.#shares.delete(share);
    if (share.waiter !== undefined) this.#refuse(share.waiter);
    this.#report();
    this.#wake();
  }

  #settle(share: Share, sizeBytes: number): void {
    this.#reserve(share, 0);
    this.#endGrant(share);
    // Its grant is over: all of it counts.
    this.#take(share, sizeBytes - share.heldBytes);
    this.#heldBytes += sizeBytes - share.heldBytes;
    share.heldBytes = sizeBytes;
    share.besideBytes = 0;
    if (share.hasBegun) this.#begun.giveBack(share.path, 1);
    share.hasBegun = false;
  }

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  #report(): void {
    this.#options.telemetry.gauge('holdfast_body_buffer_bytes', this.#heldBytes);
  }

  #take({ path }: Share, sizeBytes: number): void {
    if (sizeBytes > 0) this.#bytes.take(path, sizeBytes);
    else if (sizeBytes < 0) this.#bytes.giveBack(path, -sizeBytes);
  }

  #reserve(share: Share, sizeBytes: number): void {
    this.#take(share, sizeBytes - share.reservedBytes);
    share.reservedBytes = sizeBytes;
  }

  #hasRoomFor({ tenant, path, hasBegun, isWithin }: Share, takesBytes: number): boolean {
    const owner = tenant.account === undefined ? path : path.slice(0, 2);
    const needsRoom = isWithin === true && this.#bytes.usedBy(owner) > 0;
    const roomBytes = Math.min(takesBytes, Math.floor(this.#options.limitBytes * ROOM_SHARE));
    const mayTake = this.#bytes.mayTake(path, needsRoom ? Math.max(1, roomBytes) : 1);
    return mayTake && (hasBegun || this.#begun.mayTake(path, 1));
  }

  /** Whether it is the first among its tenant's waiting bodies. */
  #isFirst({ path, hasBegun }: Share): boolean {
    const first = this.#waiters.firstOf(path);
    return first === undefined || (hasBegun && !first.share.hasBegun);
  }

  #begin(share: Share, takesBytes: number): void {
    if (!share.hasBegun) this.#begun.take(share.path, 1);
    share.hasBegun = true;
    this.#reserve(share, takesBytes);
  }

  #wait(share: Share, takesBytes: number): Promise<void> {
    // Its reservation from before must not keep itself or others waiting.
    this.#reserve(share, 0);
    const { hasBegun, patience } = share;
    const hasPlace = !hasBegun && share.needsNoPlace !== true;
    if (hasPlace) this.#places.take(share.path, 1);
    const waiting = new Promise<void>((resolve, reject) => {
      const sinceMs = this.#nowMs();
      const untilMs = sinceMs + waitMaxMs(share);
      const letIn = () => {
        if (!hasBegun) patience?.waited(this.#nowMs() - sinceMs);
        resolve();
      };
      const waiter = { share, takesBytes, untilMs, hasPlace, resolve: letIn, reject };
      share.waiter = waiter;
      this.#waiters.add(share.path, waiter, { isAhead: hasBegun });
    });
    this.#reportWaiting();
    this.#grantSome();
    void this.#watch();
    return waiting;
  }

  #wake(): void {
    if (this.#waiters.size === 0) return;
    for (;;) {
      const waiter = this.#waiters.next(({ share, takesBytes }) => this.#hasRoomFor(share, takesBytes));
      if (waiter === undefined) break;
      this.#begin(waiter.share, waiter.takesBytes);
      this.#letIn(waiter);
    }
    this.#grantSome();
  }

  /** Admits a body that was removed from the waiting ones. */
  #letIn({ share, hasPlace, resolve }: Waiter): void {
    share.waiter = undefined;
    if (hasPlace) this.#places.giveBack(share.path, 1);
    // It waited for memory, not for its client.
    this.progress(share);
    this.#reportWaiting();
    resolve();
  }

  #refuse(waiter: Waiter): void {
    const { share, hasPlace, reject } = waiter;
    if (!this.#waiters.remove(share.path, waiter)) return;
    share.waiter = undefined;
    if (hasPlace) this.#places.giveBack(share.path, 1);
    this.#reportWaiting();
    reject(new AppError('SlowDown'));
  }

  #reportWaiting(): void {
    this.#options.telemetry.gauge('holdfast_bodies_waiting', this.#waiters.size);
  }

  /** Admits waiting bodies in mid-chunk to the end of it, as many as there are grants; then those that begin within other memory. */
  #grantSome(): void {
    // With nearly all grants given there is nothing to look for.
    const allBytes = this.#options.limitBytes * GRANTS_SHARE;
    const ofChunksBytes = allBytes * GRANTS_OF_KIND_SHARE;
    const leftBytes = Math.max(allBytes - this.#grants.used, ofChunksBytes - this.#chunkGrants.used);
    const isOneOfEach = this.#chunkGrants.used > 0 && this.#beginGrants.used > 0;
    if (isOneOfEach && leftBytes < LIMITS.chunkBytesMin) return;
    const inChunk: Waiter[] = [];
    const beginning: Waiter[] = [];
    for (const waiter of this.#waiters) {
      const { heldBytes, besideBytes, needBytes, isWithin } = waiter.share;
      if (needBytes <= heldBytes) continue;
      if (heldBytes > besideBytes) inChunk.push(waiter);
      else if (isWithin === true) beginning.push(waiter);
    }
    this.#grantTo(inChunk, this.#chunkGrants);
    this.#grantTo(beginning, this.#beginGrants);
  }

  /** First to accounts, and to their signers, that have the least of them. */
  #grantTo(waiters: readonly Waiter[], grants: FairShare): void {
    const heldBy = ({ share }: Waiter) => this.#grants.heldAlong(share.path.slice(0, 2));
    for (const waiter of waiters.toSorted((a, b) => compareHeld(heldBy(b), heldBy(a)))) {
      const { share } = waiter;
      const missingBytes = share.needBytes - share.heldBytes;
      if (!this.#mayGrant(grants, share.path, missingBytes)) continue;
      this.#grants.take(share.path, missingBytes);
      grants.take(share.path, missingBytes);
      share.grants = grants;
      share.grantBytes = missingBytes;
      share.grantedBytes = missingBytes;
      this.#waiters.remove(share.path, waiter);
      this.#letIn(waiter);
    }
  }

  /** Of each kind one at a time goes on, however much it needs. */
  #mayGrant(ofKind: FairShare, path: SharePath, bytes: number): boolean {
    if (ofKind.used === 0) return true;
    const isWithinKind = ofKind.mayTake(path, bytes);
    const isWithinAll = this.#grants.mayTake(path, bytes);
    return ofKind === this.#chunkGrants ? isWithinKind || isWithinAll : isWithinKind && isWithinAll;
  }

  #endGrant(share: Share): void {
    if (share.grantedBytes > 0) {
      this.#grants.giveBack(share.path, share.grantedBytes);
      share.grants?.giveBack(share.path, share.grantedBytes);
    }
    this.#take(share, share.beyondBytes);
    this.#beyondBytes -= share.beyondBytes;
    share.beyondBytes = 0;
    share.grantBytes = 0;
    share.grantedBytes = 0;
  }

  /** Runs while any body waits. */
  async #watch(): Promise<void> {
    if (this.#isWatching) return;
    this.#isWatching = true;
    while (this.#waiters.size > 0) {
      await this.#options.clock.sleep(WATCH_EVERY_MS);
      this.#wake();
      this.#refuseLate();
      // No body is evicted while another can release what it can fetch again.
      if (!this.#shrinkIdle()) this.#evictStalled();
    }
    this.#isWatching = false;
  }

  #refuseLate(): void {
    const nowMs = this.#nowMs();
    for (const waiter of [...this.#waiters]) if (waiter.untilMs <= nowMs) this.#refuse(waiter);
  }

  /** False when there was none to shrink. */
  #shrinkIdle(): boolean {
    const idleMs = this.#nowMs() - LIMITS.bodyIdleMs;
    const idle = ({ onShrink, isShrunk, idleSinceMs = Number.POSITIVE_INFINITY }: Share) =>
      onShrink !== undefined && !isShrunk && idleSinceMs <= idleMs;
    const yielding = this.#yielding(idle);
    for (const share of yielding) {
      const { progressAtMs } = share;
      share.isShrunk = true;
      share.onShrink?.();
      // It has released our memory; its client has still read nothing.
      share.progressAtMs = progressAtMs;
    }
    return yielding.length > 0;
  }

  #evictStalled(): void {
    const stalledMs = this.#nowMs() - LIMITS.bodyStalledMs;
    const stalled = ({ hasBegun, heldBytes, idleSinceMs, progressAtMs }: Share) =>
      (hasBegun || heldBytes > 0) && idleSinceMs !== undefined && progressAtMs <= stalledMs;
    for (const share of this.#yielding(stalled)) share.onEvicted(new AppError('SlowDown'));
  }

  /**
   * The bodies to evict, as many as wait: for waiting bodies of their own address, or for anyone's if they are beyond their
   * share. First those of the account that holds most, of its signer and of its address, and of these the ones with the least progress. Chosen before the
   * first eviction, which may admit others at once.
   */
  #yielding(isCandidate: (share: Share) => boolean): Share[] {
    if (this.#waiters.size === 0) return [];
    const waiting = new Map<string, number>();
    for (const { share } of this.#waiters) add(waiting, nameOf(share), 1);
    const heldBy = new Map<Share, number[]>();
    for (const share of this.#shares)
      if (isCandidate(share)) heldBy.set(share, this.#bytes.heldAlong(share.path));
    const ranked = [...heldBy.keys()].sort(
      (a, b) => compareHeld(heldBy.get(a) ?? [], heldBy.get(b) ?? []) || a.progressAtMs - b.progressAtMs,
    );
    return ranked.filter((share) => {
      const own = nameOf(share);
      const [another] = waiting.keys();
      const forWhom = waiting.has(own) ? own : this.#isOverShare(share.path) ? another : undefined;
      if (forWhom !== undefined) add(waiting, forWhom, -1);
      return forWhom !== undefined;
    });
  }

  #isOverShare(path: SharePath): boolean {
    return this.#bytes.isOverShare(path) || this.#begun.isOverShare(path);
  }
}

/** Of the address that it comes from, among all. */
function nameOf({ path }: Share): string {
  return path.join('\n');
}

/** What has begun is worth more: its client has sent bytes of it, or reads. */
function waitMaxMs({ patience, hasBegun }: Share): number {
  const leftMs = hasBegun ? undefined : patience?.leftMs();
  return Math.min(LIMITS.bodyBufferWaitMaxMs, leftMs ?? LIMITS.bodyBufferWaitMaxMs);
}

function add<K>(counts: Map<K, number>, key: K, change: number): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
