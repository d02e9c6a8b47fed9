// One replica of one shard on a metadata node (protocol 1.5), and what it does for itself: takes over when nobody leads
// (R11, R12), leads, steps down (R13), and brings the shard to the voters that are wanted (R14). What it does for others
// is follower.ts, what it has promised promises.ts.
import type { Envelope, Reply } from '../../ports/metadata/port.ts';
import type {
  NodeId,
  ReleaseMessage,
  ReplicaId,
  ReplicaMessage,
  ReplicaRef,
} from '../../ports/replication.ts';
import type { ReplicaStatus } from '../../ports/shard-calls.ts';
import type { RegisteredShard } from '../../ports/shard-registry.ts';
import type { ReplicaRecord } from '../engine/entry-rows.ts';
import type { Shard } from '../engine/shard.ts';
import { HEARTBEAT_MS, ROUND_MS } from '../engine/timing.ts';
import { answerDamage } from './answer-damage.ts';
import { Applier } from './applier.ts';
import { handOverTo, isChange, type NextStep, nextStep, withNonce } from './convergence.ts';
import { Follower } from './follower.ts';
import { GivenUpTakeovers } from './given-up-takeovers.ts';
import { Leadership } from './leadership.ts';
import type { LogStore } from './log-store.ts';
import { LOG_RETENTION, LogTrimmer } from './log-trimmer.ts';
import { type Send, sendAs } from './message-envelope.ts';
import { type OwnDigest, OwnDigests } from './own-digests.ts';
import { Promises } from './promises.ts';
import { isNewer, isOlder, isSuperseded, RegistryCheck, seenOf } from './registered-record.ts';
import type { OpenedReplica, ReplicaDeps } from './replica-parts.ts';
import { candidateJitterMs, isListed, swapRecord, Takeover, type TakeoverEnd } from './takeover.ts';

type Leading = { kind: 'primary'; leadership: Leadership };
type Role = { kind: 'follower' } | { kind: 'candidate'; takeover: Takeover } | Leading;

const FOLLOWER: Role = { kind: 'follower' };

export class Replica {
  readonly #deps: ReplicaDeps;
  readonly #log: LogStore;
  readonly #applier: Applier;
  readonly #promises: Promises;
  readonly #follower: Follower;
  readonly #digests: OwnDigests;
  readonly #trimmer: LogTrimmer;
  readonly #check: RegistryCheck;
  readonly #givenUp: GivenUpTakeovers;
  #role: Role = FOLLOWER;
  #registered: RegisteredShard | undefined;
  #primary: ReplicaRef | undefined;
  #nextTryMs = 0;
  #nextStepMs = 0;
  #isConverging = false;
  #isStopped = false;

