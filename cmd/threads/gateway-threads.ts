// The gateway threads of a single node, as the main thread has them: started, told what changes, and drained. How threads are
// watched is watched-threads.ts.
import type { MessagePort } from 'node:worker_threads';
import type { Config } from '../../src/config/schema.ts';
import type { Certificate } from '../../src/gateway/http/listener.ts';
import { codecWorkers } from '../../src/platform/codec/piscina-codec-pool.ts';
import type { MasterKeyList } from '../../src/platform/memory/memory-keyring.ts';
import type { MetricFigures } from '../../src/platform/telemetry/prom-telemetry.ts';
import type { ThreadLine } from '../../src/platform/threads/thread-line.ts';
import type { ClockPort } from '../../src/ports/clock.ts';
import type { IdentityChange } from '../../src/ports/identity-feed.ts';
import { THREAD_CALLS, type ThreadCalls, type ThreadStart } from './thread-calls.ts';
import { type WatchedThread, WatchedThreads } from './watched-threads.ts';

/** With what a gateway thread is started, beside what `open` brings. */
export interface GatewayThreadData {
  /** Lines to the metadata threads, in their order; none: the main thread has the shards. */
  readonly metadataPorts: readonly MessagePort[];
}

export class GatewayThreads {
  readonly #watched: WatchedThreads<ThreadCalls>;
  /** By which threads wrap. */
  #activeKeyId = '';

  /**
   * Starts `count` threads, which serve nothing yet. `serve`: what the main thread answers on the line of each. `onFailed`: a
   * thread has ended by itself, or hangs. `metadataPorts`: of the thread of this number, from 1.
   */
  constructor({
    count,
    clock,
    serve,
    onFailed,
    metadataPorts = () => [],
    entry = new URL('./gateway-thread.ts', import.meta.url),
  }: {
    count: number;
    clock: ClockPort;
    serve(line: ThreadLine): void;
    onFailed(error: Error): void;
    metadataPorts?: (number: number) => readonly MessagePort[];
    /** Of tests; default gateway-thread.ts. */
    entry?: URL;
  }) {
    this.#watched = new WatchedThreads<ThreadCalls>({
      role: 'gateway',
      count,
      entry,
      callNames: THREAD_CALLS,
      clock,
      startsWith(number) {
        const ports = metadataPorts(number);
        return { data: { metadataPorts: ports } satisfies GatewayThreadData, moved: [...ports] };
      },
      serve,
      onFailed,
    });
  }

  /** Resolves with the port when all of them take connections. Rejects with Refusal when the address cannot be had. */
  async open(config: Config, start: Omit<ThreadStart, 'config' | 'threads' | 'number'>): Promise<number> {
    this.#activeKeyId = start.masterKeys.activeKeyId;
    const [first, ...others] = this.#watched.threads;
    const threads = this.#watched.threads.length;
    const own = shareOfSettings(config, threads);
    const open = (thread: WatchedThread<ThreadCalls> | undefined, port: number) =>
      thread?.calls.open({
        ...start,
        threads,
        number: thread.number,
        config: { ...own, listen: { ...own.listen, port } },
      });
    const port = (await open(first, own.listen.port)) ?? own.listen.port;
    await Promise.all(others.map((thread) => open(thread, port)));
    void this.#watched.watch();
    return port;
  }

  /** What /health/ready says. */
  setReady(isReady: boolean): Promise<void> {
    return this.#watched.tellAll(({ calls }) => calls.setReady(isReady));
  }

  /** Of new connections. */
  setCertificate({ cert, key }: Certificate): Promise<void> {
    return this.#watched.tellAll(({ calls }) => calls.setCertificate({ cert, key }));
  }

  /** Resolves when no thread serves anything older. */
  takeIdentities(changes: readonly IdentityChange[]): Promise<void> {
    return this.#watched.tellAll(({ calls }) => calls.takeIdentities(changes));
  }

  /**
   * Resolves when all threads have just these keys. Each knows all of them before the first one wraps by a new one, so that it
   * can open what others have wrapped; who began earlier may have wrapped by the one before.
   */
  async takeMasterKeys(keys: MasterKeyList): Promise<void> {
    const activeBefore = this.#activeKeyId;
    this.#activeKeyId = keys.activeKeyId;
    const take = (given: MasterKeyList) => this.#watched.tellAll(({ calls }) => calls.takeMasterKeys(given));
    if (keys.activeKeyId !== activeBefore && keys.keys.some(([keyId]) => keyId === activeBefore))
      await take({ ...keys, activeKeyId: activeBefore });
    await take(keys);
  }

  readFigures(): Promise<MetricFigures[]> {
    return this.#watched.readFigures();
  }

  /** No request under way began before it, of all threads: as they said within the last second, or two. */
  oldestRequestMs(): number {
    // What a thread has begun since it was asked is younger.
    return Math.min(
      ...this.#watched.threads.map(({ askedMs, pulse }) => askedMs - (pulse?.oldestRequestAgeMs ?? 0)),
    );
  }

  /** False while all of them refuse requests for want of room. */
  hasRoom(): boolean {
    return this.#watched.threads.some(({ pulse }) => pulse?.hasRoom ?? true);
  }

  /** The longest that one of them was held, as LoopWatch's. */
  loopHeldMs(): number {
    return this.#watched.loopHeldMs();
  }

  /** Lets requests end for `timeoutMs` at most, and ends all threads. */
  close(timeoutMs: number): Promise<void> {
    return this.#watched.close((calls) => calls.drain(timeoutMs), timeoutMs);
  }
}

/** What is divided among gateway threads: the rest of it is by types/thread-share.ts. */
export function shareOfSettings(config: Config, threads: number): Config {
  const { codec, memory } = config;
  const workers = codecWorkers(codec.workers);
  return {
    ...config,
    memory: { bodyBufferBytes: Math.floor(memory.bodyBufferBytes / threads) },
    codec: { workers: workers === 0 ? 0 : Math.max(1, Math.floor(workers / threads)) },
  };
}
