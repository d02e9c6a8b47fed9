// Watches the rows of one node's store, as they become readable, and holds each of its replicas to what its shard has
// committed: no applied entry is ever cut or different (I1), and the state is at each entry what the entries make of it
// (I5), also when the store is opened again.
import { equalBytes } from '../../src/base/bytes/bytes.ts';
import { LOG_COLUMN } from '../../src/metadata/engine/row-keys.ts';
import type { KvPut } from '../../src/ports/kv.ts';
import type { SimulatedDisk } from './disk.ts';
import type { EntryFact, NodeKind, RowFact } from './node.ts';
import { SimulationFailure } from './scheduler.ts';
import { rowName, type ShardHistory } from './shard-history.ts';

export interface ProcessContext {
  node: string;
  kind: NodeKind;
  disk: SimulatedDisk;
  history(shard: number): ShardHistory;
  now(shard: number): { atMs: number; trueWallMs: number | undefined };
  /** Counts entries that go before they were applied, and replicas that change their state. */
  count(branch: string): void;
}

/** What the store says of one replica. */
interface Replica {
  log: Map<number, EntryFact>;
  base: number;
  applied: number;
  state: 'installing' | 'live' | 'quarantined' | 'removed';
}

export class ReplicaWatch {
  readonly #processContext: ProcessContext;
  #replicas = new Map<number, Replica>();
  /** What entries of the log tell, by their bytes: each is read many times. */
  readonly #entries = new WeakMap<Uint8Array, RowFact>();

  constructor(processContext: ProcessContext) {
    this.#processContext = processContext;
    processContext.disk.observe({
      onCommit: (rows) => this.#onCommit(rows),
      onReopen: () => this.#onReopen(),
    });
  }

  /** Shards that it has something of. */
  get shards(): number[] {
    return [...this.#replicas.keys()];
  }

  appliedSeq(shard: number): number {
    return this.#replicas.get(shard)?.applied ?? 0;
  }

  isLive(shard: number): boolean {
    return this.#replicas.get(shard)?.state === 'live';
  }

  /** I2: a primary has everything that was ever acknowledged. */
  checkOpened(shard: number, epoch: number): void {
    const { node, history } = this.#processContext;
    const committed = history(shard);
    const replica = this.#replica(shard);
    const fail = (what: string) => {
      throw new SimulationFailure(`I2: shard ${shard}: ${node} opens epoch ${epoch} ${what}`);
    };
    if (replica.state !== 'live') fail(`and is ${replica.state}`);
    for (let seq = Math.max(replica.base, replica.applied) + 1; seq <= committed.acknowledgedSeq; seq++) {
      const own = replica.log.get(seq)?.digest;
      const expected = committed.entry(seq)?.digest;
      if (own !== expected) fail(`with ${own ?? 'nothing'} at ${seq}, where ${expected} was acknowledged`);
    }
  }

  /** I5, I16: every row of the shard's state, compared with what its entries make of it. */
  checkState(shard: number): void {
    const { node, history, disk, kind } = this.#processContext;
    const { applied, state } = this.#replica(shard);
    if (state === 'installing' || state === 'removed') return;
    const expected = history(shard).rowsAt(applied);
    for (const column of kind.columns)
      for (const { key, value } of disk.rows(column)) {
        const fact = this.#readRow({ column, key, value });
        if (fact?.kind !== 'state' || fact.shard !== shard) continue;
        const name = rowName({ column, key });
        const wanted = expected.get(name);
        expected.delete(name);
        if (wanted !== undefined && disk.isAltered(value)) continue;
        if (wanted === undefined || !equalBytes(wanted, value))
          throw new SimulationFailure(
            `I5: shard ${shard}: at entry ${applied} ${node} has ${showName(name)}, which ${wanted === undefined ? 'should not be' : 'should be different'}`,
          );
      }
    for (const name of expected.keys())
      throw new SimulationFailure(`I5: shard ${shard}: at entry ${applied} ${node} lacks ${showName(name)}`);
  }

  #onReopen(): void {
    this.#replicas = new Map();
    const { disk, kind } = this.#processContext;
    for (const column of kind.columns)
      for (const { key, value } of disk.rows(column)) {
        const fact = this.#readRow({ column, key, value });
        if (fact !== undefined && fact.kind !== 'state') this.#note(this.#replica(fact.shard), fact);
      }
    for (const shard of this.#replicas.keys()) {
      this.#noteReplayed(shard);
      this.checkState(shard);
    }
  }