  /** `deps.kv` is the one that `damage` watches. */
  constructor(deps: ReplicaDeps, { record, isNew, log, applied, witnessed, damage }: OpenedReplica) {
    const { shard, kv, witness, clock, logger } = deps;
    this.#deps = deps;
    this.#givenUp = new GivenUpTakeovers(deps);
    this.#log = log;
    this.#promises = new Promises({ shard, kv, clock, witness, logger, log }, { record, isNew });
    answerDamage(damage, deps, {
      promises: this.#promises,
      isStopped: () => this.#isStopped,
      isAlone: () => this.#registered?.record.voters.length === 1,
      stepDown: (why) => this.#stepDown(why),
    });
    this.#digests = new OwnDigests({
      shard,
      kv,
      logger,
      clock,
      registry: deps.registry,
      promises: this.#promises,
      isLeading: () => this.#role.kind === 'primary',
      report: (own) => this.#sendDigest(own),
      handOver: (heir) => this.#handOver(heir),
      stepDown: (why) => this.#stepDown(why),
      onEvent: (event) => deps.onEvent?.(event),
    });
    this.#applier = new Applier({
      shard,
      kv,
      log,
      applied,
      isAwaited: () => this.#role.kind !== 'follower',
      verify: (seq, range) => this.#digests.verify(seq, range),
      onApplied: (entry) => {
        if (this.#role.kind === 'primary') this.#role.leadership.onApplied(entry);
      },
    });
    this.#trimmer = new LogTrimmer({
      shard,
      log,
      logger,
      applier: this.#applier,
      retention: deps.logRetention ?? LOG_RETENTION,
    });
    this.#check = new RegistryCheck({ ...deps, own: () => this.#promises.record });
    this.#follower = new Follower({
      shard,
      kv,
      witness,
      clock,
      logger,
      log,
      witnessed,
      applier: this.#applier,
      promises: this.#promises,
      send: this.#send,
      onOtherLeads: (epoch, primary) => this.#onOtherLeads(epoch, primary),
      isLeading: () => this.#role.kind === 'primary',
      onEvent: (event) => deps.onEvent?.(event),
    });
  }

  get self(): ReplicaRef {
    return { replicaId: this.#promises.record.replicaId, nodeId: this.#deps.nodeId };
  }

  /** What it has promised, and by which record. */
  get promised(): Pick<ReplicaRecord, 'promised' | 'seen'> {
    return this.#promises.record;
  }

  /** Where calls should go: the last primary known. */
  get primary(): ReplicaRef | undefined {
    return this.#primary;
  }

  status(): ReplicaStatus {
    const role = this.#role;
    const { seq, timeMs } = this.#applier.applied;
    return {
      shard: this.#deps.shard,
      ...this.#promises.status(),
      lastSeq: this.#log.last.seq,
      appliedSeq: seq,
      appliedTimeMs: timeMs,
      primary: this.#primary,
      isRegistryBehind: this.#check.isBehind,
      ...(role.kind === 'primary'
        ? role.leadership.status()
        : { role: role.kind, lags: [], isTimeBelieved: true }),
    };
  }

  // ---- calls ----

  /** undefined: the shard is not open here, and nothing was evaluated. */
  execute(...call: Parameters<Shard['execute']>): Promise<Reply<unknown>> | undefined {
    return this.#role.kind === 'primary' ? this.#role.leadership.execute(...call) : undefined;
  }

  query(envelope: Envelope, name: string, query: unknown): Promise<Reply<unknown>> | undefined {
    return this.#role.kind === 'primary' ? this.#role.leadership.query(envelope, name, query) : undefined;
  }

  /** Undefined while it does not serve here. */
  get shard(): Shard | undefined {
    return this.#role.kind === 'primary' ? this.#role.leadership.shard : undefined;
  }

  /** R14: majorities of both sets count until the change has ended, which the next primary does next. */
  get isChangingVoters(): boolean {
    return this.#role.kind !== 'follower' && isChange(this.#registered?.record);
  }

  // ---- time ----

  /** Some times within a heartbeat. */
  tick(): void {
    if (this.#isStopped) return;
    if (this.#role.kind === 'primary') {
      this.#role.leadership.tick();
      void this.#converge();
    } else if (this.#role.kind === 'follower' && this.#mayTry()) this.#try();
    this.#trimmer.trim(this.#role.kind === 'primary' ? this.#role.leadership.neededSeq() : undefined);
  }

  /** Up to `seq` at most; what is not in the state stays. */
  trim(seq: number): Promise<void> {
    return this.#trimmer.trimTo(seq);
  }

  /** R11. */
  #mayTry(): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    const { replicaId, isDamaged } = this.#promises.record;
    if (!this.#promises.counts || isDamaged) return false;
    if (nowMs < this.#promises.silentUntilMs || nowMs < this.#nextTryMs) return false;
    return this.#registered?.record.voters.some((ref) => ref.replicaId === replicaId) === true;
  }

  #try(): void {
    const takeover = this.#newTakeover();
    this.#role = { kind: 'candidate', takeover };
    void this.#run(takeover, () => takeover.run());
  }

  #newTakeover(): Takeover {
    const { shard, clock, random, registry, logger } = this.#deps;
    const promises = this.#promises;
    return new Takeover({
      shard,
      clock,
      random,
      registry,
      logger,
      log: this.#log,
      self: this.self,
      check: this.#check,
      send: this.#send,
      own: () => promises.record,
      promise: (registered) => promises.raise(registered.record.epoch, seenOf(registered)),
      silentUntilMs: () => promises.silentUntilMs,
      committed: () => this.#follower.committed(),
      adopt: (after, entries) => this.#follower.adopt(after, entries),
      onRegistered: (registered) => this.onRegistered(registered),
      onSwapLost: () => this.#deps.onEvent?.('swap-lost'),
    });
  }

  async #run(takeover: Takeover, take: () => Promise<TakeoverEnd>): Promise<void> {
    const { logger, shard, clock, onEvent } = this.#deps;
    const end = await take().catch((error: unknown) => {
      logger.error({ shard, err: error }, 'takeover-failed');
      return { kind: 'given-up' as const, why: 'a failure' };
    });
    const isOurs = this.#role.kind === 'candidate' && this.#role.takeover === takeover;
    if (end.kind === 'won' && isOurs && this.#promises.epoch === takeover.epoch && !this.#isStopped) {
      onEvent?.('takeover');
      this.#lead(end.registered);
      return;
    }
    this.#givenUp.note(takeover.epoch, end.kind === 'won' ? takeover.wonInVain : end.why);
    if (!isOurs) return;
    this.#role = FOLLOWER;
    this.#nextTryMs = clock.monotonicMs() + ROUND_MS / 3 + candidateJitterMs(this.#deps.random);
  }

  #lead({ record }: RegisteredShard): void {
    this.#primary = this.self;
    const leadership = new Leadership({
      ...this.#deps,
      self: this.self,
      record,
      log: this.#log,
      applier: this.#applier,
      send: this.#send(record.epoch),
      witness: (seq) => this.#promises.witness(seq),
      stepDown: (why) => this.#stepDown(why),
      onSelfOdd: (right) => void this.#digests.giveUp(right),
    });
    this.#role = { kind: 'primary', leadership };
    if (isChange(record)) this.#nextStepMs = 0;
    leadership.open();
  }

  /** R14: one step towards what the record wants, when there is one. */
  async #converge(): Promise<void> {
    const { clock, logger, shard } = this.#deps;
    const role = this.#role;
    const registered = this.#registered;
    if (this.#isConverging || role.kind !== 'primary' || registered === undefined) return;
    const isTaken = registered.record.epoch > role.leadership.epoch;
    if (!(isTaken || role.leadership.shard !== undefined) || clock.monotonicMs() < this.#nextStepMs) return;
    this.#isConverging = true;
    try {
      if (isTaken) await this.#letNextLead(role);
      else await this.#step(role, registered, nextStep(registered.record, this.self, role.leadership));
    } catch (error) {
      logger.warn({ shard, err: error }, 'registry-away');
    } finally {
      this.#nextStepMs = clock.monotonicMs() + HEARTBEAT_MS;
      this.#isConverging = false;
    }
  }

  /** R13: an epoch was taken in which nobody has led yet. I15: nor can anybody while the registry is away. */
  async #letNextLead(role: Leading): Promise<void> {
    await this.#deps.registry.read(this.#deps.shard);
    if (this.#role === role) this.#stepDown('a higher epoch');
  }

  async #step(role: Leading, registered: RegisteredShard, step: NextStep): Promise<void> {
    const { registry, shard, random, onEvent } = this.#deps;
    if (step.kind === 'none') return;
    // I15: no request waits for a step that cannot be done.
    const present = await registry.read(shard);
    if (present?.revision !== registered.revision) return present && this.onRegistered(present);
    if (this.#role !== role) return;
    // What is admitted is answered first: a new epoch would leave it unknown (R13).
    if (step.kind !== 'rewrite')
      await role.leadership.close(step.kind === 'hand-over' ? step.heir : undefined);
    const record = withNonce(step.record, random);
    const swapped = await swapRecord(registry, shard, { expected: registered.revision, record });
    if (swapped !== undefined && step.kind === 'change-voters') return this.#leadChanged(swapped, role);
    if (swapped !== undefined && step.kind === 'hand-over' && this.#role === role)
      this.#stepDown('handed over', step.heir);
    if (swapped === undefined) onEvent?.('swap-lost');
    if (step.kind !== 'rewrite' && this.#role === role) role.leadership.resume();
    const found = swapped ?? (await registry.read(shard));
    if (found !== undefined) this.onRegistered(found);
  }

  /** The epoch of a change of voters is ours already: majorities of both sets are fenced as for any other. */
  #leadChanged(registered: RegisteredShard, role: Leading): void {
    if (this.#role !== role) return;
    this.#deps.onEvent?.('voters-changed');
    role.leadership.end();
    const takeover = this.#newTakeover();
    this.#role = { kind: 'candidate', takeover };
    this.onRegistered(registered);
    void this.#run(takeover, () => takeover.finish(registered, this.self));
  }

  /** R13: answers nobody any more, and lets others go on at once. */
  #stepDown(why: string, heir?: ReplicaId): void {
    const role = this.#role;
    this.#role = FOLLOWER;
    // A released voter should be first.
    this.#nextTryMs = this.#deps.clock.monotonicMs() + ROUND_MS + candidateJitterMs(this.#deps.random);
    if (role.kind === 'candidate') role.takeover.abandon(why);
    if (role.kind !== 'primary') return;
    const { shard, logger, onEvent } = this.#deps;
    logger.info({ shard, epoch: role.leadership.epoch, why }, 'stepped-down');
    onEvent?.('stepped-down');
    role.leadership.end();
    const send = this.#send(role.leadership.epoch);
    for (const ref of role.leadership.others)
      send(ref, heir === undefined ? { kind: 'release' } : { kind: 'release', heir });
  }

  /** Planned (R13), if the registry is there: else it leads on. */
  async #handOver(heir: ReplicaId): Promise<void> {
    const [role, registered] = [this.#role, this.#registered];
    if (role.kind !== 'primary' || registered === undefined) return;
    await this.#step(role, registered, handOverTo(registered.record, heir));
  }

  async stop(): Promise<void> {
    if (this.#role.kind === 'primary') await this.#role.leadership.close(undefined);
    this.#isStopped = true;
    this.#stepDown('stopping');
    await this.#follower.stop();
  }

  // ---- received messages ----

  /** A hint, or what was read: never a ground to act as primary. */
  onRegistered(registered: RegisteredShard): void {
    const known = this.#registered;
    const own = this.#promises.record;
    const isLate = isOlder(registered, own);
    // The alarm ends when the right one is back, though that has nothing new to say.
    if (isLate || this.#check.isBehind) void this.#check.ask();
    if (known !== undefined && !isNewer(registered, known)) return;
    this.#registered = registered;
    // R23: nothing is given up for what is late, or of a registry that was set back.
    if (isLate) return;
    if (registered.record.incarnation > own.incarnation) this.#onOtherHistory(registered);
    else this.#onOwnHistory(registered);
  }

  #onOwnHistory(registered: RegisteredShard): void {
    const { record } = registered;
    const { state, replicaId, promised } = this.#promises.record;
    this.#follower.inSequence(() => this.#promises.see(registered));
    if (record.primary !== null && record.epoch >= promised) this.#primary = record.primary;
    if (!isListed(record, replicaId)) {
      // Its files are kept for a day (R14); listed again, it must catch up before it counts.
      if (state !== 'removed') this.#remove();
      return;
    }
    if (state === 'removed') this.#follower.inSequence(() => this.#promises.setState('installing'));
    if (this.#role.kind === 'primary') this.#role.leadership.onRegistered(registered);
  }

  /** R23: its rows are given up, or all others'. */
  #onOtherHistory(registered: RegisteredShard): void {
    this.#stepDown('another history goes on');
    if (isSuperseded(registered.record, this.#promises.record)) this.#deps.onSuperseded();
    else this.#follower.inSequence(() => this.#promises.adopt(registered));
  }

  #remove(): void {
    this.#deps.onEvent?.('removed');
    this.#follower.inSequence(() => this.#promises.setState('removed'));
    this.#stepDown('it is no voter any more');
  }

  onMessage(fromNode: NodeId, message: ReplicaMessage): void {
    const { replicaId, incarnation, state } = this.#promises.record;
    if (this.#isStopped || state === 'removed') return;
    if (message.to !== replicaId || message.incarnation !== incarnation) return;
    const from = { replicaId: message.from, nodeId: fromNode };
    if (message.kind === 'release') this.#onRelease(message);
    else if (message.kind === 'odd') this.#digests.onOdd(message);
    else if (!this.#follower.onMessage(from, message)) this.#onAnswer(message);
  }

  #onAnswer(message: ReplicaMessage): void {
    if ('promised' in message && message.promised > this.#promises.epoch) this.#stepDown('a higher epoch');
    const role = this.#role;
    if (role.kind === 'candidate') {
      if (message.kind === 'pre-fenced') role.takeover.onPreFenced(message);
      else if (message.kind === 'fenced') role.takeover.onFenced(message);
      else if (message.kind === 'fetched') role.takeover.onFetched(message);
    } else if (role.kind === 'primary' && message.epoch === role.leadership.epoch)
      role.leadership.onAnswer(message);
  }

  #onOtherLeads(epoch: number, primary: ReplicaRef | undefined): void {
    if (primary !== undefined) this.#primary = primary;
    if (this.#role.kind === 'candidate') this.#stepDown('another leads');
    else if (this.#role.kind === 'primary' && epoch > this.#role.leadership.epoch)
      this.#stepDown('a higher epoch');
  }

  /** R22. */
  #sendDigest(own: OwnDigest): void {
    if (this.#role.kind === 'primary') this.#role.leadership.onDigest(this.self.replicaId, own);
    else if (this.#primary !== undefined)
      this.#send(this.#promises.epoch)(this.#primary, { kind: 'verified', ...own });
  }

  #onRelease({ from, heir, epoch }: ReleaseMessage): void {
    if (epoch < this.#promises.epoch) return;
    const wasSilent = this.#promises.releaseSilence(from);
    const nowMs = this.#deps.clock.monotonicMs();
    // Of a candidate that cannot lead, silence was not promised to it (R12 c).
    if (heir === this.#promises.record.replicaId) this.#nextTryMs = nowMs;
    else if (wasSilent)
      this.#nextTryMs = nowMs + (heir === undefined ? candidateJitterMs(this.#deps.random) : ROUND_MS);
  }

  #send = (epoch: number): Send => sendAs(this.#deps, this.#promises.record, epoch);
}
