// What etcd keeps for chunks in the simulated cluster: the placement map, which is changed by compare-and-swap, the members
// that announce their disks, and the lock for placing disks. It shares the registry's place in the network, so cuts and
// absences of the registry are its own too. Processes hear of a change late, or first from a node that has heard of it.
import { createKnownPlacement, type KnownPlacement } from '../../src/chunks/placement/known-placement.ts';
import { NO_PLACEMENT } from '../../src/chunks/placement/placement.ts';
import { documentOf, placementOf } from '../../src/chunks/placement/placement-document.ts';
import type { JobLock, JobLocksPort } from '../../src/ports/coordination.ts';
import type { Member, StorageMember } from '../../src/ports/members.ts';
import type { PlacementMap } from '../../src/ports/placement.ts';
import type { PlacementDocument, PlacementMapPort, StoredPlacement } from '../../src/ports/placement-map.ts';
import type { NodeId } from '../../src/ports/replication.ts';
import type { Chance } from './chance.ts';
import type { SimulatedProcess } from './clock.ts';
import { REGISTRY_HOST } from './registry.ts';
import type { Ground } from './sites.ts';

const DELAY_MAX_MS = 8;
const AWAY_AFTER_MS = 1500;
/** A process that watches is notified within this time. */
const REPORTED_MAX_MS = 1500;
const ASK_AGAIN_MS = 500;
/** A silent watch may hide a change for this long. */
const READ_ANEW_MS = 15_000;
/** A member that has not renewed for so long is none. */
const LEASE_MS = 3000;
const LOOK_EVERY_MS = 500;

interface Listed {
  process: SimulatedProcess;
  member: StorageMember;
  renewedAtMs: number;
}

export class PlacementBoard {
  readonly #ground: Ground;
  readonly #chance: Chance;
  readonly #members = new Map<NodeId, Listed>();
  readonly #watchers = new Map<SimulatedProcess, (stored: StoredPlacement) => void>();
  /** One for all who read it: a map is not changed. */
  readonly #maps = new WeakMap<PlacementDocument, PlacementMap>();
  readonly #waiting: { process: SimulatedProcess; take(lock: JobLock): void }[] = [];
  #holder: SimulatedProcess | undefined;
  #token = 0;
  #stored: StoredPlacement | undefined;
  #onChange: (before: PlacementMap, after: PlacementMap) => void = () => undefined;

  constructor(ground: Ground, chance: Chance) {
    this.#ground = ground;
    this.#chance = chance;
  }

  observe(onChange: (before: PlacementMap, after: PlacementMap) => void): void {
    this.#onChange = onChange;
  }

  /** The newest one. */
  get map(): PlacementMap | undefined {
    return this.#stored && this.mapOf(this.#stored.document);
  }

  mapOf(document: PlacementDocument): PlacementMap {
    let map = this.#maps.get(document);
    if (map === undefined) {
      map = placementOf(document);
      this.#maps.set(document, map);
    }
    return map;
  }

  /** As an operator's tool changes it. */
  put(map: PlacementMap): void {
    this.#write(documentOf(map));
  }

