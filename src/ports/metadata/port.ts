// How commands and queries reach the metadata shards, as plain data: this is also what travels between processes.
// Embedded: the shards themselves; in a cluster: a client that finds the primary. Every command is evaluated once and
// atomically in its shard; its outcome is a union on `kind`. The tables of commands and queries are in tables.ts.
//
// What stands between a request and a shard, each with one concern, and the same in both forms but for the middle:
// - the calls of one request: errors, and a bucket that has changed (src/objects/metadata-calls.ts);
// - of a gateway: what it learns of changed identities (src/coordination) and of shard time (src/objects/shard-times.ts);
// - on the way: nothing in the embedded form, the search for the primary in a cluster (src/coordination/route-metadata.ts);
// - of the node that has the shard: the room of its disk (src/metadata/refuse-growth.ts).
import type { RequestOrigin } from '../../types/events.ts';
import type { BucketId, BucketName } from '../../types/names.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import type { CommandTable, QueryTable } from './tables.ts';

/** The shard of names, accounts and access keys (R41). */
export const SYSTEM_SHARD = 0;

/** What a gateway believes of a bucket (R45): the shard refuses when it is out of date. */
export interface BelievedBucket {
  bucketId: BucketId;
  name: BucketName;
  cfgVersion: number;
}

export interface Envelope {
  shard: number;
  /** Set where an answer can be lost on the way (R18): the outcome is kept under it for retries. */
  requestId?: string;
  /**
   * An earlier try may be evaluated yet, or have been. Then an outcome that changes nothing is stored, too: the answer to
   * this try must hold for that one.
   */
  isRetry?: boolean;
  /** Set for everything that a client does to a bucket. */
  bucket?: BelievedBucket;
  /** Of a command: the client's request that it is made for, for events. */
  origin?: RequestOrigin;
  /** How long the caller waits at most, ms: for who finds the shard, no node sees it. Default LIMITS.metadataAnswerMaxMs. */
  waitMaxMs?: number;
  /** Of a query: whose request it is for (`accountOf` in types/tenant.ts). Nodes of the version before do not look at it. */
  account?: string;
}

/** `timeMs` is shard time, from which gateways mint ids (R24). */
export type Reply<T> =
  /** `isUnkept`: of a command that changed nothing, whose outcome is not kept: another try may have another one. */
  | { kind: 'done'; value: T; timeMs: number; isUnkept?: true }
  /** Name, state or cfgVersion differ: authorise anew with this row (null: never was here) and retry (R45). */
  | { kind: 'stale-bucket'; bucket: BucketRecord | null; timeMs: number }
  /** Queues are full: 503 SlowDown. Nothing was evaluated. */
  | { kind: 'busy' }
  /** The disk is at its reserve, and the command would grow: 507 InsufficientStorage. Nothing was evaluated (R20). */
  | { kind: 'full' }
  /** The shard cannot say what became of it: 503 (R13). */
  | { kind: 'unknown' };

export interface MetadataPort {
  execute<N extends CommandName>(
    envelope: Envelope,
    name: N,
    command: CommandOf<N>,
  ): Promise<Reply<OutcomeOf<N>>>;
  query<N extends QueryName>(envelope: Envelope, name: N, query: QueryOf<N>): Promise<Reply<ResultOf<N>>>;
  readonly shardCount: number;
}

export type CommandName = keyof CommandTable;
export type CommandOf<N extends CommandName> = CommandTable[N]['command'];
export type OutcomeOf<N extends CommandName> = CommandTable[N]['outcome'];
export type QueryName = keyof QueryTable;
export type QueryOf<N extends QueryName> = QueryTable[N]['query'];
export type ResultOf<N extends QueryName> = QueryTable[N]['result'];
