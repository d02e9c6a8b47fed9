// What runs in a seed beside the clients of objects: a workload of its own with its own checks, over the same nodes and
// gateways, under the same faults and some of its own. Which parts a seed has, the seed says.

import type { MetadataNode } from '../../src/metadata/replication/metadata-node.ts';
import type { ShardCallHandler } from '../../src/ports/shard-calls.ts';
import type { Attempts } from './attempts.ts';
import type { Chance } from './chance.ts';
import type { SimulatedProcess } from './clock.ts';
import type { WatchedNode } from './invariants.ts';
import { openGateway, type ProductGateway } from './product-gateway.ts';
import type { ShardHistory } from './shard-history.ts';
import type { GatewayProcessSite, Ground, MetadataSite } from './sites.ts';

export interface PartWorld {
  ground: Ground;
  attempts: Attempts;
  shardCount: number;
  nodes(): readonly MetadataSite[];
  gateways(): readonly GatewayProcessSite[];
  watched: readonly WatchedNode[];
  history(shard: number): ShardHistory;
  /** Something that gateways or nodes feel goes wrong, until the returned function is called. */
  disturb(name: string): () => void;
  /** False while something is there that must not be copied: no node may fall behind. */
  mayStopNodes(): boolean;
}

/** Names of the hosts of nodes and gateways. */
export function machinesOf(world: PartWorld): string[] {
  return [...world.nodes(), ...world.gateways()].map(({ name }) => name);
}

export interface Part {
  /** In a world without faults. */
  prepare(): Promise<void>;
  /** Beside the clients of objects. */
  run(): Promise<void>;
  /** After every step. */
  check?(): void;
  /** Its own faults are over. */
  heal?(): void;
  /** Everything is well again, and no time has passed since but what it takes: what must hold soon. */
  soon?(): Promise<void>;
  /** Everything is well, and a day has passed: what must hold then. */
  rest(): Promise<void>;
}

/** Where a part puts its questions: a gateway, as long as its process lives. */
export class GatewayPool {
  readonly #world: PartWorld;
  readonly #chance: Chance;
  readonly #opened = new WeakMap<SimulatedProcess, ProductGateway>();

  constructor(world: PartWorld, chance: Chance) {
    this.#world = world;
    this.#chance = chance;
  }

  /** One that runs; waits for it. */
  async pick(): Promise<ProductGateway> {
    const { scheduler } = this.#world.ground;
    for (;;) {
      const running = this.running();
      if (running.length > 0) return this.#chance.pick(running);
      await scheduler.sleep(100, 'no gateway runs');
    }
  }

  running(): ProductGateway[] {
    return this.#world.gateways().flatMap(({ process, gateway }) => {
      if (process === undefined || gateway === undefined) return [];
      let opened = this.#opened.get(process);
      if (opened === undefined) {
        opened = openGateway(process, this.#world.ground, this.#world.shardCount);
        this.#opened.set(process, opened);
      }
      return [opened];
    });
  }

  /** What `act` gives, or that it failed, or that its gateway went away, or that it was `left` before its end. */
  async run<T>(
    gateway: ProductGateway,
    name: string,
    act: (gateway: ProductGateway) => Promise<T>,
    left?: Promise<void>,
  ): Promise<Attempted<T>> {
    const { process } = gateway;
    const { ground, attempts } = this.#world;
    const { scheduler } = ground;
    const ended = Promise.withResolvers<Attempted<T>>();
    const noteEnd = attempts.begin(scheduler.nowMs);
    left?.then(() => ended.resolve({ kind: 'cut-off' }));
    const end = () =>
      scheduler.after(1, { name: `${name}: cut off`, run: () => ended.resolve({ kind: 'cut-off' }) });
    if (process.isAlive) process.onEnd(end);
    else end();
    // In an event of the gateway's own: one that is stopped begins when it goes on.
    process.schedule(0, name, () => {
      act(gateway).then(
        (value) => ended.resolve({ kind: 'done', value }),
        (error: unknown) => ended.resolve({ kind: 'failed', error }),
      );
    });
    const attempt = await ended.promise;
    noteEnd(scheduler.nowMs, attempt.kind !== 'cut-off');
    return attempt;
  }
}

export type Attempted<T> =
  | { kind: 'done'; value: T }
  | { kind: 'failed'; error: unknown }
  /** Nobody knows. */
  | { kind: 'cut-off' };

/** What the nodes of a seed do for its parts. */
export type Decorate = (node: MetadataNode, process: SimulatedProcess) => ShardCallHandler;
