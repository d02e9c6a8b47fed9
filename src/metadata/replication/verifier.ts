// Compares the states of a shard's replicas, on its primary, one small range after the other at a bounded rate (R22): an
// entry names the range to be hashed, each replica sends its digest of exactly that state, and a replica that differs from
// the majority is named. What becomes of it is in replica.ts. A replica that is late is passed over, and compared in the
// next pass.
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { KvBounds, KvPort, KvPut } from '../../ports/kv.ts';
import type { ReplicaId, ReplicaRef } from '../../ports/replication.ts';
import type { VerificationStatus } from '../../ports/shard-calls.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { VERIFY_PATIENCE_MS, type VerifyPace } from '../engine/timing.ts';
import { judgeDigests } from './judge-digests.ts';
import type { Send } from './message-envelope.ts';
import { allVoters, type VoterSets } from './quorum.ts';
import type { ReplicaEvent } from './replica-events.ts';
import { rangeBehind, readVerifyRecord, type VerifyRecord, verifyRow } from './verify-record.ts';

export interface VerifierParts {
  shard: number;
  self: ReplicaId;
  kv: KvPort;
  clock: ClockPort;
  random: RandomPort;
  logger: Logger;
  pace: VerifyPace;
  send: Send;
  /** Shard time. */
  nowMs(): number;
  /** False while nothing may be appended. */
  mayAppend(): boolean;
  /** Returns the number of the entry. */
  append(rows: KvPut[]): number;
  sets(): VoterSets;
  /** All but this one. */
  others(): readonly ReplicaRef[];
  /** It answers, and counts. */
  isPresent(replicaId: ReplicaId): boolean;
  /** This primary is the odd one; these have what a majority has. */
  onSelfOdd(right: readonly ReplicaId[]): void;
  onEvent?(event: ReplicaEvent): void;
}

interface Comparison {
  range: KvBounds;
  seq: number;
  /** Monotonic ms at which a replica that has sent no digest is passed over. */
  untilMs: number;
  digests: Map<ReplicaId, string>;
}

export class Verifier {
  readonly #parts: VerifierParts;
  /** As it was written last; undefined until it is read. */
  #record: VerifyRecord | undefined;
  #comparing: Comparison | undefined;
  /** Sent again until they count no more, or it is too late: a message may be lost. */
  readonly #odd = new Map<ReplicaId, { seq: number; untilMs: number }>();
  #nextMs: number;
  #isBusy = false;
  /** Set while the record does not say so yet. */
  #mismatchAtMs: number | null = null;

  constructor(parts: VerifierParts) {
    this.#parts = parts;
    const { clock, random, pace } = parts;
    const [byte = 0] = random.bytes(1);
    // Shards that one node leads take turns.
    this.#nextMs = clock.monotonicMs() + (pace.pauseMs * byte) / 255;
  }

