// One epoch of a primary, from the log's point of view: it sends its entries to the others, counts who has them (R5), knows
// how long its lease lasts (R10) and whether the others answer (R13). Callbacks handle the meaning of entries and their
// commit; takeover.ts wins an epoch.
import type { ClockPort } from '../../ports/clock.ts';
import type { AckMessage, NackMessage, ReplicaId, ReplicaRef } from '../../ports/replication.ts';
import { APPEND_BYTES_MAX, LONELY_MAX_MS, RESEND_MS, UNHEARD_MAX_MS } from '../engine/timing.ts';
import type { LogStore } from './log-store.ts';
import type { Send } from './message-envelope.ts';
import { hasMajority, isVoter, reachedByMajority, type VoterSets } from './quorum.ts';
import { ReadLease } from './read-lease.ts';
import {
  isBeatDue,
  mayFollowByLog,
  mayPush,
  newProgress,
  type Progress,
  probe,
  removeAnswered,
} from './replica-progress.ts';
import { VoterClocks } from './voter-clocks.ts';

export interface PrimaryTermParts {
  self: ReplicaId;
  epoch: number;
  sets: VoterSets;
  /** All that are written to, without this one: voters of both sets, and learners. */
  others: readonly ReplicaRef[];
  log: LogStore;
  clock: ClockPort;
  /** The last entry that this replica answers for itself: synced, and witnessed (R17). */
  ownSeq(): number;
  send: Send;
  /** All entries up to `seq` are committed. */
  onCommitted(seq: number): void;
  /** What it needs is no longer in the log (R15, R16). Called again until it is caught up. */
  onLeftBehind(replica: ReplicaRef): void;
  /** R13: no majority answers any more. */
  onMajorityLost(): void;
}

export class PrimaryTerm {
  readonly #parts: PrimaryTermParts;
  #sets: VoterSets;
  readonly #progress = new Map<ReplicaId, Progress>();
  readonly #startedAtMs: number;
  readonly #lease: ReadLease;
  readonly #voterClocks: VoterClocks;
  #commitSeq = 0;
  #hasEnded = false;

  constructor(parts: PrimaryTermParts) {
    this.#parts = parts;
    this.#sets = parts.sets;
    this.#startedAtMs = parts.clock.monotonicMs();
    this.#voterClocks = new VoterClocks(parts.clock);
    this.#lease = new ReadLease(parts.clock);
    for (const ref of parts.others) this.#progress.set(ref.replicaId, newProgress(ref, this.#parts.log));
    this.#renewLease();
  }

  get epoch(): number {
    return this.#parts.epoch;
  }

  get commitSeq(): number {
    return this.#commitSeq;
  }

