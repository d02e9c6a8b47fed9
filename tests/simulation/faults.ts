// What goes wrong in the simulated world (protocol 4), each thing by its name: how it begins, and how it ends. A seed
// draws several, and when. Disks lose what was synced one at a time only: the next one does when all copies are there again.
import { ENGINE_TABLES, LOG_COLUMN } from '../../src/metadata/engine/row-keys.ts';
import { AIMED_FAULTS } from './aimed-faults.ts';
import type { Chance } from './chance.ts';
import type { SimulatedHost, SimulatedProcess } from './clock.ts';
import type { SimulatedDisk } from './disk.ts';
import type { Network } from './network.ts';
import { REGISTRY_HOST, type SimulatedRegistry } from './registry.ts';

/** A metadata node's machine. */
export interface NodeSite {
  host: SimulatedHost;
  disk: SimulatedDisk;
  process: SimulatedProcess | undefined;
  /** SIGKILL. */
  kill(): void;
  /** SIGKILL, and a new start as soon as can be. */
  crash(): void;
  /** An orderly end, and a new start. */
  restart(): void;
  /** Its service manager leaves it alone until the returned function is called. */
  keepDown(): () => void;
  isReadAtStart(row: { column: string; key: Uint8Array }): boolean;
  /** Which it serves. */
  readonly ledShards: readonly number[];
}

export interface GatewaySite {
  host: SimulatedHost;
  process: SimulatedProcess | undefined;
  kill(): void;
  keepDown(): () => void;
}

export interface FaultyWorld {
  nodes: readonly NodeSite[];
  gateways: readonly GatewaySite[];
  network: Network;
  registry: SimulatedRegistry;
  /** All nodes but this one have all that they should. */
  isWholeWithout(node: NodeSite): boolean;
  /** Of a fault that takes synced bytes later than it begins: now. */
  noteLoss(): void;
  after(delayMs: number, act: () => void): void;
  count(branch: string): void;
}

/** Begins; returns what ends it, or undefined when there is nothing now that it could happen to. */
type Begin = (world: FaultyWorld, chance: Chance) => (() => void) | undefined;

export interface FaultSpec {
  /** It takes so long at least to come about; {@link DURATION_MIN_MS} when left out. */
  minMs?: number;
  maxMs: number;
  /** Takes synced bytes from a disk. */
  losesData?: true;
  /** Takes what the registry has had: what is missing there is made up for by what disks have seen of it. */
  losesRecords?: true;
  /** Begins while nothing is wrong, and nothing else does before it is made up for: it must not be copied. */
  isAlone?: true;
  begin: Begin;
}

const MINUTE_MS = 60_000;
const DAMAGED_COLUMNS = ['rows', 'rows', LOG_COLUMN, 'bodies'];
const TEN_YEARS_MS = 10 * 365 * 24 * 60 * MINUTE_MS;

/** That a request has been, and when: its value says no more. */
function isRowUnread(key: Uint8Array): boolean {
  return key[2] === ENGINE_TABLES.requestTimes.id;
}

/** The process ends; the machine's service manager starts it again when the fault is over. */
function down(
  site: { kill(): void; keepDown(): () => void },
  meanwhile: () => void = () => undefined,
): () => void {
  const release = site.keepDown();
  site.kill();
  meanwhile();
  return release;
}

function cutAll(network: Network, links: readonly (readonly [string, string])[]): () => void {
  const heals = links.map(([from, to]) => network.cut(from, to));
  return () => {
    for (const heal of heals) heal();
  };
}

/** All machines but those of `names`. */
function othersOf({ nodes, gateways }: FaultyWorld, names: readonly string[]): string[] {
  return [...nodes, ...gateways].map(({ host }) => host.name).filter((name) => !names.includes(name));
}

