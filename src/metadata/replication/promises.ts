// What a replica has promised, durably (R1, R3): no lower epoch, and whether it may count. And what it promises for a
// while, in memory (R9): silence to everybody but one. Nothing that rests on a promise is said before it is on the disk.
import { isDeepStrictEqual } from 'node:util';
import type { ClockPort } from '../../ports/clock.ts';
import type { KvPort } from '../../ports/kv.ts';
import type { ReplicaId, SeenRecord, VoterRefs } from '../../ports/replication.ts';
import type { ReplicaStatus } from '../../ports/shard-calls.ts';
import type { RegisteredShard } from '../../ports/shard-registry.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { WitnessPort } from '../../ports/witness.ts';
import { compareRecords } from '../../types/registry-order.ts';
import { type ReplicaRecord, replicaCodec } from '../engine/entry-rows.ts';
import { ENGINE_TABLES, rowKey } from '../engine/row-keys.ts';
import { SILENCE_MS } from '../engine/timing.ts';
import type { LogStore } from './log-store.ts';
import { seenOf } from './registered-record.ts';

const NO_KEY = new Uint8Array(0);
const NOBODY = '';

export interface PromisesParts {
  shard: number;
  kv: KvPort;
  clock: ClockPort;
  witness: WitnessPort;
  logger: Logger;
  log: LogStore;
}

export class Promises {
  readonly #parts: PromisesParts;
  #record: ReplicaRecord;
  #isLiveOnDisk: boolean;
  /** A witness of a promise that a failed sync has taken back would look like a store that lost it. */
  #promisedOnDisk: number;
  /** It holds after a start, too: nobody knows what was promised before. */
  #silence: { to: ReplicaId; untilMs: number };

  /** `isNew`: it has never run before, and so has promised nothing to anybody. */
  constructor(parts: PromisesParts, { record, isNew }: { record: ReplicaRecord; isNew: boolean }) {
    this.#parts = parts;
    this.#record = record;
    this.#isLiveOnDisk = record.state === 'live';
    this.#promisedOnDisk = record.promised;
    this.#silence = { to: NOBODY, untilMs: parts.clock.monotonicMs() + (isNew ? 0 : SILENCE_MS) };
  }

  get record(): Readonly<ReplicaRecord> {
    return this.#record;
  }

  status(): Pick<ReplicaStatus, 'incarnation' | 'epoch' | 'state'> {
    const { incarnation, promised, state, isDamaged } = this.#record;
    return { incarnation, epoch: promised, state: isDamaged ? 'quarantined' : state };
  }

  /** No message of a lower epoch is taken. */
  get epoch(): number {
    return this.#record.promised;
  }

  /** Whether it counts for majorities: a crash now would not take back what that rests on. */
  get counts(): boolean {
    return this.#isLiveOnDisk && this.#record.state === 'live';
  }