  get status(): VerificationStatus {
    const { lastPass = null, mismatchAtMs = null } = this.#record ?? {};
    return { lastPass, mismatchAtMs: this.#mismatchAtMs ?? mismatchAtMs };
  }

  onDigest(replicaId: ReplicaId, seq: number, digest: string): void {
    if (this.#comparing?.seq === seq) this.#comparing.digests.set(replicaId, digest);
  }

  tick(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    this.#reportOdd(nowMs);
    if (this.#comparing !== undefined) this.#conclude(this.#comparing, nowMs);
    else if (nowMs >= this.#nextMs) void this.#begin();
  }

  async #begin(): Promise<void> {
    const { shard, logger, clock, pace } = this.#parts;
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#nextMs = clock.monotonicMs() + pace.pauseMs;
    try {
      await this.#beginRange();
    } catch (error) {
      logger.error({ shard, err: error }, 'not-verified');
    } finally {
      this.#isBusy = false;
    }
  }

  async #beginRange(): Promise<void> {
    const { shard, kv, clock, pace, nowMs, mayAppend, sets } = this.#parts;
    if (allVoters(sets()).length === 1) return;
    const isFirst = this.#record === undefined;
    const record = this.#record ?? (await readVerifyRecord(kv, shard));
    this.#record = record;
    if (record.range === null && nowMs() - record.passBeganAtMs < pace.passMs) return;
    // Another has begun with it, and may have come to no end.
    const isBegun = isFirst && record.range !== null;
    const range = isBegun ? record.range : await rangeBehind(kv, shard, { ...pace, before: record.range });
    if (!mayAppend() || range === null) return;
    if (range === undefined) {
      this.#endPass(record);
      return;
    }
    const begun = record.range === null ? { passBeganAtMs: nowMs(), partialCount: 0 } : {};
    const seq = this.#append({ ...record, ...begun, range });
    const untilMs = clock.monotonicMs() + VERIFY_PATIENCE_MS;
    this.#comparing = { range, seq, untilMs, digests: new Map() };
  }

  #append(record: VerifyRecord): number {
    const { shard, append } = this.#parts;
    const mismatchAtMs = this.#mismatchAtMs ?? record.mismatchAtMs;
    this.#record = { ...record, mismatchAtMs };
    this.#mismatchAtMs = null;
    return append([verifyRow(shard, this.#record)]);
  }

  #endPass(record: VerifyRecord): void {
    const { shard, logger, nowMs, onEvent } = this.#parts;
    const { partialCount, passBeganAtMs, mismatchAtMs } = record;
    // A mismatch of the pass before that this one did not find is repaired.
    const isOld = mismatchAtMs !== null && mismatchAtMs < passBeganAtMs;
    const lastPass = { endedAtMs: nowMs(), partialCount };
    this.#append({ ...record, range: null, lastPass, mismatchAtMs: isOld ? null : mismatchAtMs });
    logger.info({ shard, partialCount, beganAtMs: passBeganAtMs }, 'state-verified');
    onEvent?.('verified');
  }

  #conclude({ range, seq, untilMs, digests }: Comparison, nowMs: number): void {
    const { shard, self, sets, others, isPresent, logger, onEvent, mayAppend } = this.#parts;
    const isAwaited = ({ replicaId }: ReplicaRef) => !digests.has(replicaId) && isPresent(replicaId);
    const isComplete = digests.has(self) && !others().some(isAwaited);
    if (nowMs < untilMs && !isComplete) return;
    this.#comparing = undefined;
    const verdict = judgeDigests(digests, sets());
    const record = this.#record;
    const isPartial = verdict.kind === 'undecided' || allVoters(sets()).some((id) => !digests.has(id));
    if (record !== undefined && isPartial)
      this.#record = { ...record, partialCount: record.partialCount + 1 };
    if (verdict.kind === 'same') return;
    const odd = verdict.kind === 'odd' ? verdict.odd : [];
    const byReplica = Object.fromEntries(digests);
    logger.error({ shard, seq, column: range.column, digests: byReplica, odd }, 'state-differs');
    onEvent?.('state-differs');
    this.#mismatchAtMs = this.#parts.nowMs();
    // Kept at once, by an entry that asks for the same once more and whose answers nobody awaits.
    if (this.#record !== undefined && mayAppend()) this.#append(this.#record);
    for (const replicaId of odd)
      if (replicaId !== self) this.#odd.set(replicaId, { seq, untilMs: nowMs + VERIFY_PATIENCE_MS });
    this.#reportOdd(nowMs);
    // Not while it hands over already.
    if (odd.includes(self) && mayAppend())
      this.#parts.onSelfOdd(allVoters(sets()).filter((id) => digests.has(id) && !odd.includes(id)));
  }

  #reportOdd(nowMs: number): void {
    const { others, isPresent, send } = this.#parts;
    for (const [replicaId, { seq, untilMs }] of this.#odd) {
      const ref = others().find((other) => other.replicaId === replicaId);
      if (ref === undefined || nowMs >= untilMs || !isPresent(replicaId)) this.#odd.delete(replicaId);
      else send(ref, { kind: 'odd', seq });
    }
  }
}
