// Where the placement map of the simulated cluster is kept, and who makes it: the first one as soon as every storage
// node has made its disk known, the next ones when a disk is another than it was, as an operator decides. It stands
// where the registry stands, so cuts and partitions reach it; processes learn of a map late, or from a node that has.
import { createKnownPlacement, type KnownPlacement } from '../../src/cluster/known-placement.ts';
import { changePlacement, makePlacement, NO_PLACEMENT } from '../../src/cluster/placement.ts';
import type { PlacedDisk, PlacementMap } from '../../src/ports/placement.ts';
import type { NodeId } from '../../src/ports/replication.ts';
import type { StorageMember } from '../../src/ports/storage-members.ts';
import type { Chance } from './chance.ts';
import type { SimulatedProcess } from './clock.ts';
import type { Counts } from './counts.ts';
import type { Network } from './network.ts';
import { REGISTRY_HOST } from './registry.ts';
import type { Scheduler } from './scheduler.ts';

const COPIES = 3;
const DELAY_MAX_MS = 8;
/** Until a process that watches is told. */
const TOLD_MAX_MS = 1500;
const ASK_AGAIN_MS = 500;

export class PlacementBoard {
  readonly #scheduler: Scheduler;
  readonly #network: Network;
  readonly #chance: Chance;
  readonly #counts: Counts;
  readonly #nodeCount: number;
  readonly #members = new Map<NodeId, StorageMember>();
  readonly #watchers = new Map<SimulatedProcess, KnownPlacement>();
  #map: PlacementMap | undefined;

  constructor(ground: {
    scheduler: Scheduler;
    network: Network;
    chance: Chance;
    counts: Counts;
    nodeCount: number;
  }) {
    this.#scheduler = ground.scheduler;
    this.#network = ground.network;
    this.#chance = ground.chance;
    this.#counts = ground.counts;
    this.#nodeCount = ground.nodeCount;
  }

  get map(): PlacementMap | undefined {
    return this.#map;
  }

  /** Resolves when the board knows; rejects when it is out of reach. */
  async announce(process: SimulatedProcess, member: StorageMember): Promise<void> {
    await process.later(this.#chance.between(0, DELAY_MAX_MS), 'announces its disks', () => {
      if (this.#isCut(process)) throw new Error('the registry is away');
      this.#members.set(member.nodeId, structuredClone(member));
      this.#place();
    });
  }

  /** What one process knows of the map. */
  known(process: SimulatedProcess): KnownPlacement {
    const known = createKnownPlacement(NO_PLACEMENT, () => void this.#look(process, known));
    this.#watchers.set(process, known);
    process.onEnd(() => this.#watchers.delete(process));
    void this.#look(process, known);
    return known;
  }

  async #look(process: SimulatedProcess, known: KnownPlacement): Promise<void> {
    for (let isFirst = true; ; isFirst = false) {
      if (!isFirst) await process.clock.sleep(ASK_AGAIN_MS);
      const map = await process.later(this.#chance.between(0, DELAY_MAX_MS), 'reads the placement', () =>
        this.#isCut(process) ? undefined : this.#map,
      );
      if (map === undefined) continue;
      known.learn(map);
      return;
    }
  }

  #place(): void {
    const disks = [...this.#members.values()].flatMap((member) =>
      member.disks.map(({ id, capacityBytes }): PlacedDisk => {
        const { nodeId, zone, address } = member;
        return { id, nodeId, zone, address, capacityBytes };
      }),
    );
    if (disks.length < this.#nodeCount) return;
    const map = this.#map;
    if (map === undefined) this.#map = makePlacement({ disks, copies: COPIES });
    else if (disks.some(({ id }) => !map.disks.some((old) => old.id === id))) {
      this.#map = changePlacement(map, { disks });
      this.#counts.add('chunks: map changed');
    } else return;
    this.#tell(this.#map);
  }

  #tell(map: PlacementMap): void {
    for (const [process, known] of this.#watchers)
      process.schedule(this.#chance.between(0, TOLD_MAX_MS), `hears of placement ${map.version}`, () => {
        if (!this.#isCut(process)) known.learn(map);
      });
    this.#scheduler.trace(`placement ${map.version}: ${map.disks.map(({ id }) => id).join(' ')}`);
  }

  #isCut(process: SimulatedProcess): boolean {
    const host = process.host.name;
    return this.#network.isCut(host, REGISTRY_HOST) || this.#network.isCut(REGISTRY_HOST, host);
  }
}
