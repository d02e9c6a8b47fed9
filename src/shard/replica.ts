// One replica of one shard on a metadata node (protocol 1.5): takes entries of a primary, promises and keeps silence,
// takes over when nobody leads, and serves while it leads. It holds the durable record of what was promised; the parts
// of its work are log-store.ts, applier.ts, takeover.ts, primary-term.ts, snapshots.ts and leadership.ts.
import { assert } from '../lib/assert.ts';
import type { ClockPort, RandomPort } from '../ports/clock.ts';
import type { KvPort } from '../ports/kv.ts';
import type { Envelope, Reply } from '../ports/metadata.ts';
import type {
  AppendMessage,
  FenceMessage,
  FetchMessage,
  LogPosition,
  NodeId,
  PreFenceMessage,
  ReleaseMessage,
  ReplicaId,
  ReplicaMessage,
  ReplicaRef,
} from '../ports/replication.ts';
import type { RegisteredShard, ShardRegistryPort } from '../ports/shard-registry.ts';
import type { StateMachine } from '../ports/state-machine.ts';
import type { Logger } from '../ports/telemetry.ts';
import type { WitnessPort } from '../ports/witness.ts';
import { Applier } from './applier.ts';
import { isEntrySound, readEntryHead } from './entry-codec.ts';
import { type Applied, type ReplicaRecord, replicaCodec } from './entry-rows.ts';
import { Leadership } from './leadership.ts';
import type { LogStore } from './log-store.ts';
import type { OverlayBudget } from './overlay.ts';
import type { MessageBody, Say } from './primary-term.ts';
import { isVoter } from './quorum.ts';
import { ENGINE_TABLES, rowKey } from './row-keys.ts';
import { SnapshotTarget } from './snapshots.ts';
import { setsOf, Takeover } from './takeover.ts';
import {
  APPEND_BYTES_MAX,
  CANDIDATE_JITTER_MS,
  LOG_KEPT_BYTES,
  LOG_KEPT_FOR_OTHERS_BYTES,
  ROUND_MS,
  SILENCE_MS,
} from './timing.ts';

export interface ReplicaDeps {
  shard: number;
  shardCount: number;
  nodeId: NodeId;
  kv: KvPort;
  witness: WitnessPort;
  machine: StateMachine;
  clock: ClockPort;
  random: RandomPort;
  registry: ShardRegistryPort;
  budget: OverlayBudget;
  logger: Logger;
  send(to: NodeId, message: ReplicaMessage): void;
  /** Protocol branches taken, for tests and metrics. */
  onEvent?(event: ReplicaEvent): void;
}

export type ReplicaEvent =
  | 'takeover'
  | 'opened'
  | 'stepped-down'
  | 'log-cut'
  | 'snapshot-sent'
  | 'snapshot-taken'
  | 'quarantined'
  | 'swap-lost'
  | 'barrier'
  | 'removed';

export interface OpenedReplica {
  record: ReplicaRecord;
  log: LogStore;
  applied: Applied;
}

type Role =
  | { kind: 'follower' }
  | { kind: 'candidate'; takeover: Takeover }
  | { kind: 'primary'; leadership: Leadership };

const FOLLOWER: Role = { kind: 'follower' };
const NO_KEY = new Uint8Array(0);
const NOBODY = '';

export interface ReplicaStatus {
  shard: number;
  role: 'follower' | 'candidate' | 'opening' | 'primary';
  state: ReplicaRecord['state'];
  incarnation: number;
  epoch: number;
  lastSeq: number;
  appliedSeq: number;
  appliedTimeMs: number;
  primary: ReplicaRef | undefined;
  /** Of an open primary: entries that each other replica lacks; undefined: not heard. */
  lags: { replicaId: ReplicaId; lag: number | undefined }[];
}

