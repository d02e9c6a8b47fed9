// Work that comes in crowds and holds the thread as it starts: of whatever is ready in one turn of the event loop so much
// starts as a few ms allow, and the rest waits for the next turns, so that other things that are ready get the loop. Who
// waits is served by sender. A sender has several names (an address, an access key), and each name has had so much time of
// late: who has had least by the name that has had most is the next. So neither many addresses of one key nor many keys of
// one address get more than one that is alone, and who asks seldom does not wait for those who always do. While nobody
// waits, and this turn has room, work starts at once, within the call.
import { must } from '../assert.ts';
import type { SharePath } from './fair-share.ts';

export interface StartTurns {
  /** True: `start` has been called. False: it will be, in a later turn; `senderOf` was asked whose it is. */
  start(senderOf: () => SharePath, start: () => void): boolean;
  /** Starts that wait. */
  readonly waitingCount: number;
}

export interface StartTurnsOptions {
  readonly clock: { monotonicMs(): number };
  /** Of one turn. */
  readonly turnMs: number;
  /** Calls back in the next turn of the loop. */
  nextTurn?(then: () => void): void;
  /** Calls back in this turn, when what a start has left to do at once is done. */
  settled?(then: () => void): void;
}

/** Time that was taken counts half after so long. */
const HALVED_EVERY_MS = 1000;
/** Less is not remembered of who does not wait. */
const FORGOTTEN_MS = 0.1;

export function createStartTurns(options: StartTurnsOptions): StartTurns {
  const { clock, turnMs, nextTurn = setImmediate, settled = afterMicrotasks } = options;
  const waiting = new Waiting();
  /** Monotonic ms at which the turn began that is watched; undefined between two of them. */
  let turnBeganMs: number | undefined;
  let unwatchedMs = 0;

  const isUsedUp = () => turnBeganMs !== undefined && clock.monotonicMs() - turnBeganMs >= turnMs;

  function watch(beganMs: number): void {
    turnBeganMs = beganMs;
    unwatchedMs = 0;
    nextTurn(beginTurn);
  }

  function beginTurn(): void {
    turnBeganMs = undefined;
    if (waiting.count === 0) return;
    turnBeganMs = clock.monotonicMs();
    waiting.lookOver();
    startNext();
  }

  /** One at least in a turn. */
  function startNext(): void {
    const next = waiting.take();
    const beganMs = clock.monotonicMs();
    waiting.forget(beganMs);
    next?.start();
    settled(() => {
      const tookMs = clock.monotonicMs() - beganMs;
      for (const use of next?.uses ?? []) use.tookMs += tookMs;
      if (waiting.count > 0 && !isUsedUp()) startNext();
      else nextTurn(beginTurn);
    });
  }

  return {
    get waitingCount() {
      return waiting.count;
    },
    start(senderOf, start) {
      if (waiting.count > 0 || isUsedUp()) {
        waiting.add(senderOf(), start);
        return false;
      }
      if (turnBeganMs !== undefined) {
        start();
        return true;
      }
      const beganMs = clock.monotonicMs();
      start();
      unwatchedMs += clock.monotonicMs() - beganMs;
      // To watch every turn would cost a quiet server one more round of its loop for each request: the one is watched in
      // which starts, however far apart, have taken as much as one turn has.
      if (unwatchedMs >= turnMs && turnBeganMs === undefined) watch(beganMs);
      return true;
    },
  };
}

function afterMicrotasks(then: () => void): void {
  queueMicrotask(() => process.nextTick(then));
}

/** What starts of one name have taken of late. */
interface Use {
  tookMs: number;
}

interface Sender {
  readonly name: string;
  readonly uses: readonly Use[];
  readonly starts: (() => void)[];
}

/** Senders of which the next is chosen: so choosing does not take longer, however many there are. */
const NEAREST_MAX = 32;

/** Starts that wait, by sender. */
class Waiting {
  /** Those with the same names are one; the one that was served last is the last. */
  readonly #senders = new Map<string, Sender>();
  /** Those who had least when all were looked over, and who have come since, while there is room; in the order of #senders. */
  #nearest: Sender[] = [];
  /** By place in the path. */
  readonly #uses: Map<string, Use>[] = [];
  #halvedAtMs = 0;
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(path: SharePath, start: () => void): void {
    const name = path.join('\n');
    let sender = this.#senders.get(name);
    if (sender === undefined) {
      sender = { name, uses: path.map((part, depth) => this.#useOf(part, depth)), starts: [] };
      this.#senders.set(name, sender);
      if (this.#nearest.length < NEAREST_MAX) this.#nearest.push(sender);
    }
    sender.starts.push(start);
    this.#count++;
  }

  /** Finds the senders who have had least. To be called in each turn: in between some of the others may come to have less. */
  lookOver(): void {
    const nearest: { sender: Sender; usedMs: number }[] = [];
    for (const sender of this.#senders.values()) {
      const usedMs = usedBy(sender);
      if (nearest.length === NEAREST_MAX) {
        if (usedMs >= must(nearest[NEAREST_MAX - 1], 'it is full').usedMs) continue;
        nearest.pop();
      }
      let at = nearest.length;
      while (at > 0 && must(nearest[at - 1], 'within it').usedMs > usedMs) at--;
      nearest.splice(at, 0, { sender, usedMs });
    }
    this.#nearest = nearest.map(({ sender }) => sender);
  }

  /** The next start, of the sender who has had least of the nearest, and the uses that it is to be added to. */
  take(): { start: () => void; uses: readonly Use[] } | undefined {
    if (this.#nearest.length === 0) this.lookOver();
    let next: Sender | undefined;
    let leastMs = Number.POSITIVE_INFINITY;
    for (const sender of this.#nearest) {
      const usedMs = usedBy(sender);
      if (usedMs < leastMs) {
        next = sender;
        leastMs = usedMs;
      }
    }
    if (next === undefined) return undefined;
    const { name, uses, starts } = next;
    const start = must(starts.shift(), 'who waits has something to start');
    this.#count--;
    this.#senders.delete(name);
    this.#nearest.splice(this.#nearest.indexOf(next), 1);
    if (starts.length > 0) {
      this.#senders.set(name, next);
      this.#nearest.push(next);
    }
    return { start, uses };
  }

  /** What was used long ago is forgotten. */
  forget(nowMs: number): void {
    if (nowMs - this.#halvedAtMs < HALVED_EVERY_MS) return;
    this.#halvedAtMs = nowMs;
    const present = new Set([...this.#senders.values()].flatMap(({ uses }) => uses));
    for (const names of this.#uses) {
      for (const [name, use] of names) {
        use.tookMs /= 2;
        if (use.tookMs < FORGOTTEN_MS && !present.has(use)) names.delete(name);
      }
    }
  }

  #useOf(name: string, depth: number): Use {
    this.#uses[depth] ??= new Map();
    const known = this.#uses[depth].get(name) ?? { tookMs: 0 };
    this.#uses[depth].set(name, known);
    return known;
  }
}

/** The most that a name of the sender has had; among those who share it the others count. */
function usedBy({ uses }: Sender): number {
  let most = 0;
  let sum = 0;
  for (const { tookMs } of uses) {
    most = Math.max(most, tookMs);
    sum += tookMs;
  }
  return most + sum / 1000;
}
