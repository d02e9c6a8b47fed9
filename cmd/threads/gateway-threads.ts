// The gateway threads of a single node, as the main thread has them: started, told what changes, asked how they stand, and
// drained. A thread that ends by itself, or answers nothing for a minute, ends the process: requests that it had would hang.
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type { Config } from '../../src/config/schema.ts';
import type { Certificate } from '../../src/gateway/http/listener.ts';
import { codecWorkers } from '../../src/platform/codec/piscina-codec-pool.ts';
import type { MasterKeyList } from '../../src/platform/memory/memory-keyring.ts';
import type { MetricFigures } from '../../src/platform/telemetry/prom-telemetry.ts';
import { type Remote, remoteCalls } from '../../src/platform/threads/named-calls.ts';
import { createThreadLine, type LineEnd, type ThreadLine } from '../../src/platform/threads/thread-line.ts';
import type { ClockPort } from '../../src/ports/clock.ts';
import type { IdentityChange } from '../../src/ports/identity-feed.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { THREAD_CALLS, type ThreadCalls, type ThreadStart } from './thread-calls.ts';

/** Each thread loads the modules of a gateway. */
const SOURCE_PATHS = fileURLToPath(new URL('../source-paths.ts', import.meta.url));

/** A gateway thread has failed: the process ends. */
export class ThreadFailed extends Error {
  override name = 'ThreadFailed';
}

interface GatewayThread {
  readonly number: number;
  readonly worker: Worker;
  readonly line: ThreadLine;
  readonly calls: Remote<ThreadCalls>;
  /** No request under way began before it. Monotonic ms of this thread. */
  oldestMs: number;
  hasRoom: boolean;
  loopHeldMs: number;
  /** Pulses in a row that it has not answered. */
  missedCount: number;
  isGone: boolean;
}

export class GatewayThreads {
  readonly #entry: URL;
  readonly #clock: ClockPort;
  readonly #onFailed: (error: Error) => void;
  readonly #threads: readonly GatewayThread[];
  readonly #stopping = new AbortController();
  /** By which threads wrap. */
  #activeKeyId = '';

