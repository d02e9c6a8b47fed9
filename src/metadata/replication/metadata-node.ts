// A metadata node: the replicas of shards that the registry gives it, driven by messages and time, and the calls of
// gateways that they answer. It decides nothing about who holds what; that stands in the registry (R1, R2).

import type { FairTurns } from '../../base/async/fair-turns.ts';
import { toHex } from '../../base/bytes/bytes.ts';
import { Corruption } from '../../base/corruption.ts';
import { momentNow, passedMs } from '../../base/moment.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { ClusterState } from '../../ports/cluster-identity.ts';
import type { KvPort } from '../../ports/kv.ts';
import type { StoredReplica } from '../../ports/node-records.ts';
import type { NodeId, PeerPort, ReplicaId } from '../../ports/replication.ts';
import type {
  ReplicaStatus,
  ShardCall,
  ShardCallHandler,
  ShardReply,
  Ticket,
} from '../../ports/shard-calls.ts';
import type { RegisteredShard, ShardRegistryPort } from '../../ports/shard-registry.ts';
import type { StateMachine } from '../../ports/state-machine.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { WitnessPort } from '../../ports/witness.ts';
import { LIMITS } from '../../types/limits.ts';
import { compareMoments, type RegistryMoment } from '../../types/registry-order.ts';
import { boundedKv } from '../engine/bounded-kv.ts';
import { createOverlayBudget } from '../engine/overlay.ts';
import { HEARTBEAT_MS, SILENCE_MS, type VerifyPace } from '../engine/timing.ts';
import type { LogBudget } from './log-store.ts';
import type { LogRetention } from './log-trimmer.ts';
import { openReplica } from './open-replica.ts';
import { isOlder, isSuperseded, momentOfReading } from './registered-record.ts';
import type { Replica } from './replica.ts';
import type { ReplicaEvent } from './replica-events.ts';
import type { ReplicaDeps } from './replica-parts.ts';
import { readStoredReplica, readStoredReplicas } from './stored-replicas.ts';
import { isListed } from './takeover.ts';
import { UnlistedRows } from './unlisted-rows.ts';

/** Heartbeats and time-outs are looked at this often: each look wakes the process. */
const TICK_MS = HEARTBEAT_MS / 3;
/** A registry that is away at the start is asked again. */
const ASK_AGAIN_MS = 1000;
/** All records are read anew in this time. */
const LOOK_AGAIN_MS = 15_000;
const PROCESS_ID_BYTES = 16;

export interface MetadataNodeDeps {
  clusterId: string;
  nodeId: NodeId;
  /** R1: made with the database. */
  replicaId: ReplicaId;
  shardCount: number;
  kv: KvPort;
  witness: WitnessPort;
  machine: StateMachine;
  /** Of queries that read many rows. Default: none, each reads on. */
  turns?: FairTurns;
  clock: ClockPort;
  random: RandomPort;
  registry: ShardRegistryPort;
  /** What the coordinator, of which `registry` is, says of this cluster. */
  cluster(): Promise<ClusterState>;
  peers: PeerPort;
  logger: Logger;
  /** R17: what was cleared still cannot be read. The process is to end, and the next one to begin with an empty database. */
  onUnreadable(error: Error): void;
  /** Default LOG_RETENTION. */
  logRetention?: LogRetention;
  /** R22. Default VERIFY_PACE. */
  verifyPace?: VerifyPace;
  onEvent?(event: ReplicaEvent): void;
}

export interface MetadataNode extends ShardCallHandler {
  /** Resolves when every shard has been looked up in the registry. */
  start(): Promise<void>;
  /** Hands over what it leads, as well as it can. The store stays open. */
  stop(): Promise<void>;
  status(): ReplicaStatus[];
  /** By shard, the highest epoch that its replica here has promised, open or not. */
  promised(): ReadonlyMap<number, number>;
  /** undefined: no replica of it is here. */
  replica(shard: number): Replica | undefined;
}

export function createMetadataNode(deps: MetadataNodeDeps): MetadataNode {
  return new Node(deps);
}

class Node implements MetadataNode {
  readonly #deps: MetadataNodeDeps;
  readonly #replicas = new Map<number, Replica>();
  readonly #opening = new Map<number, Promise<void>>();
  /** Of each shard, before it was opened here. */
  readonly #stored = new Map<number, StoredReplica>();
  /** Rows of histories that were given up (R23). */
  readonly #superseded = new Map<number, StoredReplica>();
  readonly #unlisted: UnlistedRows;
  readonly #budget = createOverlayBudget();
  readonly #logBudget: LogBudget = { waitingBytes: 0, tailBytes: 0 };
  readonly #stopped = new AbortController();
  readonly #processId: string;

  constructor(deps: MetadataNodeDeps) {
    this.#deps = deps;
    this.#processId = toHex(deps.random.bytes(PROCESS_ID_BYTES));
    this.#unlisted = new UnlistedRows({ ...deps, release: (shard) => this.#release(shard) });
  }

