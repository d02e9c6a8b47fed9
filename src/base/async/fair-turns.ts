// Long computations of several owners on one thread: one short step at a time, and between two steps whatever else is
// ready (requests of others, timers, sockets). Owners take turns, so that many computations of one owner delay another
// owner's by one step each time and not by all of them, whatever they are. Within an owner's turns its signers take turns,
// and within a signer's its kinds of work; of one kind the computations are done one after the other: only the first of
// them has memory for its result.
import { must } from '../assert.ts';
import { nextTurn } from './next-turn.ts';
import { createShortTurns } from './short-turns.ts';
import type { Steps } from './steps.ts';
import { createTenantQueue } from './tenant-queue.ts';

export interface FairTurns {
  /** Does all steps, each when it is the owner's turn. Rejects with what a step throws. */
  finish<T>(turn: TurnOf, steps: Steps<T>): Promise<T>;
  /** Resolves when it is the owner's turn: the caller then has the thread for one short step. */
  take(turn: TurnOf): Promise<void>;
  /**
   * Before short work, of which much may be ready at once (short-turns.ts): undefined while this turn of the event loop has room
   * for it, and where there is no clock.
   */
  join(turn: TurnOf): Promise<void> | undefined;
  /**
   * For a computation that takes turns one by one and keeps what it has read meanwhile. Resolves when few of this kind are under
   * way, of this owner and of all; when it is over, the function that it gives is called.
   */
  begin(turn: TurnOf): Promise<() => void>;
}

export interface TurnOf {
  /** undefined: all whom nobody knows, together. */
  readonly owner: string | undefined;
  /** Which of the owner's keys, where they are told apart (`Tenant` in types/tenant.ts). */
  readonly signer?: string | undefined;
  /** The kind of work, as `listings`. */
  readonly work: string;
}

/** Does one step; true when there is none left. */
type Step = () => boolean;

export interface FairTurnsOptions {
  /** Lets whatever else is ready run: one turn of the event loop. */
  pause?(): Promise<void>;
  /** Where it is given, a step that was long is followed by a rest as long as the step. */
  clock?: { monotonicMs(): number; sleep(ms: number): Promise<void> };
}

/** A longer step cannot be divided (a command that decides on thousands of rows). */
const LONG_STEP_MS = 40;
const REST_MAX_MS = 1000;
/**
 * Computations of a kind that have begun and keep what they have read: of all owners, and of one, where one reads while the other
 * has its turn.
 */
const BEGUN_MAX = 8;
const BEGUN_OF_OWNER_MAX = 2;

export function createFairTurns({ pause = nextTurn, clock }: FairTurnsOptions = {}): FairTurns {
  /** By owner, of each by signer, and of these by kind of work, in the order of their turns. */
  const owners = new Map<string | undefined, Map<string | undefined, Map<string, Step[]>>>();
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    for (let next = first(owners); next !== undefined; next = first(owners)) {
      const [owner, signers] = next;
      const [signer, works] = must(first(signers), 'an owner that waits has signers');
      const [work, queue] = must(first(works), 'a signer that waits has work');
      const step = measure();
      if (queue[0]?.() === true) queue.shift();
      await pause();
      if (clock !== undefined && step.tookMs > LONG_STEP_MS)
        await clock.sleep(Math.min(step.tookMs, REST_MAX_MS));
      // Behind all that have come meanwhile.
      moveBack(works, work, queue.length > 0);
      moveBack(signers, signer, works.size > 0);
      moveBack(owners, owner, signers.size > 0);
    }
    isRunning = false;
  }

  /**
   * What the step takes, with what goes on behind its promise. Others need several turns of the loop for one request: a rest
   * after a long step leaves them half of the time.
   */
  function measure(): { tookMs: number } {
    const step = { tookMs: 0 };
    if (clock === undefined) return step;
    const begunMs = clock.monotonicMs();
    // Runs when all promises that the step has resolved are done with, and before anybody else's callbacks.
    process.nextTick(() => {
      step.tookMs = clock.monotonicMs() - begunMs;
    });
    return step;
  }

  function enqueue({ owner, signer, work }: TurnOf, step: Step): void {
    const signers = owners.get(owner) ?? new Map<string | undefined, Map<string, Step[]>>();
    owners.set(owner, signers);
    const works = signers.get(signer) ?? new Map<string, Step[]>();
    signers.set(signer, works);
    const queue = works.get(work);
    if (queue === undefined) works.set(work, [step]);
    else queue.push(step);
    if (!isRunning) void run();
  }

  return {
    begin: createBegun(),
    join: clock === undefined ? () => undefined : createShortTurns({ clock, pause }),
    finish: (turn, steps) =>
      new Promise((resolve, reject) => {
        enqueue(turn, () => {
          try {
            const step = steps.next();
            if (step.done !== true) return false;
            resolve(step.value);
          } catch (error) {
            reject(error);
          }
          return true;
        });
      }),
    take: (turn) =>
      new Promise((resolve) => {
        enqueue(turn, () => {
          resolve();
          return true;
        });
      }),
  };
}

function createBegun(): FairTurns['begin'] {
  /** By kind of work, and by owner and kind. */
  const begun = new Map<string, number>();
  const waiting = createTenantQueue<{ work: string; name: string; resolve(end: () => void): void }>();
  const countOf = (name: string) => begun.get(name) ?? 0;

  function add(names: readonly string[], change: 1 | -1): void {
    for (const name of names) {
      const count = countOf(name) + change;
      if (count === 0) begun.delete(name);
      else begun.set(name, count);
    }
  }

  function letIn(): void {
    for (;;) {
      const next = waiting.next(
        ({ work, name }) => countOf(work) < BEGUN_MAX && countOf(name) < BEGUN_OF_OWNER_MAX,
      );
      if (next === undefined) return;
      const names = [next.work, next.name];
      add(names, 1);
      next.resolve(() => {
        add(names, -1);
        letIn();
      });
    }
  }

  return ({ owner = '', work }) =>
    new Promise((resolve) => {
      waiting.add([owner, work], { work, name: `${owner}\n${work}`, resolve });
      letIn();
    });
}

/** Behind the others, or out where it does not stay. */
function moveBack<K, V>(map: Map<K, V>, key: K, stays: boolean): void {
  const value = map.get(key) as V;
  map.delete(key);
  if (stays) map.set(key, value);
}

function first<K, V>(map: ReadonlyMap<K, V>): [K, V] | undefined {
  return map.entries().next().value;
}
