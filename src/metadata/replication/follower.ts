// What a replica does for others: takes a primary's entries (R4), applies what is committed (R6), promises silence (R9),
// answers fences (R12 b), and takes snapshots (R16). Whatever it does first is on its disk before it says so. What it
// does for itself, as candidate and primary, is replica.ts.
import { must } from '../../base/assert.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { KvPort } from '../../ports/kv.ts';
import type {
  AppendMessage,
  FenceMessage,
  FetchMessage,
  LogPosition,
  PreFenceMessage,
  ReplicaMessage,
  ReplicaRef,
  SnapshotBeginMessage,
  SnapshotPageMessage,
} from '../../ports/replication.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { WitnessPort } from '../../ports/witness.ts';
import { isEntrySound, readEntryHead } from '../engine/entry-codec.ts';
import { answerFetch } from './answer-fetch.ts';
import type { Applier } from './applier.ts';
import type { LogStore } from './log-store.ts';
import type { Send } from './message-envelope.ts';
import { placeAppend } from './place-append.ts';
import type { Promises } from './promises.ts';
import type { ReplicaEvent } from './replica-events.ts';
import { SnapshotTarget } from './snapshots.ts';

export interface FollowerParts {
  shard: number;
  kv: KvPort;
  witness: WitnessPort;
  clock: ClockPort;
  logger: Logger;
  log: LogStore;
  applier: Applier;
  promises: Promises;
  send(epoch: number): Send;
  /** Where the witness said that the log had come to when it was opened (R17). */
  witnessed: LogPosition | undefined;
  /** A higher epoch or another primary is known: this replica stops its own attempts (R13). */
  onOtherLeads(epoch: number, primary: ReplicaRef | undefined): void;
  isLeading(): boolean;
  onEvent(event: ReplicaEvent): void;
}

export class Follower {
  readonly #parts: FollowerParts;
  readonly #snapshot: SnapshotTarget;
  /** The last entry that agrees with the primary's, of the epoch promised (A4). */
  #matched = { epoch: 0, seq: 0 };
  /** The last entry that was acknowledged, in its epoch, while that counted: it may still arrive (R17). */
  #acknowledged: LogPosition | undefined;
  /** Raised when the log begins anew: what was written before is not answered for. */
  #generation = 0;
  /** Of one that does not count: the entry with which it does again. */
  #liveFromSeq: number | undefined;
  /** Decisions about the log, one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  #isStopped = false;

  constructor(parts: FollowerParts) {
    const { shard, kv, witness, clock, log, applier, promises } = parts;
    this.#parts = parts;
    this.#acknowledged = parts.witnessed;
    this.#snapshot = new SnapshotTarget({
      shard,
      kv,
      witness,
      clock,
      log,
      applier,
      send: (to, body) => parts.send(promises.epoch)(to, body),
      empty: (primary) => promises.beginAnew(primary),
    });
  }

  /** Runs it behind what is being decided; a failed store ends the process (R20). */
  inSequence(work: () => Promise<void>): void {
    this.#turn = this.#turn.then(work).catch((error: unknown) => this.#failed(error));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#turn;
  }

  /** False: it is no message for a follower. */
  onMessage(from: ReplicaRef, message: ReplicaMessage): boolean {
    if (message.kind === 'append') this.onAppend(from, message);
    else if (message.kind === 'fence') this.onFence(from, message);
    else if (message.kind === 'pre-fence') this.onPreFence(from, message);
    else if (message.kind === 'fetch') this.onFetch(from, message);
    else if (message.kind === 'snapshot-begin' || message.kind === 'snapshot-page')
      this.onSnapshot(from, message);
    else return false;
    return true;
  }

