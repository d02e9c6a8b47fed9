// How a replica becomes primary (R11, R12): asks whether it may, takes an epoch from the registry, fences the voters, and
// makes its log the best of a majority. Ends with a log that holds every committed entry; opening it is replica.ts.
import { must } from '../../base/assert.ts';
import { toHex } from '../../base/bytes/bytes.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type {
  FencedMessage,
  FetchedMessage,
  LogPosition,
  PreFencedMessage,
  ReplicaId,
  ReplicaRef,
} from '../../ports/replication.ts';
import type { RegisteredShard, ShardRecord, ShardRegistryPort } from '../../ports/shard-registry.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { ReplicaRecord } from '../engine/entry-rows.ts';
import { CANDIDATE_JITTER_MS, HEARTBEAT_MS, ROUND_MS, SILENCE_MS } from '../engine/timing.ts';
import type { LogStore } from './log-store.ts';
import type { Send } from './message-envelope.ts';
import { hasMajority, isVoter, type VoterSets } from './quorum.ts';
import { type RegistryCheck, seenOf } from './registered-record.ts';

const NONCE_BYTES = 16;
/** Nobody reads why a wait ends, and an exception, which is the usual reason, is costly to make. */
const WOKEN = 'woken';
/** Rounds of fences before it is given up: by then promises to anybody else have lapsed several times. */
const FENCE_ROUNDS_MAX = Math.ceil((4 * SILENCE_MS) / HEARTBEAT_MS);

export type TakeoverEnd =
  | { kind: 'won'; registered: RegisteredShard }
  /** Another replica leads, or may; or too few answered. */
  | { kind: 'given-up'; why: string };

export interface TakeoverParts {
  shard: number;
  self: ReplicaRef;
  check: RegistryCheck;
  log: LogStore;
  clock: ClockPort;
  random: RandomPort;
  registry: ShardRegistryPort;
  logger: Logger;
  /** Says it in this epoch. */
  send(epoch: number): Send;
  own(): ReplicaRecord;
  /** Takes no more appends of lower epochs; resolves when that is durable. */
  promise(registered: RegisteredShard): Promise<void>;
  /** Until when others have our silence, by our monotonic clock (R9). */
  silentUntilMs(): number;
  /** Up to where nothing of the log here will ever be cut. */
  committed(): LogPosition;
  /** Writes entries of a better log behind `after` (R4). False when they disagree with what is committed (R17). */
  adopt(after: LogPosition, entries: readonly Uint8Array[]): Promise<boolean>;
  /** The epoch went to another, or the record was written by somebody else. */
  onSwapLost(): void;
  /** Makes known who has been registered. */
  onRegistered(registered: RegisteredShard): void;
}

export class Takeover {
  readonly #parts: TakeoverParts;
  readonly #agreed = new Set<string>();
  readonly #fenced = new Map<string, FencedMessage>();
  #fetched: FetchedMessage | undefined;
  #epoch = 0;
  /** Why it is over, whatever it was about to do. */
  #abandonedWhy: string | undefined;
  /** Ends the wait under way. */
  #wake = new AbortController();

  constructor(parts: TakeoverParts) {
    this.#parts = parts;
  }

  /** The epoch that was taken; 0 before. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Why nobody leads by it, though it was won. */
  get wonInVain(): string {
    return this.#abandonedWhy ?? 'a higher epoch';
  }

  /** A higher epoch was seen, or a primary is there. */
  abandon(why: string): void {
    this.#abandonedWhy ??= why;
    this.#wake.abort(WOKEN);
  }

  onPreFenced({ from, agrees }: PreFencedMessage): void {
    if (agrees) this.#agreed.add(from);
    this.#wake.abort(WOKEN);
  }

