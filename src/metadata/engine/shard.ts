// The engine of one shard (R6-R8, R18, R19, R45): evaluates commands one after another where they touch,
// appends their rows as entries, and answers when what they saw is committed. What commands mean is the state
// machine's; where entries go is shard-log.ts; the shard is opened by open-shard.ts.

import { assert, must } from '../../base/assert.ts';
import { createFairShare, type SharePath } from '../../base/async/fair-share.ts';
import type { FairTurns } from '../../base/async/fair-turns.ts';
import type { RandomPort } from '../../ports/clock.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
import type { EngineCommands, EngineQueries } from '../../ports/metadata/engine.ts';
import type { CommandOf, Envelope, OutcomeOf, Reply } from '../../ports/metadata/port.ts';
import type {
  CommandSpec,
  DecideContext,
  Decision,
  LockRequest,
  QuerySpec,
  Reads,
  RowAddress,
  StateMachine,
  StateReader,
} from '../../ports/state-machine.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { commandPathOf } from '../../types/tenant.ts';
import { checkOutcomes } from './check-outcomes.ts';
import type { ClockSteps } from './clock-steps.ts';
import { CommandView } from './command-view.ts';
import type { Counters } from './counters.ts';
import type { EntryLog } from './entry-log.ts';
import { timeJumpCodec } from './entry-rows.ts';
import { LockTable, mergeLocks } from './lock-table.ts';
import { entryBytes, type Overlay, type OverlayBudget } from './overlay.ts';
import { readInTurns } from './read-in-turns.ts';
import {
  decodeOutcome,
  forgetRows,
  forgettableBefore,
  outcomeAddress,
  outcomeRows,
} from './request-outcomes.ts';
import { assertMachineTable, ENGINE_TABLES, keyOfRow, rowKey } from './row-keys.ts';

/** Rounds of `more` that a command may ask for: beyond it, it does not end. */
const READ_ROUNDS_MAX = 1000;
/** A command that has read so many rows is a long one: to look at them and to decide takes a millisecond or more. */
const LONG_COMMAND_ROWS = 200;
/** Of rows that a command has read: so much counts. */
const LARGE_READ_BYTES = 64 * 1024;
/** Outcomes forgotten in one unit of background work. */
const FORGET_COUNT_MAX = 500;
/** An idle shard writes its time this often: ids are made from it, and claims are resolved by it (R24, R30). */
const IDLE_TIME_KEPT_MS = 10 * 60_000;

/** Beside the state machine's. */
const ENGINE_QUERIES: StateMachine['queries'] = { 'check-outcomes': checkOutcomes };
const ACCEPT_TIME_JUMP: keyof EngineCommands = 'accept-time-jump';
const GET_TIME_JUMP: keyof EngineQueries = 'get-time-jump';

const NEVER = () => false;
const NO_VALUES: readonly number[] = [];
const NONE_LEFT: ReadonlySet<string> = new Set();

const BUSY: Reply<never> = { kind: 'busy' };
const UNKNOWN: Reply<never> = { kind: 'unknown' };

export interface ShardParts {
  shard: number;
  shardCount: number;
  kv: KvPort;
  machine: StateMachine;
  random: RandomPort;
  overlay: Overlay;
  budget: OverlayBudget;
  log: EntryLog;
  counters: Counters;
  state: StateReader;
  /** A request was answered by the outcome of an earlier try (R18). */
  onRequestFound?(): void;
  /** Of queries and commands that read many rows, by the bucket's owner. Default: none, each goes on. */
  turns?: FairTurns;
  /** R19: the jumps at this and earlier starts that wait for the operator's word; 0 when none does. */
  timeJumpMs: number;
  /** R19: smaller steps of the clock, which add up. */
  steps: ClockSteps;
}

/** A command that is admitted and not yet answered. */
interface Call {
  envelope: Envelope;
  spec: CommandSpec<never, unknown>;
  command: never;
  isTooLate: () => boolean;
  /** Whose it is; empty: the server's own. */
  account: SharePath;
  /** Of its entry, as the account's share of the overlays knows it. */
  pendingBytes: number;
  /** Of the rows that it has read, where they are large, as the account's share knows it. */
  readBytes: number;
  /** As `decide` is told. */
  left: ReadonlySet<string>;
  resolve(reply: Reply<unknown>): void;
}