  onAppend(from: ReplicaRef, message: AppendMessage): void {
    this.inSequence(() => this.#append(from, message));
  }

  onFence(from: ReplicaRef, message: FenceMessage): void {
    this.inSequence(() => this.#fence(from, message));
  }

  onSnapshot(from: ReplicaRef, message: SnapshotBeginMessage | SnapshotPageMessage): void {
    this.inSequence(() => this.#takeSnapshot(from, message));
  }

  /** R11. */
  onPreFence(from: ReplicaRef, { epoch }: PreFenceMessage): void {
    const { promises, send, isLeading } = this.#parts;
    if (promises.isSilentTo(from.replicaId)) return;
    const agrees = epoch > promises.epoch && promises.countsFor(from.replicaId) && !isLeading();
    send(epoch)(from, { kind: 'pre-fenced', agrees });
  }

  /** R12 c: what the asker lacks, or where the two logs may agree. */
  onFetch(from: ReplicaRef, message: FetchMessage): void {
    // What cannot be read is sent to nobody (R17): the asker gives up.
    this.#fetch(from, message).catch((error: unknown) => this.#failed(error));
  }

  async #fetch(from: ReplicaRef, { epoch, after }: FetchMessage): Promise<void> {
    const { log, promises, send } = this.#parts;
    if (epoch !== promises.epoch) return;
    const answer = await answerFetch(log, after);
    send(epoch)(from, { kind: 'fetched', ...answer, last: log.last });
  }

  /** The last entry that is known to be committed here. */
  committed(): LogPosition {
    const { applier, log } = this.#parts;
    const { targetSeq: seq } = applier;
    return { seq, epoch: must(log.epochAt(seq), 'what is not applied yet is in the log') };
  }

  /** Entries of a better log, for a candidate (R12 c). False when they contradict what is committed, or it is over. */
  async adopt(after: LogPosition, entries: readonly Uint8Array[]): Promise<boolean> {
    const { applier, log, promises } = this.#parts;
    const { epoch } = promises;
    if (after.seq < applier.targetSeq || !entries.every(isEntrySound)) return false;
    if (!followOneAnother(after, entries)) return false;
    await this.#beforeCut(after);
    // While that was waited for, another may lead, and may have been acknowledged what would be cut now.
    if (epoch !== promises.epoch) return false;
    await log.append(after, entries);
    return true;
  }

  async #append(from: ReplicaRef, message: AppendMessage): Promise<void> {
    const { applier, log, promises, onOtherLeads } = this.#parts;
    if (message.epoch < promises.epoch) return this.#nack(from, message, log.last.seq + 1);
    // R9: from its arrival on, whatever becomes of it.
    promises.keepSilence(message.from);
    onOtherLeads(message.epoch, from);
    if (message.epoch > promises.epoch) await promises.raise(message.epoch);
    if ((promises.record.isDamaged && !promises.counts) || this.#snapshot.isBrokenOff) {
      // The primary has everything that was ever committed. Until then the local data is kept.
      this.#forget();
      await this.#snapshot.beginAnew(from, this.#position());
    }
    if (this.#snapshot.isReceiving) return this.#snapshot.askAgain(from);
    // R17: it has acknowledged what it has not.
    if (message.matchedSeq > log.last.seq && promises.counts) await this.#quarantine();
    const placed = placeAppend(log, applier.targetSeq, message);
    if (placed.kind === 'disagrees') return this.#nack(from, message, placed.hintSeq);
    if (placed.kind === 'damage') {
      this.#parts.onEvent('quarantined');
      await promises.noteDamage({ isLogSound: false });
      return this.#nack(from, message, applier.applied.seq + 1);
    }
    const { after, entries, matchSeq } = placed;
    // As if it had been lost.
    if (entries.length > 0 && log.isBehind) return;
    if (entries.length > 0) await this.#beforeCut(after);
    // R12 b: while that was waited for, this replica may have taken an epoch itself.
    if (message.epoch !== promises.epoch) return;
    const writing = entries.length === 0 ? log.synced() : log.append(after, entries);
    const generation = this.#generation;
    // Not awaited: the next append is written while this one is being synced.
    writing
      .then(() => generation === this.#generation && this.#acknowledge(from, message, matchSeq))
      .catch((error: unknown) => this.#failed(error));
  }

  async #beforeCut(after: LogPosition): Promise<void> {
    const { log, promises, onEvent } = this.#parts;
    if (after.seq >= log.last.seq) return;
    onEvent('log-cut');
    await promises.lowerWitness(after.seq);
  }

  async #quarantine(): Promise<void> {
    this.#parts.onEvent('quarantined');
    await this.#parts.promises.setState('quarantined');
  }

  #acknowledge(from: ReplicaRef, message: AppendMessage, matchSeq: number): void {
    const { applier, clock, promises, send } = this.#parts;
    const { epoch, commitSeq, echoMs } = message;
    // R3: an epoch that is over is not answered.
    if (epoch !== promises.epoch || this.#isStopped) return;
    const earlierSeq = this.#matched.epoch === epoch ? this.#matched.seq : 0;
    this.#matched = { epoch, seq: Math.max(earlierSeq, matchSeq) };
    if (promises.counts)
      this.#acknowledged = { epoch, seq: Math.max(this.#acknowledgedSeq, this.#matched.seq) };
    promises.witness(this.#acknowledgedSeq);
    // What is in a snapshot was committed, whether its source knows it of this epoch or not.
    applier.advance(Math.min(Math.max(commitSeq, this.#snapshot.endSeq), this.#matched.seq));
    this.#recover(commitSeq);
    send(epoch)(from, {
      kind: 'ack',
      matchSeq: this.#matched.seq,
      echoMs,
      wallMs: clock.wallMs(),
      counts: promises.counts,
      isDamaged: promises.record.isDamaged,
    });
  }

  /** What the witness says of it while it counts for nothing. */
  #position(): LogPosition {
    return { epoch: this.#parts.promises.epoch, seq: this.#acknowledgedSeq };
  }

  /** Of the epoch promised. */
  get #acknowledgedSeq(): number {
    return this.#acknowledged?.epoch === this.#parts.promises.epoch ? this.#acknowledged.seq : 0;
  }

  #forget(): void {
    this.#generation++;
    this.#matched = { epoch: 0, seq: 0 };
    this.#liveFromSeq = undefined;
  }

  /**
   * R16, R17: a primary has matched it to what is committed, so what was lost is back. It need not be open: with an entry
   * of its own epoch, which is behind all that a majority had when it won it, nothing that was committed is missing.
   */
  #recover(commitSeq: number): void {
    const { applier, log, promises } = this.#parts;
    const isOfUse = () => promises.record.state !== 'live' && !promises.record.isDamaged;
    if (log.epochAt(this.#matched.seq) !== promises.epoch || !isOfUse()) return;
    // An acknowledgement of before may still arrive: it must be true again by then.
    if (this.#matched.seq < this.#acknowledgedSeq) return;
    this.#liveFromSeq ??= Math.max(commitSeq, this.#snapshot.endSeq);
    if (applier.applied.seq < this.#liveFromSeq) return;
    this.#liveFromSeq = undefined;
    const generation = this.#generation;
    this.inSequence(async () => {
      // A snapshot may have been begun before its turn came.
      if (generation === this.#generation && isOfUse()) await promises.setState('live');
    });
  }

  #nack(from: ReplicaRef, { epoch, echoMs }: AppendMessage, hintSeq: number): void {
    const { clock, promises, send } = this.#parts;
    const { epoch: promised, counts } = promises;
    send(epoch)(from, { kind: 'nack', counts, promised, hintSeq, echoMs, wallMs: clock.wallMs() });
  }

  async #fence(from: ReplicaRef, { epoch, seen }: FenceMessage): Promise<void> {
    const { clock, log, promises, send, onOtherLeads } = this.#parts;
    if (epoch < promises.epoch) {
      send(epoch)(from, { kind: 'refused', promised: promises.epoch });
      return;
    }
    if (promises.isSilentTo(from.replicaId)) return;
    // R9: a primary answers a foreign fence only after it has stepped down.
    onOtherLeads(epoch, undefined);
    // R23: of any majority one knows by whom this epoch's entries may be held.
    await promises.raise(epoch, seen);
    if (epoch !== promises.epoch) return;
    const { base, last } = log;
    const counts = promises.countsFor(from.replicaId);
    send(epoch)(from, { kind: 'fenced', last, base, wallMs: clock.wallMs(), counts });
  }

  async #takeSnapshot(from: ReplicaRef, message: SnapshotBeginMessage | SnapshotPageMessage): Promise<void> {
    const { promises, onOtherLeads, onEvent } = this.#parts;
    const isPage = message.kind === 'snapshot-page';
    const begin = isPage ? this.#snapshot.beginOf(message) : message;
    const { state, isDamaged } = promises.record;
    if (message.epoch < promises.epoch || (begin === undefined && isDamaged)) return;
    if (begin !== undefined && state === 'live' && !isDamaged && this.#has(begin.start)) return;
    onOtherLeads(message.epoch, from);
    if (message.epoch > promises.epoch) await promises.raise(message.epoch);
    if (isPage && begin !== undefined) this.#forget();
    const wasReceiving = this.#snapshot.isReceiving;
    await this.#snapshot.onMessage(from, message, this.#position());
    if (wasReceiving && !this.#snapshot.isReceiving) onEvent('snapshot-taken');
  }

  /** A snapshot that comes late or twice would take away what it once was for: entries that a majority may rest on. */
  #has({ seq, epoch }: LogPosition): boolean {
    const { applier, log } = this.#parts;
    return seq <= applier.applied.seq || log.epochAt(seq) === epoch;
  }

  #failed(error: unknown): void {
    this.#parts.logger.error({ shard: this.#parts.shard, err: error }, 'replica-failed');
  }
}

/** Looked at before any is taken: memory and disk must not part. */
function followOneAnother(after: LogPosition, entries: readonly Uint8Array[]): boolean {
  let last = after;
  for (const bytes of entries) {
    const { seq, epoch } = readEntryHead(bytes);
    if (seq !== last.seq + 1 || epoch < last.epoch) return false;
    last = { seq, epoch };
  }
  return true;
}