  /**
   * It may be the first to apply what was in the log of the store when its process ended, and is readable only now, or what
   * came behind a snapshot before that was whole.
   */
  #noteReplayed(shard: number): void {
    const { node, history, now } = this.#processContext;
    const { applied, log, state } = this.#replica(shard);
    if (state === 'installing' || state === 'removed') return;
    const committed = history(shard);
    for (let seq = committed.lastSeq + 1; seq <= applied; seq++) {
      const entry = log.get(seq);
      if (entry === undefined) throw this.#failure(shard, `I1: has applied ${seq}, and not in its log`);
      committed.apply(node, entry, now(shard));
    }
  }

  #onCommit(rows: readonly KvPut[]): void {
    const before = new Map<number, { applied: number; state: Replica['state'] }>();
    const touched = new Map<number, KvPut[]>();
    for (const row of rows) {
      const fact = this.#readRow(row);
      if (fact === undefined) continue;
      const replica = this.#replica(fact.shard);
      if (!before.has(fact.shard)) before.set(fact.shard, { applied: replica.applied, state: replica.state });
      if (fact.kind === 'state') {
        const rowsOfShard = touched.get(fact.shard);
        if (rowsOfShard === undefined) touched.set(fact.shard, [row]);
        else rowsOfShard.push(row);
      } else this.#note(replica, fact, (what) => this.#failure(fact.shard, what));
    }
    for (const [shard, was] of before) this.#checkApplied(shard, { was, touched: touched.get(shard) ?? [] });
  }

  #checkApplied(
    shard: number,
    { was, touched }: { was: { applied: number; state: Replica['state'] }; touched: KvPut[] },
  ): void {
    const { node, history, now, count } = this.#processContext;
    const replica = this.#replica(shard);
    if (was.state !== replica.state) count(`replica ${replica.state}`);
    // A snapshot brings rows as they come; it is whole when the replica is live.
    if (replica.state === 'installing') return;
    if (was.state === 'installing') {
      this.#noteReplayed(shard);
      this.checkState(shard);
      return;
    }
    if (replica.applied < was.applied)
      throw this.#failure(shard, `I1: applied goes from ${was.applied} back to ${replica.applied}`);
    const committed = history(shard);
    for (let seq = was.applied + 1; seq <= replica.applied; seq++) {
      const entry = replica.log.get(seq);
      if (entry !== undefined) committed.apply(node, entry, now(shard));
      else if (committed.entry(seq) === undefined)
        throw this.#failure(shard, `I1: applies ${seq}, which nobody has seen in a log`);
    }
    this.#checkTouched(shard, { touched, changes: committed.changes(was.applied, replica.applied) });
  }

  /** What a batch does to the state is what its entries do, all of it and no more. */
  #checkTouched(
    shard: number,
    { touched, changes }: { touched: readonly KvPut[]; changes: Map<string, KvPut> },
  ): void {
    const last = new Map(touched.map((row) => [rowName(row), row]));
    for (const [name, row] of last) {
      const wanted = changes.get(name);
      if (wanted === undefined)
        throw this.#failure(shard, `I5: writes ${showName(name)}, which no applied entry has`);
      if (!isSameValue(row.value, wanted.value))
        throw this.#failure(shard, `I5: writes ${showName(name)} otherwise than its entry`);
    }
    for (const name of changes.keys())
      if (!last.has(name)) throw this.#failure(shard, `I5: applies an entry without its ${showName(name)}`);
  }

  #note(
    replica: Replica,
    fact: Exclude<RowFact, { kind: 'state' }>,
    failure?: (what: string) => SimulationFailure,
  ): void {
    if (fact.kind === 'applied') replica.applied = fact.seq;
    else if (fact.kind === 'base') replica.base = fact.seq;
    else if (fact.kind === 'replica') {
      // It begins anew: what it had counts no more. One that was removed goes on from what it has, when it is listed again.
      if (fact.state === 'installing' && (replica.state === 'live' || replica.state === 'quarantined'))
        replica.applied = 0;
      replica.state = fact.state;
    } else {
      const old = replica.log.get(fact.seq);
      const isCut = old !== undefined && old.digest !== fact.entry?.digest && fact.seq > replica.base;
      if (isCut && replica.state !== 'installing' && replica.state !== 'removed') {
        if (failure !== undefined && fact.seq <= replica.applied)
          throw failure(`I1: cuts entry ${fact.seq}, having applied ${replica.applied}`);
        this.#processContext.count('log cut');
      }
      if (fact.entry === undefined) replica.log.delete(fact.seq);
      else replica.log.set(fact.seq, fact.entry);
    }
  }

  #readRow(row: KvPut): RowFact | undefined {
    const { kind } = this.#processContext;
    if (row.column !== LOG_COLUMN || row.value === null) return kind.readRow(row);
    const known = this.#entries.get(row.value);
    if (known !== undefined) return known;
    const fact = kind.readRow(row);
    if (fact !== undefined) this.#entries.set(row.value, fact);
    return fact;
  }

  #replica(shard: number): Replica {
    let replica = this.#replicas.get(shard);
    if (replica === undefined) {
      replica = { log: new Map(), base: 0, applied: 0, state: 'live' };
      this.#replicas.set(shard, replica);
    }
    return replica;
  }

  #failure(shard: number, what: string): SimulationFailure {
    return new SimulationFailure(`shard ${shard}: ${this.#processContext.node}: ${what}`);
  }
}

function isSameValue(one: Uint8Array | null, other: Uint8Array | null): boolean {
  if (one === null || other === null) return one === other;
  return equalBytes(one, other);
}

function showName(name: string): string {
  return `row ${JSON.stringify(name)}`;
}