export class Shard {
  readonly #parts: ShardParts;
  readonly #locks = new LockTable();
  readonly #calls = new Set<Call>();
  /** Places of calls, by account. */
  readonly #places = createFairShare({
    limit: LIMITS.shardQueueMax,
    weights: [LIMITS.accountShareWeight],
  });
  /** What ends the waits for entries of the engine itself. */
  readonly #ownEntries = new Set<() => void>();
  /** Answers under way by request id: duplicates share them (R18). */
  readonly #running = new Map<string, Promise<Reply<unknown>>>();
  /** What all commands are given. */
  readonly #context: Omit<DecideContext, 'nowMs' | 'acceptedMs' | 'counter' | 'vector' | 'left' | 'origin'>;
  #status: 'open' | 'closing' | 'failed' = 'open';
  #onDrained: (() => void) | undefined;
  /** Rows of `requestTimes` below it are gone (B11); undefined until it is read. */
  #forgottenTo: Uint8Array | undefined;
  #timeJumpMs: number;
  /** Under way. */
  #accepting: Promise<OutcomeOf<'accept-time-jump'>> | undefined;

  constructor(parts: ShardParts) {
    const { shard, shardCount, random } = parts;
    this.#parts = parts;
    this.#timeJumpMs = parts.timeJumpMs;
    this.#context = { shard, shardCount, random: (sizeBytes) => random.bytes(sizeBytes) };
  }

  /** Commands admitted and not yet answered. */
  get callCount(): number {
    return this.#calls.size;
  }

  /** As in ShardParts, now. */
  get timeJumpMs(): number {
    return this.#timeJumpMs;
  }

  /**
   * Evaluates the command once and answers by R8. Rejects when the command itself is broken: nothing is appended.
   * `isTooLate`: its caller may not wait any longer, so it is refused when it has not been evaluated by then (R48).
   */
  execute(
    envelope: Envelope,
    name: string,
    command: unknown,
    isTooLate: () => boolean = NEVER,
  ): Promise<Reply<unknown>> {
    const { requestId } = envelope;
    if (this.#status !== 'open') return Promise.resolve(UNKNOWN);
    if (name === ACCEPT_TIME_JUMP) return this.#acceptByCommand(command as CommandOf<'accept-time-jump'>);
    const running = requestId === undefined ? undefined : this.#running.get(requestId);
    if (running !== undefined) return running;
    const account = commandPathOf(envelope.origin, command);
    if (!this.#places.mayTake(account, 1) || !this.#hasRoom(account)) return Promise.resolve(BUSY);
    const spec = must(this.#parts.machine.commands[name], `unknown command ${name}`);
    const { promise, resolve, reject } = Promise.withResolvers<Reply<unknown>>();
    const call: Call = {
      envelope,
      spec,
      command: command as never,
      isTooLate,
      account,
      pendingBytes: 0,
      readBytes: 0,
      left: NONE_LEFT,
      resolve,
    };
    this.#calls.add(call);
    this.#places.take(account, 1);
    if (requestId !== undefined) this.#running.set(requestId, promise);
    this.#evaluate(call).catch((error) => {
      this.#end(call);
      reject(error);
    });
    return promise;
  }

  /** Runs over committed state. `timeMs` of the reply is committed time from before the read (R30). */
  async query(envelope: Envelope, name: string, query: unknown): Promise<Reply<unknown>> {
    if (this.#status !== 'open') return UNKNOWN;
    const reply = await this.#read(envelope, name, query);
    // After the read (R10): a shard that has lost its right to answer meanwhile does not know what it has read.
    const mayAnswer = this.#parts.log.confirmRead();
    if (mayAnswer !== undefined && !(await mayAnswer)) return UNKNOWN;
    return this.#hasFailed() ? UNKNOWN : reply;
  }

  async #read({ bucket }: Envelope, name: string, query: unknown): Promise<Reply<unknown>> {
    const { machine, log, shard, shardCount } = this.#parts;
    if (name === GET_TIME_JUMP)
      return { kind: 'done', value: { jumpMs: this.#timeJumpMs }, timeMs: log.committed.timeMs };
    const spec: QuerySpec<never, unknown> = must(
      machine.queries[name] ?? ENGINE_QUERIES[name],
      `unknown query ${name}`,
    );
    const { timeMs } = log.committed;
    let owner = spec.ownerOf?.(query as never) ?? '';
    if (bucket !== undefined) {
      const { bucketGuard } = machine;
      const [row] = await this.#parts.state.rows([bucketGuard.address(bucket.bucketId)]);
      const refusal = bucketGuard.check(bucket, row, 'read');
      if (refusal !== undefined) return staleBucket(refusal, timeMs);
      if (row !== undefined) owner = bucketGuard.ownerOf(row);
    }
    const state = this.#stateFor(owner);
    const nowMs = log.nowMs();
    const context = { nowMs, acceptedMs: nowMs - this.#timeJumpMs, shard, shardCount };
    const value = await spec.run(query as never, state, context);
    return { kind: 'done', value, timeMs };
  }

  /** Queries of one owner, or on its buckets, share its turns; those of none are the server's own work. */
  #stateFor(owner: string): StateReader {
    const { state, turns } = this.#parts;
    if (turns === undefined) return state;
    const turn = { owner, work: 'queries' };
    return readInTurns(state, { take: () => turns.take(turn), join: () => turns.join(turn) });
  }

  /** Answers `unknown` to everything from now on (R13). */
  fail(): void {
    this.#status = 'failed';
    for (const call of [...this.#calls]) this.#answer(call, UNKNOWN);
    for (const done of [...this.#ownEntries]) done();
  }

  /** Takes no more commands; resolves when all that were admitted are answered. */
  close(): Promise<void> {
    if (this.#status === 'open') this.#status = 'closing';
    return new Promise((resolve) => {
      const earlier = this.#onDrained;
      this.#onDrained = () => {
        earlier?.();
        resolve();
      };
      this.#noteDrained();
    });
  }

  /** Takes commands again after `close`. */
  reopen(): void {
    if (this.#status === 'closing') this.#status = 'open';
    this.#onDrained = undefined;
  }

  /** One unit of forgetting outcomes (R18); true when there may be more. */
  async forgetOutcomes(): Promise<boolean> {
    const { shard, kv, log } = this.#parts;
    const table = ENGINE_TABLES.requestTimes;
    const cursorKey = rowKey(shard, ENGINE_TABLES.cursors, Buffer.from('requests'));
    this.#forgottenTo ??= (await kv.getMany('rows', [cursorKey]))[0] ?? new Uint8Array(0);
    const rows = await kv.range({
      column: 'rows',
      gte: rowKey(shard, table, this.#forgottenTo),
      lt: rowKey(shard, table, forgettableBefore(log.nowMs())),
      limit: FORGET_COUNT_MAX,
    });
    const last = rows.at(-1);
    if (last === undefined || this.#status !== 'open') return false;
    const puts = rows.flatMap(({ key }) => forgetRows(shard, keyOfRow(key)));
    const forgottenTo = keyOfRow(last.key);
    puts.push({ column: 'rows', key: cursorKey, value: forgottenTo });
    await this.#appendOwn(puts);
    this.#forgottenTo = forgottenTo;
    return rows.length === FORGET_COUNT_MAX;
  }

  /** Writes the time of a shard that has written nothing for a while. */
  async keepTime(): Promise<void> {
    const { log } = this.#parts;
    if (this.#status !== 'open' || log.nowMs() - log.committed.timeMs < IDLE_TIME_KEPT_MS) return;
    await this.#appendOwn([]);
  }

  /**
   * The operator's word that time is right (R19), where no more has jumped than what was shown to it. Calls that come while one is
   * under way share its answer: each jump is accepted once. Throws AppError ServiceUnavailable when it may not have been kept.
   */
  acceptTimeJump(atMostMs: number): Promise<OutcomeOf<'accept-time-jump'>> {
    if (this.#timeJumpMs > atMostMs) return Promise.resolve({ kind: 'grown', jumpMs: this.#timeJumpMs });
    this.#accepting ??= this.#acceptNoted(atMostMs).finally(() => {
      this.#accepting = undefined;
    });
    return this.#accepting;
  }

  async #acceptNoted(atMostMs: number): Promise<OutcomeOf<'accept-time-jump'>> {
    if (this.#status !== 'open') throw new AppError('ServiceUnavailable');
    // Asked first: a jump that shows just now is noted, and is more than what was shown or comes behind it.
    const timeMs = this.#parts.log.nowMs();
    const acceptedMs = this.#timeJumpMs;
    if (acceptedMs > atMostMs) return { kind: 'grown', jumpMs: acceptedMs };
    if (acceptedMs === 0) return { kind: 'accepted', jumpMs: 0 };
    this.#parts.steps.forget();
    await this.#appendOwn([this.#timeJumpPut(0, timeMs)], timeMs);
    if (this.#hasFailed()) throw new AppError('ServiceUnavailable');
    this.#timeJumpMs -= acceptedMs;
    assert(this.#timeJumpMs >= 0, 'no more is accepted than has jumped');
    // Another one has come meanwhile: that one waits, and its row is to say no more.
    const nowMs = this.#parts.log.nowMs();
    if (this.#timeJumpMs > 0) await this.#appendOwn([this.#timeJumpPut(this.#timeJumpMs, nowMs)], nowMs);
    return { kind: 'accepted', jumpMs: acceptedMs };
  }

  async #acceptByCommand({
    atMostMs,
  }: CommandOf<'accept-time-jump'>): Promise<Reply<OutcomeOf<'accept-time-jump'>>> {
    const value = await this.acceptTimeJump(atMostMs);
    return { kind: 'done', value, timeMs: this.#parts.log.committed.timeMs };
  }

  /** With what smaller steps come to at `timeMs`. */
  #timeJumpPut(jumpMs: number, timeMs: number): KvPut {
    const key = rowKey(this.#parts.shard, ENGINE_TABLES.timeJump, new Uint8Array(0));
    const stepsMs = this.#parts.steps.sumMs;
    const isNone = jumpMs === 0 && stepsMs === 0;
    return { column: 'rows', key, value: isNone ? null : timeJumpCodec.encode({ jumpMs, stepsMs, timeMs }) };
  }

  /**
   * Time has followed the clock ahead by so much while the shard was open, as a majority of clocks says (R19). True: with what was
   * followed before it is a jump. The row goes with the first entry of the new time, so that no primary behind this one takes
   * it for accepted.
   */
  noteClockStep(stepMs: number, timeMs: number): boolean {
    const followed = this.#parts.steps.add(stepMs);
    if (followed.kind === 'small') return false;
    if (followed.kind === 'jump') this.#timeJumpMs += followed.jumpMs;
    this.#parts.log.append({ rows: [this.#timeJumpPut(this.#timeJumpMs, timeMs)], timeMs, done() {} });
    return followed.kind === 'jump';
  }

  /** An entry of the engine itself. Resolves when it is committed, or never will be. */
  #appendOwn(rows: KvPut[], timeMs = this.#parts.log.nowMs()): Promise<void> {
    const { log } = this.#parts;
    return new Promise((resolve) => {
      const done = () => {
        this.#ownEntries.delete(done);
        this.#noteDrained();
        resolve();
      };
      this.#ownEntries.add(done);
      log.append({ rows, timeMs, done });
    });
  }

  async #evaluate(call: Call): Promise<void> {
    const { shard, kv, overlay } = this.#parts;
    const { spec, command } = call;
    const begins = this.#join(call);
    if (begins !== undefined && (await begins)) return;
    let locks: readonly LockRequest[] = mergeLocks(spec.locks(command));
    if (spec.leavesBusy?.(command) === true) {
      const free = this.#locks.takeFree(locks);
      call.left = namesLeft(locks, free);
      locks = free;
    } else {
      const waiting = this.#locks.acquire(locks);
      if (waiting !== undefined) await waiting;
    }
    let end: (() => void) | undefined;
    try {
      const view = new CommandView(shard, { kv, overlay });
      const reads = spec.reads(command);
      const own = this.#ownReads(call.envelope);
      const first = view.fetch(
        own.length === 0 ? reads : { ...reads, rows: [...own, ...(reads.rows ?? [])] },
      );
      if (first !== undefined) await first;
      const early = this.#answerWithoutDeciding(call.envelope, view, locks);
      if (early !== undefined) return this.#answerWhenCommitted(call, early);
      if (!this.#mayKeep(call, view)) return;
      const turn = this.#waitForTurn(call, view);
      if (turn !== false && (await turn)) return;
      for (let round = 0, reads = spec.more?.(command, view); reads !== undefined; round++) {
        assert(round < READ_ROUNDS_MAX, 'a command reads in a bounded number of rounds');
        const beginning = end === undefined && this.#beginLong(call, view, reads);
        if (beginning) {
          end = await beginning;
          if (this.#isOver(call)) return;
        }
        const fetching = view.fetch(reads);
        if (fetching !== undefined) await fetching;
        if (!this.#mayKeep(call, view)) return;
        if (await this.#waitForTurn(call, view)) return;
        reads = spec.more?.(command, view);
      }
      if (await this.#waitForTurn(call, view)) return;
      await this.#decide(call, view, await this.#prepare(call, view));
    } finally {
      this.#locks.release(locks);
      end?.();
    }
  }

  /**
   * A command that reads thousands of rows by and by holds them until it is decided: of one owner two at a time do, which are
   * done sooner than many together, and take less memory. Those that read few wait for none of them. It has its locks: none
   * that is under way waits for it.
   */
  #beginLong(call: Call, view: CommandView, next: Reads): Promise<() => void> | false {
    const { turns } = this.#parts;
    const weight = view.weight + (next.rows?.length ?? 0);
    const { spec, command } = call;
    if (turns === undefined || !(weight >= LONG_COMMAND_ROWS || spec.mayReadMuch?.(command))) return false;
    const owner = this.#ownerOf(call, view);
    const work = spec.readsFew?.(command) === true ? 'small commands' : 'commands';
    return owner !== '' && turns.begin({ owner, work });
  }

  /** Its caller has given up, or the shard has failed. */
  #isOver(call: Call): boolean {
    if (this.#hasFailed()) return true;
    if (!call.isTooLate()) return false;
    this.#answer(call, BUSY);
    return true;
  }

  /**
   * Commands that look at many rows keep the thread for milliseconds, and many of them may be ready at once: each waits for
   * the turn of its bucket's owner, so that between two of them all others go on. What it has read stays as it is by its
   * locks. True when it has ended while it waited: its caller has given up, or the shard has failed.
   */
  #waitForTurn(call: Call, view: CommandView): Promise<boolean> | false {
    const { turns } = this.#parts;
    if (turns === undefined || !isLong(call, view.weight)) return false;
    const turn = turns.take({ owner: this.#ownerOf(call, view), work: 'commands' });
    return turn.then(() => this.#isOver(call));
  }

  /**
   * Many commands may be ready at once, each too short for a turn of its own: undefined while this turn of the loop has room
   * for one, else as #waitForTurn.
   */
  #join(call: Call): Promise<boolean> | undefined {
    const turn = this.#parts.turns?.join({ owner: call.account[0], work: 'commands' });
    return turn?.then(() => this.#isOver(call));
  }

  /** undefined where it is done within `decide`: of few rows, or where nobody takes turns. */
  #prepare(call: Call, view: CommandView): Promise<unknown> | undefined {
    const { turns } = this.#parts;
    const { spec, command } = call;
    if (turns === undefined || spec.prepare === undefined || !isLong(call, view.weight)) return undefined;
    const owner = this.#ownerOf(call, view);
    return turns.finish({ owner, work: 'commands' }, spec.prepare(command, view, this.#context));
  }

  /** '' for work of the server itself. */
  #ownerOf({ envelope: { bucket }, spec, command }: Call, view: CommandView): string {
    const { bucketGuard } = this.#parts.machine;
    const row = bucket && view.row(bucketGuard.address(bucket.bucketId));
    return row === undefined ? (spec.ownerOf?.(command) ?? '') : bucketGuard.ownerOf(row);
  }

  /** What the engine itself must see besides the command. */
  #ownReads({ requestId, bucket }: Envelope): RowAddress[] {
    const own: RowAddress[] = [];
    if (requestId !== undefined) own.push(outcomeAddress(requestId));
    if (bucket !== undefined) own.push(this.#parts.machine.bucketGuard.address(bucket.bucketId));
    return own;
  }

  /** The outcome of an earlier try (R18), or the refusal of an envelope that is out of date (R45). */
  #answerWithoutDeciding(
    { requestId, bucket }: Envelope,
    view: CommandView,
    locks: readonly LockRequest[],
  ): Reply<unknown> | undefined {
    const { machine, log } = this.#parts;
    const outcome = requestId === undefined ? undefined : view.row(outcomeAddress(requestId));
    if (outcome !== undefined) {
      this.#parts.onRequestFound?.();
      return { kind: 'done', value: decodeOutcome(outcome), timeMs: log.nowMs() };
    }
    if (bucket === undefined) return undefined;
    const { bucketGuard } = machine;
    const row = view.row(bucketGuard.address(bucket.bucketId));
    const refusal = bucketGuard.check(bucket, row, 'write', locks);
    return refusal === undefined ? undefined : staleBucket(refusal, log.nowMs());
  }

  async #decide(call: Call, view: CommandView, prepared: unknown): Promise<void> {
    const { log, counters } = this.#parts;
    // Nothing is awaited between this and `decide`: what others have done by then counts.
    const turn = isLong(call, view.weight) ? undefined : this.#join(call);
    if (turn !== undefined && (await turn)) return;
    const known = call.spec.counters?.(call.command, view);
    const waiting = known && counters.load(known);
    if (waiting !== undefined) await waiting;
    for (;;) {
      if (this.#hasFailed()) return;
      // Again: many may have been let in and have waited for locks and reads while the store stood still.
      if (!this.#hasRoom(call.account) || call.isTooLate()) return this.#answer(call, BUSY);
      const nowMs = log.nowMs();
      const names: string[] = [];
      const vector = (name: string) => {
        names.push(name);
        return counters.value(name) ?? NO_VALUES;
      };
      const counter = (name: string) => vector(name)[0] ?? 0;
      const { envelope, left } = call;
      const { origin } = envelope;
      const acceptedMs = nowMs - this.#timeJumpMs;
      const context = { ...this.#context, nowMs, acceptedMs, counter, vector, left, origin };
      const decision = call.spec.decide(call.command, view, context, prepared);
      for (const { name } of decision.counters ?? []) names.push(name);
      const loading = counters.load(names);
      // Log order is evaluation order: between `decide` and the append nothing else may run. So after loading a
      // counter the command is decided anew.
      if (loading === undefined) return this.#conclude(call, decision, nowMs);
      await loading;
    }
  }

  #conclude(call: Call, decision: Decision<unknown>, timeMs: number): void {
    const reply: Reply<unknown> = { kind: 'done', value: decision.outcome, timeMs };
    const { requestId, isRetry = false } = call.envelope;
    const isChange = decision.puts.length > 0 || (decision.counters?.length ?? 0) > 0;
    // R18: an earlier try that is still on its way would be evaluated anew, and might change what this one did not.
    const isKept = requestId !== undefined && isRetry;
    if (!isChange && !isKept)
      this.#answerWhenCommitted(call, requestId === undefined ? reply : { ...reply, isUnkept: true });
    else {
      call.pendingBytes = entryBytes(decision.puts);
      if (!this.#mayHold(call.account, call.pendingBytes)) {
        call.pendingBytes = 0;
        this.#answer(call, BUSY);
        return;
      }
      this.#parts.budget.shares.take(call.account, call.pendingBytes);
      const rows = this.#entryRows(call.envelope, decision, timeMs);
      this.#parts.log.append({ rows, timeMs, done: () => this.#answer(call, reply) });
    }
  }

  #entryRows(envelope: Envelope, decision: Decision<unknown>, timeMs: number): KvPut[] {
    const { shard, counters } = this.#parts;
    const rows = decision.puts.map(({ table, key, value }): KvPut => {
      assertMachineTable(table);
      return { column: table.column, key: rowKey(shard, table, key), value };
    });
    // A store that refuses an entry has failed (R20): what it would refuse ends this command alone.
    assert(entryBytes(rows) <= LIMITS.entryBytesMax, 'an entry is of a size that the store takes');
    if (decision.counters !== undefined) rows.push(...counters.append(decision.counters));
    const { requestId } = envelope;
    if (requestId !== undefined)
      rows.push(...outcomeRows(shard, { requestId, outcome: decision.outcome, timeMs }));
    return rows;
  }

  /** R8: what a refusal has seen must be committed before it is sent. */
  #answerWhenCommitted(call: Call, reply: Reply<unknown>): void {
    if (!this.#hasFailed()) this.#parts.log.whenCommitted(() => this.#answer(call, reply));
  }

  #answer(call: Call, reply: Reply<unknown>): void {
    this.#end(call);
    call.resolve(reply);
  }

  #end(call: Call): void {
    if (!this.#calls.delete(call)) return;
    this.#places.giveBack(call.account, 1);
    this.#parts.budget.shares.giveBack(call.account, call.pendingBytes);
    this.#parts.budget.readShares.giveBack(call.account, call.readBytes);
    if (call.envelope.requestId !== undefined) this.#running.delete(call.envelope.requestId);
    this.#noteDrained();
  }

  #noteDrained(): void {
    if (this.#calls.size === 0 && this.#ownEntries.size === 0) this.#onDrained?.();
  }

  #hasRoom(account: SharePath): boolean {
    const { usedBytes, bytesMax, shares } = this.#parts.budget;
    return usedBytes < bytesMax && shares.mayTake(account, 1);
  }

  /** Whether an account may have so much more in the overlays. One that has nothing there may: an entry can be larger than a share. */
  #mayHold(account: SharePath, sizeBytes: number): boolean {
    const { shares } = this.#parts.budget;
    return shares.usedBy(account) === 0 || shares.mayTake(account, sizeBytes);
  }

  /**
   * Counts what a command of an account has read so far, where that is much: the row of a composed object has 250 KB, and thousands
   * of commands may wait with theirs for turns. False: it is answered busy, for others of its account hold too much so.
   */
  #mayKeep(call: Call, { valueBytes }: CommandView): boolean {
    const { account, readBytes } = call;
    if (valueBytes < LARGE_READ_BYTES || account.length === 0) return true;
    const { readShares } = this.#parts.budget;
    const areOthers = readShares.usedBy(account) > readBytes;
    if (areOthers && !readShares.mayTake(account, valueBytes - readBytes)) {
      this.#answer(call, BUSY);
      return false;
    }
    // Not of a call that was answered meanwhile, which gives nothing back any more.
    if (!this.#calls.has(call)) return false;
    readShares.take(account, valueBytes - readBytes);
    call.readBytes = valueBytes;
    return true;
  }

  #hasFailed(): boolean {
    return this.#status === 'failed';
  }
}

function isLong({ spec, command }: Call, rowCount: number): boolean {
  return rowCount >= LONG_COMMAND_ROWS || spec.isLong?.(command) === true;
}

function staleBucket(refusal: { bucket: unknown }, timeMs: number): Reply<never> {
  return { kind: 'stale-bucket', bucket: refusal.bucket as never, timeMs };
}

function namesLeft(asked: readonly LockRequest[], held: readonly LockRequest[]): ReadonlySet<string> {
  const left = new Set(asked.map(({ name }) => name));
  for (const { name } of held) left.delete(name);
  return left;
}