  /** Sends everybody what is new, or a sign of life. */
  flush(): void {
    if (this.#hasEnded) return;
    this.#count();
    const nowMs = this.#now();
    for (const progress of this.#progress.values()) this.#feed(progress, nowMs);
  }

  onAck(message: AckMessage): void {
    const progress = this.#noteAnswer(message);
    if (progress === undefined) return;
    progress.counts = message.counts;
    progress.hasMatched = true;
    progress.isDamaged = message.isDamaged === true;
    progress.isProbing = false;
    // What it has matched in this epoch it keeps (R4); damage shows by `counts` (R17).
    if (message.matchSeq > progress.matchSeq || !message.counts) progress.matchSeq = message.matchSeq;
    removeAnswered(progress, this.#now());
    if (progress.nextSeq <= progress.matchSeq) progress.nextSeq = progress.matchSeq + 1;
    this.#renewLease();
    this.#count();
    if (progress.isDamaged && this.#isSpared(progress.ref.replicaId)) this.#parts.onLeftBehind(progress.ref);
    else this.#feed(progress, this.#now());
  }

  onNack(message: NackMessage): void {
    const lastMs = this.#progress.get(message.from)?.answeredMs ?? 0;
    const progress = this.#noteAnswer(message);
    if (progress === undefined) return;
    // It says where the replica stood before.
    if (message.echoMs < lastMs) return;
    const before = progress.nextSeq;
    progress.counts = message.counts;
    this.#renewLease();
    progress.nextSeq = Math.max(1, Math.min(message.hintSeq, this.#parts.log.last.seq + 1));
    if (progress.matchSeq >= progress.nextSeq) progress.matchSeq = progress.nextSeq - 1;
    probe(progress);
    // Two that do not agree must not keep each other busy: what leads no further back waits for the next heartbeat.
    if (progress.nextSeq < before) this.#feed(progress, this.#now());
    else progress.waitsSinceMs = this.#now();
  }

  /** It takes a snapshot, and is there. */
  onMessage(replicaId: ReplicaId): void {
    const progress = this.#progress.get(replicaId);
    if (progress !== undefined) progress.receivedMs = this.#now();
  }

  /** The change of voters is over: one set counts (R14). */
  setVoters(sets: VoterSets): void {
    this.#sets = sets;
    this.#renewLease();
    this.#count();
  }

  get sets(): VoterSets {
    return this.#sets;
  }

  /** A learner that has been made known, or one that got a snapshot up to `matchSeq`. */
  follow(ref: ReplicaRef, matchSeq = 0): void {
    const progress = this.#progress.get(ref.replicaId) ?? newProgress(ref, this.#parts.log);
    if (matchSeq > 0) progress.nextSeq = matchSeq + 1;
    this.#progress.set(ref.replicaId, progress);
    probe(progress);
    this.#feed(progress, this.#now());
  }

  /** It holds no replica any more. */
  unfollow(replicaId: ReplicaId): void {
    this.#progress.delete(replicaId);
    this.#voterClocks.forget(replicaId);
    this.#renewLease();
  }

  /** Entries that the replica lacks; undefined when that is unknown, or it was silent for a while. */
  lagOf(replicaId: ReplicaId): number | undefined {
    const progress = this.#progress.get(replicaId);
    if (progress === undefined || this.#now() - progress.answeredMs > UNHEARD_MAX_MS) return undefined;
    return this.#parts.log.last.seq - progress.matchSeq;
  }

  countsOf(replicaId: ReplicaId): boolean {
    const progress = this.#progress.get(replicaId);
    return replicaId === this.#parts.self || (progress?.counts === true && !progress.isDamaged);
  }

  /** The least that a voter has, for trimming (R15); only voters that answered recently. */
  leastMatchSeq(): number {
    let least = this.#parts.log.last.seq;
    for (const { matchSeq, answeredMs } of this.#progress.values())
      if (this.#now() - answeredMs < UNHEARD_MAX_MS) least = Math.min(least, matchSeq);
    return least;
  }

  tick(): void {
    const nowMs = this.#now();
    // One that does not count, too: as long as it is not whole again nobody else could lead.
    const receivedMs = reachedByMajority(this.#sets, (id) => {
      if (id === this.#parts.self) return nowMs;
      const progress = this.#progress.get(id);
      if (progress === undefined) return Number.NEGATIVE_INFINITY;
      return progress.counts ? progress.answeredMs : progress.receivedMs;
    });
    if (nowMs - Math.max(receivedMs, this.#startedAtMs) > LONELY_MAX_MS) {
      this.#parts.onMajorityLost();
      return;
    }
    for (const progress of this.#progress.values()) {
      if (progress.waitsSinceMs !== undefined && nowMs - progress.waitsSinceMs > RESEND_MS) {
        if (progress.hasMatched) progress.nextSeq = progress.matchSeq + 1;
        probe(progress);
      }
      if (isBeatDue(progress, nowMs)) this.#beat(progress);
      this.#feed(progress, nowMs);
    }
  }

  /** R10: undefined when the read may be answered now; else whether it may, once a majority has answered again. */
  confirmRead(): undefined | Promise<boolean> {
    if (this.#hasEnded) return Promise.resolve(false);
    if (this.#lease.isHeld) return undefined;
    const reached = this.#lease.beginRound();
    for (const progress of this.#progress.values()) this.#beat(progress);
    return reached;
  }

  /** Whether wall clocks of a majority of voters agree with ours (R19). */
  isClockBelieved(): boolean {
    return this.#voterClocks.isOwnBelieved(this.#parts.self, this.#sets);
  }

  end(): void {
    this.#hasEnded = true;
    this.#lease.end();
  }

  #now(): number {
    return this.#parts.clock.monotonicMs();
  }

  #noteAnswer(message: AckMessage | NackMessage): Progress | undefined {
    const progress = this.#progress.get(message.from);
    if (progress === undefined || this.#hasEnded) return undefined;
    // Messages may be doubled and late: an answer never moves anything back.
    progress.answeredMs = Math.max(progress.answeredMs, message.echoMs);
    progress.receivedMs = this.#now();
    this.#voterClocks.noteClock(message.from, { wallMs: message.wallMs, askedMs: message.echoMs });
    return progress;
  }

  /** R5: an entry of an earlier epoch is committed by one of ours behind it, never by being counted itself. */
  #count(): void {
    const { log, epoch } = this.#parts;
    const reached = this.#reachedWithout(undefined);
    if (reached <= this.#commitSeq || log.epochAt(reached) !== epoch) return;
    this.#commitSeq = reached;
    this.#parts.onCommitted(reached);
  }

  /** Whether a majority has all that is committed without this one: it may lose what it has. */
  #isSpared(replicaId: ReplicaId): boolean {
    return this.#commitSeq > 0 && this.#reachedWithout(replicaId) >= this.#commitSeq;
  }

  /**
   * A snapshot takes the vote of a voter and what it has, until it is whole (R16). So one that counts is spared until the
   * others have everything without it; but for a primary that cannot open by any other, in each set of voters.
   */
  #mayBeEmptied({ ref: { replicaId }, counts }: Progress, nowMs: number): boolean {
    if (!counts || !isVoter(this.#sets, replicaId) || this.#isSpared(replicaId)) return true;
    if (this.#commitSeq > 0 || nowMs - this.#startedAtMs < RESEND_MS) return false;
    const { self, log } = this.#parts;
    const mayFollow = (id: ReplicaId) => mayFollowByLog(this.#progress.get(id), log.base, nowMs);
    return !hasMajority(this.#sets, (id) => id === self || (id !== replicaId && mayFollow(id)));
  }

  #reachedWithout(replicaId: ReplicaId | undefined): number {
    const { self, ownSeq } = this.#parts;
    return reachedByMajority(this.#sets, (id) => {
      if (id === replicaId) return 0;
      if (id === self) return ownSeq();
      const progress = this.#progress.get(id);
      return progress?.counts === true ? progress.matchSeq : 0;
    });
  }

  #feed(progress: Progress, nowMs: number): void {
    const { log, onLeftBehind } = this.#parts;
    if (this.#hasEnded || progress.isReading) return;
    // The row before the first is needed to say where it belongs.
    if (progress.nextSeq <= log.base.seq) {
      if (this.#mayBeEmptied(progress, nowMs)) onLeftBehind(progress.ref);
      return;
    }
    if (progress.isProbing) {
      if (progress.waitsSinceMs !== undefined) return;
      progress.waitsSinceMs = nowMs;
      this.#send(progress, []);
      return;
    }
    while (progress.nextSeq <= log.last.seq && mayPush(progress)) {
      const entries = log.readNewest(progress.nextSeq, log.last.seq, APPEND_BYTES_MAX);
      if (entries.length === 0) return void this.#readAndPush(progress);
      this.#push(progress, entries, nowMs);
    }
  }

  /** What it lacks lies on the disk. */
  async #readAndPush(progress: Progress): Promise<void> {
    const { log } = this.#parts;
    const fromSeq = progress.nextSeq;
    progress.isReading = true;
    const entries = await log.read(fromSeq, log.last.seq, APPEND_BYTES_MAX).catch(() => []);
    progress.isReading = false;
    if (this.#hasEnded || progress.isProbing || progress.nextSeq !== fromSeq || entries.length === 0) return;
    if (fromSeq <= log.base.seq) return;
    this.#push(progress, entries, this.#now());
    this.#feed(progress, this.#now());
  }

  #push(progress: Progress, entries: Uint8Array[], nowMs: number): void {
    const sizeBytes = entries.reduce((total, entry) => total + entry.length, 0);
    this.#send(progress, entries);
    progress.nextSeq += entries.length;
    progress.unanswered.push({ seq: progress.nextSeq - 1, sizeBytes });
    progress.unansweredBytes += sizeBytes;
    progress.waitsSinceMs ??= nowMs;
  }

  /** Leans on what is acknowledged, so that it may come before entries that were sent earlier. */
  #beat(progress: Progress): void {
    const { log } = this.#parts;
    const isKnown = progress.hasMatched && log.epochAt(progress.matchSeq) !== undefined;
    this.#send(progress, [], isKnown && !progress.isProbing ? progress.matchSeq : progress.nextSeq - 1);
  }

  #send(progress: Progress, entries: Uint8Array[], seq = progress.nextSeq - 1): void {
    const { log, send } = this.#parts;
    const epoch = log.epochAt(seq);
    const sentAtMs = this.#lease.send();
    progress.sentAtMs = sentAtMs;
    send(progress.ref, {
      kind: 'append',
      // To one that is left behind: it says where it stands once it has a snapshot.
      prev: epoch === undefined ? log.base : { seq, epoch },
      entries,
      commitSeq: this.#commitSeq,
      echoMs: sentAtMs,
      matchedSeq: progress.matchSeq,
    });
  }

  #renewLease(): void {
    const { self } = this.#parts;
    const answeredSinceMs = reachedByMajority(this.#sets, (id) => {
      // Always now, so it may be left out where others are needed.
      if (id === self) return Number.POSITIVE_INFINITY;
      const progress = this.#progress.get(id);
      return progress?.counts === true ? progress.answeredMs : Number.NEGATIVE_INFINITY;
    });
    this.#lease.renew(answeredSinceMs);
  }
}
