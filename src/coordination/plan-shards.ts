// Plans which metadata nodes should hold and lead which shard: evenly over nodes, copies in distinct zones, with as few
// moves as that needs (R14). Pure.
import { must } from '../base/assert.ts';
import type { NodeId, ReplicaId, ReplicaRef } from '../ports/replication.ts';
import type { WantedShard } from '../ports/shard-registry.ts';

export interface PlannedNode {
  ref: ReplicaRef;
  zone: string;
}

export type NodeZones = ReadonlyMap<NodeId, string>;

/** The known state of each shard; undefined: it has no record yet. */
export interface PresentShard {
  voters: readonly ReplicaRef[];
  primary: ReplicaId | undefined;
}

/** The nodes that may hold shards, and the number of voters. */
export interface PlannedNodes {
  /** Nodes that are there, leaving ones included. */
  nodes: readonly PlannedNode[];
  /** The zones of nodes, there or not, as far as they are known. */
  zones: NodeZones;
  replicaCount: number;
  /** Nodes, there or not, that get nothing and lose what others can take. */
  leaving: ReadonlySet<NodeId>;
}

/**
 * The wanted state of each of `shards`. Voters of nodes that are not in `nodes` stay: a node that is away for a while must
 * not lose its shards. An operator marks a node that is gone for good as `leaving`: another node takes its place, and until
 * there is one it stays a voter. But a node with another database has lost the one it had (R1): the new database takes its
 * place.
 */
export function planShards(
  shards: readonly (PresentShard | undefined)[],
  planned: PlannedNodes,
): WantedShard[] {
  const plan = new Plan(planned);
  for (const shard of shards) plan.keep(shard);
  for (const index of shards.keys()) plan.relieve(index);
  for (const index of shards.keys()) plan.fill(index);
  for (const index of shards.keys()) plan.separate(index);
  plan.level();
  return plan.wishes(shards);
}

class Plan {
  readonly #zones: NodeZones;
  /** Of nodes that stay. */
  readonly #refs: ReadonlyMap<ReplicaId, ReplicaRef>;
  readonly #present: readonly ReplicaRef[];
  readonly #leaving: ReadonlySet<NodeId>;
  readonly #replicaCount: number;
  readonly #voters: ReplicaRef[][] = [];
  readonly #loads = new Map<ReplicaId, number>();

  constructor({ nodes, zones, replicaCount, leaving }: PlannedNodes) {
    const staying = nodes.filter(({ ref }) => !leaving.has(ref.nodeId));
    this.#zones = zones;
    this.#refs = new Map(staying.map(({ ref }) => [ref.replicaId, ref]));
    this.#present = nodes.map(({ ref }) => ref);
    this.#leaving = leaving;
    this.#replicaCount = Math.min(replicaCount, odd(staying.length));
    for (const { ref } of staying) this.#loads.set(ref.replicaId, 0);
  }

