// The contract between the shard engine (src/metadata/engine) and what it replicates (src/metadata). A command's effect is a
// pure function of (view, command, now, random): no I/O, no clock, no await inside, so it runs in transcripts and
// under simulation (R7, design "Shards").
import type { Steps } from '../base/async/steps.ts';
import type { RequestOrigin } from '../types/events.ts';

/** A table of the shard: a one-byte id within a column. The engine prefixes rows with shard and table. */
export interface TableRef {
  readonly id: number;
  readonly column: 'rows' | 'bodies';
}

export interface RowAddress {
  table: TableRef;
  /** Within the table; the engine adds the shard, so no batch can reach another one. */
  key: Uint8Array;
}

export interface RangeAddress {
  table: TableRef;
  gte: Uint8Array;
  lt: Uint8Array;
  limit: number;
  reverse?: boolean;
  /** Stops after the row with which keys and values reach it: fewer rows than `limit` may not be all. */
  bytesMax?: number;
  /** Values are left out (empty, but those of entries that are not applied yet), which spares reading them. */
  keysOnly?: boolean;
}

export interface Row {
  key: Uint8Array;
  value: Uint8Array;
}

/** What a command wants to see. Results are found in the view under the same address. */
export interface Reads {
  rows?: readonly RowAddress[];
  ranges?: readonly RangeAddress[];
}

/** The rows that were asked for: overlay first, state second. Asking for one that was not named is a bug. */
export interface View {
  /** Whether it was asked for: `more` goes by it. */
  has(address: RowAddress | RangeAddress): boolean;
  row(address: RowAddress): Uint8Array | undefined;
  range(address: RangeAddress): readonly Row[];
}

/** Absolute put (value) or delete (null): no merges, no increments, no range deletes (protocol 1.2). */
export interface RowPut {
  table: TableRef;
  key: Uint8Array;
  value: Uint8Array | null;
}

export interface DecideContext {
  /** Shard time, ms: never decreases (R19). */
  nowMs: number;
  /** The same less jumps of the clock that the operator has not accepted: what retention goes by (R19). */
  acceptedMs: number;
  shard: number;
  shardCount: number;
  /** A counter with everything that was appended before this command: a bound by it is exact, and needs no lock. */
  counter(name: string): number;
  /** The same of one that is a vector; elements at its end that are 0 may be left out. */
  vector(name: string): readonly number[];
  /** Cryptographic in production, seeded in tests. */
  random(sizeBytes: number): Uint8Array;
  /** Of a command that leaves what is busy: the names of the locks that it does not hold. What they guard it may not touch. */
  left: ReadonlySet<string>;
  /** The client's request that it is made for; absent: the server's own work. */
  origin?: RequestOrigin | undefined;
}

/** What is known of it before it is decided. */
export type PrepareContext = Pick<DecideContext, 'shard' | 'random'>;

/** Additions to counters; the engine sums them into absolute rows per group, so they need no lock. */
export interface CounterDelta {
  name: string;
  /** Several: the counter is a vector, and each is added to the element in its place. */
  delta: number | readonly number[];
}

/** Of a counter that is no vector. */
export interface ScalarDelta extends CounterDelta {
  delta: number;
}

export interface Decision<Outcome> {
  outcome: Outcome;
  /** Empty: a refusal or a read; nothing is appended. */
  puts: RowPut[];
  counters?: CounterDelta[];
}

/** Names are held from evaluation to append. All locks of a command are taken at once, in sorted order. */
export interface LockRequest {
  name: string;
  mode: 'shared' | 'exclusive';
}

