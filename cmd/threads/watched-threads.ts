// Threads of a single node as the main thread has them: started, asked once a second how they stand, and ended. A thread that
// ends by itself, or answers nothing for a minute, ends the process: requests that it had would hang.
import { fileURLToPath } from 'node:url';
import { type TransferListItem, Worker } from 'node:worker_threads';
import type { MetricFigures } from '../../src/platform/telemetry/prom-telemetry.ts';
import { type CallTable, type Remote, remoteCalls } from '../../src/platform/threads/named-calls.ts';
import { createThreadLine, type LineEnd, type ThreadLine } from '../../src/platform/threads/thread-line.ts';
import type { ClockPort } from '../../src/ports/clock.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { processSettings } from '../process-settings.ts';

/** Each thread loads modules by the program's paths. */
const SOURCE_PATHS = fileURLToPath(new URL('../source-paths.ts', import.meta.url));

const nameOf = (flag: string) => flag.split('=')[0] ?? flag;

/** Names of flags that hold for all threads of the process. V8's are among them, which none may be started with. */
const OF_PROCESS: ReadonlySet<string> = new Set(
  (['server', 'gateway', 'metadata'] as const).flatMap((command) =>
    processSettings(command).flags.map(nameOf),
  ),
);

/** A thread has failed: the process ends. */
export class ThreadFailed extends Error {
  override name = 'ThreadFailed';
}

/** How a thread stands. */
export interface ThreadPulse {
  /** As LoopWatch's. */
  readonly loopHeldMs: number;
}

/** What every thread does for the main thread. */
export type WatchedCalls = CallTable & {
  readonly pulse: () => ThreadPulse;
  readonly readFigures: () => Promise<MetricFigures>;
};

export interface WatchedThread<C extends WatchedCalls> {
  readonly number: number;
  readonly worker: Worker;
  readonly line: ThreadLine;
  readonly calls: Remote<C>;
  /** Its last answer, and when it was asked for, in monotonic ms of this thread. */
  pulse: ReturnType<C['pulse']> | undefined;
  askedMs: number;
  /** Pulses in a row that it has not answered. */
  missedCount: number;
  isGone: boolean;
}

export interface ThreadsOptions<C extends WatchedCalls> {
  /** Of each thread, as debuggers and `ps` show it. */
  readonly role: 'gateway' | 'metadata';
  readonly count: number;
  readonly entry: URL;
  readonly callNames: readonly (keyof C & string)[];
  readonly clock: ClockPort;
  /** With what the thread of this number, from 1, is started, beside what is asked of it. */
  startsWith?(number: number): { data: unknown; moved: TransferListItem[] };
  /** What the main thread answers on the line of each. */
  serve(line: ThreadLine): void;
  /** A thread has ended by itself, or hangs. */
  onFailed(error: Error): void;
}

export class WatchedThreads<C extends WatchedCalls> {
  readonly threads: readonly WatchedThread<C>[];
  readonly #options: ThreadsOptions<C>;
  readonly #stopping = new AbortController();

  constructor(options: ThreadsOptions<C>) {
    this.#options = options;
    this.threads = Array.from({ length: options.count }, (_, index) => this.#start(index + 1));
  }

  #start(number: number): WatchedThread<C> {
    const { role, entry, clock, callNames, serve, startsWith } = this.#options;
    const { data, moved } = startsWith?.(number) ?? { data: undefined, moved: [] };
    const worker = new Worker(entry, {
      name: `${role}-${number}`,
      workerData: data,
      transferList: moved,
      execArgv: [
        ...process.execArgv.filter((flag) => !OF_PROCESS.has(nameOf(flag))),
        '--import',
        SOURCE_PATHS,
      ],
    });
    const failed = (why: string, cause?: unknown) => this.#fail(thread, why, cause);
    const line = createThreadLine(worker as unknown as LineEnd, (error) =>
      failed('cannot be understood', error),
    );
    serve(line);
    const thread: WatchedThread<C> = {
      number,
      worker,
      line,
      calls: remoteCalls<C>(line, callNames),
      pulse: undefined,
      askedMs: clock.monotonicMs(),
      missedCount: 0,
      isGone: false,
    };
    worker.on('error', (error) => failed('has failed', error));
    worker.on('exit', (code) => failed(`has ended with ${code}`));
    return thread;
  }

  #fail(thread: WatchedThread<C>, why: string, cause?: unknown): void {
    if (thread.isGone) return;
    thread.isGone = true;
    const name = `the ${this.#options.role} thread ${thread.number}`;
    thread.line.end(`${name} is gone`);
    if (this.#stopping.signal.aborted) return;
    this.#options.onFailed(new ThreadFailed(`${name} ${why}`, { cause }));
  }

  /** Of a thread that is gone nothing is waited for: it does nothing any more, and the process ends. */
  async tellAll(tell: (thread: WatchedThread<C>) => Promise<unknown>): Promise<void> {
    const living = this.threads.filter(({ isGone }) => !isGone);
    await Promise.all(
      living.map((thread) =>
        tell(thread).catch((error) => {
          if (!thread.isGone) throw error;
        }),
      ),
    );
  }

  /** Metrics of each. */
  async readFigures(): Promise<MetricFigures[]> {
    const figures: MetricFigures[] = [];
    await this.tellAll(async ({ calls }) => {
      figures.push(await (calls as Remote<WatchedCalls>).readFigures());
    });
    return figures;
  }

  /** The longest that one of them was held, as LoopWatch's. */
  loopHeldMs(): number {
    return Math.max(0, ...this.threads.map(({ pulse }) => pulse?.loopHeldMs ?? 0));
  }

  /** From here on they are asked how they stand. */
  async watch(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      for (const thread of this.threads) {
        // In pulses, not in time: a machine that stood still has asked nobody.
        if (++thread.missedCount === 1) void this.#feel(thread);
        else if (thread.missedCount > LIMITS.threadPulsesMissedMax) this.#fail(thread, 'answers nothing');
      }
      await this.#options.clock.sleep(LIMITS.threadPulseMs, signal);
    }
  }

  async #feel(thread: WatchedThread<C>): Promise<void> {
    const askedMs = this.#options.clock.monotonicMs();
    const pulse = await (thread.calls as Remote<WatchedCalls>).pulse().catch(() => undefined);
    if (pulse === undefined) return;
    thread.askedMs = askedMs;
    thread.pulse = pulse as ReturnType<C['pulse']>;
    thread.missedCount = 0;
  }

  /** Asks each to end by `end`, for `timeoutMs` and LIMITS.threadEndMaxMs at most, and ends all threads. */
  async close(end: (calls: Remote<C>) => Promise<unknown>, timeoutMs = 0): Promise<void> {
    this.#stopping.abort();
    const ended = new AbortController();
    const done = this.tellAll(({ calls }) => end(calls)).finally(() => ended.abort());
    const { clock } = this.#options;
    await Promise.race([done, clock.sleep(timeoutMs + LIMITS.threadEndMaxMs, ended.signal)]);
    await Promise.all(this.threads.map(({ worker }) => worker.terminate()));
  }
}
