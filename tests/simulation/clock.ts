// Hosts and processes of the simulated world, and what time it is to them. A host has clocks that drift, step and stand
// still; a process runs on one host, may be stopped and continued, and ends. When it has ended none of its events runs
// any more, so no promise that it waits for ever settles: what it would have done next never happens.
import type { ClockPort, RandomPort } from '../../src/ports/clock.ts';
import type { Chance } from './chance.ts';
import type { EventOwner, Scheduler, SimulatedEvent } from './scheduler.ts';

/** Protocol 1.1: less than 5 %. */
const DRIFT_MAX = 0.049;
/** As old a call may be that is evaluated, and more. */
const STEP_FELT_MS = 20_000;
const WORLD_START_MS = Date.parse('2026-01-01T00:00:00Z');

/** By world: what has passed beside the time of its events. */
const PASSED_MS = new WeakMap<Scheduler, number>();

export class SimulatedHost {
  readonly name: string;
  readonly scheduler: Scheduler;
  readonly #processes = new Set<SimulatedProcess>();
  /** Monotonic ms for each ms of true time. */
  readonly #rate: number;
  #wallShiftMs: number;
  #suspendedAtMs: number | undefined;
  #suspendedMs = 0;
  /** True times at which it was suspended and woken, and at which its wall clock was set. */
  readonly #sleeps: { fromMs: number; toMs: number }[] = [];
  readonly #stepsMs: number[] = [];

  constructor(name: string, options: { scheduler: Scheduler; chance: Chance }) {
    const { scheduler, chance } = options;
    this.name = name;
    this.scheduler = scheduler;
    this.#rate = 1 + chance.between(-DRIFT_MAX, DRIFT_MAX);
    this.#wallShiftMs = chance.between(-400, 400);
  }

  /** What the wall clock should say. */
  static trueWallMs(scheduler: Scheduler): number {
    return WORLD_START_MS + scheduler.nowMs + (PASSED_MS.get(scheduler) ?? 0);
  }

  /** As if so much time went by on all hosts at once, in which nothing happened. */
  static letTimePass(scheduler: Scheduler, ms: number): void {
    PASSED_MS.set(scheduler, (PASSED_MS.get(scheduler) ?? 0) + ms);
  }