  async start(): Promise<void> {
    const { peers, registry, shardCount, kv, witness } = this.#deps;
    for (const stored of await readStoredReplicas(kv, witness, shardCount))
      this.#stored.set(stored.shard, stored);
    peers.listen((from, message) => this.#replicas.get(message.shard)?.onMessage(from, message));
    registry.watch((shard, registered) => void this.#onRegistered(shard, registered), this.#stopped.signal);
    void this.#tick();
    await Promise.all(Array.from({ length: shardCount }, (_, shard) => this.#look(shard)));
    void this.#lookAgain();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#replicas.values()].map((replica) => this.#stopReplica(replica)));
    this.#stopped.abort();
  }

  /** What it has begun to change it ends: the voters of before may be this node alone, and nobody could lead (R14). */
  async #stopReplica(replica: Replica): Promise<void> {
    const { clock } = this.#deps;
    const untilMs = clock.monotonicMs() + SILENCE_MS;
    while (replica.isChangingVoters && clock.monotonicMs() < untilMs) await clock.sleep(TICK_MS);
    await replica.stop();
  }

  status(): ReplicaStatus[] {
    return [
      ...[...this.#replicas.values()].map((replica) => replica.status()),
      ...[...this.#superseded.values()].map(supersededStatus),
    ];
  }

  promised(): ReadonlyMap<number, number> {
    const epochs = new Map<number, number>();
    for (const { shard, promised } of this.#stored.values()) epochs.set(shard, promised);
    for (const [shard, replica] of this.#replicas) epochs.set(shard, replica.promised.promised);
    return epochs;
  }

  replica(shard: number): Replica | undefined {
    return this.#replicas.get(shard);
  }

  ticket(): Ticket {
    return { processId: this.#processId, ...momentNow(this.#deps.clock) };
  }

  async handle(call: ShardCall): Promise<ShardReply> {
    const { envelope, ticket } = call;
    const taken = this.ticket();
    // R48: nothing is evaluated behind the back of a client that was told 503. A wall clock that was set may refuse one
    // needlessly: it is asked again, with the ticket of this reply.
    const ageMaxMs =
      call.kind === 'execute' ? Math.min(call.budgetMs, LIMITS.ticketAgeMaxMs) : LIMITS.ticketAgeMaxMs;
    if (ticket.processId !== taken.processId || passedMs(ticket, taken) > ageMaxMs)
      return { kind: 'too-old' };
    if (call.kind === 'status') return { kind: 'done', value: this.status(), timeMs: 0 };
    if (call.kind === 'discard') return this.#discard(envelope.shard);
    const replica = this.#replicas.get(envelope.shard);
    const reply =
      call.kind === 'execute'
        ? replica?.execute(
            envelope,
            call.name,
            call.body,
            () => passedMs(ticket, this.ticket()) > call.budgetMs,
          )
        : replica?.query(envelope, call.name, call.body);
    if (reply === undefined) return { kind: 'not-primary', primary: replica?.primary?.nodeId };
    return reply.catch((error: unknown) => {
      // R17: nothing was evaluated, and another replica leads from now on.
      if (error instanceof Corruption) return { kind: 'not-primary' as const, primary: undefined };
      this.#deps.logger.error({ shard: envelope.shard, name: call.name, err: error }, 'call-failed');
      return { kind: 'unknown' as const };
    });
  }

  async #tick(): Promise<void> {
    const { clock } = this.#deps;
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      for (const replica of this.#replicas.values()) replica.tick();
      await clock.sleep(TICK_MS, signal);
    }
  }

  /** Watches are hints: what one has missed is found sooner or later. */
  async #lookAgain(): Promise<void> {
    const { registry, clock, shardCount } = this.#deps;
    const { signal } = this.#stopped;
    for (let shard = 0; !signal.aborted; shard = (shard + 1) % shardCount) {
      await clock.sleep(LOOK_AGAIN_MS / shardCount, signal);
      const known = this.#lastSeen();
      const registered = await registry.read(shard).catch(() => undefined);
      // The store may be closed by now.
      if (registered === undefined || signal.aborted) continue;
      await this.#onRegistered(shard, registered);
      // It may be said to list nobody here by a registry that has forgotten that it does.
      if (!isBehind(registered, known)) await this.#deleteUnlisted(shard, registered);
    }
  }

  /** R14. Whatever the registry says of the shard meanwhile waits. */
  async #deleteUnlisted(shard: number, registered: RegisteredShard): Promise<void> {
    const { logger } = this.#deps;
    await this.#opening.get(shard);
    const deleting = this.#unlisted
      .onRead(shard, registered)
      .catch((error: unknown) => {
        logger.error({ shard, err: error }, 'unlisted-rows-not-deleted');
        return false;
      })
      .finally(() => this.#opening.delete(shard));
    this.#opening.set(
      shard,
      deleting.then(() => undefined),
    );
    // Messages of the meantime were for a replica that is gone.
    if (await deleting) void this.#look(shard);
  }

  async #release(shard: number): Promise<void> {
    const replica = this.#replicas.get(shard);
    this.#replicas.delete(shard);
    this.#stored.delete(shard);
    await replica?.stop();
  }

  async #look(shard: number): Promise<void> {
    const { registry, clock, logger } = this.#deps;
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      try {
        const registered = await registry.read(shard);
        if (registered !== undefined) await this.#onRegistered(shard, registered);
        return;
      } catch (error) {
        logger.warn({ shard, err: error }, 'registry-away');
        await clock.sleep(ASK_AGAIN_MS, signal);
      }
    }
  }

  async #onRegistered(shard: number, registered: RegisteredShard): Promise<void> {
    // There is no wait between the last check and the opening: of two records that arrive at once, one opens it.
    for (let it = this.#opening.get(shard); it !== undefined; it = this.#opening.get(shard)) await it;
    const replica = this.#replicas.get(shard);
    if (replica !== undefined) return replica.onRegistered(registered);
    const { replicaId } = this.#deps;
    const { record } = registered;
    const stored = this.#stored.get(shard);
    if (stored !== undefined && isSuperseded(record, { ...stored, replicaId })) {
      this.#superseded.set(shard, stored);
      return;
    }
    // R23: a registry that was set back may have forgotten that it lists it.
    const isKnown = stored !== undefined && isOlder(registered, { ...stored, replicaId });
    if (!(isKnown || isListed(record, replicaId)) || this.#stopped.signal.aborted) return;
    const opening = this.#open(shard, registered).finally(() => this.#opening.delete(shard));
    this.#opening.set(shard, opening);
    await opening;
  }

  async #open(shard: number, registered: RegisteredShard): Promise<void> {
    const { clusterId, replicaId, logger, peers } = this.#deps;
    const deps: ReplicaDeps = {
      ...this.#deps,
      shard,
      kv: boundedKv(this.#deps.kv),
      budget: this.#budget,
      logBudget: this.#logBudget,
      send: (to, message) => peers.send(to, message),
      onSuperseded: () => void this.#giveUp(shard),
    };
    try {
      const how = { registered, mayBeFirst: await this.#mayBeFirst(shard, registered) };
      this.#replicas.set(shard, await openReplica(deps, { clusterId, replicaId }, how));
    } catch (error) {
      logger.error({ shard, err: error }, 'replica-not-opened');
    }
  }

  /**
   * R23: not by a registry that is behind what this node has seen of it by other shards: it says nothing about this one.
   * Throws where it is not this cluster's: nothing is opened by it.
   */
  async #mayBeFirst(shard: number, registered: RegisteredShard): Promise<boolean> {
    if (this.#stored.has(shard) || registered.record.epoch > 0) return false;
    if ((await this.#deps.cluster()) === 'unknown') throw new Error('etcd does not have this cluster');
    const known = this.#lastSeen();
    if (!isBehind(registered, known)) return true;
    // A hint may be late: what others have seen since says nothing against what it says.
    const read = await this.#deps.registry.read(shard);
    return read !== undefined && read.record.epoch === 0 && !isBehind(read, known);
  }

  /** The latest moment of the registry that any replica here has seen. */
  #lastSeen(): RegistryMoment | undefined {
    let last: RegistryMoment | undefined;
    for (const { seen } of [
      ...this.#stored.values(),
      ...[...this.#replicas.values()].map((replica) => replica.promised),
    ])
      if (seen !== null && (last === undefined || compareMoments(seen, last) > 0)) last = seen;
    return last;
  }

  /** R23: its rows stay for salvage, and do nothing. */
  async #giveUp(shard: number): Promise<void> {
    const { kv, witness, logger } = this.#deps;
    const replica = this.#replicas.get(shard);
    if (replica === undefined) return;
    this.#replicas.delete(shard);
    await replica.stop();
    const stored = await readStoredReplica(kv, witness, shard);
    if (stored === undefined) return;
    logger.warn({ shard, incarnation: stored.incarnation, last: stored.last }, 'replica-superseded');
    this.#stored.set(shard, stored);
    this.#superseded.set(shard, stored);
  }

  /** R23: the operator's word that nothing of it is wanted any more. The node may hold the shard anew after that. */
  async #discard(shard: number): Promise<ShardReply> {
    const { logger } = this.#deps;
    if (!this.#superseded.has(shard)) return { kind: 'done', value: { isDiscarded: false }, timeMs: 0 };
    logger.warn({ shard }, 'superseded-rows-discarded');
    await this.#unlisted.delete(shard);
    this.#superseded.delete(shard);
    this.#stored.delete(shard);
    void this.#look(shard);
    return { kind: 'done', value: { isDiscarded: true }, timeMs: 0 };
  }
}

/** R23: `known` was seen before it was read. */
function isBehind(registered: RegisteredShard, known: RegistryMoment | undefined): boolean {
  return known !== undefined && compareMoments(momentOfReading(registered), known) < 0;
}

function supersededStatus({ shard, incarnation, promised, last, appliedSeq }: StoredReplica): ReplicaStatus {
  return {
    shard,
    incarnation,
    epoch: promised,
    lastSeq: last.seq,
    appliedSeq,
    appliedTimeMs: 0,
    role: 'follower',
    state: 'superseded',
    primary: undefined,
    lags: [],
    isRegistryBehind: false,
    isTimeBelieved: true,
  };
}
