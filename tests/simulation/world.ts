// One seed: a cluster of metadata nodes, gateways and clients, the faults that befall it, and the checks. The seed alone
// decides everything; what happened is in the report, and a broken invariant is thrown.
import './few-partitions.ts';
import './small-steps.ts';
import { isDeepStrictEqual } from 'node:util';
import { Attempts } from './attempts.ts';
import { CallNetwork } from './calls.ts';
import { Chance } from './chance.ts';
import { checkHistory } from './check-history.ts';
import { SimulatedHost } from './clock.ts';
import { Counts } from './counts.ts';
import { SimulatedDisk } from './disk.ts';
import type { Driver } from './driver.ts';
import { FaultRun } from './fault-run.ts';
import { FAULT_NAMES, type FaultName, type PlannedFault, planFaults } from './faults.ts';
import type { SimulatedGateway } from './gateway.ts';
import { Invariants, type WatchedNode } from './invariants.ts';
import { Losses } from './losses.ts';
import { Network } from './network.ts';
import type { NodeKind } from './node.ts';
import type { HistoryRecord, Operation } from './operations.ts';
import { type PartName, Parts } from './parts.ts';
import { SimulatedRegistry } from './registry.ts';
import { ReplicaWatch } from './replica-watch.ts';
import { Scheduler, SimulationFailure } from './scheduler.ts';
import { GatewayProcessSite, type Ground, MetadataSite } from './sites.ts';
import { Client } from './workload.ts';

const NODE_COUNT = 3;
const GATEWAY_COUNT = 3;
const CLIENT_COUNT = 6;
const SHARD_COUNT = 2;
/** At least 300 in all, also when some say nothing. */
const OPERATIONS_OF_CLIENT = 53;
const PATIENCE_MAX_MS = 25_000;
/** Faults begin within it. */
const FAULTS_FROM_MS = 2500;
const FAULTS_TO_MS = 28_000;
const CLIENTS_DONE_MAX_MS = 15 * 60_000;
/** I16: L + 2 s, by clocks that drift, and the longest restart of a process. */
const OPEN_AGAIN_MAX_MS = 5000 * 1.06 + 2000;
const AT_REST_MAX_MS = 360_000;

export interface SeedOptions {
  seed: number;
  kind: NodeKind;
  driver: Driver;
  /** Which faults may happen; all that the kind of node is not spared when left out. */
  faults?: readonly FaultName[];
  /** What runs beside the clients of objects; nothing when left out. */
  parts?: readonly PartName[];
  onTrace?(line: string): void;
}

export interface SeedReport {
  seed: number;
  counts: Counts;
  faults: PlannedFault[];
  operationCount: number;
  unknownCount: number;
  stepCount: number;
  virtualMs: number;
  traceHash: string;
}

const shards = () => Array.from({ length: SHARD_COUNT }, (_, shard) => shard);

/** Throws {@link SimulationFailure} when something was wrong. */
export async function runSeed(options: SeedOptions): Promise<SeedReport> {
  const world = new World(options);
  try {
    return await world.run();
  } catch (error) {
    if (error instanceof Error) (error as Error & { traceTail?: unknown }).traceTail = world.traceTail;
    throw error;
  }
}

class World {
  readonly #options: SeedOptions;
  readonly #chance: Chance;
  readonly #scheduler = new Scheduler();
  readonly #counts = new Counts();
  readonly #network: Network;
  readonly #registry: SimulatedRegistry;
  readonly #invariants: Invariants;
  readonly #nodes: MetadataSite[];
  readonly #watched: WatchedNode[];
  readonly #gateways: GatewayProcessSite[];
  readonly #parts: Parts;
  readonly #history: HistoryRecord[] = [];
  readonly #requests = new Map<string, { shard: number; operation: Operation }>();
  readonly #faultRun: FaultRun;
  readonly #timesMs: number[] = [];
  #wereClocksRight = true;
  #selfEndedAt: number | undefined;