  keep(shard: PresentShard | undefined): void {
    const voters = (shard?.voters ?? []).map((ref) => this.#presentOf(ref));
    this.#voters.push(voters);
    for (const { replicaId } of voters) this.#add(replicaId, 1);
  }

  #presentOf(ref: ReplicaRef): ReplicaRef {
    if (this.#present.some(({ replicaId }) => replicaId === ref.replicaId)) return ref;
    return this.#present.find(({ nodeId }) => nodeId === ref.nodeId) ?? ref;
  }

  /** Replaces leaving voters as far as there are other nodes. */
  relieve(index: number): void {
    const voters = must(this.#voters[index], 'a shard');
    for (const [at, { nodeId }] of voters.entries()) {
      if (!this.#leaving.has(nodeId)) continue;
      const chosen = this.#leastLoaded(voters.filter((ref) => !this.#leaving.has(ref.nodeId)));
      if (chosen === undefined) return;
      voters[at] = chosen;
      this.#add(chosen.replicaId, 1);
    }
  }

  /** Adds missing voters on the nodes that have least. */
  fill(index: number): void {
    const voters = must(this.#voters[index], 'a shard');
    while (voters.length < this.#replicaCount) {
      const chosen = this.#leastLoaded(voters);
      if (chosen === undefined) return;
      voters.push(chosen);
      this.#add(chosen.replicaId, 1);
    }
  }

  /**
   * Moves voters that share a zone to one that has none: they came together while there was no other. Not while a voter is
   * away, so that the shard keeps those that it has.
   */
  separate(index: number): void {
    const voters = must(this.#voters[index], 'a shard');
    if (!voters.every(({ replicaId }) => this.#refs.has(replicaId))) return;
    for (let crowd = this.#crowdOf(voters); crowd.length > 0; crowd = this.#crowdOf(voters)) {
      const chosen = this.#leastLoaded(voters);
      const [fullest] = crowd.sort((a, b) => this.#load(b.replicaId) - this.#load(a.replicaId));
      if (chosen === undefined || fullest === undefined || this.#isBeside(chosen, voters)) return;
      voters[voters.indexOf(fullest)] = chosen;
      this.#add(fullest.replicaId, -1);
      this.#add(chosen.replicaId, 1);
    }
  }

  /** Moves voters from the fullest node to the emptiest while that makes them more equal. */
  level(): void {
    for (let moves = 0; moves < this.#voters.length * this.#replicaCount; moves++) {
      const byLoad = [...this.#refs.keys()].sort((a, b) => this.#load(a) - this.#load(b));
      const emptiest = byLoad[0];
      const fullest = byLoad.at(-1);
      if (emptiest === undefined || fullest === undefined) return;
      if (this.#load(fullest) - this.#load(emptiest) < 2 || !this.#move(fullest, emptiest)) return;
    }
  }

  /** Spreads primaries evenly over the nodes that may lead; a primary in a good place stays. */
  wishes(shards: readonly (PresentShard | undefined)[]): WantedShard[] {
    const led = new Map<ReplicaId, number>();
    const mayLead = (voters: readonly ReplicaRef[]) =>
      voters.filter(({ replicaId }) => this.#refs.has(replicaId));
    const share = Math.ceil(this.#voters.length / Math.max(1, this.#refs.size));
    return this.#voters.map((voters, index) => {
      const present = shards[index]?.primary;
      const able = mayLead(voters);
      const keeps =
        able.some(({ replicaId }) => replicaId === present) && (led.get(present ?? '') ?? 0) < share;
      const [least] = able.sort((a, b) => (led.get(a.replicaId) ?? 0) - (led.get(b.replicaId) ?? 0));
      const primary = keeps ? present : least?.replicaId;
      if (primary === undefined) return { voters };
      led.set(primary, (led.get(primary) ?? 0) + 1);
      return { voters, primary };
    });
  }

  #move(from: ReplicaId, to: ReplicaId): boolean {
    for (const voters of this.#voters) {
      const at = voters.findIndex(({ replicaId }) => replicaId === from);
      if (at === -1 || voters.some(({ replicaId }) => replicaId === to)) continue;
      const rest = voters.filter((_, index) => index !== at);
      const [old, next] = [must(voters[at], 'a voter'), must(this.#refs.get(to), 'a node')];
      // Never into a zone that has a copy already, unless the moved voter was in it.
      if (this.#isBeside(next, rest) && !this.#isBeside(next, [old])) continue;
      voters[at] = next;
      this.#add(from, -1);
      this.#add(to, 1);
      return true;
    }
    return false;
  }

  #leastLoaded(voters: readonly ReplicaRef[]): ReplicaRef | undefined {
    const taken = new Set(voters.map(({ replicaId }) => replicaId));
    const free = [...this.#refs.values()].filter(({ replicaId }) => !taken.has(replicaId));
    const rank = (ref: ReplicaRef) =>
      (this.#isBeside(ref, voters) ? 1_000_000 : 0) + this.#load(ref.replicaId);
    return free.sort((a, b) => rank(a) - rank(b) || (a.replicaId < b.replicaId ? -1 : 1))[0];
  }

  /** Of `voters`, those with another one in their zone. */
  #crowdOf(voters: readonly ReplicaRef[]): ReplicaRef[] {
    return voters.filter((ref) =>
      this.#isBeside(
        ref,
        voters.filter((other) => other !== ref),
      ),
    );
  }

  /** Whether one of `others` is in the zone of `ref`. */
  #isBeside(ref: ReplicaRef, others: readonly ReplicaRef[]): boolean {
    const zone = this.#zones.get(ref.nodeId);
    return zone !== undefined && others.some(({ nodeId }) => this.#zones.get(nodeId) === zone);
  }

  #load(replicaId: ReplicaId): number {
    return this.#loads.get(replicaId) ?? 0;
  }

  #add(replicaId: ReplicaId, delta: number): void {
    if (this.#loads.has(replicaId)) this.#loads.set(replicaId, this.#load(replicaId) + delta);
  }
}

/** An even number of voters survives no more losses than one fewer. */
function odd(count: number): number {
  return count % 2 === 0 ? count - 1 : count;
}
