// What one replica sends of its own state when an entry asks for it (R22), and what it does when a majority has another
// one. The comparison is verifier.ts, on the primary.
import type { ClockPort } from '../../ports/clock.ts';
import type { KvBounds, KvPort } from '../../ports/kv.ts';
import type { OddMessage, ReplicaId } from '../../ports/replication.ts';
import type { ShardRegistryPort } from '../../ports/shard-registry.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { digestOfState } from '../engine/state-digest.ts';
import type { Promises } from './promises.ts';
import type { ReplicaEvent } from './replica-events.ts';

/** A registry that is away is asked again. */
const ASK_AGAIN_MS = 1000;

export interface OwnDigest {
  seq: number;
  /** Hex. */
  digest: string;
}

export interface OwnDigestsParts {
  shard: number;
  kv: KvPort;
  logger: Logger;
  promises: Promises;
  report(own: OwnDigest): void;
  clock: ClockPort;
  registry: ShardRegistryPort;
  isLeading(): boolean;
  handOver(heir: ReplicaId): Promise<unknown>;
  stepDown(why: string): void;
  onEvent(event: ReplicaEvent): void;
}

export class OwnDigests {
  readonly #parts: OwnDigestsParts;
  #reportedSeq = 0;
  #isGivingUp = false;

  constructor(parts: OwnDigestsParts) {
    this.#parts = parts;
  }

  /** While the state is exactly that of entry `seq`. Never rejects: a replica that cannot send its digest is passed over. */
  async verify(seq: number, range: KvBounds): Promise<void> {
    const { shard, kv, logger, report } = this.#parts;
    if (!this.#isExact()) return;
    try {
      const digest = await digestOfState(kv, range);
      if (!this.#isExact()) return;
      this.#reportedSeq = seq;
      report({ seq, digest });
    } catch (error) {
      logger.error({ shard, seq, err: error }, 'not-verified');
    }
  }

  /** Only the state of one that counts is what the entries up to `applied` make, and nothing else. */
  #isExact(): boolean {
    const { promises } = this.#parts;
    return promises.counts && !promises.record.isDamaged;
  }

  /** One that comes late may be of a state that is here no more. */
  onOdd({ epoch, seq }: OddMessage): void {
    const isOfNow = epoch === this.#parts.promises.epoch && seq === this.#reportedSeq && this.#isExact();
    if (!isOfNow) return;
    // A second report would be of what is there by then.
    this.#reportedSeq = 0;
    void this.giveUp([]);
  }

  /** The primary refills it. `right`: those that a primary may hand over to first. */
  async giveUp([heir]: readonly ReplicaId[]): Promise<void> {
    const { promises, handOver, stepDown, onEvent } = this.#parts;
    if (this.#isGivingUp) return;
    this.#isGivingUp = true;
    if (heir !== undefined) {
      await this.#untilOthersMayLead();
      await handOver(heir);
    }
    this.#isGivingUp = false;
    onEvent('quarantined');
    const noting = promises.noteDamage({ isLogSound: true });
    stepDown('its state differs');
    // A store that does not take it ends the process (R20).
    await noting.catch(() => {});
  }

  /** I15: nobody can take over what is let go while the registry is away. */
  async #untilOthersMayLead(): Promise<void> {
    const { shard, clock, registry, isLeading } = this.#parts;
    while (isLeading()) {
      const isAnswered = await registry.read(shard).then(
        () => true,
        () => false,
      );
      if (isAnswered) return;
      await clock.sleep(ASK_AGAIN_MS);
    }
  }
}