export class Replica {
  readonly #deps: ReplicaDeps;
  readonly #log: LogStore;
  readonly #applier: Applier;
  readonly #snapshot: SnapshotTarget;
  #record: ReplicaRecord;
  #role: Role = FOLLOWER;
  /** R9: others hear nothing of us until then. It holds after a start, too: nobody knows what was promised before. */
  #silence: { to: ReplicaId; untilMs: number };
  /** The last entry that agrees with the primary's, of the epoch promised (A4). */
  #matchedSeq = 0;
  #registered: RegisteredShard | undefined;
  #primary: ReplicaRef | undefined;
  #nextTryMs = 0;
  /** Raised when the log begins anew: what was written before is not answered for. */
  #generation = 0;
  /** Of one that does not count: the entry with which it does again. */
  #liveFromSeq: number | undefined;
  /** Decisions about appends, one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  #isStopped = false;
  #isTrimming = false;

  constructor(deps: ReplicaDeps, opened: OpenedReplica) {
    this.#deps = deps;
    this.#record = opened.record;
    this.#log = opened.log;
    this.#silence = { to: NOBODY, untilMs: deps.clock.monotonicMs() + SILENCE_MS };
    this.#applier = new Applier({
      ...{ shard: deps.shard, kv: deps.kv, log: opened.log, applied: opened.applied },
      onApplied: (entry) => {
        if (this.#role.kind === 'primary') this.#role.leadership.onApplied(entry);
      },
    });
    this.#snapshot = new SnapshotTarget({
      ...{
        shard: deps.shard,
        kv: deps.kv,
        log: opened.log,
        applier: this.#applier,
        witness: deps.witness,
        clock: deps.clock,
      },
      say: (to, body) => this.#say(this.#record.promised)(to, body),
      setState: (state) => this.#setState(state),
    });
  }

  get self(): ReplicaRef {
    return { replicaId: this.#record.replicaId, nodeId: this.#deps.nodeId };
  }

  /** Where calls should go: the last primary known. */
  get primary(): ReplicaRef | undefined {
    return this.#primary;
  }

  status(): ReplicaStatus {
    const { promised, incarnation, state } = this.#record;
    const role = this.#role;
    const { seq, timeMs } = this.#applier.applied;
    return {
      shard: this.#deps.shard,
      role: role.kind !== 'primary' ? role.kind : role.leadership.isOpen ? 'primary' : 'opening',
      ...{ state, incarnation, epoch: promised },
      lastSeq: this.#log.last.seq,
      appliedSeq: seq,
      appliedTimeMs: timeMs,
      primary: this.#primary,
      lags: role.kind === 'primary' ? role.leadership.lags() : [],
    };
  }

  // ---- calls ----

  /** undefined: the shard is not open here. */
  execute(envelope: Envelope, name: string, command: unknown): Promise<Reply<unknown>> | undefined {
    return this.#role.kind === 'primary' ? this.#role.leadership.execute(envelope, name, command) : undefined;
  }

  query(envelope: Envelope, name: string, query: unknown): Promise<Reply<unknown>> | undefined {
    return this.#role.kind === 'primary' ? this.#role.leadership.query(envelope, name, query) : undefined;
  }

  // ---- time ----

