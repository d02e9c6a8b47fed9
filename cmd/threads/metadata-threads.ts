// The metadata threads of a single node, as the main thread has them: shards that are opened in threads of their own, each over a
// line to this thread and one to each gateway thread. Shard N is in thread N modulo their number.
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { must } from '../../src/base/assert.ts';
import { createEngineWorkers } from '../../src/metadata/engine/engine-workers.ts';
import type { ShardStatus } from '../../src/metadata/engine/shards.ts';
import type { MetricFigures } from '../../src/platform/telemetry/prom-telemetry.ts';
import { createLineMetadata, joinMetadata, shardsOf } from '../../src/platform/threads/metadata-line.ts';
import { serveCalls } from '../../src/platform/threads/named-calls.ts';
import type { TimeJumps } from '../../src/ports/time-jumps.ts';
import type { Worker, WorkOutcome } from '../../src/ports/worker.ts';
import type { AcceptedJumps } from '../../src/types/accepted-jumps.ts';
import type { OpenedShards } from '../open-shards.ts';
import type { OpenShards } from '../open-stores.ts';
import type { MetadataThreadData } from './metadata-thread.ts';
import { SHARDS_CALLS, type ShardsCalls, type ShardsMainCalls } from './thread-calls.ts';
import { WatchedThreads } from './watched-threads.ts';

/** Workers of the engine, each of which has a part in every metadata thread. */
const ENGINE_WORKERS = createEngineWorkers(() => []).map(({ name }) => name);

export class MetadataThreads {
  readonly #count: number;
  readonly #calls: Omit<ShardsMainCalls, 'storeFailed' | 'noteError'>;
  readonly #onFailed: (error: Error) => void;
  readonly #gatewayCount: number;
  readonly #portsOfGateways = new Map<number, MessagePort[]>();
  #watched: WatchedThreads<ShardsCalls> | undefined;

  /**
   * `count` threads, for `gatewayCount` gateway threads; they are started with the shards. `onFailed`: a thread has ended by itself, or
   * hangs.
   */
  constructor(options: {
    count: number;
    gatewayCount: number;
    calls: Omit<ShardsMainCalls, 'storeFailed' | 'noteError'>;
    onFailed(error: Error): void;
  }) {
    this.#count = options.count;
    this.#gatewayCount = options.gatewayCount;
    this.#calls = options.calls;
    this.#onFailed = options.onFailed;
  }

  /** Opens all shards, in the threads. */
  readonly open: OpenShards = async (
    { config, clock, log },
    { handle, admitted, folder, shardCount, onFatal },
  ) => {
    const threads = Math.min(this.#count, shardCount);
    const calls = {
      ...this.#calls,
      noteError: ({ event, message }) => log.note(event, message),
      storeFailed: (message) => onFatal(new Error(message)),
    } satisfies ShardsMainCalls;
    const watched = new WatchedThreads<ShardsCalls>({
      role: 'metadata',
      count: threads,
      entry: new URL('./metadata-thread.ts', import.meta.url),
      callNames: SHARDS_CALLS,
      clock,
      startsWith: (number) => {
        const gatewayPorts = this.#connectGateways();
        const data = { number, handle, admitted, gatewayPorts } satisfies MetadataThreadData;
        return { data, moved: gatewayPorts };
      },
      serve: (line) => serveCalls(line, calls),
      onFailed: this.#onFailed,
    });
    this.#watched = watched;
    try {
      const opened = await Promise.all(
        watched.threads.map((thread, index) =>
          thread.calls.open({
            config,
            folder,
            shardCount,
            own: shardsOf(index, { threads, shardCount }),
            threads,
          }),
        ),
      );
      void watched.watch();
      return shardsOver(watched, { opened, shardCount });
    } catch (error) {
      await watched.close((end) => end.close());
      throw error;
    }
  };

  /** One more line to each gateway thread: this end of it. */
  #connectGateways(): MessagePort[] {
    return Array.from({ length: this.#gatewayCount }, (_, index) => {
      const { port1, port2 } = new MessageChannel();
      const ports = this.#portsOfGateways.get(index + 1) ?? [];
      this.#portsOfGateways.set(index + 1, [...ports, port2]);
      return port1;
    });
  }

  /** The lines of a gateway thread to all metadata threads, in their order. It takes them over. */
  portsOf(gateway: number): readonly MessagePort[] {
    return this.#portsOfGateways.get(gateway) ?? [];
  }

  async readFigures(): Promise<MetricFigures[]> {
    return (await this.#watched?.readFigures()) ?? [];
  }

  /** The longest that one of them was held, as LoopWatch's. */
  loopHeldMs(): number {
    return this.#watched?.loopHeldMs() ?? 0;
  }
}

/** Shards of all threads, as one thread has its own. */
function shardsOver(
  watched: WatchedThreads<ShardsCalls>,
  { opened, shardCount }: { opened: readonly (readonly ShardStatus[])[]; shardCount: number },
): OpenedShards {
  const status: ShardStatus[] = [];
  const learn = (from: readonly ShardStatus[]) => {
    for (const each of from) status[each.shard] = each;
  };
  for (const each of opened) learn(each);
  return {
    metadata: joinMetadata(watched.threads.map(({ line }) => createLineMetadata(line, shardCount))),
    workers: ENGINE_WORKERS.map((name) => inAllThreads(watched, name)),
    timeJumps: timeJumpsOver(watched, { status, learn }),
    status: () => status,
    async turnOver(signal) {
      let hasDone = false;
      // One after the other: each pushes out the same memtables, and the next one may find little left.
      for (const { calls } of watched.threads) {
        if (signal.aborted) break;
        if (await calls.turnOver()) hasDone = true;
      }
      return hasDone;
    },
    close: () => watched.close((calls) => calls.close()),
  };
}

function inAllThreads(watched: WatchedThreads<ShardsCalls>, name: string): Worker {
  return {
    name,
    async work() {
      const outcomes = await Promise.all(watched.threads.map(({ calls }) => calls.work(name)));
      return outcomes.reduce(sooner);
    },
  };
}

function sooner(one: WorkOutcome, other: WorkOutcome): WorkOutcome {
  if (one.state === 'busy' || other.state === 'busy') return { state: 'busy' };
  return one.idleMs <= other.idleMs ? one : other;
}

/** A shard's jump changes at its start and by the operator's word alone, so it is known here. */
function timeJumpsOver(
  watched: WatchedThreads<ShardsCalls>,
  { status, learn }: { status: readonly ShardStatus[]; learn(from: readonly ShardStatus[]): void },
): TimeJumps {
  return {
    mayRemoveByAge: (shard) => must(status[shard], `no shard ${shard}`).timeJumpMs === 0,
    unacceptedMs: async () => Math.max(...status.map(({ timeJumpMs }) => timeJumpMs)),
    async accept(atMostMs) {
      const answers: AcceptedJumps[] = [];
      await watched.tellAll(async ({ calls }) => {
        const { accepted, status: now } = await calls.acceptTimeJump(atMostMs);
        learn(now);
        answers.push(accepted);
      });
      return {
        acceptedMs: Math.max(...answers.map(({ acceptedMs }) => acceptedMs)),
        grownMs: Math.max(...answers.map(({ grownMs }) => grownMs)),
      };
    },
  };
}
