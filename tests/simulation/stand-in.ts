// A node that proves the world and its checkers, and nothing of the product: one fixed primary with a synced log, which
// answers when one backup has the entry too. It survives ends, losses of power, cuts and pauses by waiting, and leads no
// one but itself; what it is spared is said below. Each of its bugs can be switched on, and must be found.
import { crc32 } from 'node:zlib';
import { packPlain, unpackPlain } from '../../src/base/record-codec.ts';
import { CommandView } from '../../src/metadata/engine/command-view.ts';
import { decodeApplied, encodeApplied } from '../../src/metadata/engine/entry-rows.ts';
import { createOverlayBudget, Overlay } from '../../src/metadata/engine/overlay.ts';
import { decodeOutcome, outcomeAddress, outcomeRows } from '../../src/metadata/engine/request-outcomes.ts';
import { ENGINE_TABLES, rowKey, shardOfRow } from '../../src/metadata/engine/row-keys.ts';
import { SHARD_COLUMNS } from '../../src/metadata/engine/shards.ts';
import { createStateReader } from '../../src/metadata/engine/state-reader.ts';
import type { ClockPort } from '../../src/ports/clock.ts';
import type { KvPut } from '../../src/ports/kv.ts';
import type { AckMessage, AppendMessage, NodeId, ReplicaMessage } from '../../src/ports/replication.ts';
import type { ShardCall, ShardReply } from '../../src/ports/shard-calls.ts';
import type { StateReader } from '../../src/ports/state-machine.ts';
import type { EntryFact, NodeContext, NodeKind, RowFact, SimulatedNode } from './node.ts';

export const STAND_IN_BUGS = [
  'log not synced',
  'no request ids',
  'no locks',
  'stale reads',
  'lists in two reads',
  'backup loses a row',
  'no tickets',
  'backups answer',
] as const;
export type StandInBug = (typeof STAND_IN_BUGS)[number];

const EPOCH = 1;
const LOG_TABLE = { id: 0xf8, column: 'rows' } as const;
const SEND_EVERY_MS = 100;
const ENTRIES_SENT_MAX = 50;
const TICKET_AGE_MAX_MS = 5000;
const BETWEEN_READS_MS = 20;
const NO_KEY = new Uint8Array(0);

type Entry = Omit<EntryFact, 'digest' | 'requestId'> & { requestId?: string };

export function createStandIn(bug?: StandInBug): NodeKind {
  return {
    name: 'stand-in',
    columns: SHARD_COLUMNS,
    branches: ['entry sent again', 'request found by its id'],
    // It never asks the registry anything, follows its own clock, and has nobody to get lost rows from.
    spared: [
      'wall step',
      'registry set back',
      'flipped bit',
      'altered row',
      'cut log',
      'cut log beside a dead primary',
      'wiped disk',
    ],
    readRow,
    isReadAtStart: () => false,
    async start(processContext) {
      const node = new StandInNode(processContext, bug);
      await node.open();
      return node;
    },
  };
}

class StandInNode implements SimulatedNode {
  readonly calls: SimulatedNode['calls'];
  readonly #processContext: NodeContext;
  readonly #replicas: Replica[];

