// What goes wrong with storage nodes in the simulated world, each thing by its name. Disks lose what was synced one at a time:
// the next one does when all chunks are whole again, and those of bodies under way have lost nothing.
import type { ChunkId } from '../../src/ports/chunks.ts';
import type { Chance } from './chance.ts';
import type { SimulatedDisk } from './disk.ts';
import type { Network } from './network.ts';
import { REGISTRY_HOST } from './registry.ts';
import type { StorageSite } from './storage-site.ts';

export interface StoredCopy {
  site: StorageSite;
  disk: SimulatedDisk;
  id: ChunkId;
}

export interface FaultyStorage {
  /** But those that were removed for good. */
  sites: readonly StorageSite[];
  network: Network;
  /** Machines that ask storage nodes. */
  askers: readonly string[];
  /** Copies on one disk of chunks that live, each where readers ask for it first; the first one is any. */
  readCopies(): StoredCopy[];
  /** This copy is none any more. */
  damaged(copy: StoredCopy): void;
}

interface StorageFault {
  minMs?: number;
  maxMs: number;
  /** Takes synced bytes from a disk. */
  losesData?: true;
  /** Returns what ends it, or undefined when there is nothing that it could happen to. */
  begin(storage: FaultyStorage, chance: Chance): (() => void) | undefined;
}

const DAY_MS = 24 * 60 * 60_000;
const DURATION_MIN_MS = 200;
/** Until the placer gives a disk up, and longer. */
const AWAY_MIN_MS = 13_000;
const FAULTS_MIN = 3;
const FAULTS_MAX = 6;
const LOSSES_MAX = 3;
const ONE_ROTS_SHARE = 0.2;

function down(site: StorageSite, meanwhile: () => void = () => undefined): () => void {
  const release = site.keepDown();
  site.kill();
  meanwhile();
  return release;
}

const all = (ends: readonly (() => void)[]) => () => {
  for (const end of ends) end();
};

const FAULTS = {
  'storage kill': { maxMs: 10_000, begin: ({ sites }, chance) => down(chance.pick(sites)) },
  'storage kill of all': { maxMs: 3000, begin: ({ sites }) => all(sites.map((site) => down(site))) },
  'storage long away': {
    minMs: AWAY_MIN_MS,
    maxMs: 22_000,
    begin: ({ sites }, chance) => down(chance.pick(sites)),
  },
  'storage loss of power': {
    maxMs: 8000,
    begin: ({ sites }, chance) => {
      const site = chance.pick(sites);
      return down(site, () => {
        for (const disk of site.disks) disk.losePower();
      });
    },
  },
  'storage pause': {
    maxMs: 15_000,
    begin: ({ sites }, chance) => {
      const { process } = chance.pick(sites);
      process?.stop();
      return process && (() => process.continue());
    },
  },
  'storage slow': {
    maxMs: 12_000,
    begin: ({ sites }, chance) => {
      const { pace } = chance.pick(chance.pick(sites).disks);
      const syncMaxMs = chance.between(50, 3000);
      return pace.change({ syncMaxMs, slowReadShare: 0.5, slowReadMaxMs: 500 });
    },
  },
  'storage isolated': {
    maxMs: 12_000,
    begin: ({ sites, network, askers }, chance) => {
      const { name } = chance.pick(sites);
      const others = [...askers, REGISTRY_HOST];
      return all(others.flatMap((other) => [network.cut(name, other), network.cut(other, name)]));
    },
  },
  'storage one-way cut': {
    maxMs: 12_000,
    begin: ({ sites, network, askers }, chance) => {
      const { name } = chance.pick(sites);
      const isDeaf = chance.happens(0.5);
      return all(askers.map((other) => (isDeaf ? network.cut(other, name) : network.cut(name, other))));
    },
  },
  'storage clock': {
    maxMs: 20_000,
    begin: ({ sites }, chance) => {
      const { host } = chance.pick(sites);
      const stepMs = chance.pick([-1, 1]) * chance.int(1, 5) * DAY_MS;
      host.stepWall(stepMs);
      return () => host.stepWall(-stepMs);
    },
  },
  'storage failed sync': {
    maxMs: 1,
    begin: ({ sites }, chance) => {
      const running = sites.filter(({ node }) => node !== undefined);
      if (running.length === 0) return undefined;
      chance.pick(chance.pick(running).disks).failSync(chance.happens(0.3) ? 'extents' : 'log');
      return () => undefined;
    },
  },
  'storage cut log': {
    maxMs: 4000,
    losesData: true,
    begin: ({ sites }, chance) => {
      const site = chance.pick(sites);
      return down(site, () => chance.pick(site.disks).cutLog());
    },
  },
  'storage wiped disk': {
    maxMs: 4000,
    losesData: true,
    begin: ({ sites }, chance) => {
      const site = chance.pick(sites);
      return down(site, () => chance.pick(site.disks).wipe());
    },
  },
  'storage lost node': {
    maxMs: 4000,
    losesData: true,
    begin: ({ sites }, chance) => {
      const site = chance.pick(sites);
      return down(site, () => {
        for (const disk of site.disks) disk.wipe();
      });
    },
  },
  'storage flipped bit': {
    maxMs: 1,
    losesData: true,
    begin: ({ readCopies, damaged }) => {
      const [copy] = readCopies();
      if (copy === undefined) return undefined;
      copy.site.flipBit(copy.disk, copy.id);
      damaged(copy);
      return () => undefined;
    },
  },
  'storage rotten chunks': {
    maxMs: 1,
    losesData: true,
    begin: ({ readCopies, damaged }, chance) => {
      const copies = readCopies();
      if (copies.length === 0) return undefined;
      // Mostly all of them, so that a reader meets one before the disk finds it.
      const rotten = chance.happens(ONE_ROTS_SHARE) ? copies.slice(0, 1) : copies;
      for (const copy of rotten) {
        copy.site.rot(copy.disk, copy.id);
        damaged(copy);
      }
      return () => undefined;
    },
  },
} as const satisfies Record<string, StorageFault>;

export type StorageFaultName = keyof typeof FAULTS;

export const STORAGE_FAULTS = Object.keys(FAULTS) as StorageFaultName[];

/** What is always possible. */
export const INSTEAD: StorageFaultName = 'storage kill';

export function storageFaultOf(name: StorageFaultName): StorageFault {
  return FAULTS[name];
}

export interface PlannedStorageFault {
  name: StorageFaultName;
  /** After the clients begin. */
  afterMs: number;
  durationMs: number;
}

/** One of them at least takes something from a disk. */
export function planStorageFaults(
  chance: Chance,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): PlannedStorageFault[] {
  const losing = STORAGE_FAULTS.filter((name) => storageFaultOf(name).losesData);
  const others = STORAGE_FAULTS.filter((name) => !storageFaultOf(name).losesData);
  const names: StorageFaultName[] = [];
  for (let left = chance.int(1, LOSSES_MAX); left > 0; left--) names.push(chance.pick(losing));
  for (let left = chance.int(FAULTS_MIN, FAULTS_MAX) - 1; left > 0; left--) names.push(chance.pick(others));
  return names.map((name): PlannedStorageFault => {
    const { minMs = DURATION_MIN_MS, maxMs, losesData = false } = storageFaultOf(name);
    const durationMs = maxMs <= minMs ? maxMs : chance.between(minMs, maxMs);
    // What is lost was there for a while, and is not written anew soon.
    const beginsMs = losesData ? fromMs + (toMs - fromMs) / 4 : fromMs;
    return { name, afterMs: chance.between(beginsMs, toMs), durationMs };
  });
}