  constructor(options: SeedOptions) {
    this.#options = options;
    const { seed, kind, driver, onTrace } = options;
    const scheduler = this.#scheduler;
    if (onTrace !== undefined) scheduler.onTrace = onTrace;
    const chance = new Chance(seed);
    this.#chance = chance;
    const counts = this.#counts;
    this.#network = new Network(scheduler, { chance: chance.fork('network'), counts });
    const network = this.#network;
    this.#registry = new SimulatedRegistry(scheduler, { network, chance: chance.fork('registry'), counts });
    this.#watched = [];
    this.#invariants = new Invariants({
      driver,
      nodes: this.#watched,
      shardCount: SHARD_COUNT,
      onOpened: () => counts.add('shard opened'),
      fail: (failure) => scheduler.fail(failure),
    });
    const invariants = this.#invariants;
    const calls = new CallNetwork(network, {
      chance: chance.fork('calls'),
      observer: {
        onCall: () => undefined,
        onReply: (nodeId, call, reply) => invariants.onAnswer(nodeId, call, reply),
      },
    });
    const ground: Ground = {
      scheduler,
      chance,
      network,
      calls,
      counts,
      registry: this.#registry,
      onSelfEnded: () => {
        this.#selfEndedAt = scheduler.stepCount;
      },
    };
    this.#parts = new Parts(options.parts ?? [], {
      attempts: new Attempts(),
      ground,
      shardCount: SHARD_COUNT,
      watched: this.#watched,
      nodes: () => this.#nodes,
      gateways: () => this.#gateways,
      history: (shard) => this.#invariants.history(shard),
      disturb: (name) => this.#faultRun.disturb(name),
      mayStopNodes: () => this.#faultRun.mayStopNodes,
    });
    const nodeIds = Array.from({ length: NODE_COUNT }, (_, index) => `node-${index}`);
    this.#nodes = nodeIds.map((nodeId) => this.#createNode(nodeId, { nodeIds, ground, kind }));
    const losses = new Losses({
      nodes: this.#nodes,
      shardCount: SHARD_COUNT,
      nowMs: () => scheduler.nowMs,
      history: (shard) => this.#invariants.history(shard),
      isSettled: (shard) => {
        const record = this.#registry.get(shard)?.record;
        const wanted = record?.wanted?.voters ?? record?.voters;
        return record?.prevVoters == null && isDeepStrictEqual(wanted, record?.voters);
      },
      votersOf: (shard) =>
        this.#replicasOf(shard).map(({ nodeId, watch, node }) => {
          const isLive = watch.isLive(shard) && node?.isEmptying?.(shard) !== true;
          return { nodeId, isLive, appliedSeq: watch.appliedSeq(shard) };
        }),
    });
    this.#gateways = Array.from({ length: GATEWAY_COUNT }, (_, index) => {
      const observer = {
        onReply: (requestId: string, reply: { kind: string; value?: unknown }) => {
          const request = this.#requests.get(requestId);
          if (reply.kind === 'done' && request !== undefined)
            invariants.onOutcome(requestId, request, reply.value);
        },
        onGivenUp: (requestId: string) => invariants.onGivenUp(requestId),
      };
      return new GatewayProcessSite(`gateway-${index}`, { ground, nodeIds, observer });
    });
    this.#faultRun = new FaultRun({
      scheduler,
      counts,
      losses,
      chance,
      untilMs: FAULTS_TO_MS,
      world: { nodes: this.#nodes, gateways: this.#gateways, network, registry: this.#registry },
    });
    for (const checked of [invariants, this.#parts]) scheduler.afterEachStep(() => checked.check());
  }

  get traceTail(): readonly string[] {
    return this.#scheduler.traceTail;
  }

  async run(): Promise<SeedReport> {
    // What nobody catches is a failure of the program under test, in the step that it comes from.
    const onLost = (error: unknown) => {
      if (this.#selfEndedAt !== this.#scheduler.stepCount) this.#scheduler.fail(error);
    };
    process.on('unhandledRejection', onLost);
    try {
      return await this.#run();
    } finally {
      process.off('unhandledRejection', onLost);
      this.#scheduler.end();
    }
  }

  async #run(): Promise<SeedReport> {
    this.#options.kind.found?.({
      registry: this.#registry,
      nodeIds: this.#nodes.map(({ name }) => name),
      shardCount: SHARD_COUNT,
    });
    for (const site of [...this.#nodes, ...this.#gateways]) site.startSoon(this.#chance.between(0, 50));
    await this.#prepare();
    const faults = this.#planFaults();
    await this.#runClients();
    await this.#comeToRest();
    checkHistory(this.#history, {
      histories: shards().map((shard) => this.#invariants.history(shard)),
      spans: this.#faultRun.spans,
    });
    const { stepCount, nowMs, traceHash } = this.#scheduler;
    return {
      seed: this.#options.seed,
      counts: this.#counts,
      faults,
      operationCount: this.#history.length,
      unknownCount: this.#history.filter(({ outcome }) => outcome === undefined).length,
      stepCount,
      virtualMs: nowMs,
      traceHash,
    };
  }

  #createNode(
    nodeId: string,
    { nodeIds, ground, kind }: { nodeIds: readonly string[]; ground: Ground; kind: NodeKind },
  ): MetadataSite {
    const disk = new SimulatedDisk(kind.columns, this.#chance.fork(`disk of ${nodeId}`));
    const machine = this.#invariants.observed(nodeId);
    const site = new MetadataSite(nodeId, {
      ground,
      kind,
      disk,
      shared: { nodeIds, shardCount: SHARD_COUNT, machine, decorate: this.#parts.decorate },
    });
    const watch = new ReplicaWatch({
      node: nodeId,
      kind,
      disk,
      history: (shard) => this.#invariants.history(shard),
      now: () => this.#now(),
      count: (branch) => this.#counts.add(branch),
    });
    this.#watched.push({
      nodeId,
      watch,
      get node() {
        return site.node;
      },
      get wasTimeLost() {
        return site.host.wasTimeLost;
      },
    });
    return site;
  }

  #now(): { atMs: number; trueWallMs: number | undefined } {
    const right = this.#nodes.filter(({ host }) => Math.abs(host.wallErrorMs) < 1000).length;
    // Once a majority was wrong, time may have gone ahead for good.
    this.#wereClocksRight &&= right * 2 > this.#nodes.length;
    const trueWallMs = this.#wereClocksRight ? SimulatedHost.trueWallMs(this.#scheduler) : undefined;
    return { atMs: this.#scheduler.nowMs, trueWallMs };
  }

  #gatewaysRunning(): SimulatedGateway[] {
    return this.#gateways.flatMap(({ gateway }) => gateway ?? []);
  }

  /** Runs a program of the world's own to its end. */
  async #runProgram(name: string, program: () => Promise<void>, limitMs: number): Promise<void> {
    let isDone = false;
    this.#scheduler.after(0, {
      name,
      run: () => {
        program().then(
          () => {
            isDone = true;
          },
          (error) => this.#scheduler.fail(error),
        );
      },
    });
    const untilMs = this.#scheduler.nowMs + limitMs;
    if (!(await this.#scheduler.run(() => isDone, untilMs)))
      throw new SimulationFailure(`I16: ${name}: not done after ${limitMs} ms`);
  }

  /** What the driver needs before anything else, in a world without faults. */
  async #prepare(): Promise<void> {
    const { driver } = this.#options;
    const areAllRunning = () =>
      this.#nodes.every(({ node }) => node !== undefined) && this.#gatewaysRunning().length === GATEWAY_COUNT;
    await this.#runProgram(
      'prepare',
      async () => {
        while (!areAllRunning()) await this.#scheduler.sleep(10);
        for (let shard = 0; shard < SHARD_COUNT; shard++)
          for (const [index, call] of driver.prepare(shard).entries()) {
            const request = { requestId: `prepare-${shard}-${index}`, call, patienceMs: 60_000 };
            const answer = await this.#chance.pick(this.#gatewaysRunning()).run(request);
            if (answer.kind !== 'done') throw new SimulationFailure(`I16: shard ${shard} never opened`);
            this.#timesMs[shard] = answer.timeMs;
          }
        await this.#parts.prepare();
      },
      120_000,
    );
  }

  #planFaults(): PlannedFault[] {
    const { kind, faults } = this.#options;
    const names = (faults ?? FAULT_NAMES).filter((name) => !kind.spared.includes(name));
    const { nowMs } = this.#scheduler;
    const plan = planFaults(this.#chance.fork('faults'), {
      names,
      fromMs: nowMs + FAULTS_FROM_MS,
      toMs: nowMs + FAULTS_TO_MS,
    });
    this.#faultRun.schedule(plan);
    // Early, so that the registry has changed since when the backup comes back.
    this.#scheduler.after(this.#chance.between(0, FAULTS_FROM_MS), {
      name: 'the registry is backed up',
      run: () => this.#registry.backUp(),
    });
    // Tables, which no cut of a log reaches.
    this.#scheduler.after(this.#chance.between(0, FAULTS_TO_MS / 2), {
      name: 'logs go to tables',
      run: () => {
        for (const { disk } of this.#nodes) if (this.#chance.happens(0.5)) disk.flush();
      },
    });
    return plan;
  }

  async #runClients(): Promise<void> {
    const options = {
      scheduler: this.#scheduler,
      chance: this.#chance.fork('clients'),
      driver: this.#options.driver,
      shardCount: SHARD_COUNT,
      timesMs: this.#timesMs,
      gateways: () => this.#gatewaysRunning(),
      operationCount: OPERATIONS_OF_CLIENT,
      patienceMaxMs: PATIENCE_MAX_MS,
      onBegun: (record: HistoryRecord) => {
        this.#requests.set(record.requestId, record);
        this.#history.push(record);
      },
      onNothing: (record: HistoryRecord) => {
        this.#history.splice(this.#history.indexOf(record), 1);
      },
    };
    const clients = Array.from({ length: CLIENT_COUNT }, (_, id) => new Client(id, options));
    await this.#runProgram(
      'clients',
      async () => {
        await Promise.all([...clients.map((client) => client.run()), this.#parts.run()]);
      },
      CLIENTS_DONE_MAX_MS,
    );
    // Faults that begin after the last operation are over soon.
    const { nowMs } = this.#scheduler;
    if (nowMs < FAULTS_TO_MS) await this.#scheduler.run(() => false, FAULTS_TO_MS);
  }

  /** I16: faults over, everything opens, catches up, and is equal. */
  async #comeToRest(): Promise<void> {
    this.#faultRun.end();
    this.#parts.heal();
    const isOpen = () =>
      this.#nodes.every(({ node }) => node !== undefined) &&
      shards().every((shard) => this.#invariants.isOpen(shard));
    const { nowMs } = this.#scheduler;
    if (!(await this.#scheduler.run(isOpen, nowMs + OPEN_AGAIN_MAX_MS)))
      throw new SimulationFailure(`I16: not all shards are open ${OPEN_AGAIN_MAX_MS} ms after the faults`);
    await this.#runProgram('parts come to rest', () => this.#parts.rest(), AT_REST_MAX_MS);
    const isCaughtUp = () =>
      this.#nodes.every(({ disk }) => !disk.hasAltered) &&
      shards().every((shard) => {
        const { lastSeq } = this.#invariants.history(shard);
        return this.#replicasOf(shard).every(
          ({ watch }) => watch.isLive(shard) && watch.appliedSeq(shard) === lastSeq,
        );
      });
    if (!(await this.#scheduler.run(isCaughtUp, this.#scheduler.nowMs + AT_REST_MAX_MS)))
      throw new SimulationFailure(`I16: replicas differ ${AT_REST_MAX_MS} ms after the faults`);
    for (const shard of shards()) for (const { watch } of this.#replicasOf(shard)) watch.checkState(shard);
  }

  #replicasOf(shard: number): WatchedNode[] {
    const voters = this.#registry.get(shard)?.record.voters;
    if (voters === undefined) return this.#watched;
    return this.#watched.filter(({ nodeId }) => voters.some((voter) => voter.nodeId === nodeId));
  }
}