  /** Resolves when no lower epoch will ever be taken, whatever happens. `seen`: the record that the epoch is by. */
  async raise(epoch: number, seen?: SeenRecord): Promise<void> {
    const { promised } = this.#record;
    this.#record = { ...this.#record, promised: Math.max(epoch, promised), seen: this.#laterSeen(seen) };
    await this.#save();
    // One that does not count has acknowledged nothing in this epoch that must come back (R17).
    this.witness(this.counts ? this.#parts.log.syncedSeq : 0);
  }

  /** R23: who may come to hold what is acknowledged, as the registry has it now. */
  async see(registered: RegisteredShard): Promise<void> {
    const seen = this.#laterSeen(seenOf(registered));
    if (registered.record.incarnation !== this.#record.incarnation || seen === this.#record.seen) return;
    const before = this.#record.seen;
    this.#record = { ...this.#record, seen };
    // Written where it says something new; what else it says comes with the next promise.
    if (!isDeepStrictEqual(votersOf(before), votersOf(seen))) await this.#save();
  }

  #laterSeen(seen: SeenRecord | undefined): SeenRecord | null {
    const before = this.#record.seen;
    return seen !== undefined && (before === null || compareRecords(seen, before) > 0) ? seen : before;
  }

  /** R23: all that is here is what there is. Durable before anything is done in the new history. */
  async adopt(registered: RegisteredShard): Promise<void> {
    const { shard, log, logger } = this.#parts;
    const { record } = registered;
    if (record.incarnation <= this.#record.incarnation) return;
    // First: a log that was shorter than witnessed would be damage again after a crash in between.
    await this.lowerWitness(log.last.seq);
    this.#isLiveOnDisk = false;
    const { incarnation } = record;
    const seen = seenOf(registered);
    this.#record = { ...this.#record, incarnation, state: 'live', isDamaged: false, votesFor: null, seen };
    await this.#save();
    this.#isLiveOnDisk = true;
    logger.warn({ shard, incarnation, last: log.last }, 'history-adopted');
  }

  async setState(state: ReplicaRecord['state']): Promise<void> {
    const isDamaged = state === 'quarantined' && this.#record.isDamaged;
    if (this.#record.state !== state) await this.#enter({ state, isDamaged, votesFor: null });
  }

  /** R16, at the word of `primary`: resolves when it is durable that nothing here counts. */
  async beginAnew(primary: ReplicaId): Promise<void> {
    const { state, isDamaged, votesFor } = this.#record;
    if (state !== 'installing' || isDamaged || votesFor !== primary)
      await this.#enter({ state: 'installing', isDamaged: false, votesFor: primary });
  }

  /** R12 b. */
  countsFor(candidate: ReplicaId): boolean {
    return this.counts || (this.#record.state === 'installing' && this.#record.votesFor === candidate);
  }

  /** R17: something that is here cannot be read. When it is of more than the state it counts no more, from the call on. */
  async noteDamage({ isLogSound }: { isLogSound: boolean }): Promise<void> {
    const { state, votesFor } = this.#record;
    const isSound = state === 'installing' || (state === 'live' && isLogSound);
    await this.#enter({ state: isSound ? state : 'quarantined', isDamaged: true, votesFor });
  }

  async #enter(change: Pick<ReplicaRecord, 'state' | 'isDamaged' | 'votesFor'>): Promise<void> {
    if (change.state !== this.#record.state) this.#isLiveOnDisk = false;
    this.#record = { ...this.#record, ...change };
    this.#parts.logger.info({ shard: this.#parts.shard, ...change }, 'replica-state');
    await this.#save();
    if (this.#record.state === 'live') this.#isLiveOnDisk = true;
  }

  /** Before anything of the log is sent: where it stood must be known beside the database (R17). */
  witness(seq: number): void {
    const { state, votesFor } = this.#record;
    const isEmptied = state === 'installing' && votesFor !== null;
    const epoch = this.#promisedOnDisk;
    this.#parts.witness.write(this.#parts.shard, { epoch, seq, ...(isEmptied && { isEmptied }) });
  }

  /** Before what is behind `seq` is cut: else the shorter log would look like damage. */
  lowerWitness(seq: number): Promise<void> {
    return this.#parts.witness.lower(this.#parts.shard, { epoch: this.#promisedOnDisk, seq });
  }

  keepSilence(to: ReplicaId): void {
    this.#silence = { to, untilMs: this.#parts.clock.monotonicMs() + SILENCE_MS };
  }

  /** R13: `from` does not need it any more. False when it was not promised to it. */
  releaseSilence(from: ReplicaId): boolean {
    if (this.#silence.to !== from) return false;
    this.#silence = { to: NOBODY, untilMs: this.#parts.clock.monotonicMs() };
    return true;
  }

  /** To anybody but whom it was promised to, as if there were nobody. */
  isSilentTo(replicaId: ReplicaId): boolean {
    return this.#silence.to !== replicaId && this.#parts.clock.monotonicMs() < this.#silence.untilMs;
  }

  /** Resolved by no promise to another any more: it may be a candidate, and count for itself. */
  get silentUntilMs(): number {
    return this.#silence.to === this.#record.replicaId ? Number.NEGATIVE_INFINITY : this.#silence.untilMs;
  }

  async #save(): Promise<void> {
    const key = rowKey(this.#parts.shard, ENGINE_TABLES.replica, NO_KEY);
    const { promised } = this.#record;
    await this.#parts.kv.commit([{ column: 'rows', key, value: replicaCodec.encode(this.#record) }]);
    this.#promisedOnDisk = Math.max(this.#promisedOnDisk, promised);
  }
}

function votersOf(seen: VoterRefs | null): VoterRefs | null {
  if (seen === null) return null;
  const { voters, prevVoters, learners } = seen;
  return { voters, prevVoters, learners };
}