  /**
   * Starts `count` threads, which serve nothing yet. `serve`: what the main thread answers on the line of each. `onFailed`: a
   * thread has ended by itself, or hangs.
   */
  constructor(options: {
    count: number;
    clock: ClockPort;
    serve(line: ThreadLine): void;
    onFailed(error: Error): void;
    /** Of tests; default gateway-thread.ts. */
    entry?: URL;
  }) {
    this.#entry = options.entry ?? new URL('./gateway-thread.ts', import.meta.url);
    this.#clock = options.clock;
    this.#onFailed = options.onFailed;
    this.#threads = Array.from({ length: options.count }, (_, index) =>
      this.#start(index + 1, options.serve),
    );
  }

  #start(number: number, serve: (line: ThreadLine) => void): GatewayThread {
    const name = `gateway-${number}`;
    const worker = new Worker(this.#entry, {
      name,
      execArgv: [...process.execArgv, '--import', SOURCE_PATHS],
    });
    const failed = (why: string, cause?: unknown) => this.#fail(thread, why, cause);
    const line = createThreadLine(worker as unknown as LineEnd, (error) =>
      failed('cannot be understood', error),
    );
    serve(line);
    const thread: GatewayThread = {
      number,
      worker,
      line,
      calls: remoteCalls<ThreadCalls>(line, THREAD_CALLS),
      oldestMs: this.#clock.monotonicMs(),
      hasRoom: true,
      loopHeldMs: 0,
      missedCount: 0,
      isGone: false,
    };
    worker.on('error', (error) => failed('has failed', error));
    worker.on('exit', (code) => failed(`has ended with ${code}`));
    return thread;
  }

  #fail(thread: GatewayThread, why: string, cause?: unknown): void {
    if (thread.isGone) return;
    thread.isGone = true;
    thread.line.end(`the gateway thread ${thread.number} is gone`);
    if (this.#stopping.signal.aborted) return;
    this.#onFailed(new ThreadFailed(`the gateway thread ${thread.number} ${why}`, { cause }));
  }

  /** Resolves with the port when all of them take connections. Rejects with Refusal when the address cannot be had. */
  async open(config: Config, start: Omit<ThreadStart, 'config' | 'threads' | 'number'>): Promise<number> {
    this.#activeKeyId = start.masterKeys.activeKeyId;
    const [first, ...others] = this.#threads;
    const threads = this.#threads.length;
    const own = shareOfSettings(config, threads);
    const open = (thread: GatewayThread | undefined, port: number) =>
      thread?.calls.open({
        ...start,
        threads,
        number: thread.number,
        config: { ...own, listen: { ...own.listen, port } },
      });
    const port = (await open(first, own.listen.port)) ?? own.listen.port;
    await Promise.all(others.map((thread) => open(thread, port)));
    void this.#watch();
    return port;
  }

  /** What /health/ready says. */
  setReady(isReady: boolean): Promise<void> {
    return this.#tellAll(({ calls }) => calls.setReady(isReady));
  }

  /** Of new connections. */
  setCertificate({ cert, key }: Certificate): Promise<void> {
    return this.#tellAll(({ calls }) => calls.setCertificate({ cert, key }));
  }

  /** Resolves when no thread serves anything older. */
  takeIdentities(changes: readonly IdentityChange[]): Promise<void> {
    return this.#tellAll(({ calls }) => calls.takeIdentities(changes));
  }

  /**
   * Resolves when all threads have just these keys. Each knows all of them before the first one wraps by a new one, so that it
   * can open what others have wrapped; who began earlier may have wrapped by the one before.
   */
  async takeMasterKeys(keys: MasterKeyList): Promise<void> {
    const activeBefore = this.#activeKeyId;
    this.#activeKeyId = keys.activeKeyId;
    if (keys.activeKeyId !== activeBefore && keys.keys.some(([keyId]) => keyId === activeBefore))
      await this.#tellAll(({ calls }) => calls.takeMasterKeys({ ...keys, activeKeyId: activeBefore }));
    await this.#tellAll(({ calls }) => calls.takeMasterKeys(keys));
  }

  /** Of a thread that is gone nothing is waited for: it serves nobody, and the process ends. */
  async #tellAll(tell: (thread: GatewayThread) => Promise<unknown>): Promise<void> {
    const living = this.#threads.filter(({ isGone }) => !isGone);
    await Promise.all(
      living.map((thread) =>
        tell(thread).catch((error) => {
          if (!thread.isGone) throw error;
        }),
      ),
    );
  }

  async readFigures(): Promise<MetricFigures[]> {
    const figures: MetricFigures[] = [];
    await this.#tellAll(async ({ calls }) => figures.push(await calls.readFigures()));
    return figures;
  }

  /** No request under way began before it, of all threads: as they said within the last second, or two. */
  oldestRequestMs(): number {
    return Math.min(...this.#threads.map(({ oldestMs }) => oldestMs));
  }

  /** False while all of them refuse requests for want of room. */
  hasRoom(): boolean {
    return this.#threads.some(({ hasRoom }) => hasRoom);
  }

  /** The longest that one of them was held, as LoopWatch's. */
  loopHeldMs(): number {
    return Math.max(...this.#threads.map(({ loopHeldMs }) => loopHeldMs));
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      for (const thread of this.#threads) {
        // In pulses, not in time: a machine that stood still has asked nobody.
        if (++thread.missedCount === 1) void this.#feel(thread);
        else if (thread.missedCount > LIMITS.threadPulsesMissedMax) this.#fail(thread, 'answers nothing');
      }
      await this.#clock.sleep(LIMITS.threadPulseMs, signal);
    }
  }

  async #feel(thread: GatewayThread): Promise<void> {
    const askedMs = this.#clock.monotonicMs();
    const pulse = await thread.calls.pulse().catch(() => undefined);
    if (pulse === undefined) return;
    // What it has begun since it was asked is younger.
    thread.oldestMs = askedMs - (pulse.oldestRequestAgeMs ?? 0);
    thread.hasRoom = pulse.hasRoom;
    thread.loopHeldMs = pulse.loopHeldMs;
    thread.missedCount = 0;
  }

  /** Lets requests end for `timeoutMs` at most, and ends all threads. */
  async close(timeoutMs: number): Promise<void> {
    this.#stopping.abort();
    const ended = new AbortController();
    const drained = this.#tellAll(({ calls }) => calls.drain(timeoutMs)).finally(() => ended.abort());
    await Promise.race([drained, this.#clock.sleep(timeoutMs + LIMITS.threadEndMaxMs, ended.signal)]);
    await Promise.all(this.#threads.map(({ worker }) => worker.terminate()));
  }
}

/** What is divided among gateway threads: the rest of it is by types/thread-share.ts. */
function shareOfSettings(config: Config, threads: number): Config {
  const { codec, memory } = config;
  const workers = codecWorkers(codec.workers);
  return {
    ...config,
    memory: { bodyBufferBytes: Math.floor(memory.bodyBufferBytes / threads) },
    codec: { workers: workers === 0 ? 0 : Math.max(1, Math.floor(workers / threads)) },
  };
}
