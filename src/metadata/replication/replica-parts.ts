// What a replica is made of: what it is given, and what was found when it was opened (open-replica.ts).
import type { FairTurns } from '../../base/async/fair-turns.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { KvPort } from '../../ports/kv.ts';
import type { LogPosition, NodeId, ReplicaMessage } from '../../ports/replication.ts';
import type { ShardRegistryPort } from '../../ports/shard-registry.ts';
import type { StateMachine } from '../../ports/state-machine.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { WitnessPort } from '../../ports/witness.ts';
import type { Applied, ReplicaRecord } from '../engine/entry-rows.ts';
import type { OverlayBudget } from '../engine/overlay.ts';
import type { VerifyPace } from '../engine/timing.ts';
import type { DamageWatch } from './damage-watch.ts';
import type { LogBudget, LogStore } from './log-store.ts';
import type { LogRetention } from './log-trimmer.ts';
import type { ReplicaEvent } from './replica-events.ts';

export interface ReplicaDeps {
  shard: number;
  shardCount: number;
  nodeId: NodeId;
  kv: KvPort;
  witness: WitnessPort;
  machine: StateMachine;
  /** Of queries that read many rows. Default: none, each reads on. */
  turns?: FairTurns;
  clock: ClockPort;
  random: RandomPort;
  registry: ShardRegistryPort;
  budget: OverlayBudget;
  /** Shared as `budget` is. */
  logBudget: LogBudget;
  logger: Logger;
  send(to: NodeId, message: ReplicaMessage): void;
  /** R23: another history goes on, and these rows are no part of it. It has stepped down, and is to be stopped. */
  onSuperseded(): void;
  /** R17: it was cleared once, and there is still something that cannot be read: the database is of no use any more. */
  onUnreadable(error: Error): void;
  /** Default LOG_RETENTION. */
  logRetention?: LogRetention;
  /** R22. Default VERIFY_PACE. */
  verifyPace?: VerifyPace;
  /** Protocol branches taken, for tests and metrics. */
  onEvent?(event: ReplicaEvent): void;
}

export interface OpenedReplica {
  damage: DamageWatch;
  record: ReplicaRecord;
  /** Its record was made just now. */
  isNew: boolean;
  log: LogStore;
  applied: Applied;
  witnessed: LogPosition | undefined;
}
