// What a replica does while it leads: opens the shard behind a Begin entry (R12 d), evaluates commands and queries,
// brings the state of those behind up to date, and keeps the log from growing. Ends once and for good (R13).
import type { FairTurns } from '../../base/async/fair-turns.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { KvPort } from '../../ports/kv.ts';
import type { Envelope, Reply } from '../../ports/metadata/port.ts';
import type {
  AckMessage,
  NackMessage,
  ReplicaId,
  ReplicaMessage,
  ReplicaRef,
  SnapshotNextMessage,
  VerifiedMessage,
} from '../../ports/replication.ts';
import type { ReplicaStatus } from '../../ports/shard-calls.ts';
import type { RegisteredShard, ShardRecord } from '../../ports/shard-registry.ts';
import type { StateMachine } from '../../ports/state-machine.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { ClockSteps } from '../engine/clock-steps.ts';
import { Counters } from '../engine/counters.ts';
import type { Entry } from '../engine/entry-codec.ts';
import { decodeTimeJump, type TimeJumpRecord } from '../engine/entry-rows.ts';
import { Overlay, type OverlayBudget } from '../engine/overlay.ts';
import { ENGINE_TABLES, rowKey } from '../engine/row-keys.ts';
import { Shard } from '../engine/shard.ts';
import { createStateReader } from '../engine/state-reader.ts';
import { HEARTBEAT_MS, SILENCE_MS, UNHEARD_MAX_MS, VERIFY_PACE, type VerifyPace } from '../engine/timing.ts';
import type { Applier } from './applier.ts';
import type { LogStore } from './log-store.ts';
import type { Send } from './message-envelope.ts';
import { PrimaryTerm } from './primary-term.ts';
import { allVoters } from './quorum.ts';
import type { ReplicaEvent } from './replica-events.ts';
import { ReplicatedLog } from './replicated-log.ts';
import { ReplicatedTime } from './replicated-time.ts';
import { SnapshotSource } from './snapshots.ts';
import { othersOf, setsOf } from './takeover.ts';
import { Verifier } from './verifier.ts';

export interface LeadershipParts {
  shard: number;
  shardCount: number;
  self: ReplicaRef;
  record: ShardRecord;
  kv: KvPort;
  machine: StateMachine;
  /** Of queries that read many rows. Default: none, each reads on. */
  turns?: FairTurns;
  clock: ClockPort;
  random: RandomPort;
  budget: OverlayBudget;
  logger: Logger;
  log: LogStore;
  applier: Applier;
  send: Send;
  witness(seq: number): void;
  stepDown(why: string): void;
  /** R22: the own state is damaged; these have what a majority has. */
  onSelfOdd(right: readonly ReplicaId[]): void;
  verifyPace?: VerifyPace;
  onEvent?(event: ReplicaEvent): void;
}

export class Leadership {
  readonly #parts: LeadershipParts;
  readonly #term: PrimaryTerm;
  readonly #entries: ReplicatedLog;
  readonly #time: ReplicatedTime;
  readonly #steps = new ClockSteps();
  readonly #overlay: Overlay;
  readonly #verifier: Verifier;
  readonly #snapshots = new Map<ReplicaId, SnapshotSource>();
  #others: ReplicaRef[];
  #shard: Shard | undefined;
  #hasEnded = false;
  /** Takes no more calls: another will. */
  #isClosing = false;

