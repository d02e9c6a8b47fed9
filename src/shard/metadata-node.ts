// A metadata node: the replicas of shards that the registry gives it, driven by messages and time, and the calls of
// gateways that they answer. It decides nothing about who holds what; that stands in the registry (R1, R2).
import { toHex } from '../lib/bytes.ts';
import { LIMITS } from '../model/limits.ts';
import type { ClockPort, RandomPort } from '../ports/clock.ts';
import type { KvPort } from '../ports/kv.ts';
import type { NodeId, PeerPort, ReplicaId } from '../ports/replication.ts';
import type { ReplicaStatus, ShardCall, ShardCallHandler, ShardReply, Ticket } from '../ports/shard-calls.ts';
import type { RegisteredShard, ShardRegistryPort } from '../ports/shard-registry.ts';
import type { StateMachine } from '../ports/state-machine.ts';
import type { Logger } from '../ports/telemetry.ts';
import type { WitnessPort } from '../ports/witness.ts';
import type { LogKept } from './log-trimmer.ts';
import { openReplica } from './open-replica.ts';
import type { OverlayBudget } from './overlay.ts';
import type { Replica } from './replica.ts';
import type { ReplicaEvent } from './replica-events.ts';
import type { ReplicaDeps } from './replica-parts.ts';
import { isListed } from './takeover.ts';

/** Heartbeats and time-outs are looked at this often. */
const TICK_MS = 50;
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
  clock: ClockPort;
  random: RandomPort;
  registry: ShardRegistryPort;
  peers: PeerPort;
  logger: Logger;
  /** Default LOG_KEPT. */
  logKept?: LogKept;
  onEvent?(event: ReplicaEvent): void;
}

export interface MetadataNode extends ShardCallHandler {
  /** Resolves when every shard has been looked up in the registry. */
  start(): Promise<void>;
  /** Hands over what it leads, as well as it can. The store stays open. */
  stop(): Promise<void>;
  status(): ReplicaStatus[];
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
  readonly #budget: OverlayBudget = { usedBytes: 0 };
  readonly #stopped = new AbortController();
  readonly #processId: string;

  constructor(deps: MetadataNodeDeps) {
    this.#deps = deps;
    this.#processId = toHex(deps.random.bytes(PROCESS_ID_BYTES));
  }

  async start(): Promise<void> {
    const { peers, registry, shardCount } = this.#deps;
    peers.listen((from, message) => this.#replicas.get(message.shard)?.onMessage(from, message));
    registry.watch((shard, registered) => void this.#onRegistered(shard, registered), this.#stopped.signal);
    void this.#tick();
    await Promise.all(Array.from({ length: shardCount }, (_, shard) => this.#look(shard)));
    void this.#lookAgain();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#replicas.values()].map((replica) => replica.stop()));
    this.#stopped.abort();
  }

  status(): ReplicaStatus[] {
    return [...this.#replicas.values()].map((replica) => replica.status());
  }

  replica(shard: number): Replica | undefined {
    return this.#replicas.get(shard);
  }

  ticket(): Ticket {
    return { processId: this.#processId, monotonicMs: this.#deps.clock.monotonicMs() };
  }

  async handle(call: ShardCall): Promise<ShardReply> {
    const { envelope, ticket } = call;
    const { clock } = this.#deps;
    const takenMs = clock.monotonicMs();
    const ageMs = takenMs - ticket.monotonicMs;
    // R48: nothing is evaluated behind the back of a client that was told 503.
    if (ticket.processId !== this.#processId || ageMs > LIMITS.ticketAgeMaxMs) return { kind: 'too-old' };
    if (call.kind === 'status') return { kind: 'done', value: this.status(), timeMs: 0 };
    const replica = this.#replicas.get(envelope.shard);
    const reply =
      call.kind === 'execute'
        ? replica?.execute(
            envelope,
            call.name,
            call.body,
            () => clock.monotonicMs() - takenMs > call.budgetMs,
          )
        : replica?.query(envelope, call.name, call.body);
    if (reply === undefined) return { kind: 'not-primary', primary: replica?.primary?.nodeId };
    return reply.catch((error: unknown) => {
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
      const registered = await registry.read(shard).catch(() => undefined);
      if (registered !== undefined) await this.#onRegistered(shard, registered);
    }
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
    await this.#opening.get(shard);
    const replica = this.#replicas.get(shard);
    if (replica !== undefined) return replica.onRegistered(registered);
    const { replicaId } = this.#deps;
    if (!isListed(registered.record, replicaId) || this.#stopped.signal.aborted) return;
    const opening = this.#open(shard, registered).finally(() => this.#opening.delete(shard));
    this.#opening.set(shard, opening);
    await opening;
  }

  async #open(shard: number, registered: RegisteredShard): Promise<void> {
    const { clusterId, replicaId, logger, peers } = this.#deps;
    const deps: ReplicaDeps = {
      ...this.#deps,
      shard,
      budget: this.#budget,
      send: (to, message) => peers.send(to, message),
    };
    try {
      this.#replicas.set(shard, await openReplica(deps, { clusterId, replicaId }, registered));
    } catch (error) {
      logger.error({ shard, err: error }, 'replica-not-opened');
    }
  }
}
