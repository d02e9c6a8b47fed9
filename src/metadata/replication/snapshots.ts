// Snapshots (R16): a replica that lacks what the log no longer has is cleared and given all rows, page by page, and then
// follows the log from where the first page was read. Pages are read one after the other while entries go on being
// applied: entries are absolute, so applying them again over newer rows makes the state exact.
import { toHex } from '../../base/bytes/bytes.ts';
import { type Moment, momentNow, passedMs } from '../../base/moment.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { KvPort } from '../../ports/kv.ts';
import type {
  LogPosition,
  ReplicaId,
  ReplicaRef,
  SnapshotBeginMessage,
  SnapshotNextMessage,
  SnapshotPageMessage,
} from '../../ports/replication.ts';
import type { WitnessPort } from '../../ports/witness.ts';
import { encodeApplied } from '../engine/entry-rows.ts';
import { ENGINE_TABLES, LOG_COLUMN, logBounds, rowKey, shardBounds } from '../engine/row-keys.ts';
import { isOwnRow, STATE_COLUMNS } from '../engine/state-digest.ts';
import { RESEND_MS, SILENCE_MS } from '../engine/timing.ts';
import type { Applier } from './applier.ts';
import type { LogStore } from './log-store.ts';
import type { Send } from './message-envelope.ts';

const PAGE_ROWS = 1000;
const PAGE_BYTES = 1024 * 1024;
const ID_BYTES = 8;
const ASKS_IN_VAIN_MAX = 5;
const NO_KEY = new Uint8Array(0);
/** One transfer, on the primary. The target asks for each page. */
export class SnapshotSource {
  readonly #parts: { shard: number; kv: KvPort; applier: Applier; clock: ClockPort; send: Send };
  readonly #to: ReplicaRef;
  readonly #begin: Omit<SnapshotBeginMessage, 'shard' | 'incarnation' | 'epoch' | 'from' | 'to'>;
  #column = 0;
  #after: Uint8Array | undefined;
  #pageCount = 0;
  /** The last page, until the next one is asked for: it may have been lost. */
  #page: Promise<Omit<SnapshotPageMessage, 'shard' | 'incarnation' | 'epoch' | 'from' | 'to'>> | undefined;
  #receivedMs: number;

