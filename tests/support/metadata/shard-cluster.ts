// Metadata nodes in one process, over memory, on a clock that a test moves: for tests of replicas that need no faults of
// disks or clocks. The simulation (tests/simulation) has those.

import { must } from '../../../src/base/assert.ts';
import { packPlain, unpackPlain } from '../../../src/base/record-codec.ts';
import type { FoundReplica } from '../../../src/coordination/rebuild-records.ts';
import { LOG_COLUMN, logKey } from '../../../src/metadata/engine/row-keys.ts';
import { SHARD_COLUMNS } from '../../../src/metadata/engine/shards.ts';
import { VERIFY_PACE, type VerifyPace } from '../../../src/metadata/engine/timing.ts';
import { createMetadataNode, type MetadataNode } from '../../../src/metadata/replication/metadata-node.ts';
import type { ReplicaEvent } from '../../../src/metadata/replication/replica-events.ts';
import { readStoredReplicas } from '../../../src/metadata/replication/stored-replicas.ts';
import { createMemoryKv, type MemoryKv } from '../../../src/platform/memory/memory-kv.ts';
import type { ClockPort } from '../../../src/ports/clock.ts';
import type { ClusterState } from '../../../src/ports/cluster-identity.ts';
import type { KvPort } from '../../../src/ports/kv.ts';
import type { LogPosition, NodeId, ReplicaMessage, ReplicaRef } from '../../../src/ports/replication.ts';
import type { ShardReply } from '../../../src/ports/shard-calls.ts';
import type { RegisteredShard, ShardRecord, ShardRegistryPort } from '../../../src/ports/shard-registry.ts';
import type { StateMachine } from '../../../src/ports/state-machine.ts';
import type { WitnessPort } from '../../../src/ports/witness.ts';
import { noteMachine } from '../../scenarios/note-machine.ts';
import { createManualClock, createSeededRandom, type ManualClock } from '../run/simulated.ts';

const STEP_MS = 10;

export interface ClusterNode {
  ref: ReplicaRef;
  kv: MemoryKv;
  witness: WitnessPort;
  /** What it could not read, even after it was cleared. */
  unreadable: Error[];
  /** undefined while it is down. */
  node: MetadataNode | undefined;
}

export interface MemoryRegistry extends ShardRegistryPort {
  records: Map<number, RegisteredShard>;
  /** A backup; what it gives restores it. Watches tell what was restored. */
  backUp(): () => void;
}

export interface ShardCluster {
  /** What the coordinator says of it. */
  state: ClusterState;
  /** Of all nodes. */
  readonly clock: ManualClock;
  readonly nodes: ClusterNode[];
  readonly registry: MemoryRegistry;
  readonly events: ReplicaEvent[];
  /** What nodes have logged, but for what is of use to nobody but who looks for a fault. */
  readonly logged: { event: string; fields: object }[];
  /** Everything that replicas have said to one another, in order. */
  readonly sent: ReplicaMessage[];
  /** Messages between these two are lost from now on, or no longer. */
  cut(a: number, b: number): void;
  heal(): void;
  start(index: number): Promise<void>;
  /** As kill -9: its promises never settle. */
  kill(index: number): void;
  /** Writes into the record which voters it should have. */
  want(indices: readonly number[]): Promise<void>;
  /** As an operator's tool writes. */
  register(record: Partial<ShardRecord>): Promise<void>;
  /** The node loses all it has, and is another one when it starts. */
  wipe(index: number): void;
  /** What a tool finds in the folders of these nodes. */
  found(...indices: number[]): Promise<FoundReplica[]>;
  /** Takes the last `count` entries from the log of one that is down. */
  cutLog(index: number, count: number): Promise<void>;
  run(ms: number): Promise<void>;
  /** All clocks at once, and nothing happens meanwhile. */
  skip(ms: number): void;
  /** Their wall clocks alone: what is left of a time in which the machines were suspended. */
  shiftWall(ms: number): void;
  /** What the wall clocks of all say. */
  wallMs(): number;
  /** Runs until it gives something, for 30 s at most. */
  until<T>(what: string, look: () => T | undefined): Promise<T>;
  primary(shard?: number): Promise<ClusterNode>;
  call(
    node: ClusterNode,
    kind: 'execute' | 'query',
    name: string,
    body: unknown,
    requestId?: string,
  ): Promise<ShardReply>;
}