  port(process: SimulatedProcess): PlacementMapPort {
    return {
      read: () => this.#ask(process, 'reads the placement', () => this.#stored),
      swap: async ({ expected, document }) => {
        const isAmbiguous = this.#chance.happens(this.#ground.registry.troubles.now.ambiguousShare);
        return this.#ask(process, 'swaps the placement', () => {
          const isLost = (this.#stored?.revision ?? 0) !== expected;
          const revision = isLost ? 0 : this.#write(document);
          if (isAmbiguous) throw new Error('the registry did not answer');
          return isLost ? { kind: 'lost' as const } : { kind: 'done' as const, revision };
        });
      },
      watch: (onChange, signal) => {
        this.#watchers.set(process, onChange);
        const end = () => this.#watchers.delete(process);
        signal.addEventListener('abort', end, { once: true });
        process.onEnd(end);
        void this.#followAnew(process);
      },
    };
  }

  /**
   * Resolves when the board has it; rejects when the board is out of reach. The member stays as long as it can be reached.
   */
  async announce(process: SimulatedProcess, member: StorageMember): Promise<void> {
    await this.#ask(process, 'announces its disks', () => {
      const own = structuredClone(member);
      this.#members.set(member.nodeId, { process, member: own, renewedAtMs: this.#ground.scheduler.nowMs });
    });
    const keep = async () => {
      for (;;) {
        await process.clock.sleep(LEASE_MS / 3);
        const listed = this.#members.get(member.nodeId);
        if (listed?.process === process && !this.#isAway(process))
          listed.renewedAtMs = this.#ground.scheduler.nowMs;
      }
    };
    if (this.#members.get(member.nodeId)?.process === process) void keep();
  }

  /** Those that renew; with the registry away the last list stays. */
  members(): Member[] {
    const { nowMs } = this.#ground.scheduler;
    const isAway = this.#ground.registry.troubles.now.isAway;
    return [...this.#members.values()].flatMap(({ member, renewedAtMs }): Member[] => {
      if (!isAway && nowMs - renewedAtMs > LEASE_MS) return [];
      const disks = member.disks.map(({ id, ...disk }) => ({ diskId: id, ...disk }));
      return [{ ...member, role: 'storage', version: '', disks }];
    });
  }

  /** What one process knows of the map. */
  known(process: SimulatedProcess): KnownPlacement {
    const port = this.port(process);
    const look = async () => {
      for (;;) {
        const stored = await port.read().catch(() => undefined);
        if (stored !== undefined) return known.learn(this.mapOf(stored.document));
        await process.clock.sleep(ASK_AGAIN_MS);
      }
    };
    const known = createKnownPlacement(NO_PLACEMENT, () => void look());
    port.watch(({ document }) => known.learn(this.mapOf(document)), new AbortController().signal);
    void look();
    return known;
  }

  locks(process: SimulatedProcess): JobLocksPort {
    return {
      acquire: (_name, signal) =>
        new Promise((resolve, reject) => {
          const waiter = { process, take: resolve };
          this.#waiting.push(waiter);
          signal.addEventListener('abort', () => {
            this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
            reject(signal.reason);
          });
          this.#next();
        }),
      holder: async () => undefined,
    };
  }

  #next(): void {
    if (this.#holder !== undefined) return;
    const index = this.#waiting.findIndex(({ process }) => process.isAlive && !this.#isAway(process));
    const [waiter] = index < 0 ? [] : this.#waiting.splice(index, 1);
    if (waiter === undefined) {
      if (this.#waiting.length > 0) this.#later(() => this.#next());
      return;
    }
    const { process, take } = waiter;
    this.#holder = process;
    const lost = new AbortController();
    const leave = () => {
      if (this.#holder !== process) return;
      this.#holder = undefined;
      this.#next();
    };
    const watch = () => {
      if (this.#holder !== process) return;
      if (process.isAlive && !this.#isAway(process)) return this.#later(watch);
      // The holder knows before anybody else does, if it can know anything.
      process.schedule(0, 'loses the lock', () => lost.abort());
      this.#ground.scheduler.after(LEASE_MS, { name: 'the lock goes on', run: leave });
    };
    const lock = { token: ++this.#token, lost: lost.signal, release: async () => leave() };
    process.schedule(this.#chance.between(0, DELAY_MAX_MS), 'has the lock', () => take(lock));
    watch();
  }

  #later(run: () => void): void {
    this.#ground.scheduler.after(LOOK_EVERY_MS, { name: 'looks after the lock', run });
  }

  #write(document: PlacementDocument): number {
    const before = this.map;
    const revision = (this.#stored?.revision ?? 0) + 1;
    this.#stored = { document, revision };
    if (before !== undefined) {
      this.#ground.counts.add('chunks: map changed');
      this.#onChange(before, this.mapOf(document));
    }
    for (const process of this.#watchers.keys()) this.#report(process, this.#stored);
    this.#ground.scheduler.trace(
      `placement ${document.version}: ${this.map?.disks.map(({ id, leave }) => `${id.slice(0, 6)}${leave ? ` ${leave}` : ''}`).join(', ')}`,
    );
    return revision;
  }

  /** As followKeys (src/coordination): a watch may fall silent, so what it follows is read now and then. */
  async #followAnew(process: SimulatedProcess): Promise<void> {
    for (;;) {
      const stored = await this.#ask(process, 'reads the placement', () => this.#stored).catch(
        () => undefined,
      );
      if (stored !== undefined) this.#watchers.get(process)?.(stored);
      await process.clock.sleep(READ_ANEW_MS);
    }
  }

  #report(process: SimulatedProcess, stored: StoredPlacement): void {
    if (this.#ground.registry.troubles.now.isSilent) return;
    const { version } = stored.document;
    process.schedule(this.#chance.between(0, REPORTED_MAX_MS), `hears of placement ${version}`, () => {
      if (!this.#isAway(process)) this.#watchers.get(process)?.(stored);
    });
  }

  async #ask<T>(process: SimulatedProcess, name: string, answer: () => T): Promise<T> {
    const isAway = this.#isAway(process);
    const delayMs = isAway ? AWAY_AFTER_MS : this.#chance.between(0, DELAY_MAX_MS);
    return process.later(delayMs, name, () => {
      if (isAway || this.#isAway(process)) throw new Error('the registry is away');
      return answer();
    });
  }

  #isAway(process: SimulatedProcess): boolean {
    const { network, registry } = this.#ground;
    const host = process.host.name;
    if (registry.troubles.now.isAway) return true;
    return network.isCut(host, REGISTRY_HOST) || network.isCut(REGISTRY_HOST, host);
  }
}