  constructor(processContext: NodeContext, bug: StandInBug | undefined) {
    this.#processContext = processContext;
    const { clock, random, shardCount } = processContext;
    const processId = Buffer.from(random.bytes(8)).toString('hex');
    this.#replicas = Array.from(
      { length: shardCount },
      (_, shard) => new Replica(shard, processContext, bug),
    );
    this.calls = {
      ticket: () => ({ processId, monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() }),
      handle: async (call) => {
        const isOld =
          call.ticket.processId !== processId ||
          clock.monotonicMs() - call.ticket.monotonicMs > TICKET_AGE_MAX_MS;
        if (isOld && bug !== 'no tickets') return { kind: 'too-old' };
        return (
          this.#replicas[call.envelope.shard]?.handle(call) ?? { kind: 'not-primary', primary: undefined }
        );
      },
    };
  }

  async open(): Promise<void> {
    const { peers, kv, onFatal } = this.#processContext;
    kv.failed.then(onFatal);
    await Promise.all(this.#replicas.map((replica) => replica.open()));
    peers.listen((_from, message) => this.#replicas[message.shard]?.onMessage(message));
    for (const replica of this.#replicas) replica.run().catch(onFatal);
  }

  openEpoch(shard: number): number | undefined {
    return this.#replicas[shard]?.isOpen === true ? EPOCH : undefined;
  }

  async stop(): Promise<void> {}
}

class Replica {
  readonly #shard: number;
  readonly #processContext: NodeContext;
  readonly #bug: StandInBug | undefined;
  readonly #isPrimary: boolean;
  readonly #log: Entry[] = [];
  readonly #matched = new Map<NodeId, number>();
  readonly #running = new Map<string, Promise<ShardReply>>();
  readonly #stale = new Map<string, unknown>();
  /** Of the primary: commands; of a backup: messages. One after another. */
  #turn: Promise<unknown> = Promise.resolve();
  /** Synced here: what is not is sent to nobody, else a backup may have what the primary forgets. */
  #written = 0;
  #applied = 0;
  #isOpen = false;
  #onMatched: (() => void) | undefined;

  constructor(shard: number, processContext: NodeContext, bug: StandInBug | undefined) {
    this.#shard = shard;
    this.#processContext = processContext;
    this.#bug = bug;
    this.#isPrimary = processContext.nodeIds[0] === processContext.nodeId;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  async open(): Promise<void> {
    const { kv } = this.#processContext;
    const bounds = { gte: logKey(this.#shard, 0), lt: logKey(this.#shard, 2 ** 47) };
    const rows = await kv.range({ column: 'rows', ...bounds, limit: Number.MAX_SAFE_INTEGER });
    for (const { value } of rows) this.#log.push(unpackPlain(value) as Entry);
    this.#written = this.#log.length;
    const [applied] = await kv.getMany('rows', [appliedKey(this.#shard)]);
    this.#applied = applied === undefined ? 0 : decodeApplied(applied).seq;
  }

  /** The primary: what it has may not be with a majority yet. */
  async run(): Promise<void> {
    if (!this.#isPrimary) return;
    const { clock } = this.#processContext;
    this.#inSequence(async () => {
      await this.#commitAll();
      this.#isOpen = true;
    });
    for (;;) {
      this.#sendAll();
      await clock.sleep(SEND_EVERY_MS);
    }
  }

  handle(call: ShardCall): Promise<ShardReply> {
    const { nodeIds, clock } = this.#processContext;
    if (!this.#isPrimary && !(this.#bug === 'backups answer' && call.kind === 'query'))
      return Promise.resolve({ kind: 'not-primary', primary: nodeIds[0] });
    if (this.#isPrimary && !this.#isOpen) return Promise.resolve({ kind: 'unknown' });
    if (call.kind === 'query') return this.#query(call);
    const { requestId } = call.envelope;
    const running = requestId === undefined ? undefined : this.#running.get(requestId);
    if (running !== undefined) return running;
    const untilMs = clock.monotonicMs() + call.budgetMs;
    const execute = async (): Promise<ShardReply> => {
      if (clock.monotonicMs() > untilMs && this.#bug !== 'no tickets') return { kind: 'too-old' };
      return this.#execute(call);
    };
    const reply = this.#bug === 'no locks' ? execute() : this.#inSequence(execute);
    if (requestId !== undefined) {
      this.#running.set(requestId, reply);
      const forget = () => this.#running.delete(requestId);
      reply.then(forget, forget);
    }
    return reply;
  }

  onMessage(message: ReplicaMessage): void {
    if (message.kind === 'append') this.#inSequence(() => this.#onAppend(message));
    else if (message.kind === 'ack') {
      const { from, matchSeq } = message;
      this.#matched.set(from, Math.max(this.#matched.get(from) ?? 0, matchSeq));
      this.#onMatched?.();
    }
  }

  async #query({ envelope, name, body }: ShardCall): Promise<ShardReply> {
    const { machine, kv, shardCount, nodeId } = this.#processContext;
    const spec = machine.queries[name];
    if (spec === undefined) throw new Error(`no query ${name}`);
    const reader = createStateReader(this.#shard, kv);
    const state =
      this.#bug === 'lists in two reads' ? inTwoReads(reader, this.#processContext.clock) : reader;
    const timeMs = this.#log[this.#applied - 1]?.timeMs ?? this.#processContext.clock.wallMs();
    const context = { nowMs: timeMs, acceptedMs: timeMs, shard: envelope.shard, shardCount };
    const value = await spec.run(body as never, state, context);
    const asked = `${nodeId} ${name} ${JSON.stringify({ ...(body as object), simulatedRequestId: 0 })}`;
    const seen = this.#stale.get(asked);
    this.#stale.set(asked, value);
    return { kind: 'done', value: this.#bug === 'stale reads' ? (seen ?? value) : value, timeMs };
  }

  async #execute({ envelope, name, body }: ShardCall): Promise<ShardReply> {
    const { machine, kv, random, clock, shardCount, count } = this.#processContext;
    const spec = machine.commands[name];
    if (spec === undefined) throw new Error(`no command ${name}`);
    const view = new CommandView(this.#shard, { kv, overlay: new Overlay(createOverlayBudget()) });
    const { requestId } = envelope;
    const nowMs = Math.max(this.#log.at(-1)?.timeMs ?? 0, clock.wallMs());
    if (requestId !== undefined && this.#bug !== 'no request ids') {
      const address = outcomeAddress(requestId);
      await view.fetch({ rows: [address] });
      const outcome = view.row(address);
      if (outcome !== undefined) {
        count('request found by its id');
        return { kind: 'done', value: decodeOutcome(outcome), timeMs: nowMs };
      }
    }
    await view.fetch(spec.reads(body as never));
    for (;;) {
      const reads = spec.more?.(body as never, view);
      if (reads === undefined) break;
      await view.fetch(reads);
    }
    // Its commands count nothing.
    const counter = () => 0;
    const context = {
      nowMs,
      acceptedMs: nowMs,
      shard: this.#shard,
      shardCount,
      counter,
      vector: () => [],
      left: new Set<string>(),
      random: (size: number) => random.bytes(size),
    };
    const { outcome, puts } = spec.decide(body as never, view, context);
    if (puts.length > 0) {
      const rows: KvPut[] = puts.map(({ table, key, value }) => ({
        column: table.column,
        key: rowKey(this.#shard, table, key),
        value,
      }));
      if (requestId !== undefined)
        rows.push(...outcomeRows(this.#shard, { requestId, outcome, timeMs: nowMs }));
      await this.#append({ timeMs: nowMs, rows, ...(requestId !== undefined && { requestId }) });
    }
    return { kind: 'done', value: outcome, timeMs: nowMs };
  }

  async #append(entry: Omit<Entry, 'seq' | 'epoch'>): Promise<void> {
    const timeMs = Math.max(entry.timeMs, this.#log.at(-1)?.timeMs ?? 0);
    const appended: Entry = { ...entry, timeMs, seq: this.#log.length + 1, epoch: EPOCH };
    this.#log.push(appended);
    await this.#write([appended]);
    this.#sendAll();
    await this.#commitAll();
  }

  async #write(entries: readonly Entry[]): Promise<void> {
    const rows = entries.map((entry) => ({
      column: 'rows',
      key: logKey(this.#shard, entry.seq),
      value: packPlain(entry),
    }));
    await this.#processContext.kv.commit(rows, { sync: this.#bug !== 'log not synced' });
    this.#written = Math.max(this.#written, entries.at(-1)?.seq ?? 0);
  }

  /** One backup has it, and so a majority of three. */
  async #commitAll(): Promise<void> {
    const last = this.#log.length;
    while (Math.max(0, ...this.#matched.values()) < last)
      await new Promise<void>((resolve) => {
        this.#onMatched = resolve;
      });
    await this.#apply(last);
  }

  async #apply(upto: number): Promise<void> {
    for (let seq = this.#applied + 1; seq <= upto; seq++) {
      const entry = this.#log[seq - 1];
      if (entry === undefined) throw new Error(`no entry ${seq}`);
      const loses = this.#bug === 'backup loses a row' && !this.#isPrimary && seq % 7 === 0;
      const rows = loses ? entry.rows.slice(1) : entry.rows;
      const applied = { column: 'rows', key: appliedKey(this.#shard), value: encodeApplied(entry) };
      this.#applied = seq;
      await this.#processContext.kv.commit([...rows, applied], { sync: false, keep: true });
    }
  }

  async #onAppend(message: AppendMessage): Promise<void> {
    const { peers, nodeId, clock, count } = this.#processContext;
    const last = this.#log.length;
    if (message.prev.seq <= last) {
      const entries = message.entries.map((bytes) => unpackPlain(bytes) as Entry);
      const news = entries.filter(({ seq }) => seq > last);
      if (news.length < entries.length) count('entry sent again');
      this.#log.push(...news);
      if (news.length > 0) await this.#write(news);
      await this.#apply(Math.min(message.commitSeq, this.#log.length));
    }
    const ack: AckMessage = {
      kind: 'ack',
      ...headOf(message, nodeId),
      matchSeq: this.#log.length,
      echoMs: message.echoMs,
      wallMs: clock.wallMs(),
      counts: true,
    };
    peers.send(message.from, ack);
  }

  #sendAll(): void {
    const { nodeIds, nodeId, peers, clock } = this.#processContext;
    for (const to of nodeIds) {
      if (to === nodeId) continue;
      const matched = Math.min(this.#matched.get(to) ?? 0, this.#written);
      const head = { shard: this.#shard, incarnation: 1, epoch: EPOCH, from: nodeId, to };
      peers.send(to, {
        kind: 'append',
        ...head,
        prev: { seq: matched, epoch: EPOCH },
        entries: this.#log.slice(matched, Math.min(matched + ENTRIES_SENT_MAX, this.#written)).map(packPlain),
        commitSeq: this.#applied,
        echoMs: clock.monotonicMs(),
        matchedSeq: matched,
      });
    }
  }

  #inSequence<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch((error) => this.#processContext.onFatal(error as Error));
    return done;
  }
}

function headOf({ shard, incarnation, epoch, from }: AppendMessage, nodeId: NodeId) {
  return { shard, incarnation, epoch, from: nodeId, to: from };
}

function logKey(shard: number, seq: number): Uint8Array {
  const key = Buffer.alloc(6);
  key.writeUIntBE(seq, 0, 6);
  return rowKey(shard, LOG_TABLE, key);
}

function appliedKey(shard: number): Uint8Array {
  return rowKey(shard, ENGINE_TABLES.applied, NO_KEY);
}

/** The same rows, one half some time after the other. */
function inTwoReads(reader: StateReader, clock: ClockPort): StateReader {
  return {
    ...reader,
    async range(address) {
      const half = await reader.range({ ...address, limit: Math.ceil(address.limit / 2) });
      const last = half.at(-1);
      if (last === undefined) return half;
      await clock.sleep(BETWEEN_READS_MS);
      const gte = Buffer.concat([last.key, Uint8Array.of(0)]);
      return [...half, ...(await reader.range({ ...address, gte, limit: address.limit - half.length }))];
    },
  };
}

function readRow({ column, key, value }: KvPut): RowFact | undefined {
  const shard = shardOfRow(key);
  const table = key[2];
  if (column !== 'rows' || table === undefined) return { kind: 'state', shard };
  if (table === ENGINE_TABLES.applied.id)
    return { kind: 'applied', shard, seq: value === null ? 0 : decodeApplied(value).seq };
  if (table !== LOG_TABLE.id) return { kind: 'state', shard };
  const seq = Buffer.from(key).readUIntBE(3, 6);
  if (value === null) return { kind: 'entry', shard, seq, entry: undefined };
  const entry = unpackPlain(value) as Entry;
  const digest = `${crc32(value).toString(16)}-${value.length}`;
  return { kind: 'entry', shard, seq, entry: { ...entry, requestId: entry.requestId, digest } };
}