  onFenced(message: FencedMessage): void {
    if (message.epoch !== this.#epoch) return;
    this.#fenced.set(message.from, message);
    this.#wake.abort(WOKEN);
  }

  onFetched(message: FetchedMessage): void {
    if (message.epoch !== this.#epoch) return;
    this.#fetched = message;
    this.#wake.abort(WOKEN);
  }

  get #hasEnded(): boolean {
    return this.#abandonedWhy !== undefined;
  }

  async run(): Promise<TakeoverEnd> {
    const { registry, shard, self, own } = this.#parts;
    const before = own();
    const registered = await registry.read(shard).catch(() => undefined);
    if (registered === undefined) return this.#giveUp('the registry is away');
    this.#parts.onRegistered(registered);
    const problem = this.#whyNot(registered, before);
    if (problem !== undefined) return this.#giveUp(problem);
    const { record } = registered;
    if (isGiven(record, self, before)) return this.finish(registered, self);
    if (!(await this.#askFirst(record))) return this.#giveUp('no majority agrees');
    const taken = await this.#take(registered);
    if (taken === undefined) {
      this.#parts.onSwapLost();
      return this.#giveUp('the epoch went to another');
    }
    this.#epoch = taken.record.epoch;
    this.#parts.onRegistered(taken);
    return this.finish(taken, self);
  }

  /** From an epoch that is ours on (R12 b, c). */
  async finish(registered: RegisteredShard, self: ReplicaRef): Promise<TakeoverEnd> {
    const { record } = registered;
    this.#epoch = record.epoch;
    await this.#parts.promise(registered);
    if (!(await this.#fence(registered, self))) return this.#giveUp('no majority is fenced');
    if (!(await this.#adoptBest(record))) return this.#giveUp('the best log could not be had');
    return this.#hasEnded ? this.#giveUp('it was abandoned') : { kind: 'won', registered };
  }

  #giveUp(why: string): TakeoverEnd {
    return { kind: 'given-up', why: this.#abandonedWhy ?? why };
  }

  #whyNot(registered: RegisteredShard, before: ReplicaRecord): string | undefined {
    const { self, check } = this.#parts;
    const { record } = registered;
    if (check.judge(registered, before)) return 'the registry is behind what was seen of it';
    if (record.incarnation > before.incarnation) return 'another history goes on';
    return record.voters.some(({ replicaId }) => replicaId === self.replicaId)
      ? undefined
      : 'this is no voter';
  }

  /** R11: whether a majority would let us, before an epoch is spent on it. */
  async #askFirst(record: ShardRecord): Promise<boolean> {
    const { self, log } = this.#parts;
    const sets = setsOf(record);
    const epoch = record.epoch + 1;
    this.#agreed.add(self.replicaId);
    for (const ref of othersOf(record, self))
      this.#parts.send(epoch)(ref, { kind: 'pre-fence', last: log.last });
    const isAgreed = () => hasMajority(sets, (id) => this.#agreed.has(id));
    await this.#until(isAgreed, ROUND_MS);
    return !this.#hasEnded && isAgreed();
  }

  #take(registered: RegisteredShard): Promise<RegisteredShard | undefined> {
    const { registry, shard, self, random } = this.#parts;
    const nonce = toHex(random.bytes(NONCE_BYTES));
    const record = { ...registered.record, epoch: registered.record.epoch + 1, primary: self, nonce };
    return swapRecord(registry, shard, { expected: registered.revision, record });
  }

  /** R12 b: asks again and again; who has promised silence to another answers when that has lapsed. */
  async #fence(registered: RegisteredShard, self: ReplicaRef): Promise<boolean> {
    const { record } = registered;
    const fence = { kind: 'fence', seen: seenOf(registered) } as const;
    const { clock, silentUntilMs } = this.#parts;
    const sets = setsOf(record);
    const isFenced = () => {
      // This one counts only when its own promise has lapsed.
      const isFree = clock.monotonicMs() >= silentUntilMs();
      return hasMajority(sets, (id) =>
        id === self.replicaId ? isFree : this.#fenced.get(id)?.counts === true,
      );
    };
    for (let round = 0; round < FENCE_ROUNDS_MAX && !this.#hasEnded; round++) {
      for (const ref of othersOf(record, self))
        if (!this.#fenced.has(ref.replicaId)) this.#parts.send(record.epoch)(ref, fence);
      await this.#until(isFenced, HEARTBEAT_MS);
      if (isFenced()) return !this.#hasEnded;
    }
    return false;
  }

  /** R12 c. */
  async #adoptBest(record: ShardRecord): Promise<boolean> {
    const { log, self } = this.#parts;
    let best: FencedMessage | undefined;
    for (const fenced of this.#fenced.values())
      if (fenced.counts && isBetter(fenced.last, best?.last ?? log.last)) best = fenced;
    if (best === undefined) return true;
    const { from, last, base } = best;
    const ref = must(
      othersOf(record, self).find(({ replicaId }) => replicaId === from),
      'who is fenced is known',
    );
    if (log.last.seq >= base.seq) return this.#fetchAll(ref, { last, base });
    this.#letLead(ref);
    return false;
  }

  /** What it has trimmed cannot be had as entries: it leads, and sends a snapshot. */
  #letLead(ref: ReplicaRef): void {
    this.#parts.send(this.#epoch)(ref, { kind: 'release', heir: ref.replicaId });
  }

  async #fetchAll(ref: ReplicaRef, { last, base }: Pick<FencedMessage, 'last' | 'base'>): Promise<boolean> {
    const { log, send, adopt, committed } = this.#parts;
    let after = log.last;
    while (log.last.seq !== last.seq || log.last.epoch !== last.epoch) {
      this.#fetched = undefined;
      send(this.#epoch)(ref, { kind: 'fetch', after });
      await this.#until(() => this.#fetched !== undefined, ROUND_MS);
      const fetched = this.#fetched as FetchedMessage | undefined;
      if (this.#hasEnded || fetched === undefined) return false;
      // It has lost entries since it was fenced: what we wait for will never come (R17).
      if (isBetter(last, fetched.last)) return false;
      const { prev, entries } = fetched;
      const ownEpoch = log.epochAt(prev.seq);
      const agrees = ownEpoch === prev.epoch;
      if (!agrees && ownEpoch !== undefined && prev.seq <= base.seq) {
        // They part below all that it has.
        this.#letLead(ref);
        return false;
      }
      // What we have behind its end goes as well.
      if (agrees && (entries.length > 0 || prev.seq === last.seq)) {
        if (!(await adopt(prev, entries))) return false;
        after = log.last;
        continue;
      }
      // Both have what is committed here, which is never written again: nobody need look further back.
      const next = later(agrees ? prev : earlier(log, prev.seq), committed());
      if (next.seq >= after.seq || log.epochAt(next.seq) === undefined) return false;
      after = next;
    }
    return true;
  }

  /** Resolves when `isMet`, `ms` have passed, or it is over. */
  async #until(isMet: () => boolean, ms: number): Promise<void> {
    const { clock } = this.#parts;
    const untilMs = clock.monotonicMs() + ms;
    while (!this.#hasEnded && !isMet()) {
      const leftMs = untilMs - clock.monotonicMs();
      if (leftMs <= 0) return;
      this.#wake = new AbortController();
      await clock.sleep(leftMs, this.#wake.signal);
    }
  }
}

/** R11: added to the wait of a candidate, so that two do not go on at the same moment for ever. */
export function candidateJitterMs(random: RandomPort): number {
  const [byte = 0] = random.bytes(1);
  return (byte / 255) * CANDIDATE_JITTER_MS;
}

/** R2: any result but a plain success is looked up; it was ours only if the nonce is. undefined: it was not. */
export async function swapRecord(
  registry: ShardRegistryPort,
  shard: number,
  change: { expected: number; record: ShardRecord },
): Promise<RegisteredShard | undefined> {
  const { record } = change;
  try {
    const swapped = await registry.swap(shard, change);
    if (swapped.kind === 'lost') return undefined;
    return { record, revision: swapped.revision, registryRevision: swapped.revision };
  } catch {
    const present = await registry.read(shard).catch(() => undefined);
    return present?.record.nonce === record.nonce ? present : undefined;
  }
}

/**
 * An epoch that a primary has handed over, or that this candidate took and did not finish. Nothing was ever done in it:
 * whatever is done in an epoch follows its promise, and so a restarted process resumes none (R13).
 */
function isGiven({ epoch, primary }: ShardRecord, self: ReplicaRef, before: ReplicaRecord): boolean {
  return primary?.replicaId === self.replicaId && epoch > before.promised;
}

export function setsOf({ voters, prevVoters }: Pick<ShardRecord, 'voters' | 'prevVoters'>): VoterSets {
  const ids = (refs: readonly ReplicaRef[]) => refs.map(({ replicaId }) => replicaId);
  return prevVoters === null ? { voters: ids(voters) } : { voters: ids(voters), prevVoters: ids(prevVoters) };
}

/** Whether it holds, or is to hold, a replica of the shard. */
export function isListed(record: ShardRecord, replicaId: ReplicaId): boolean {
  return isVoter(setsOf(record), replicaId) || record.learners.some((ref) => ref.replicaId === replicaId);
}

/** Voters of both sets, without `self`. */
export function othersOf({ voters, prevVoters }: ShardRecord, self: ReplicaRef): ReplicaRef[] {
  const byId = new Map([...voters, ...(prevVoters ?? [])].map((ref) => [ref.replicaId, ref]));
  byId.delete(self.replicaId);
  return [...byId.values()];
}

function isBetter(a: LogPosition, b: LogPosition): boolean {
  return a.epoch > b.epoch || (a.epoch === b.epoch && a.seq > b.seq);
}

function later(a: LogPosition, b: LogPosition): LogPosition {
  return a.seq < b.seq ? b : a;
}

/** Where both may agree when they do not at `seq`: before the epoch that stands there. */
function earlier(log: LogStore, seq: number): LogPosition {
  const at = Math.min(seq, log.last.seq);
  const before = log.epochStart(at) - 1;
  return { seq: before, epoch: log.epochAt(before) ?? 0 };
}
