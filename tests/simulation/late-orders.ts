// Orders that come when they no longer hold (R38): disks that own one chunk are to leave, so that it is copied elsewhere and
// dropped there; the orders to drop are held back on their way, the disks stay after all, and what was copied elsewhere
// goes. Then the orders arrive. By then the disks own the chunk again, and the other copies may be gone.
import { changePlacement, ownersOf } from '../../src/chunks/placement/placement.ts';
import { withLeave } from '../../src/chunks/placement/placement-changes.ts';
import type { ChunkId } from '../../src/ports/chunks.ts';
import type { DiskId, PlacementMap } from '../../src/ports/placement.ts';
import type { Chance } from './chance.ts';
import type { ChunkNetwork } from './chunk-network.ts';
import type { DiskOperators } from './disk-operators.ts';
import type { PlacementBoard } from './placement-board.ts';
import type { Ground } from './sites.ts';
import { StorageSite } from './storage-site.ts';

/** Of the seeds with chunks. */
const SHARE = 0.5;
/** After the clients begin: there is something that can move by then. */
const FROM_MS = 9000;
const TO_MS = 22_000;
/** When so many copies of a chunk go at once, one is left. */
const LEAVING_MIN = 2;
/** Until copies are dropped for the change, if they are. */
const ORDERS_AWAITED_MS = 18_000;
const LOOK_EVERY_MS = 250;
/** From the first orders to two of them on, for those to others. */
const MORE_AWAITED_MAX_MS = 3000;
/** From the second change of the map until an order arrives. */
const HELD_MIN_MS = 3000;
const HELD_MAX_MS = 20_000;

const BRANCHES = {
  begun: 'fault: late orders',
  arrived: 'last act: late orders',
};

export const LATE_ORDER_BRANCHES: readonly string[] = Object.values(BRANCHES);

export interface LateOrdersParts {
  chance: Chance;
  board: PlacementBoard;
  network: ChunkNetwork;
  operators: DiskOperators;
  /** Chunks of all that lives. */
  liveChunks(): readonly ChunkId[];
}

interface HeldOrder {
  to: string;
  send(): void;
}

export class LateOrders {
  readonly #ground: Ground;
  readonly #parts: LateOrdersParts;
  readonly #held: HeldOrder[] = [];
  /** Disks that leave, as long as they do. */
  #leaving = new Set<DiskId>();
  #letGo: () => void = () => undefined;
  #hasEnded = false;

  constructor(ground: Ground, parts: LateOrdersParts) {
    this.#ground = ground;
    this.#parts = parts;
  }

  begin(): void {
    const { chance } = this.#parts;
    if (!chance.happens(SHARE)) return;
    this.#ground.scheduler.after(chance.between(FROM_MS, TO_MS), {
      name: 'fault: orders are held back',
      run: () => void this.#run(),
    });
  }

  /** Nothing is held back any more; what was will arrive. */
  end(): void {
    this.#hasEnded = true;
    if (this.#leaving.size > 0) this.#stay();
  }

  async #run(): Promise<void> {
    const { board, network, chance } = this.#parts;
    const { scheduler, counts } = this.#ground;
    const { map } = board;
    const leaving = map === undefined ? [] : this.#pickLeaving(map);
    if (this.#hasEnded || map === undefined || leaving.length < LEAVING_MIN) return;
    counts.add(BRANCHES.begun);
    this.#leaving = new Set(leaving);
    this.#letGo = network.holdDrops((to, send) => this.#held.push({ to, send }));
    board.put(changePlacement(map, { disks: withLeave(map.disks, this.#leaving, 'draining') }));
    const endMs = scheduler.nowMs + ORDERS_AWAITED_MS;
    // One alone would take one copy of three.
    while (this.#places().size < LEAVING_MIN && scheduler.nowMs < endMs)
      await scheduler.sleep(LOOK_EVERY_MS, 'too few orders to hold back yet');
    await scheduler.sleep(chance.between(0, MORE_AWAITED_MAX_MS), 'more orders are held back');
    this.end();
  }

  /** The disks stay after all: what was ordered until now holds no more. */
  #stay(): void {
    const { board, operators, chance } = this.#parts;
    const { scheduler, counts, network } = this.#ground;
    this.#letGo();
    const { map } = board;
    // Who is drained for good meanwhile goes on leaving.
    const drained = new Set(operators.draining?.disks.map((disk) => StorageSite.idOf(disk)));
    const staying = new Set([...this.#leaving].filter((id) => !drained.has(id)));
    this.#leaving = new Set();
    if (map !== undefined)
      board.put(changePlacement(map, { disks: withLeave(map.disks, staying, undefined) }));
    const places = this.#places();
    for (const { send } of this.#held.splice(0)) {
      const heldMs = chance.between(HELD_MIN_MS, HELD_MAX_MS);
      network.noteHeldBack(heldMs);
      scheduler.after(heldMs, { name: 'an order comes late', run: send });
    }
    if (places.size >= LEAVING_MIN) counts.add(BRANCHES.arrived);
  }

  /** Who was ordered something that is held back. */
  #places(): ReadonlySet<string> {
    return new Set(this.#held.map(({ to }) => to));
  }

  /** Owners of one chunk, as many as can be without. */
  #pickLeaving(map: PlacementMap): DiskId[] {
    const { chance, liveChunks } = this.#parts;
    const chunks = liveChunks();
    if (chunks.length === 0) return [];
    const nodesWithout = (ids: readonly DiskId[]) =>
      new Set(map.disks.flatMap(({ id, nodeId, leave }) => (leave || ids.includes(id) ? [] : [nodeId]))).size;
    const leaving: DiskId[] = [];
    for (const id of chance.shuffled(ownersOf(map, chance.pick(chunks))))
      if (nodesWithout([...leaving, id]) >= map.copies) leaving.push(id);
    return leaving;
  }
}
