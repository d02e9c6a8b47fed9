// Calls of a gateway to a metadata node (protocol 1.4, R45, R48): one request, one reply, any number under way.
// Which node to call, and whether to call again, is src/coordination/route-metadata.ts.
import type { Moment } from '../base/moment.ts';
import type { NamedDamage } from '../types/named-damage.ts';
import type { CommandName, Envelope, QueryName, Reply } from './metadata/port.ts';
import type { NodeId, ReplicaId, ReplicaRef } from './replication.ts';

/** R48: where the callee's clocks stood, by its last reply or ping on this connection. */
export interface Ticket extends Moment {
  /** Of the callee's process: random, made at its start. */
  processId: string;
}

export interface ShardCall {
  /**
   * `status`: of all replicas of the node, whoever leads. `records`: what it durably knows (R23). `discard`: clears what
   * is superseded of the envelope's shard. For these three name and body mean nothing.
   */
  kind: 'execute' | 'query' | 'status' | 'records' | 'discard';
  envelope: Envelope;
  name: CommandName | QueryName;
  body: unknown;
  ticket: Ticket;
  /** A command is evaluated no later than this after the moment of its ticket, ms (R48). */
  budgetMs: number;
}

/** How far the replicas of a shard have been compared (R22). Shard time throughout. */
export interface VerificationStatus {
  /** `partialCount`: its ranges for which not every voter reported a digest. */
  lastPass: { endedAtMs: number; partialCount: number } | null;
  /** Since the last pass that found nothing. */
  mismatchAtMs: number | null;
}

/** One replica of a node, as it says itself. */
export interface ReplicaStatus {
  shard: number;
  role: 'follower' | 'candidate' | 'opening' | 'primary';
  /** `superseded`: the rows of a history that was given up (R23). */
  state: 'installing' | 'live' | 'quarantined' | 'removed' | 'superseded';
  incarnation: number;
  /** The highest promised. */
  epoch: number;
  lastSeq: number;
  appliedSeq: number;
  appliedTimeMs: number;
  /** The last that it knows of. */
  primary: ReplicaRef | undefined;
  /** Of an open primary: entries that each other replica lacks; undefined: no answer. */
  lags: { replicaId: ReplicaId; lag: number | undefined }[];
  /** Of a primary; nodes of earlier releases do not report it. */
  verification?: VerificationStatus;
  /** The registry was set back behind what the replica has seen of it: it does nothing by it (R23). */
  isRegistryBehind: boolean;
  /** Of an open primary: whose data no disk has intact, the first ones. Absent: none is known. */
  damage?: NamedDamage;
  /** False: the clock of the primary goes its own way (R19). */
  isTimeBelieved: boolean;
}

export type ShardReply =
  | Reply<unknown>
  /** Not evaluated: the shard is not open here. `primary`: the last one the callee knows of. */
  | { kind: 'not-primary'; primary: NodeId | undefined }
  /**
   * Not evaluated: the ticket is older than LIMITS.ticketAgeMaxMs by either clock, or of another process, or the budget
   * is spent. The next ticket came with this reply.
   */
  | { kind: 'too-old' };

/**
 * Contract (tests/contract/shard-calls.test.ts): `call` rejects with CallBroken (types/call-broken.ts) when there is no
 * reply: the connection broke or could not be made, the signal aborted; the outcome is unknown unless it says that
 * nothing was sent. It never repeats a call, and answers `busy` for one that it cannot send because the callee takes no
 * more. A new connection asks for a ticket before its first call; replies, and pings while there are none, renew it.
 */
export interface ShardCallPort {
  call(to: NodeId, call: Omit<ShardCall, 'ticket'>, signal: AbortSignal): Promise<ShardReply>;
}

/** What a metadata node serves. */
export interface ShardCallHandler {
  ticket(): Ticket;
  /** Never rejects: what it cannot say is `unknown`. */
  handle(call: ShardCall): Promise<ShardReply>;
}
