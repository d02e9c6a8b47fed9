// What a replica makes of its shard's record in the registry (R23): whether it is news, is late or was set back, and
// whether it begins another history. Pure, but for the looking again.

import type { SeenRecord } from '../../ports/replication.ts';
import type { RegisteredShard, ShardRecord, ShardRegistryPort } from '../../ports/shard-registry.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { areSameReplicas, compareMoments, type RegistryMoment } from '../../types/registry-order.ts';
import type { ReplicaRecord } from '../engine/entry-rows.ts';

type Own = Pick<ReplicaRecord, 'incarnation' | 'promised' | 'seen' | 'replicaId' | 'state'>;

export function seenOf({ record, revision }: RegisteredShard): SeenRecord {
  const { epoch, rebuiltAtMs = 0, voters, prevVoters, learners } = record;
  return { epoch, rebuiltAtMs, revision, voters, prevVoters, learners };
}

/** When the record was written. */
export function momentOf({ record, revision }: RegisteredShard): RegistryMoment {
  return { rebuiltAtMs: record.rebuiltAtMs ?? 0, revision };
}

/** When it was read, which says how far the registry itself had come. */
export function momentOfReading({ record, registryRevision }: RegisteredShard): RegistryMoment {
  return { rebuiltAtMs: record.rebuiltAtMs ?? 0, revision: registryRevision };
}

/** Of two that were read of one registry. */
export function isNewer(registered: RegisteredShard, known: RegisteredShard): boolean {
  return compareMoments(momentOf(registered), momentOf(known)) > 0;
}

/** It is behind what was acted on: late, where it is a hint. */
export function isOlder(registered: RegisteredShard, own: Own): boolean {
  return isBehind(registered, momentOf(registered), own);
}

/** `registered` was read, and `own` is from before that: the registry itself is behind what was seen of it. */
export function isSetBack(registered: RegisteredShard, own: Own): boolean {
  return isBehind(registered, momentOfReading(registered), own);
}

function isBehind({ record }: RegisteredShard, moment: RegistryMoment, own: Own): boolean {
  if (record.incarnation !== own.incarnation) return record.incarnation < own.incarnation;
  if (record.epoch < own.promised) return true;
  const { seen } = own;
  return seen !== null && (compareMoments(moment, seen) < 0 || contradicts(record, seen));
}

/** Voters change under a new epoch (R14): with others in the same one, the registry was made anew without this history. */
function contradicts({ epoch, voters }: ShardRecord, seen: SeenRecord): boolean {
  return epoch === seen.epoch && !areSameReplicas(voters, seen.voters);
}

/** The histories of these rows were given up: they never join again, and stay for salvage. */
export function isSuperseded(record: ShardRecord, own: Own): boolean {
  return record.incarnation > own.incarnation && !isRecoveredFrom(record, own);
}

/** The new history begins with these rows, and with no others: its writer named no other replica. */
function isRecoveredFrom({ recoveredFrom, voters, prevVoters, primary }: ShardRecord, own: Own): boolean {
  const [only] = voters;
  const namesIt = voters.length === 1 && only?.replicaId === own.replicaId && prevVoters === null;
  const isWhole = own.state === 'live' || own.state === 'quarantined';
  return recoveredFrom === own.replicaId && namesIt && primary === null && isWhole;
}

/** Whether the registry is behind this replica: an alarm until it is not. */
export class RegistryCheck {
  readonly #parts: { shard: number; registry: ShardRegistryPort; logger: Logger; own(): Own };
  #isBehind = false;
  #isAsking = false;

  constructor(parts: { shard: number; registry: ShardRegistryPort; logger: Logger; own(): Own }) {
    this.#parts = parts;
  }

  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** `own`: what was known before it was read. True: nothing may be done by it. */
  judge(registered: RegisteredShard, own: Own): boolean {
    const wasBehind = this.#isBehind;
    this.#isBehind = isSetBack(registered, own);
    if (this.#isBehind && !wasBehind) {
      const { shard, logger } = this.#parts;
      const { record, registryRevision } = registered;
      const { incarnation, epoch, rebuiltAtMs = 0 } = record;
      const { promised, seen } = own;
      const found = { incarnation, epoch, rebuiltAtMs, registryRevision };
      logger.error(
        { shard, found, known: { incarnation: own.incarnation, promised, seen } },
        'registry-was-set-back',
      );
    }
    return this.#isBehind;
  }

  /** After a hint that was older than it may be: it was late, or the registry was set back. */
  async ask(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    const { registry, shard, own } = this.#parts;
    const before = own();
    try {
      const registered = await registry.read(shard);
      if (registered !== undefined) this.judge(registered, before);
    } catch {
      // It is away: its users will notice.
    } finally {
      this.#isAsking = false;
    }
  }
}
