// Virtual time: one queue of events for the whole simulated world. Between two events everything runs that waits for
// neither, so an event is one step: the same seed gives the same steps, and the same trace. It knows no processes but as
// owners that may hold back or give up their events.

/** Who an event belongs to. */
export interface EventOwner {
  /** `hold`: it is kept by the owner, who schedules it again. `drop`: it never runs. */
  admit(event: SimulatedEvent): 'run' | 'hold' | 'drop';
}

/** What an event may return that has woken nobody: no promise is settled by it, so nothing has to come to rest. */
export const AT_REST = Symbol('at rest');

export interface SimulatedEvent {
  readonly atMs: number;
  readonly order: number;
  readonly name: string;
  readonly owner: EventOwner | undefined;
  readonly run: () => unknown;
  isCancelled: boolean;
}

/** What the program under test, or the world, did wrong; ends the seed. */
export class SimulationFailure extends Error {
  override name = 'SimulationFailure';
}

const TRACE_LINES_KEPT = 400;

/** Written out when somebody reads it: there are as many as there are steps. */
interface TraceLine {
  atMs: number;
  text: string;
}

export class Scheduler {
  #nowMs = 0;
  #stepCount = 0;
  #order = 0;
  #hash = 0x811c9dc5;
  readonly #heap: SimulatedEvent[] = [];
  readonly #lines: TraceLine[] = [];
  readonly #afterStep: (() => void)[] = [];
  readonly #atEnd: (() => void)[] = [];
  #failure: Error | undefined;
  /** Given every line of the trace. */
  onTrace: ((line: string) => void) | undefined;

  /** True time, ms since the world began. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Steps so far: the finest order of what happens. */
  get stepCount(): number {
    return this.#stepCount;
  }

  /** Of everything that was traced so far: equal for equal runs. */
  get traceHash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, '0');
  }

  /** The newest lines of the trace. */
  get traceTail(): readonly string[] {
    return this.#lines.map(show);
  }

  /** Runs `run` as a step of its own. */
  after(
    delayMs: number,
    event: { name: string; owner?: EventOwner | undefined; run(): unknown },
  ): SimulatedEvent {
    const scheduled: SimulatedEvent = {
      atMs: this.#nowMs + Math.max(0, delayMs),
      order: this.#order++,
      name: event.name,
      owner: event.owner,
      run: event.run,
      isCancelled: false,
    };
    this.#push(scheduled);
    return scheduled;
  }

  /** Resolves in a step after `delayMs`; for the world's own programs. */
  sleep(delayMs: number, name = 'world'): Promise<void> {
    return new Promise((resolve) => {
      this.after(delayMs, { name, run: resolve });
    });
  }

  /** Called when each step has come to rest. */
  afterEachStep(check: () => void): void {
    this.#afterStep.push(check);
  }

  /** Called when nothing will run any more. */
  atEnd(release: () => void): void {
    this.#atEnd.push(release);
  }

  end(): void {
    for (const release of this.#atEnd.splice(0)) release();
  }

  /** Ends the run with this failure, at the end of the step. The first one counts. */
  fail(error: unknown): void {
    this.#failure ??= error instanceof Error ? error : new Error(String(error));
  }

  /** Adds to the trace, and to its hash. */
  trace(text: string): void {
    const line = { atMs: this.#nowMs, text };
    let hash = Math.imul(this.#hash ^ Math.round(line.atMs * 1000), 0x01000193);
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    this.#hash = hash;
    this.#lines.push(line);
    if (this.#lines.length > 2 * TRACE_LINES_KEPT) this.#lines.splice(0, TRACE_LINES_KEPT);
    this.onTrace?.(show(line));
  }

  /** Runs steps until `isDone`, or until time has passed `untilMs`; false then. Throws the first failure. */
  async run(isDone: () => boolean, untilMs: number): Promise<boolean> {
    await settle();
    while (this.#failure === undefined && !isDone()) {
      const event = this.#pop();
      if (event === undefined || event.atMs > untilMs) {
        if (event !== undefined) this.#push(event);
        this.#nowMs = Math.max(this.#nowMs, untilMs);
        break;
      }
      if (event.isCancelled) continue;
      this.#nowMs = Math.max(this.#nowMs, event.atMs);
      const admission = event.owner?.admit(event) ?? 'run';
      if (admission !== 'run') continue;
      this.#stepCount++;
      this.trace(event.name);
      await this.#step(event);
    }
    if (this.#failure !== undefined) throw this.#failure;
    return isDone();
  }

  async #step(event: SimulatedEvent): Promise<void> {
    try {
      if (event.run() !== AT_REST) await settle();
      for (const check of this.#afterStep) check();
    } catch (error) {
      this.fail(error);
    }
  }

  #push(event: SimulatedEvent): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (!isBefore(event, heap[parent] as SimulatedEvent)) break;
      heap[at] = heap[parent] as SimulatedEvent;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): SimulatedEvent | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (
        child + 1 < heap.length &&
        isBefore(heap[child + 1] as SimulatedEvent, heap[child] as SimulatedEvent)
      )
        child++;
      if (!isBefore(heap[child] as SimulatedEvent, last)) break;
      heap[at] = heap[child] as SimulatedEvent;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function show({ atMs, text }: TraceLine): string {
  return `${atMs.toFixed(3)} ${text}`;
}

function isBefore(one: SimulatedEvent, other: SimulatedEvent): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}

/** All promises that can settle have settled, and what they let run has run. */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