const FAULTS = {
  kill: { maxMs: 8000, begin: ({ nodes }, chance) => down(chance.pick(nodes)) },
  'kill of all': {
    maxMs: 3000,
    begin: ({ nodes }) => {
      const releases = nodes.map((node) => down(node));
      return () => {
        for (const release of releases) release();
      };
    },
  },
  'loss of power': {
    maxMs: 8000,
    begin: ({ nodes }, chance) => {
      const node = chance.pick(nodes);
      return node.disk.hasHiddenCut ? undefined : down(node, () => node.disk.losePower());
    },
  },
  'loss of all power': {
    maxMs: 3000,
    begin: ({ nodes }) => {
      if (nodes.some(({ disk }) => disk.hasHiddenCut)) return undefined;
      const releases = nodes.map((node) => down(node, () => node.disk.losePower()));
      return () => {
        for (const release of releases) release();
      };
    },
  },
  'orderly restart': {
    maxMs: 1,
    begin: ({ nodes }, chance) => {
      chance.pick(nodes).restart();
      return () => undefined;
    },
  },
  pause: {
    maxMs: 20_000,
    begin: ({ nodes }, chance) => {
      const { process } = chance.pick(nodes);
      process?.stop();
      return process && (() => process.continue());
    },
  },
  suspend: {
    maxMs: 15_000,
    begin: ({ nodes }, chance) => {
      const { host } = chance.pick(nodes);
      host.suspend();
      return () => host.wake();
    },
  },
  'wall step': {
    maxMs: 20_000,
    begin: ({ nodes }, chance) => {
      // One at a time: a majority of clocks stays right (R19).
      if (nodes.some(({ host }) => Math.abs(host.wallErrorMs) > 5000)) return undefined;
      const { host } = chance.pick(nodes);
      const stepMs = chance.pick([-1, 1]) * chance.pick([MINUTE_MS, 60 * MINUTE_MS, TEN_YEARS_MS]);
      host.stepWall(stepMs);
      return () => host.stepWall(-stepMs);
    },
  },
  'isolated node': {
    maxMs: 10_000,
    begin: (world, chance) => {
      const { name } = chance.pick(world.nodes).host;
      const others = [...othersOf(world, [name]), REGISTRY_HOST];
      return cutAll(
        world.network,
        others.flatMap((other) => [[name, other] as const, [other, name] as const]),
      );
    },
  },
  'split nodes': {
    maxMs: 12_000,
    begin: ({ nodes, network }, chance) => {
      // Mostly one that leads: what it takes from gateways meanwhile is on its disk alone, and is cut later.
      const leading = nodes.filter(({ ledShards }) => ledShards.length > 0);
      const one = chance.pick(leading.length > 0 && chance.happens(0.8) ? leading : nodes).host.name;
      const others = nodes.map(({ host }) => host.name).filter((name) => name !== one);
      return cutAll(
        network,
        others.flatMap((other) => [[one, other] as const, [other, one] as const]),
      );
    },
  },
  'one-way cut': {
    maxMs: 10_000,
    begin: ({ nodes, network }, chance) => {
      const [one, ...others] = chance.shuffled(nodes.map(({ host }) => host.name));
      if (one === undefined) return undefined;
      const isDeaf = chance.happens(0.5);
      return cutAll(
        network,
        others.map((other) => (isDeaf ? ([other, one] as const) : ([one, other] as const))),
      );
    },
  },
  'node without registry': {
    maxMs: 12_000,
    begin: ({ nodes, network }, chance) => {
      const { name } = chance.pick(nodes).host;
      return cutAll(network, [
        [name, REGISTRY_HOST],
        [REGISTRY_HOST, name],
      ]);
    },
  },
  'lost messages': {
    maxMs: 10_000,
    begin: ({ network }, chance) => network.weather.change({ lostShare: chance.between(0.02, 0.3) }),
  },
  'doubled messages': {
    maxMs: 15_000,
    begin: ({ network }, chance) => network.weather.change({ doubledShare: chance.between(0.05, 0.4) }),
  },
  'reordered messages': {
    maxMs: 15_000,
    begin: ({ network }, chance) => network.weather.change({ reorderedShare: chance.between(0.1, 0.6) }),
  },
  'old messages': {
    maxMs: 20_000,
    begin: ({ network }, chance) => network.weather.change({ oldShare: chance.between(0.02, 0.2) }),
  },
  'slow network': {
    maxMs: 10_000,
    begin: ({ network }, chance) => network.weather.change({ delayMaxMs: chance.between(20, 900) }),
  },
  'registry away': {
    maxMs: 15_000,
    begin: ({ registry }) => registry.troubles.change({ isAway: true }),
  },
  'ambiguous swaps': {
    maxMs: 25_000,
    begin: ({ registry }, chance) => registry.troubles.change({ ambiguousShare: chance.between(0.3, 1) }),
  },
  'late swaps': {
    maxMs: 25_000,
    begin: ({ registry }, chance) => registry.troubles.change({ lateShare: chance.between(0.3, 1) }),
  },
  'rival writes': {
    maxMs: 25_000,
    begin: ({ registry }, chance) => registry.troubles.change({ rivalShare: chance.between(0.3, 0.9) }),
  },
  'silent watch': {
    maxMs: 25_000,
    begin: ({ registry }) => registry.troubles.change({ isSilent: true }),
  },
  'registry set back': { maxMs: 6000, losesRecords: true, begin: ({ registry }) => registry.setBack() },
  'slow disk': {
    maxMs: 10_000,
    begin: ({ nodes }, chance) => {
      const { pace } = chance.pick(nodes).disk;
      return pace.change({
        syncMaxMs: chance.between(50, 2500),
        slowReadShare: 0.4,
        slowReadMaxMs: 200,
      });
    },
  },
  'failed sync': {
    maxMs: 1,
    begin: ({ nodes }, chance) => {
      const running = nodes.filter(({ process }) => process !== undefined);
      if (running.length === 0) return undefined;
      chance.pick(running).disk.failSync();
      return () => undefined;
    },
  },
  'cut log': {
    maxMs: 4000,
    losesData: true,
    begin: ({ nodes }, chance) => {
      const node = chance.pick(nodes);
      return down(node, () => node.disk.cutLog());
    },
  },
  'wiped disk': {
    maxMs: 4000,
    losesData: true,
    begin: ({ nodes }, chance) => {
      const node = chance.pick(nodes);
      return down(node, () => node.disk.wipe());
    },
  },
  'flipped bit': {
    maxMs: 15_000,
    losesData: true,
    begin: ({ nodes, isWholeWithout }, chance) => {
      const node = chance.pick(nodes);
      const column = chance.pick(DAMAGED_COLUMNS);
      const key = node.disk.corrupt(column, () => true);
      // While nobody knows of it another copy may be given up, and be lost as well. What serves nobody is found by a start,
      // and that must not be late.
      if (key !== undefined && node.isReadAtStart({ column, key })) node.kill();
      const isMet = chance.happens(0.4);
      // The store is lost with it: only where that is the one loss.
      const end = () => {
        if (isMet && isWholeWithout(node)) node.disk.tidyUp();
      };
      return key && end;
    },
  },
  // Nobody notices until replicas are compared (R22), and clients would see it: so it befalls a row that nobody reads.
  'altered row': {
    maxMs: 1,
    losesData: true,
    isAlone: true,
    begin: ({ nodes }, chance) => {
      const { disk } = chance.pick(nodes);
      return disk.alter('rows', isRowUnread) ? () => undefined : undefined;
    },
  },
  'gateway kill': { maxMs: 4000, begin: ({ gateways }, chance) => down(chance.pick(gateways)) },
  'gateway pause': {
    maxMs: 12_000,
    begin: ({ gateways }, chance) => {
      const { process } = chance.pick(gateways);
      process?.stop();
      return process && (() => process.continue());
    },
  },
  'gateway clock': {
    maxMs: 20_000,
    begin: ({ gateways }, chance) => {
      const { host } = chance.pick(gateways);
      const stepMs = chance.pick([-1, 1]) * chance.int(1, 5) * 24 * 60 * MINUTE_MS;
      host.stepWall(stepMs);
      return () => host.stepWall(-stepMs);
    },
  },
  ...AIMED_FAULTS,
} as const satisfies Record<string, FaultSpec>;

