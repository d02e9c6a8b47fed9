// The parts of a seed together, and what the run must see of them now and then.

import { LIMITS } from '../../src/types/limits.ts';
import { Chance } from './chance.ts';
import { CHUNK_BRANCHES, ChunkPart } from './chunk-part.ts';
import { SimulatedHost, type SimulatedProcess } from './clock.ts';
import type { Driver } from './driver.ts';
import { LINK_BRANCHES, LinkPart } from './link-part.ts';
import { metadataDriver } from './metadata-driver.ts';
import { NAME_BRANCHES, NamePart } from './name-part.ts';
import type { Decorate, Part, PartWorld } from './part.ts';
import { REVOCATION_BRANCHES, RevocationPart } from './revocation-part.ts';
import { beginShardWork } from './shard-work.ts';

export type PartName = 'chunks' | 'links' | 'names' | 'revocation';

/** From the arrival of a message until what it asks for is done. */
const ARRIVED_WITHIN_MS = 2000;
const PASSES_MS = Math.max(LIMITS.linkIdAgeMaxMs, LIMITS.blobIdAgeMaxMs) + 4 * 60 * 60_000;

/** Of the seeds in which the state machine is the product's. */
const SHARES: Readonly<Record<PartName, number>> = {
  chunks: 0.35,
  links: 0.25,
  names: 0.3,
  revocation: 0.25,
};

export const PART_BRANCHES: readonly string[] = [
  ...CHUNK_BRANCHES,
  ...LINK_BRANCHES,
  ...NAME_BRANCHES,
  ...REVOCATION_BRANCHES,
];

export function isPartName(name: string): name is PartName {
  return Object.hasOwn(SHARES, name);
}

/** By the seed, which alone says what happens. */
export function partsOf(seed: number, driver: Driver): PartName[] {
  if (driver !== metadataDriver) return [];
  const chance = new Chance(seed).fork('parts');
  return (Object.keys(SHARES) as PartName[]).filter((name) => chance.happens(SHARES[name]));
}

export class Parts {
  readonly #names: readonly PartName[];
  readonly #world: PartWorld;
  readonly #chunks: ChunkPart | undefined;
  readonly #links: LinkPart | undefined;
  readonly #parts: Part[];

  constructor(names: readonly PartName[], world: PartWorld) {
    this.#names = names;
    this.#world = world;
    this.#chunks = names.includes('chunks') ? new ChunkPart(world) : undefined;
    const chunks = this.#chunks;
    const chunksOf = chunks && ((process: SimulatedProcess) => chunks.open(process));
    this.#links = names.includes('links') ? new LinkPart(world, chunksOf) : undefined;
    this.#parts = [
      ...(this.#links ? [this.#links] : []),
      ...(this.#chunks ? [this.#chunks] : []),
      ...(names.includes('names') ? [new NamePart(world)] : []),
      ...(names.includes('revocation') ? [new RevocationPart(world)] : []),
    ];
  }

  /** undefined: the nodes are as they are. */
  get decorate(): Decorate | undefined {
    if (this.#parts.length === 0) return undefined;
    return (node, process) => beginShardWork(node, this.#workOf(process));
  }

  #workOf(process: SimulatedProcess): Parameters<typeof beginShardWork>[1] {
    const { ground, shardCount } = this.#world;
    const chunks = this.#chunks;
    return {
      ground,
      shardCount,
      process,
      hasNames: this.#names.includes('names'),
      hasRevocations: this.#names.includes('revocation'),
      links: this.#links,
      board: chunks?.board,
      openChunks: chunks && (() => chunks.open(process)),
    };
  }

  async prepare(): Promise<void> {
    for (const part of this.#parts) await part.prepare();
  }

  async run(): Promise<void> {
    await Promise.all(this.#parts.map((part) => part.run()));
  }

  check(): void {
    for (const part of this.#parts) part.check?.();
  }

  heal(): void {
    for (const part of this.#parts) part.heal?.();
  }

  async rest(): Promise<void> {
    // So that no claim can be used any more, no blob be created, and what was left has expired.
    if (this.#links !== undefined || this.#chunks !== undefined) {
      const { scheduler, network } = this.#world.ground;
      // A put that is on its way leaves its chunk whenever it comes: before that time, and not behind it.
      const heldMs = network.lastOldAtMs + ARRIVED_WITHIN_MS - scheduler.nowMs;
      if (heldMs > 0) await scheduler.sleep(heldMs, 'what was held back arrives');
      await Promise.all(this.#parts.map((part) => part.soon?.()));
      SimulatedHost.letTimePass(scheduler, PASSES_MS);
    }
    await Promise.all(this.#parts.map((part) => part.rest()));
  }
}
