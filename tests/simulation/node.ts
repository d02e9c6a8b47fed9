// The seam between the simulated world and what runs in it: a metadata node made of nothing but ports, and what the
// checkers may know of it. The world starts one on each host, ends it without a word, and starts it again.

import type { MetadataNode } from '../../src/metadata/replication/metadata-node.ts';
import type { ClockPort, RandomPort } from '../../src/ports/clock.ts';
import type { KvPort, KvPut } from '../../src/ports/kv.ts';
import type { NodeId, PeerPort } from '../../src/ports/replication.ts';
import type { ShardCallHandler } from '../../src/ports/shard-calls.ts';
import type { ShardRegistryPort } from '../../src/ports/shard-registry.ts';
import type { StateMachine } from '../../src/ports/state-machine.ts';
import type { Logger, TelemetryPort } from '../../src/ports/telemetry.ts';
import type { WitnessPort } from '../../src/ports/witness.ts';
import type { FaultName } from './faults.ts';
import type { SimulatedRegistry } from './registry.ts';

/** Everything that one process of a metadata node has. */
export interface NodeContext {
  nodeId: NodeId;
  /** All nodes of the cluster, this one too. */
  nodeIds: readonly NodeId[];
  shardCount: number;
  machine: StateMachine;
  kv: KvPort;
  witness: WitnessPort;
  clock: ClockPort;
  random: RandomPort;
  peers: PeerPort;
  registry: ShardRegistryPort;
  logger: Logger;
  telemetry: TelemetryPort;
  /** For the counts of a run: something worth seeing has happened, by the names of `NodeKind.branches`. */
  count(branch: string): void;
  /** What gateways call instead of the node itself, where a seed has more than its shards. */
  decorate?: ((node: MetadataNode) => ShardCallHandler) | undefined;
  /** The process must end (R20): nothing of it runs after this step. */
  onFatal(error: Error): void;
  /** Another store, with nothing in it, takes the place of this one, which is kept for salvage; as the process ends. */
  quarantineDatabase(): void;
}

/** A node that runs. */
export interface SimulatedNode {
  /** What gateways call. */
  readonly calls: ShardCallHandler;
  /** The epoch in which it serves as primary. Looked at after every step, so it costs nothing. */
  openEpoch(shard: number): number | undefined;
  /**
   * It is about to begin anew, though its store does not show that yet: the replica that promised it a snapshot must not be
   * lost.
   */
  isEmptying?(shard: number): boolean;
  /** An orderly end: hands over what it leads. The world may kill it meanwhile. */
  stop(): Promise<void>;
}

export interface NodeKind {
  readonly name: string;
  readonly columns: readonly string[];
  /** Resolves when it runs; it need not lead or follow anything by then. */
  start(processContext: NodeContext): Promise<SimulatedNode>;
  /** What the row of a store shows; undefined: nothing that concerns the checkers. */
  readRow(row: KvPut): RowFact | undefined;
  /** What must happen now and then over many seeds, beside the faults. */
  readonly branches: readonly string[];
  /** Rows that a node reads when it starts, and then no more: what happens to them is not found out before. */
  isReadAtStart(row: { column: string; key: Uint8Array }): boolean;
  /** What it does not claim to survive. */
  readonly spared: readonly FaultName[];
  /** What an operator does once, before any node runs. */
  found?(cluster: { registry: SimulatedRegistry; nodeIds: readonly NodeId[]; shardCount: number }): void;
}

/** An entry of a shard's log, as its row says. */
export interface EntryFact {
  seq: number;
  epoch: number;
  timeMs: number;
  requestId: string | undefined;
  /** What it does to the state, with keys as the store has them; without the replica's own rows. */
  rows: readonly KvPut[];
  /** Equal for equal entries. */
  digest: string;
}

export type RowFact =
  /** Without an entry: the row was deleted. */
  | { kind: 'entry'; shard: number; seq: number; entry: EntryFact | undefined }
  | { kind: 'applied'; shard: number; seq: number }
  /** Entries up to it may be trimmed, or came with a snapshot. */
  | { kind: 'base'; shard: number; seq: number }
  | { kind: 'replica'; shard: number; state: 'installing' | 'live' | 'quarantined' | 'removed' }
  | { kind: 'state'; shard: number };