export async function openShardCluster(options: {
  nodeCount: number;
  /** Of the first nodes; default: all. */
  voterCount?: number;
  shardCount?: number;
  machine?: StateMachine;
  /** Of tests of it; default: replicas are hardly ever compared. */
  verifyPace?: Partial<VerifyPace>;
}): Promise<ShardCluster> {
  const { nodeCount, voterCount = nodeCount, shardCount = 1, machine = noteMachine, verifyPace } = options;
  const clock = createManualClock(Date.UTC(2026, 0, 1));
  const random = createSeededRandom(7);
  const events: ReplicaEvent[] = [];
  const logged: ShardCluster['logged'] = [];
  const note = (fields: object, event: string) => void logged.push({ event, fields });
  const sent: ReplicaMessage[] = [];
  const cutPairs = new Set<string>();
  const listeners = new Map<NodeId, (from: NodeId, message: ReplicaMessage) => void>();
  const registry = createRegistry();
  let lives = 0;
  const running = new Map<ClusterNode, { hasEnded: boolean }>();
  const nodes = Array.from({ length: nodeCount }, (_, index): ClusterNode => {
    const id = (what: string) => `${what}${index}`.padEnd(32, '0');
    const ref = { nodeId: id('node'), replicaId: id('replica') };
    return {
      ref,
      kv: createMemoryKv([...SHARD_COLUMNS, LOG_COLUMN]),
      witness: createWitness(),
      unreadable: [],
      node: undefined,
    };
  });
  for (let shard = 0; shard < shardCount; shard++) {
    const voters = nodes.slice(0, voterCount).map(({ ref }) => ref);
    const record: ShardRecord = {
      incarnation: 1,
      epoch: 0,
      primary: null,
      voters,
      prevVoters: null,
      learners: [],
      nonce: '',
    };
    await registry.swap(shard, { expected: 0, record });
  }

  async function turn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
  }

  const cluster: ShardCluster = {
    state: 'as-made',
    clock,
    nodes,
    registry,
    events,
    logged,
    sent,
    cut(a, b) {
      cutPairs.add(`${nodes[a]?.ref.nodeId}/${nodes[b]?.ref.nodeId}`);
      cutPairs.add(`${nodes[b]?.ref.nodeId}/${nodes[a]?.ref.nodeId}`);
    },
    heal: () => cutPairs.clear(),
    async start(index) {
      const own = must(nodes[index], 'a node');
      const { ref, kv, witness } = own;
      const life = { hasEnded: false };
      running.set(own, life);
      const mine: MetadataNode = createMetadataNode({
        clusterId: 'c',
        ...ref,
        shardCount,
        witness,
        machine,
        random,
        ...mortal({ kv, clock, registry }, life),
        cluster: async () => cluster.state,
        verifyPace: { ...VERIFY_PACE, ...verifyPace },
        logger: { debug() {}, info: note, warn: note, error: note },
        onUnreadable: (error) => own.unreadable.push(error),
        onEvent: (event) => events.push(event),
        peers: {
          send(to, message) {
            const bytes = packPlain(message);
            sent.push(message);
            if (life.hasEnded || cutPairs.has(`${ref.nodeId}/${to}`)) return;
            setImmediate(() => listeners.get(to)?.(ref.nodeId, unpackPlain(bytes) as ReplicaMessage));
          },
          listen: (onMessage) => listeners.set(ref.nodeId, onMessage),
        },
      });
      own.node = mine;
      await mine.start();
    },
    kill(index) {
      const own = must(nodes[index], 'a node');
      listeners.delete(own.ref.nodeId);
      must(running.get(own), 'it runs').hasEnded = true;
      own.node = undefined;
    },
    async want(indices) {
      const { record, revision } = must(await registry.read(0), 'a record');
      const voters = indices.map((index) => must(nodes[index], 'a node').ref);
      await registry.swap(0, { expected: revision, record: { ...record, wanted: { voters } } });
    },
    async register(change) {
      const present = await registry.read(0);
      const record = { ...must(present, 'a record').record, ...change };
      await registry.swap(0, { expected: present?.revision ?? 0, record });
    },
    wipe(index) {
      const own = must(nodes[index], 'a node');
      const life = `${++lives}`;
      own.ref = {
        nodeId: `node${index}-${life}`.padEnd(32, '0'),
        replicaId: `replica${index}-${life}`.padEnd(32, '0'),
      };
      own.kv = createMemoryKv([...SHARD_COLUMNS, LOG_COLUMN]);
      own.witness = createWitness();
    },
    async found(...indices) {
      const all = await Promise.all(
        indices.map(async (index) => {
          const { kv, witness, ref } = must(nodes[index], 'a node');
          return (await readStoredReplicas(kv, witness, shardCount)).map((stored) => ({ ...stored, ...ref }));
        }),
      );
      return all.flat();
    },
    async cutLog(index, count) {
      const { kv } = must(nodes[index], 'a node');
      const all = { column: LOG_COLUMN, gte: logKey(0, 0), lt: logKey(0, Number.MAX_SAFE_INTEGER) };
      const rows = await kv.range({ ...all, limit: 100_000 });
      await kv.commit(rows.slice(-count).map(({ key }) => ({ column: LOG_COLUMN, key, value: null })));
    },
    async run(ms) {
      for (let passedMs = 0; passedMs < ms; passedMs += STEP_MS) {
        clock.advance(STEP_MS);
        await turn();
      }
    },
    skip: (ms) => clock.advance(ms),
    shiftWall: (ms) => clock.shiftWall(ms),
    wallMs: () => clock.wallMs(),
    async until(what, look) {
      for (let passedMs = 0; passedMs < 30_000; passedMs += STEP_MS) {
        const seen = look();
        if (seen !== undefined) return seen;
        await cluster.run(STEP_MS);
      }
      throw new Error(`in vain: ${what}`);
    },
    primary: (shard = 0) =>
      cluster.until('a primary', () =>
        nodes.find(({ node }) => node?.replica(shard)?.status().role === 'primary'),
      ),
    async call(own, kind, name, body, requestId) {
      const node = must(own.node, 'a node that is up');
      const envelope = { shard: 0, ...(requestId !== undefined && { requestId }) };
      let reply: ShardReply | undefined;
      void node
        .handle({ kind, envelope, name: name as never, body, ticket: node.ticket(), budgetMs: 10_000 })
        .then((got) => {
          reply = got;
        });
      return cluster.until(`a reply to ${name}`, () => reply);
    },
  };
  return cluster;
}