  constructor(parts: LeadershipParts) {
    const { shard, clock, record, log, applier, self } = parts;
    this.#parts = parts;
    this.#others = withLearners(record, self);
    this.#overlay = new Overlay(parts.budget);
    this.#term = new PrimaryTerm({
      self: self.replicaId,
      epoch: record.epoch,
      log,
      clock,
      send: parts.send,
      ownSeq: () => this.#entries.ownSeq,
      sets: setsOf(record),
      others: this.#others,
      onCommitted: (seq) => applier.advance(seq),
      onLeftBehind: (ref) => this.#sendSnapshot(ref),
      onMajorityLost: () => parts.stepDown('no majority answers'),
    });
    const lastTimeMs = Math.max(applier.applied.timeMs, log.lastTimeMs);
    const isClockBelieved = () => this.#term.isClockBelieved();
    this.#time = new ReplicatedTime({ clock, timeMs: lastTimeMs, isClockBelieved, steps: this.#steps });
    this.#entries = new ReplicatedLog({
      shard,
      epoch: record.epoch,
      log,
      applier,
      lastTimeMs,
      time: this.#time,
      witness: parts.witness,
      overlay: this.#overlay,
      term: this.#term,
    });
    this.#verifier = this.#createVerifier();
  }

  get epoch(): number {
    return this.#parts.record.epoch;
  }

  get isOpen(): boolean {
    return this.#shard !== undefined && !this.#hasEnded;
  }

  /** Undefined while it does not serve. */
  get shard(): Shard | undefined {
    return this.#hasEnded || this.#isClosing ? undefined : this.#shard;
  }

  get others(): readonly ReplicaRef[] {
    return this.#others;
  }

  #createVerifier(): Verifier {
    const { shard, self, kv, clock, random, logger, log, send, onSelfOdd, onEvent, verifyPace } = this.#parts;
    return new Verifier({
      shard,
      self: self.replicaId,
      kv,
      clock,
      random,
      logger,
      send,
      onSelfOdd,
      ...(onEvent && { onEvent }),
      pace: verifyPace ?? VERIFY_PACE,
      nowMs: () => this.#entries.nowMs(),
      mayAppend: () => this.shard !== undefined,
      append: (rows) => {
        this.#entries.append({ rows, timeMs: this.#entries.nowMs(), done: () => undefined });
        return log.last.seq;
      },
      sets: () => this.#term.sets,
      others: () => this.#others,
      isPresent: (replicaId) => this.#term.countsOf(replicaId) && this.#term.lagOf(replicaId) !== undefined,
    });
  }

  /** R22: what this replica has, or another. */
  onDigest(replicaId: ReplicaId, { seq, digest }: { seq: number; digest: string }): void {
    this.#verifier.onDigest(replicaId, seq, digest);
  }

  /** What a primary adds to what every replica says of itself. */
  status(): Pick<ReplicaStatus, 'role' | 'lags' | 'isTimeBelieved' | 'verification'> {
    return {
      role: this.isOpen ? 'primary' : 'opening',
      lags: this.#others.map(({ replicaId }) => ({ replicaId, lag: this.#term.lagOf(replicaId) })),
      // R19: false is an alarm.
      isTimeBelieved: this.#time.isBelieved,
      verification: this.#verifier.status,
    };
  }

  /** R12 d: with its Begin entry committed all before it are, and the state holds them. */
  open(): void {
    const rows: [] = [];
    this.#entries.append({ rows, timeMs: this.#entries.nowMs(), done: () => void this.#begun() });
    this.#term.tick();
  }

  /** R23: the state of a history that begins with what one replica had left says so, before anything is done by it. */
  async #begun(): Promise<void> {
    const { shard, kv, machine, record, stepDown } = this.#parts;
    const { history } = machine;
    try {
      const jumpKey = rowKey(shard, ENGINE_TABLES.timeJump, new Uint8Array(0));
      const [jumpRow] = await kv.getMany('rows', [jumpKey]);
      const timeJump = decodeTimeJump(jumpRow);
      if (this.#hasEnded) return;
      if (history === undefined || record.incarnation === 1) return this.#opened(timeJump);
      const [row] = await createStateReader(shard, kv).rows([history.address]);
      if (this.#hasEnded) return;
      if (history.incarnationOf(row) >= record.incarnation) return this.#opened(timeJump);
      const { table, key } = history.address;
      const timeMs = this.#entries.nowMs();
      const value = history.begin(record.incarnation, timeMs);
      const put = { column: table.column, key: rowKey(shard, table, key), value };
      this.#entries.append({ rows: [put], timeMs, done: () => this.#opened(timeJump) });
    } catch (error) {
      this.#parts.logger.error({ shard, err: error }, 'shard-not-opened');
      stepDown('its history could not be read');
    }
  }

  #opened(timeJump: TimeJumpRecord): void {
    const { shard, shardCount, kv, machine, random, budget, logger, onEvent, turns } = this.#parts;
    if (this.#hasEnded) return;
    this.#steps.restore(timeJump, this.#entries.nowMs());
    const opened = new Shard({
      shard,
      shardCount,
      kv,
      machine,
      random,
      budget,
      ...(turns && { turns }),
      overlay: this.#overlay,
      log: this.#entries,
      counters: new Counters(shard, { kv, overlay: this.#overlay }),
      state: createStateReader(shard, kv),
      timeJumpMs: timeJump.jumpMs,
      steps: this.#steps,
      onRequestFound: () => onEvent?.('request-found'),
    });
    this.#shard = opened;
    this.#time.followSteps((stepMs, timeMs) => {
      if (opened.noteClockStep(stepMs, timeMs))
        logger.warn({ shard, jumpMs: opened.timeJumpMs }, 'clock-jumped');
    });
    logger.info({ shard, epoch: this.epoch }, 'shard-opened');
    onEvent?.('opened');
  }

  execute(...call: Parameters<Shard['execute']>): Promise<Reply<unknown>> | undefined {
    return this.#isClosing ? undefined : this.#shard?.execute(...call);
  }

  query(envelope: Envelope, name: string, query: unknown): Promise<Reply<unknown>> | undefined {
    return this.#isClosing ? undefined : this.#shard?.query(envelope, name, query);
  }

  onApplied(entry: Entry): void {
    this.#entries.onApplied(entry);
  }

  onAnswer(message: ReplicaMessage): void {
    const answer = message as AckMessage | NackMessage | SnapshotNextMessage | VerifiedMessage;
    if (answer.kind === 'ack') this.#term.onAck(answer);
    else if (answer.kind === 'nack') this.#term.onNack(answer);
    else if (answer.kind === 'snapshot-next') void this.#sendPage(answer);
    else if (answer.kind === 'verified') this.onDigest(answer.from, answer);
  }

  async #sendPage(answer: SnapshotNextMessage): Promise<void> {
    const { shard, logger } = this.#parts;
    this.#term.onMessage(answer.from);
    try {
      await this.#snapshots.get(answer.from)?.onNext(answer);
    } catch (error) {
      logger.error({ shard, err: error }, 'snapshot-not-sent');
      this.#snapshots.delete(answer.from);
    }
  }

  tick(): void {
    this.#term.tick();
    if (this.#hasEnded) return;
    if (this.shard !== undefined) this.#verifier.tick();
    const nowMs = this.#parts.clock.monotonicMs();
    for (const [replicaId, source] of this.#snapshots)
      if (nowMs - source.receivedMs > UNHEARD_MAX_MS) this.#snapshots.delete(replicaId);
  }

  /** Learners come and go without a new epoch. */
  onRegistered({ record }: RegisteredShard): void {
    if (record.epoch !== this.epoch) return;
    this.#term.setVoters(setsOf(record));
    const before = this.#others;
    this.#others = withLearners(record, this.#parts.self);
    for (const { replicaId } of withoutThose(before, this.#others)) this.#unfollow(replicaId);
    for (const ref of withoutThose(this.#others, before)) this.#term.follow(ref);
  }

  #unfollow(replicaId: ReplicaId): void {
    this.#term.unfollow(replicaId);
    this.#snapshots.delete(replicaId);
  }

  lagOf(replicaId: ReplicaId): number | undefined {
    return this.#term.lagOf(replicaId);
  }

  countsOf(replicaId: ReplicaId): boolean {
    return this.#term.countsOf(replicaId);
  }

  /** The entry that must stay in the log for those behind (R15). */
  neededSeq(): number {
    let seq = this.#term.leastMatchSeq();
    for (const { startSeq } of this.#snapshots.values()) seq = Math.min(seq, startSeq);
    return seq;
  }

  /** Takes no more commands; resolves when those admitted are answered and `heir` has all, or a lease has passed. */
  async close(heir: ReplicaId | undefined): Promise<void> {
    const { clock } = this.#parts;
    this.#isClosing = true;
    if (this.#shard === undefined) return;
    const untilMs = clock.monotonicMs() + SILENCE_MS;
    const isClosed = new AbortController();
    void this.#shard.close().then(() => isClosed.abort());
    await clock.sleep(SILENCE_MS, isClosed.signal);
    if (heir === undefined) return;
    while (!this.#hasEnded && this.#term.lagOf(heir) !== 0 && clock.monotonicMs() < untilMs)
      await clock.sleep(HEARTBEAT_MS / 3);
  }

  /** After `close`: it goes on leading. */
  resume(): void {
    this.#isClosing = false;
    this.#shard?.reopen();
  }

  end(): void {
    this.#hasEnded = true;
    this.#time.end();
    this.#term.end();
    this.#entries.end();
    this.#shard?.fail();
    this.#snapshots.clear();
  }

  #sendSnapshot(ref: ReplicaRef): void {
    const { shard, kv, applier, clock, random, send, onEvent } = this.#parts;
    const source = this.#snapshots.get(ref.replicaId);
    if (source !== undefined) {
      source.resend();
      return;
    }
    onEvent?.('snapshot-sent');
    this.#snapshots.set(ref.replicaId, new SnapshotSource({ shard, kv, applier, clock, random, send }, ref));
  }
}

function withLearners(record: ShardRecord, self: ReplicaRef): ReplicaRef[] {
  const others = othersOf(record, self);
  const voters = new Set(allVoters(setsOf(record)));
  return [...others, ...record.learners.filter(({ replicaId }) => !voters.has(replicaId))];
}

function withoutThose(refs: readonly ReplicaRef[], those: readonly ReplicaRef[]): ReplicaRef[] {
  const ids = new Set(those.map(({ replicaId }) => replicaId));
  return refs.filter(({ replicaId }) => !ids.has(replicaId));
}