export interface CommandSpec<Command, Outcome> {
  locks(command: Command): LockRequest[];
  /**
   * Of the server's work on things of several owners: it does not wait for locks that others hold or wait for, and goes on with
   * those that are free. While it waited it would hold these, and the queue of one owner would stop others. `decide` leaves out
   * what is in `left`, and says so in its outcome: that comes again, in a command of its own that waits.
   */
  leavesBusy?(command: Command): boolean;
  reads(command: Command): Reads;
  /** Of one that comes without a believed bucket and may read much: whose turns it takes. */
  ownerOf?(command: Command): string;
  /** It keeps the thread as one that has read many rows, whatever it has read. */
  isLong?(command: Command): boolean;
  /** Its first reads of what it looks at may take much memory: it begins before them. */
  mayReadMuch?(command: Command): boolean;
  /** What it reads by and by is never much: it has places of its own, and waits for none of those that read thousands of rows. */
  readsFew?(command: Command): boolean;
  /** Further reads that depend on earlier ones (a version's blobs, say); asked again until it gives undefined. */
  more?(command: Command, view: View): Reads | undefined;
  /** Names of counters that `decide` will ask for, of those that were read: without them a command of many decides twice. */
  counters?(command: Command, view: View): readonly string[];
  /**
   * What `decide` needs and the rows alone say, of a command of many rows: done in short steps once all is read, so that deciding
   * does not keep the thread.
   */
  prepare?(command: Command, view: View, context: PrepareContext): Steps<unknown>;
  /**
   * Pure and synchronous. May be evaluated again in another process: all chance comes from the context. `prepared` is what
   * `prepare` gave; without it the same is done here.
   */
  decide(command: Command, view: View, context: DecideContext, prepared?: unknown): Decision<Outcome>;
}

/** Reads committed state only and never waits for writers (R10). Each `page` and `cursor` is one consistent view. */
export interface StateReader {
  rows(addresses: readonly RowAddress[]): Promise<(Uint8Array | undefined)[]>;
  range(address: RangeAddress): Promise<Row[]>;
  cursor(bounds: CursorBounds): RowCursor;
  counters(names: readonly string[]): Promise<number[]>;
  /** The same of those that are vectors. */
  vectors(names: readonly string[]): Promise<number[][]>;
  /**
   * Tables of the column `rows`, and the counters, at one moment. One call at a time; forwards only. Close it. Opening it finds the
   * first row, past all that was deleted before it: who reads no versions leaves out their tables, with `from`, which is the first
   * one that is read.
   */
  view(from?: TableRef): StateView;
}

export interface StateView extends Omit<StateReader, 'view'> {
  close(): void;
}

export interface CursorBounds {
  table: TableRef;
  gte: Uint8Array;
  lt: Uint8Array;
  reverse?: boolean;
  /** Of each `next`: it stops after the row that reaches it, and only an empty one is the end. */
  bytesMax?: number;
  /** What is done with a row takes as long as with so many others (default 1): where queries take turns it counts as these. */
  rowCost?: number;
}

export interface RowCursor {
  seek(key: Uint8Array): void;
  next(count: number): Promise<Row[]>;
  close(): void;
}

export interface QuerySpec<Query, Result> {
  /** Of one that is about no bucket and reads much: whose turns it takes. */
  ownerOf?(query: Query): string;
  run(
    query: Query,
    state: StateReader,
    context: Pick<DecideContext, 'nowMs' | 'acceptedMs' | 'shard' | 'shardCount'>,
  ): Promise<Result>;
}

/** What the engine checks before evaluating a command or query about a bucket (R45). */
export interface BucketGuard {
  /** Whose bucket it is by its row: all of one owner's long work takes turns with that of others. */
  ownerOf(row: Uint8Array): string;
  /** The row that says which name, state and cfgVersion the bucket has. */
  address(bucketId: string): RowAddress;
  /** undefined when the envelope agrees with the row; else why not, with the row as plain data. */
  check(
    envelope: { bucketId: string; name: string; cfgVersion: number },
    row: Uint8Array | undefined,
    access: 'read' | 'write',
    /** Of a command, the names of what it locks. */
    locks?: readonly LockRequest[],
  ): undefined | { bucket: unknown };
}

/**
 * The history that the state belongs to (R23). A history that begins with what one replica had left, with others given up,
 * lacks acknowledged commands: the machine respects this row until the operator has confirmed it.
 */
export interface HistoryRow {
  readonly address: RowAddress;
  /** 1: there is no row yet. */
  incarnationOf(row: Uint8Array | undefined): number;
  /** The row with which another one begins. */
  begin(incarnation: number, nowMs: number): Uint8Array;
}

/** Everything the engine replicates: `cmd` hands it over, so that shard and metadata stay siblings. */
export interface StateMachine {
  commands: Readonly<Record<string, CommandSpec<never, unknown>>>;
  queries: Readonly<Record<string, QuerySpec<never, unknown>>>;
  bucketGuard: BucketGuard;
  /** Absent: it does nothing that would need it. */
  history?: HistoryRow;
}