  get wallMs(): number {
    return Math.floor(SimulatedHost.trueWallMs(this.scheduler) + this.#wallShiftMs);
  }

  /** How far the wall clock is off. */
  get wallErrorMs(): number {
    return this.#wallShiftMs;
  }

  get monotonicMs(): number {
    const nowMs = this.#suspendedAtMs ?? this.scheduler.nowMs;
    return (nowMs - this.#suspendedMs) * this.#rate;
  }

  get isSuspended(): boolean {
    return this.#suspendedAtMs !== undefined;
  }

  /** It slept while its wall clock was set, or shortly before or after: neither clock shows for how long. */
  get wasTimeLost(): boolean {
    return this.#sleeps.some(({ fromMs, toMs }) =>
      this.#stepsMs.some((atMs) => atMs > fromMs - STEP_FELT_MS && atMs < toMs + STEP_FELT_MS),
    );
  }

  /** True time until the monotonic clock has gone on by `ms`, if it is not stopped meanwhile. */
  trueMs(ms: number): number {
    return ms / this.#rate;
  }

  /** As an operator or a bad time server sets it. */
  stepWall(ms: number): void {
    this.#wallShiftMs += ms;
    this.#stepsMs.push(this.scheduler.nowMs);
  }

  /** As a virtual machine is stopped: nothing runs, and the monotonic clock stands still. */
  suspend(): void {
    this.#suspendedAtMs ??= this.scheduler.nowMs;
  }

  wake(): void {
    if (this.#suspendedAtMs === undefined) return;
    const { nowMs } = this.scheduler;
    this.#suspendedMs += nowMs - this.#suspendedAtMs;
    this.#sleeps.push({ fromMs: this.#suspendedAtMs, toMs: nowMs });
    this.#suspendedAtMs = undefined;
    for (const process of this.#processes) process.continueHeld();
  }

  /** Called by processes. */
  add(process: SimulatedProcess): void {
    this.#processes.add(process);
  }
  remove(process: SimulatedProcess): void {
    this.#processes.delete(process);
  }
}

export interface ProcessOptions {
  host: SimulatedHost;
  chance: Chance;
}

export class SimulatedProcess implements EventOwner {
  readonly name: string;
  readonly host: SimulatedHost;
  readonly clock: ClockPort;
  readonly random: RandomPort;
  readonly #held: SimulatedEvent[] = [];
  readonly #onEnd: (() => void)[] = [];
  /** Of sleepers that a signal may wake. */
  readonly #onAborts = new Map<() => void, AbortSignal>();
  #isStopped = false;
  #hasEnded = false;

  constructor(name: string, { host, chance }: ProcessOptions) {
    this.name = name;
    this.host = host;
    this.random = chance.fork('random');
    // Its origin is nobody's business: a process that takes another's times for its own must be found out.
    const originMs = host.monotonicMs - chance.between(0, chance.happens(0.5) ? 10 : 1e7);
    this.clock = {
      wallMs: () => host.wallMs,
      monotonicMs: () => host.monotonicMs - originMs,
      sleep: (ms, signal) => this.#sleep(ms, signal),
    };
    host.add(this);
    host.scheduler.atEnd(() => this.kill());
  }

  get isAlive(): boolean {
    return !this.#hasEnded;
  }

  get isStopped(): boolean {
    return this.#isStopped || this.host.isSuspended;
  }

  /** An event of this process: held while it is stopped, dropped when it has ended. */
  schedule(delayMs: number, name: string, run: () => unknown): SimulatedEvent {
    return this.host.scheduler.after(delayMs, { name: `${this.name} ${name}`, owner: this, run });
  }

  /** What the ports of this process answer with: settles in an event of its own. */
  later<T>(delayMs: number, name: string, make: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.schedule(delayMs, name, () => {
        try {
          resolve(make());
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  /** As SIGSTOP. */
  stop(): void {
    this.#isStopped = true;
  }

  /** As SIGCONT: what was due runs now, in its order. */
  continue(): void {
    this.#isStopped = false;
    this.continueHeld();
  }

  continueHeld(): void {
    if (this.isStopped) return;
    for (const { name, run } of this.#held.splice(0))
      this.host.scheduler.after(0, { name, owner: this, run });
  }

  /** As SIGKILL: at the end of this step nothing of it runs any more. */
  kill(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#held.length = 0;
    this.host.remove(this);
    // Node keeps a signal made of others, and all that listens to it, for as long as anybody listens.
    for (const [onAbort, signal] of this.#onAborts) signal.removeEventListener('abort', onAbort);
    this.#onAborts.clear();
    for (const listener of this.#onEnd) listener();
  }

  /** For the rest of the world. */
  onEnd(listener: () => void): void {
    this.#onEnd.push(listener);
  }

  admit(event: SimulatedEvent): 'run' | 'hold' | 'drop' {
    if (this.#hasEnded) return 'drop';
    if (!this.isStopped) return 'run';
    this.#held.push(event);
    return 'hold';
  }

  #sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    const { host } = this;
    const untilMs = host.monotonicMs + ms;
    return new Promise((resolve) => {
      let timer: SimulatedEvent;
      const wait = () => {
        // Rounded up: a timer never fires early, and a sleeper that looks at its clock finds its time passed.
        const delayMs = host.trueMs(untilMs - host.monotonicMs) + 1e-6;
        timer = this.schedule(delayMs, 'wakes', () => {
          // The clock may have stood still meanwhile.
          if (host.monotonicMs < untilMs) return wait();
          signal?.removeEventListener('abort', onAbort);
          this.#onAborts.delete(onAbort);
          resolve();
        });
      };
      const onAbort = () => {
        timer.isCancelled = true;
        this.#onAborts.delete(onAbort);
        resolve();
      };
      if (signal !== undefined) {
        signal.addEventListener('abort', onAbort, { once: true });
        this.#onAborts.set(onAbort, signal);
      }
      wait();
    });
  }
}
