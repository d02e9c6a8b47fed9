// The machines of the simulated world and what runs on them: each starts its process, and starts it again when it has
// ended, as a service manager does.

import { cacheRows } from '../../src/metadata/engine/cached-rows.ts';
import type { NodeId } from '../../src/ports/replication.ts';
import type { CallNetwork } from './calls.ts';
import type { Chance } from './chance.ts';
import { SimulatedHost, SimulatedProcess } from './clock.ts';
import type { Counts } from './counts.ts';
import type { SimulatedDisk } from './disk.ts';
import type { GatewaySite, NodeSite } from './faults.ts';
import { type GatewayObserver, SimulatedGateway } from './gateway.ts';
import type { Network } from './network.ts';
import type { NodeContext, NodeKind, SimulatedNode } from './node.ts';
import type { Decorate } from './part.ts';
import type { SimulatedRegistry } from './registry.ts';
import type { Scheduler } from './scheduler.ts';

const RESTART_MIN_MS = 100;
const RESTART_MAX_MS = 2000;

export interface Ground {
  scheduler: Scheduler;
  chance: Chance;
  network: Network;
  calls: CallNetwork;
  registry: SimulatedRegistry;
  counts: Counts;
  /** A process ended itself in this step: what it leaves unhandled is nobody's. */
  onSelfEnded(): void;
}

/** A process that is started again when it ends, unless it is kept down. */
export abstract class Site {
  readonly host: SimulatedHost;
  readonly name: string;
  protected readonly ground: Ground;
  protected readonly chance: Chance;
  process: SimulatedProcess | undefined;
  /** True time at which its process began. */
  startedAtMs = 0;
  #startCount = 0;
  #keptDown = 0;
  #isStarting = false;

  constructor(name: string, ground: Ground) {
    this.name = name;
    this.ground = ground;
    this.chance = ground.chance.fork(name);
    this.host = new SimulatedHost(name, { scheduler: ground.scheduler, chance: this.chance });
  }

  protected abstract run(process: SimulatedProcess): void;
  protected ended(): void {}

  startSoon(delayMs: number): void {
    if (this.#isStarting) return;
    this.#isStarting = true;
    this.ground.scheduler.after(delayMs, {
      name: `${this.name} starts`,
      run: () => {
        this.#isStarting = false;
        if (this.process === undefined && this.#keptDown === 0) this.#start();
      },
    });
  }

  kill(): void {
    this.process?.kill();
  }

  crash(): void {
    this.startSoon(RESTART_MIN_MS);
    this.kill();
  }

  keepDown(): () => void {
    this.#keptDown++;
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.#keptDown--;
      this.startSoon(this.chance.between(RESTART_MIN_MS, RESTART_MAX_MS));
    };
  }

  #start(): void {
    const name = `${this.name}#${++this.#startCount}`;
    const process = new SimulatedProcess(name, { host: this.host, chance: this.chance.fork(name) });
    this.process = process;
    this.startedAtMs = this.ground.scheduler.nowMs;
    this.ground.network.join(this.name, process);
    process.onEnd(() => {
      this.process = undefined;
      this.ended();
      this.startSoon(this.chance.between(RESTART_MIN_MS, RESTART_MAX_MS));
    });
    // In an event of its own: a paused or dead process does not begin.
    process.schedule(0, 'begins', () => this.run(process));
  }
}

interface SharedOfNodes extends Pick<NodeContext, 'nodeIds' | 'shardCount' | 'machine'> {
  decorate: Decorate | undefined;
}

export class MetadataSite extends Site implements NodeSite {
  readonly disk: SimulatedDisk;
  node: SimulatedNode | undefined;
  readonly #kind: NodeKind;
  readonly #shared: SharedOfNodes;

  constructor(
    name: NodeId,
    options: {
      ground: Ground;
      kind: NodeKind;
      disk: SimulatedDisk;
      shared: SharedOfNodes;
    },
  ) {
    super(name, options.ground);
    this.#kind = options.kind;
    this.disk = options.disk;
    this.#shared = options.shared;
  }

  restart(): void {
    const { process, node } = this;
    if (process === undefined) return;
    if (node === undefined) {
      process.kill();
      return;
    }
    process.schedule(0, 'is asked to stop', () => {
      node.stop().then(
        () => process.kill(),
        (error) => this.ground.scheduler.fail(error),
      );
    });
  }

  get ledShards(): number[] {
    const { node } = this;
    if (node === undefined) return [];
    return Array.from({ length: this.#shared.shardCount }, (_, shard) => shard).filter(
      (shard) => node.openEpoch(shard) !== undefined,
    );
  }

  isReadAtStart(row: { column: string; key: Uint8Array }): boolean {
    return this.#kind.isReadAtStart(row);
  }

  protected override ended(): void {
    this.node = undefined;
  }

  protected override run(process: SimulatedProcess): void {
    const { network, registry, counts, calls, scheduler } = this.ground;
    const silent = () => undefined;
    const onFatal = (error: Error) => {
      scheduler.trace(`${process.name} ends: ${error.message}`);
      if (process.isAlive) counts.add('node ended itself');
      this.ground.onSelfEnded();
      process.kill();
    };
    const { decorate, ...shared } = this.#shared;
    const processContext: NodeContext = {
      ...shared,
      decorate: decorate && ((node) => decorate(node, process)),
      nodeId: this.name,
      kv: cacheRows(this.disk.open(process), 'rows'),
      witness: this.disk.openWitness(process),
      clock: process.clock,
      random: process.random,
      peers: network.peer(this.name, process),
      registry: registry.port(process),
      logger: loggerOf(process, scheduler),
      telemetry: { count: silent, observe: silent, gauge: silent, gaugeAll: silent },
      count: (branch) => counts.add(branch),
      onFatal,
      quarantineDatabase: () => {
        counts.add('store put aside');
        this.disk.wipe();
      },
    };
    this.#kind.start(processContext).then((node) => {
      if (!process.isAlive) return;
      this.node = node;
      calls.serve(process, node.calls);
    }, onFatal);
  }
}

export function loggerOf(process: SimulatedProcess, scheduler: Scheduler): NodeContext['logger'] {
  const log = (fields: object, event: string) =>
    scheduler.trace(`${process.name} ${event} ${JSON.stringify(fields)}`);
  return { debug: log, info: log, warn: log, error: log };
}

export class GatewayProcessSite extends Site implements GatewaySite {
  gateway: SimulatedGateway | undefined;
  readonly #nodeIds: readonly NodeId[];
  readonly #observer: GatewayObserver;

  constructor(
    name: string,
    options: { ground: Ground; nodeIds: readonly NodeId[]; observer: GatewayObserver },
  ) {
    super(name, options.ground);
    this.#nodeIds = options.nodeIds;
    this.#observer = options.observer;
  }

  protected override ended(): void {
    this.gateway = undefined;
  }

  protected override run(process: SimulatedProcess): void {
    const { calls, counts } = this.ground;
    this.gateway = new SimulatedGateway(process, {
      calls: calls.port(this.name, process),
      nodeIds: this.#nodeIds,
      chance: this.chance.fork(process.name),
      counts,
      observer: this.#observer,
    });
  }
}