/** What a process has, until it is killed: nothing comes back to it from then on, and nothing that it does is done. */
function mortal(
  { kv, clock, registry }: { kv: KvPort; clock: ClockPort; registry: ShardRegistryPort },
  life: { hasEnded: boolean },
): { kv: KvPort; clock: ClockPort; registry: ShardRegistryPort } {
  const ask = async <T>(question: () => Promise<T>): Promise<T> => {
    const answer = life.hasEnded ? undefined : await question();
    return life.hasEnded ? new Promise<T>(() => {}) : (answer as T);
  };
  return {
    kv: {
      ...kv,
      getMany: (...args) => ask(() => kv.getMany(...args)),
      range: (...args) => ask(() => kv.range(...args)),
      commit: (...args) => ask(() => kv.commit(...args)),
      clear: (...args) => ask(() => kv.clear(...args)),
    },
    clock: { ...clock, sleep: (ms, signal) => ask(() => clock.sleep(ms, signal)) },
    registry: {
      read: (shard) => ask(() => registry.read(shard)),
      swap: (shard, change) => ask(() => registry.swap(shard, change)),
      watch: (onChange, signal) =>
        registry.watch((shard, registered) => life.hasEnded || onChange(shard, registered), signal),
    },
  };
}

function createWitness(): WitnessPort {
  const positions = new Map<number, LogPosition>();
  return {
    read: (shard) => positions.get(shard),
    write: (shard, position) => void positions.set(shard, position),
    async lower(shard, position) {
      if (position === undefined) positions.delete(shard);
      else positions.set(shard, position);
    },
    failed: new Promise(() => {}),
    async close() {},
  };
}

function createRegistry(): MemoryRegistry {
  const records = new Map<number, RegisteredShard>();
  const watchers = new Set<(shard: number, registered: RegisteredShard) => void>();
  let revision = 0;
  return {
    records,
    backUp() {
      const copy = { records: new Map(records), revision };
      return () => {
        records.clear();
        for (const [shard, registered] of copy.records) records.set(shard, registered);
        revision = copy.revision;
        for (const listener of watchers)
          for (const [shard, registered] of records)
            listener(shard, { ...registered, registryRevision: revision });
      };
    },
    async read(shard) {
      const registered = records.get(shard);
      return registered && { ...registered, registryRevision: revision };
    },
    async swap(shard, { expected, record }) {
      if ((records.get(shard)?.revision ?? 0) !== expected) return { kind: 'lost' };
      revision++;
      const registered = { record: structuredClone(record), revision, registryRevision: revision };
      records.set(shard, registered);
      for (const listener of watchers) listener(shard, registered);
      return { kind: 'done', revision };
    },
    watch(onChange, signal) {
      watchers.add(onChange);
      signal.addEventListener('abort', () => watchers.delete(onChange));
    },
  };
}