  /** Some times within a heartbeat. */
  tick(): void {
    if (this.#isStopped) return;
    if (this.#role.kind === 'primary') this.#role.leadership.tick();
    else if (this.#role.kind === 'follower' && this.#mayTry()) this.#try();
    this.#trim();
  }

  /** R15: what is in the state may go, but for what others may still need. */
  #trim(): void {
    const log = this.#log;
    if (this.#isTrimming || log.trimmableSeq(LOG_KEPT_BYTES) <= log.base.seq) return;
    const neededSeq =
      this.#role.kind === 'primary' ? this.#role.leadership.neededSeq() : Number.POSITIVE_INFINITY;
    const seq = Math.max(
      Math.min(log.trimmableSeq(LOG_KEPT_BYTES), this.#applier.applied.seq, neededSeq),
      Math.min(log.trimmableSeq(LOG_KEPT_FOR_OTHERS_BYTES), this.#applier.applied.seq),
    );
    const epoch = log.epochAt(seq);
    if (seq <= log.base.seq || epoch === undefined) return;
    this.#isTrimming = true;
    log
      .trim({ seq, epoch })
      .catch((error) => this.#failed(error))
      .finally(() => {
        this.#isTrimming = false;
      });
  }

  /** R11. */
  #mayTry(): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    const { state, replicaId } = this.#record;
    if (state !== 'live' || nowMs < this.#silence.untilMs || nowMs < this.#nextTryMs) return false;
    const record = this.#registered?.record;
    return record?.voters.some((ref) => ref.replicaId === replicaId) === true;
  }

  #try(): void {
    const { shard, clock, random, registry, logger } = this.#deps;
    const takeover = new Takeover({
      ...{ shard, clock, random, registry, logger, log: this.#log, self: this.self },
      incarnation: this.#record.incarnation,
      say: (epoch) => this.#say(epoch),
      seen: () => ({ promised: this.#record.promised, revision: this.#record.revisionSeen }),
      promise: (epoch, revision) => this.#promise(epoch, revision),
      silentUntilMs: () => (this.#silence.to === this.#record.replicaId ? 0 : this.#silence.untilMs),
      adopt: (after, entries) => this.#adopt(after, entries),
      onRegistered: (registered) => this.onRegistered(registered),
    });
    this.#role = { kind: 'candidate', takeover };
    void this.#run(takeover);
  }

  async #run(takeover: Takeover): Promise<void> {
    const { logger, shard, clock, onEvent } = this.#deps;
    const end = await takeover.run().catch((error: unknown) => {
      logger.error({ shard, err: error }, 'takeover-failed');
      return { kind: 'given-up' as const, why: 'a failure' };
    });
    if (this.#role.kind !== 'candidate' || this.#role.takeover !== takeover) return;
    if (end.kind === 'given-up' || this.#record.promised !== takeover.epoch || this.#isStopped) {
      this.#role = FOLLOWER;
      this.#nextTryMs = clock.monotonicMs() + ROUND_MS / 3 + this.#jitterMs();
      return;
    }
    onEvent?.('takeover');
    this.#lead(end.registered);
  }

  #jitterMs(): number {
    const [byte = 0] = this.#deps.random.bytes(1);
    return (byte / 255) * CANDIDATE_JITTER_MS;
  }

  #lead({ record }: RegisteredShard): void {
    this.#primary = this.self;
    const leadership = new Leadership({
      ...this.#deps,
      ...{ self: this.self, record, log: this.#log, applier: this.#applier },
      say: this.#say(record.epoch),
      stepDown: (why) => this.#stepDown(why),
    });
    this.#role = { kind: 'primary', leadership };
    leadership.open();
  }

  /** R13: answers nobody any more, and lets others go on at once. */
  #stepDown(why: string, heir?: ReplicaId): void {
    const role = this.#role;
    this.#role = FOLLOWER;
    // Whoever was released should be first.
    this.#nextTryMs = this.#deps.clock.monotonicMs() + ROUND_MS + this.#jitterMs();
    if (role.kind === 'candidate') role.takeover.abandon();
    if (role.kind !== 'primary') return;
    const { shard, logger, onEvent } = this.#deps;
    logger.info({ shard, epoch: role.leadership.epoch, why }, 'stepped-down');
    onEvent?.('stepped-down');
    role.leadership.end();
    const say = this.#say(role.leadership.epoch);
    for (const ref of role.leadership.others)
      say(ref, heir === undefined ? { kind: 'release' } : { kind: 'release', heir });
  }

  /** Planned: all that is appended commits first (R13). */
  async handOver(heir: ReplicaId): Promise<boolean> {
    const role = this.#role;
    if (role.kind !== 'primary' || !(await role.leadership.settle(heir))) return false;
    if (this.#role !== role) return false;
    this.#stepDown('handed over', heir);
    return true;
  }

  async stop(): Promise<void> {
    if (this.#role.kind === 'primary') await this.#role.leadership.settle(undefined);
    this.#isStopped = true;
    this.#stepDown('stopping');
    await this.#turn;
  }

  // ---- what is heard ----

  /** A hint, or what was read: never a ground to act as primary. */
  onRegistered(registered: RegisteredShard): void {
    const known = this.#registered;
    if (known !== undefined && known.revision >= registered.revision) return;
    this.#registered = registered;
    const { record } = registered;
    if (record.primary !== null && record.epoch >= this.#record.promised) this.#primary = record.primary;
    if (this.#role.kind === 'primary') this.#role.leadership.onRegistered(registered);
  }

  onMessage(fromNode: NodeId, message: ReplicaMessage): void {
    const { replicaId, incarnation, state } = this.#record;
    if (this.#isStopped || state === 'removed') return;
    if (message.to !== replicaId || message.incarnation !== incarnation) return;
    const from = { replicaId: message.from, nodeId: fromNode };
    switch (message.kind) {
      case 'append':
        this.#turn = this.#turn
          .then(() => this.#onAppend(from, message))
          .catch((error) => this.#failed(error));
        return;
      case 'pre-fence':
        return this.#onPreFence(from, message);
      case 'fence':
        this.#turn = this.#turn
          .then(() => this.#onFence(from, message))
          .catch((error) => this.#failed(error));
        return;
      case 'fetch':
        void this.#onFetch(from, message);
        return;
      case 'release':
        return this.#onRelease(message);
      case 'snapshot-begin':
      case 'snapshot-page':
        this.#turn = this.#turn
          .then(() => this.#onSnapshot(from, message))
          .catch((error) => this.#failed(error));
        return;
      default:
        this.#onAnswer(message);
    }
  }

  /** A failed store ends the process (R20); its owner hears of it by `failed`. */
  #failed(error: unknown): void {
    this.#deps.logger.error({ shard: this.#deps.shard, err: error }, 'replica-failed');
  }

  #onAnswer(
    message: Extract<
      ReplicaMessage,
      { kind: 'ack' | 'nack' | 'pre-fenced' | 'fenced' | 'fetched' | 'refused' | 'snapshot-next' }
    >,
  ): void {
    if ('promised' in message && message.promised > this.#record.promised) this.#stepDown('a higher epoch');
    const role = this.#role;
    if (role.kind === 'candidate') {
      if (message.kind === 'pre-fenced') role.takeover.onPreFenced(message);
      else if (message.kind === 'fenced') role.takeover.onFenced(message);
      else if (message.kind === 'fetched') role.takeover.onFetched(message);
      return;
    }
    if (role.kind === 'primary' && message.epoch === role.leadership.epoch) role.leadership.onAnswer(message);
  }

  /** R3: whoever speaks of a higher epoch ends what goes on here; what is promised is durable before any answer. */
  async #promise(epoch: number, revision = this.#record.revisionSeen): Promise<void> {
    if (epoch < this.#record.promised) return;
    const { replicaId } = this.#record;
    if (this.#role.kind === 'primary') this.#stepDown('a higher epoch');
    if (epoch > this.#record.promised) this.#matchedSeq = 0;
    this.#record = {
      ...this.#record,
      promised: epoch,
      revisionSeen: Math.max(revision, this.#record.revisionSeen),
    };
    assert(replicaId === this.#record.replicaId, 'a replica keeps its id');
    await this.#save();
    this.#witness(this.#log.syncedSeq);
  }

  #save(): Promise<void> {
    const key = rowKey(this.#deps.shard, ENGINE_TABLES.replica, NO_KEY);
    return this.#deps.kv.commit([{ column: 'rows', key, value: replicaCodec.encode(this.#record) }]);
  }

  async #setState(state: ReplicaRecord['state']): Promise<void> {
    if (this.#record.state === state) return;
    const { onEvent, logger, shard } = this.#deps;
    this.#record = { ...this.#record, state };
    logger.info({ shard, state }, 'replica-state');
    if (state === 'quarantined' || state === 'removed') onEvent?.(state);
    await this.#save();
  }

  /** Before anything is told of the log: where it stood must be known beside the database (R17). */
  #witness(seq: number): void {
    this.#deps.witness.write(this.#deps.shard, { epoch: this.#record.promised, seq });
  }

  get #counts(): boolean {
    return this.#record.state === 'live';
  }

  /** R4. */
  async #onAppend(from: ReplicaRef, message: AppendMessage): Promise<void> {
    const { clock } = this.#deps;
    if (message.epoch < this.#record.promised) return this.#nack(from, message, this.#log.last.seq + 1);
    // R9: from its arrival on, whatever becomes of it.
    this.#silence = { to: message.from, untilMs: clock.monotonicMs() + SILENCE_MS };
    this.#primary = from;
    if (message.epoch > this.#record.promised) await this.#promise(message.epoch);
    if (this.#role.kind === 'candidate') this.#stepDown('there is a primary');
    if (message.epoch !== this.#record.promised) return;
    if (this.#snapshot.isReceiving) return this.#snapshot.askAgain(from);
    if (message.matchedSeq > this.#log.last.seq && this.#counts) await this.#setState('quarantined');
    const placed = this.#place(message);
    if (placed.kind === 'disagrees') return this.#nack(from, message, placed.hintSeq);
    if (placed.kind === 'damage') {
      await this.#setState('quarantined');
      return this.#nack(from, message, this.#applier.applied.seq + 1);
    }
    const { after, entries, matchSeq } = placed;
    if (entries.length > 0) await this.#lowerWitness(after);
    if (message.epoch !== this.#record.promised) return;
    const writing = entries.length === 0 ? this.#log.synced() : this.#log.append(after, entries);
    const generation = this.#generation;
    // Not awaited: the next append is written while this one is being synced.
    writing.then(
      () => generation === this.#generation && this.#acknowledge(from, message, matchSeq),
      (error) => this.#failed(error),
    );
  }

  /** Which of the entries are new, and behind what they go. */
  #place(
    message: AppendMessage,
  ):
    | { kind: 'fits'; after: LogPosition; entries: Uint8Array[]; matchSeq: number }
    | { kind: 'disagrees'; hintSeq: number }
    | { kind: 'damage' } {
    const log = this.#log;
    let { prev, entries } = message;
    // What is below the base is committed, so it agrees.
    if (prev.seq < log.base.seq) {
      entries = entries.slice(log.base.seq - prev.seq);
      prev = log.base;
    }
    if (prev.seq > log.last.seq) return { kind: 'disagrees', hintSeq: log.last.seq + 1 };
    if (log.epochAt(prev.seq) !== prev.epoch)
      return prev.seq <= this.#applier.targetSeq
        ? { kind: 'damage' }
        : { kind: 'disagrees', hintSeq: Math.max(log.epochStart(prev.seq), this.#applier.targetSeq + 1) };
    let after = prev;
    let agreeing = 0;
    for (const bytes of entries) {
      const { seq, epoch } = readEntryHead(bytes);
      assert(seq === after.seq + 1, 'entries come without gaps');
      if (log.epochAt(seq) !== epoch) break;
      after = { seq, epoch };
      agreeing++;
    }
    const fresh = entries.slice(agreeing);
    if (fresh.length > 0 && after.seq < this.#applier.targetSeq) return { kind: 'damage' };
    if (!fresh.every(isEntrySound)) return { kind: 'disagrees', hintSeq: after.seq + 1 };
    return {
      kind: 'fits',
      after,
      entries: fresh,
      matchSeq: Math.max(prev.seq, log.base.seq) + entries.length,
    };
  }

  /** Before what is behind `after` is cut: else the shorter log would look like damage (R17). */
  async #lowerWitness(after: LogPosition): Promise<void> {
    if (after.seq >= this.#log.last.seq) return;
    const { onEvent, shard, witness } = this.#deps;
    onEvent?.('log-cut');
    await witness.lower(shard, { epoch: this.#record.promised, seq: after.seq });
  }

  #acknowledge(from: ReplicaRef, message: AppendMessage, matchSeq: number): void {
    const { clock } = this.#deps;
    // R3: an epoch that is over is not answered.
    if (message.epoch !== this.#record.promised || this.#isStopped) return;
    this.#matchedSeq = Math.max(this.#matchedSeq, matchSeq);
    this.#witness(this.#matchedSeq);
    if (this.#counts) this.#applier.advance(Math.min(message.commitSeq, this.#matchedSeq));
    else this.#recover(message);
    this.#say(message.epoch)(from, {
      kind: 'ack',
      matchSeq: this.#matchedSeq,
      echoMs: message.echoMs,
      wallMs: clock.wallMs(),
      counts: this.#counts,
    });
  }

  /** R16, R17: an open primary has matched it to what is committed, so what was lost is back. */
  #recover({ commitSeq }: AppendMessage): void {
    this.#applier.advance(Math.min(commitSeq, this.#matchedSeq));
    if (commitSeq === 0) return;
    this.#liveFromSeq ??= Math.max(commitSeq, this.#snapshot.endSeq);
    if (this.#applier.applied.seq < this.#liveFromSeq) return;
    this.#liveFromSeq = undefined;
    void this.#setState('live');
  }

  #nack(from: ReplicaRef, message: AppendMessage, hintSeq: number): void {
    const { clock } = this.#deps;
    this.#say(message.epoch)(from, {
      kind: 'nack',
      promised: this.#record.promised,
      hintSeq,
      echoMs: message.echoMs,
      wallMs: clock.wallMs(),
    });
  }

  /** Entries of a better log, for a candidate (R12 c). */
  async #adopt(after: LogPosition, entries: readonly Uint8Array[]): Promise<boolean> {
    if (after.seq < this.#applier.targetSeq || !entries.every(isEntrySound)) return false;
    await this.#lowerWitness(after);
    await this.#log.append(after, entries);
    return true;
  }

  /** R9: to anybody but whom silence was promised to, as if there were nobody. */
  #isSilentTo(replicaId: ReplicaId): boolean {
    return this.#silence.to !== replicaId && this.#deps.clock.monotonicMs() < this.#silence.untilMs;
  }

  #onPreFence(from: ReplicaRef, message: PreFenceMessage): void {
    if (this.#isSilentTo(message.from)) return;
    const agrees = message.epoch > this.#record.promised && this.#counts && this.#role.kind !== 'primary';
    this.#say(message.epoch)(from, { kind: 'pre-fenced', agrees });
  }

  /** R12 b. */
  async #onFence(from: ReplicaRef, message: FenceMessage): Promise<void> {
    const { clock } = this.#deps;
    if (message.epoch < this.#record.promised) {
      this.#say(message.epoch)(from, { kind: 'refused', promised: this.#record.promised });
      return;
    }
    if (this.#isSilentTo(message.from)) return;
    if (this.#role.kind === 'candidate') this.#stepDown('a higher epoch');
    await this.#promise(message.epoch);
    if (message.epoch !== this.#record.promised) return;
    this.#say(message.epoch)(from, {
      kind: 'fenced',
      last: this.#log.last,
      base: this.#log.base,
      wallMs: clock.wallMs(),
      counts: this.#counts,
    });
  }

  async #onFetch(from: ReplicaRef, { epoch, after }: FetchMessage): Promise<void> {
    const log = this.#log;
    if (epoch !== this.#record.promised) return;
    const say = this.#say(epoch);
    if (log.epochAt(after.seq) === after.epoch) {
      const entries =
        after.seq === log.last.seq ? [] : await log.read(after.seq + 1, log.last.seq, APPEND_BYTES_MAX);
      say(from, { kind: 'fetched', prev: after, entries, last: log.last });
      return;
    }
    const at = Math.min(after.seq, log.last.seq);
    const seq = at < after.seq ? at : log.epochStart(at) - 1;
    const prev = { seq, epoch: log.epochAt(seq) ?? 0 };
    say(from, { kind: 'fetched', prev, entries: [], last: log.last });
  }

  #onRelease({ from, heir, epoch }: ReleaseMessage): void {
    if (epoch < this.#record.promised || this.#silence.to !== from) return;
    const nowMs = this.#deps.clock.monotonicMs();
    this.#silence = { to: NOBODY, untilMs: nowMs };
    if (heir === this.#record.replicaId) this.#nextTryMs = nowMs;
    else this.#nextTryMs = nowMs + (heir === undefined ? this.#jitterMs() : ROUND_MS);
  }

  async #onSnapshot(
    from: ReplicaRef,
    message: Extract<ReplicaMessage, { kind: 'snapshot-begin' | 'snapshot-page' }>,
  ): Promise<void> {
    if (message.epoch < this.#record.promised) return;
    if (message.epoch > this.#record.promised) await this.#promise(message.epoch);
    if (message.kind === 'snapshot-begin') {
      this.#generation++;
      this.#matchedSeq = 0;
      this.#liveFromSeq = undefined;
    }
    await this.#snapshot.onMessage(from, message);
    if (message.kind === 'snapshot-page' && message.endSeq !== undefined)
      this.#deps.onEvent?.('snapshot-taken');
  }

  #say(epoch: number): Say {
    const { shard, send } = this.#deps;
    const { incarnation, replicaId } = this.#record;
    return (to, body: MessageBody) =>
      send(to.nodeId, {
        ...body,
        shard,
        incarnation,
        epoch,
        from: replicaId,
        to: to.replicaId,
      } as ReplicaMessage);
  }

  /** Whether the registry lists it, as far as is known. */
  isListed(): boolean {
    const record = this.#registered?.record;
    if (record === undefined) return true;
    const { replicaId } = this.#record;
    return isVoter(setsOf(record), replicaId) || record.learners.some((ref) => ref.replicaId === replicaId);
  }
}