  constructor(
    parts: { shard: number; kv: KvPort; applier: Applier; clock: ClockPort; random: RandomPort; send: Send },
    to: ReplicaRef,
  ) {
    this.#parts = parts;
    this.#to = to;
    const { seq, epoch, timeMs } = parts.applier.applied;
    const snapshotId = toHex(parts.random.bytes(ID_BYTES));
    this.#begin = { kind: 'snapshot-begin', snapshotId, start: { seq, epoch, timeMs } };
    this.#receivedMs = parts.clock.monotonicMs();
    parts.send(to, this.#begin);
  }

  /** The log behind it must stay until the target follows. */
  get startSeq(): number {
    return this.#begin.start.seq;
  }

  /** Monotonic ms. */
  get receivedMs(): number {
    return this.#receivedMs;
  }

  /** The offer, or the page with which it begins, may be lost. */
  resend(): void {
    if (this.#pageCount <= 1) this.#parts.send(this.#to, this.#begin);
  }

  /** Rejects when a page cannot be read. */
  async onNext({ snapshotId, page }: SnapshotNextMessage): Promise<void> {
    if (snapshotId !== this.#begin.snapshotId) return;
    this.#receivedMs = this.#parts.clock.monotonicMs();
    if (page === this.#pageCount) {
      this.#pageCount++;
      this.#page = this.#read(page);
    }
    const read = await this.#page;
    if (read?.page === page) this.#parts.send(this.#to, read);
  }

  async #read(
    page: number,
  ): Promise<Omit<SnapshotPageMessage, 'shard' | 'incarnation' | 'epoch' | 'from' | 'to'>> {
    const { shard, kv, applier } = this.#parts;
    const rows: SnapshotPageMessage['rows'] = [];
    while (this.#column < STATE_COLUMNS.length && rows.length === 0) {
      const column = STATE_COLUMNS[this.#column] ?? 'rows';
      const { gte, lt } = shardBounds(shard);
      const from = this.#after === undefined ? gte : Buffer.concat([this.#after, Uint8Array.of(0)]);
      const read = await kv.range({ column, gte: from, lt, limit: PAGE_ROWS, bytesMax: PAGE_BYTES });
      this.#after = read.at(-1)?.key;
      if (read.length === 0) this.#column++;
      rows.push(...read.filter(({ key }) => !isOwnRow(key)).map((row) => ({ column, ...row })));
    }
    const isLast = this.#column === STATE_COLUMNS.length;
    const message = { kind: 'snapshot-page' as const, snapshotId: this.#begin.snapshotId, page, rows };
    // What is being applied may have been read already: committed entries are the bound of what is in the state.
    return isLast ? { ...message, endSeq: applier.targetSeq } : message;
  }
}

export interface SnapshotTargetParts {
  shard: number;
  kv: KvPort;
  log: LogStore;
  applier: Applier;
  witness: WitnessPort;
  clock: ClockPort;
  send: Send;
  /** Resolves when it is durable that nothing here counts, at the word of that primary. */
  empty(primary: ReplicaId): Promise<void>;
}

/** The receiving end. */
export class SnapshotTarget {
  readonly #parts: SnapshotTargetParts;
  #receiving: { begin: SnapshotBeginMessage; page: number; askedMs: number; inVain: number } | undefined;
  /** Asked for its first page, and nothing has been given up for it yet. */
  #offered: { begin: SnapshotBeginMessage; at: Moment } | undefined;
  #endSeq = 0;
  #isBrokenOff = false;

  constructor(parts: SnapshotTargetParts) {
    this.#parts = parts;
  }

  get isReceiving(): boolean {
    return this.#receiving !== undefined;
  }

  /** There are rows of one that will not be ended: of no moment that ever was. */
  get isBrokenOff(): boolean {
    return this.#isBrokenOff;
  }

  /** The replica is whole with this entry and not before. */
  get endSeq(): number {
    return this.#endSeq;
  }

  /** A page that was asked for may have been lost. */
  askAgain(from: ReplicaRef): void {
    const receiving = this.#receiving;
    if (receiving === undefined || this.#parts.clock.monotonicMs() - receiving.askedMs < RESEND_MS) return;
    // Nobody has it any more: as an empty replica it will be given another one.
    if (++receiving.inVain > ASKS_IN_VAIN_MAX) {
      this.#receiving = undefined;
      this.#isBrokenOff = true;
    } else this.#ask(from);
  }

  /**
   * What begins with this page: it was offered a moment ago. The present state is removed only now, when its sender has
   * answered again: an offer that a suspended machine receives when it wakes may be of a sender that is gone.
   */
  beginOf({ snapshotId, page }: SnapshotPageMessage): SnapshotBeginMessage | undefined {
    const { clock } = this.#parts;
    const offered = this.#offered;
    if (offered === undefined || offered.begin.snapshotId !== snapshotId || page !== 0) return undefined;
    return passedMs(offered.at, momentNow(clock)) < SILENCE_MS ? offered.begin : undefined;
  }

  /** `acknowledged`: as for beginAnew. */
  async onMessage(
    from: ReplicaRef,
    message: SnapshotBeginMessage | SnapshotPageMessage,
    acknowledged: LogPosition,
  ): Promise<void> {
    if (message.kind === 'snapshot-begin') {
      if (this.#receiving?.begin.snapshotId === message.snapshotId) this.#ask(from);
      else this.#askForFirst(from, message);
      return;
    }
    const begin = this.beginOf(message);
    if (begin !== undefined) {
      await this.beginAnew(from, acknowledged);
      this.#receiving = { begin, page: 0, askedMs: this.#parts.clock.monotonicMs(), inVain: 0 };
    }
    const receiving = this.#receiving;
    if (receiving?.begin.snapshotId !== message.snapshotId || message.page !== receiving.page) return;
    await this.#parts.kv.commit(message.rows, { sync: false });
    receiving.page++;
    receiving.inVain = 0;
    if (message.endSeq === undefined) this.#ask(from);
    else await this.#finish(receiving.begin, message.endSeq);
  }

  #askForFirst(from: ReplicaRef, begin: SnapshotBeginMessage): void {
    const { clock, send } = this.#parts;
    this.#offered = { begin, at: momentNow(clock) };
    send(from, { kind: 'snapshot-next', snapshotId: begin.snapshotId, page: 0 });
  }

  #ask(from: ReplicaRef): void {
    const receiving = this.#receiving;
    if (receiving === undefined) return;
    receiving.askedMs = this.#parts.clock.monotonicMs();
    const { snapshotId } = receiving.begin;
    this.#parts.send(from, { kind: 'snapshot-next', snapshotId, page: receiving.page });
  }

  /** Empty, and nothing that counts. `acknowledged`: what must be back before it does again, also after a restart (R17). */
  async beginAnew(from: ReplicaRef, acknowledged: LogPosition): Promise<void> {
    const { applier, log, empty, shard, witness, kv } = this.#parts;
    this.#receiving = undefined;
    this.#offered = undefined;
    this.#isBrokenOff = false;
    this.#endSeq = 0;
    // The mark is durable before the first row goes: a crash in between begins anew.
    await empty(from.replicaId);
    await witness.lower(shard, { ...acknowledged, isEmptied: true });
    await applier.reset({ seq: 0, epoch: 0, timeMs: 0 });
    log.reset({ seq: 0, epoch: 0 });
    await clearShard(kv, shard);
  }

  async #finish({ start }: SnapshotBeginMessage, endSeq: number): Promise<void> {
    const { applier, kv, log, shard } = this.#parts;
    const base = { seq: start.seq, epoch: start.epoch };
    const applied = {
      column: 'rows',
      key: rowKey(shard, ENGINE_TABLES.applied, NO_KEY),
      value: encodeApplied(start),
    };
    await kv.commit([log.baseRow(base), applied]);
    await applier.reset(start);
    // In one step, and the end first: from here on entries match, and whoever matches is whole only with the end.
    this.#endSeq = endSeq;
    log.reset(base);
    this.#receiving = undefined;
  }
}

/**
 * Deletes all rows of a shard but those that say who this replica is, without reading any: they may be damaged (R17).
 * Nothing of it is synced or one batch (L2). So `installing` must be durable before: whatever part of it a crash leaves,
 * the next start clears again. And it takes its turn among commits: no row that is written after it, of a snapshot or a
 * log that begins anew, is ever on the disk without it.
 */
export async function clearShard(kv: KvPort, shard: number): Promise<void> {
  const { self, replica } = ENGINE_TABLES;
  const shardRows = shardBounds(shard);
  const table = (id: number) => rowKey(shard, { id, column: 'rows' }, NO_KEY);
  const ranges = [
    { column: 'rows', gte: shardRows.gte, lt: table(self.id) },
    { column: 'rows', gte: table(self.id + 1), lt: table(replica.id) },
    { column: 'rows', gte: table(replica.id + 1), lt: shardRows.lt },
    { column: 'bodies', ...shardRows },
    { column: LOG_COLUMN, ...logBounds(shard) },
  ];
  await Promise.all(ranges.map((range) => kv.clear(range)));
}
