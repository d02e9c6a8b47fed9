// A fault that has several acts: each waits for a moment that its reader names, mostly a message that arrives, and does
// harm right then. What it has done is put right in its end, wherever it had got to.
import type { ReplicaMessage } from '../../src/ports/replication.ts';
import type { FaultyWorld, NodeSite } from './faults.ts';
import { REGISTRY_HOST } from './registry.ts';

type Kind = ReplicaMessage['kind'];
type OfKind<K extends Kind> = Extract<ReplicaMessage, { kind: K }>;

/** What can be cut off. */
interface Place {
  host: { name: string };
}

/** One of the shard's messages as it arrives. */
export interface Arrival<K extends Kind> {
  from: NodeSite;
  to: NodeSite;
  message: OfKind<K>;
}

export class Plot {
  readonly #world: FaultyWorld;
  readonly #shard: number;
  readonly #lastAct: string;
  readonly #undos = new Set<() => void>();
  #hasEnded = false;

  /** `lastAct`: what is counted when it comes to that. */
  constructor(world: FaultyWorld, { shard, lastAct }: { shard: number; lastAct: string }) {
    this.#world = world;
    this.#shard = shard;
    this.#lastAct = lastAct;
  }

  /** Done once, by the caller or at the end. */
  keep(undo: () => void): () => void {
    const once = () => {
      if (this.#undos.delete(once)) undo();
    };
    this.#undos.add(once);
    return once;
  }

  /** Nothing gets through in either direction. */
  part(one: Place, ...others: readonly Place[]): () => void {
    const { network } = this.#world;
    const cuts = others.flatMap((other) => [
      network.cut(one.host.name, other.host.name),
      network.cut(other.host.name, one.host.name),
    ]);
    return this.keep(() => {
      for (const heal of cuts) heal();
    });
  }

  partFromRegistry(site: NodeSite): () => void {
    return this.part(site, { host: { name: REGISTRY_HOST } });
  }

  /** When the first message of the shard that passes arrives, before its receiver has it. */
  when<K extends Kind>(
    kind: K,
    passes: (arrival: Arrival<K>) => boolean,
    act: (arrival: Arrival<K>) => void,
  ): void {
    const end = this.change(kind, (arrival) => {
      if (!passes(arrival)) return undefined;
      end();
      act(arrival);
      return undefined;
    });
  }

  /** As long as the plot goes on, every one of them arrives as `change` makes it. */
  change<K extends Kind>(kind: K, change: (arrival: Arrival<K>) => OfKind<K> | undefined): () => void {
    const { network, nodes } = this.#world;
    const siteOf = (name: string) => nodes.find(({ host }) => host.name === name);
    return this.keep(
      network.watch((fromName, toName, message) => {
        const [from, to] = [siteOf(fromName), siteOf(toName)];
        if (message.kind !== kind || message.shard !== this.#shard || !from || !to) return undefined;
        return change({ from, to, message: message as OfKind<K> });
      }),
    );
  }

  after(delayMs: number, act: () => void): void {
    this.#world.after(delayMs, () => {
      if (!this.#hasEnded) act();
    });
  }

  reachedLastAct(): void {
    this.#world.count(this.#lastAct);
  }

  end(): void {
    this.#hasEnded = true;
    for (const undo of [...this.#undos].reverse()) undo();
  }
}
