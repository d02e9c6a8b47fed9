// Work that comes in crowds and holds the thread as it starts. What is ready in one turn of the event loop starts at the turn's
// end: light work together, so that the steps of one start run beside the same steps of the others, each await handing the
// thread on, while their code is in the processor's caches (docs/internals/performance.md, "Starts of one turn"); other work
// one by one. Of a turn so much starts as a few ms allow, and the rest waits for the next turns, so that other things that
// are ready get the loop. Who waits is served by sender. A sender has several names (an address, an access key, an account),
// and each name has had so much time of late: who has had least by the name that has had most is the next. So neither many addresses
// of one key nor many keys of one address get more than one that is alone, and who asks seldom does not wait for those who
// always do.
import { must } from '../assert.ts';
import { ownText } from '../text/own-text.ts';
import type { SharePath } from './fair-share.ts';

/** Something that is to start. */
export interface StartRequest {
  /** Asked once, and only of what has to wait. */
  senderOf(): SharePath;
  /** It takes little of the thread before it first waits for something: it may start together with others. */
  readonly isLight: boolean;
  start(): void;
}

export interface StartTurns {
  /** `start` is called at the end of this turn of the event loop, or of a later one. */
  add(request: StartRequest): void;
  /** Starts that wait for their sender's turn; not those of the end of this turn. */
  readonly waitingCount: number;
}

export interface StartTurnsOptions {
  readonly clock: { monotonicMs(): number };
  /** Of one turn. */
  readonly turnMs: number;
  /** Calls back at the end of this turn of the loop. */
  nextTurn?(then: () => void): void;
  /** Calls back in this turn, when what a start has left to do at once is done. */
  settled?(then: () => void): void;
}

/** Light starts that run together: more gain little, and nothing else has the thread until all of them wait. */
const TOGETHER_MAX = 16;
/** What the starts before told of the next one's time counts so much beside the last group. */
const COST_KEPT = 0.9;
/** Time that was taken counts half after so long. */
const HALVED_EVERY_MS = 1000;
/** Less is not remembered of who does not wait. */
const FORGOTTEN_MS = 0.1;

export function createStartTurns(options: StartTurnsOptions): StartTurns {
  const { clock, turnMs, nextTurn = setImmediate, settled = afterMicrotasks } = options;
  const waiting = new Waiting();
  /** Light starts of this turn, which need not be told apart by sender. */
  let together: StartRequest[] = [];
  let isScheduled = false;
  /** What one start takes, ms: rises at once, and falls slowly. */
  let costMs = 0;

  /** So many start together that they fit into a turn by what starts took of late. */
  const groupMax = () => Math.max(1, Math.min(TOGETHER_MAX, Math.floor(turnMs / costMs)));

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    nextTurn(beginTurn);
  }

  function beginTurn(): void {
    isScheduled = false;
    const beganMs = clock.monotonicMs();
    const requests = together;
    together = [];
    if (waiting.count > 0) waiting.lookOver();
    if (requests.length > 0) run(requests, beganMs);
    else if (waiting.count > 0) startNext(beganMs);
  }

  /** Those whose senders have had least. */
  function startNext(turnBeganMs: number): void {
    const nowMs = clock.monotonicMs();
    waiting.forget(nowMs);
    const group = waiting.take(groupMax(), costMs);
    const expectedMs = costMs;
    run(group, turnBeganMs, (tookMs) => {
      for (const { uses } of group) for (const use of uses) use.tookMs += tookMs - expectedMs;
    });
  }

  /** `charge` is told what one of them took, ms. */
  function run(
    group: readonly { start(): void }[],
    turnBeganMs: number,
    charge?: (tookMs: number) => void,
  ): void {
    const beganMs = clock.monotonicMs();
    for (const request of group) request.start();
    settled(() => {
      const nowMs = clock.monotonicMs();
      const tookMs = (nowMs - beganMs) / group.length;
      costMs = Math.max(tookMs, COST_KEPT * costMs + (1 - COST_KEPT) * tookMs);
      charge?.(tookMs);
      if (waiting.count === 0) return;
      if (nowMs - turnBeganMs < turnMs) startNext(turnBeganMs);
      else schedule();
    });
  }

  return {
    get waitingCount() {
      return waiting.count;
    },
    add(request) {
      schedule();
      if (request.isLight && waiting.count === 0 && together.length < groupMax()) together.push(request);
      else waiting.add(request);
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
  readonly requests: StartRequest[];
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

  add(request: StartRequest): void {
    const path = request.senderOf();
    const name = path.join('\n');
    let sender = this.#senders.get(name);
    if (sender === undefined) {
      sender = { name, uses: path.map((part, depth) => this.#useOf(part, depth)), requests: [] };
      this.#senders.set(name, sender);
      if (this.#nearest.length < NEAREST_MAX) this.#nearest.push(sender);
    }
    sender.requests.push(request);
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

  /**
   * The next starts, each of the sender who has had least of the nearest by then, `costMs` counting for each, and the uses
   * that it is to be added to: one that is not light is alone.
   */
  take(max: number, costMs: number): { start(): void; uses: readonly Use[] }[] {
    const taken: { start(): void; uses: readonly Use[] }[] = [];
    while (taken.length < max) {
      const sender = this.#next();
      const request = sender?.requests[0];
      if (sender === undefined || request === undefined || (taken.length > 0 && !request.isLight)) break;
      this.#served(sender);
      for (const use of sender.uses) use.tookMs += costMs;
      taken.push({ start: () => request.start(), uses: sender.uses });
      if (!request.isLight) break;
    }
    return taken;
  }

  #next(): Sender | undefined {
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
    return next;
  }

  /** Its first start has been taken: it is the last among those who have had as much. */
  #served(sender: Sender): void {
    const { name, requests } = sender;
    requests.shift();
    this.#count--;
    this.#senders.delete(name);
    this.#nearest.splice(this.#nearest.indexOf(sender), 1);
    if (requests.length === 0) return;
    this.#senders.set(name, sender);
    this.#nearest.push(sender);
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
    const known = this.#uses[depth].get(name);
    if (known !== undefined) return known;
    const use: Use = { tookMs: 0 };
    // It is a part of a head, which would be kept with it.
    this.#uses[depth].set(ownText(name), use);
    return use;
  }
}

/** The most that a name of the sender has had; among those who share it the mean of all names counts. */
function usedBy({ uses }: Sender): number {
  let most = 0;
  let sum = 0;
  for (const { tookMs } of uses) {
    most = Math.max(most, tookMs);
    sum += tookMs;
  }
  return most + sum / uses.length / 1000;
}