export type FaultName = keyof typeof FAULTS;

export const FAULT_NAMES = Object.keys(FAULTS) as FaultName[];

export function isFaultName(name: string): name is FaultName {
  return Object.hasOwn(FAULTS, name);
}

export function faultOf(name: FaultName): FaultSpec {
  return FAULTS[name];
}

export interface PlannedFault {
  name: FaultName;
  atMs: number;
  durationMs: number;
}

const FAULTS_MIN = 3;
const FAULTS_MAX = 8;
const DURATION_MIN_MS = 200;

/** At least three, in the order of their beginnings. */
export function planFaults(
  chance: Chance,
  options: { names: readonly FaultName[]; fromMs: number; toMs: number },
): PlannedFault[] {
  const { names, fromMs, toMs } = options;
  const plan: PlannedFault[] = [];
  const count = chance.int(FAULTS_MIN, FAULTS_MAX);
  while (plan.length < count) {
    const name = chance.pick(names);
    const { minMs = DURATION_MIN_MS, maxMs, isAlone = false } = faultOf(name);
    const durationMs = maxMs <= minMs ? maxMs : chance.between(minMs, maxMs);
    // What happens alone finds the world in order at the beginning.
    const lastMs = isAlone ? fromMs + (toMs - fromMs) / 4 : toMs;
    plan.push({ name, atMs: chance.between(fromMs, lastMs), durationMs });
  }
  return plan.sort((one, other) => one.atMs - other.atMs);
}
