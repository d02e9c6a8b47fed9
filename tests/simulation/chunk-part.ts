// Bodies in chunks: storage nodes and what goes wrong with them, clients that put, read and delete objects through the
// product's data path, uploads that began a day ago, and the sweep that looks for what nobody will ever claim (R32).
// Checked: a read gives what was acknowledged, or fails (I12), what lives has its copies (I11), and at rest all of it
// is readable.

import { readingOrder } from '../../src/chunks/copies/candidates.ts';
import { createDiskHealth } from '../../src/chunks/copies/disk-health.ts';
import type { ChunkId } from '../../src/ports/chunks.ts';
import { AppError } from '../../src/types/errors.ts';
import { LIMITS } from '../../src/types/limits.ts';
import type { Chance } from './chance.ts';
import { checkKeys } from './check-history.ts';
import { CHUNK_DEEDS, CHUNK_OWNER, ChunkClients, chunkBucketOf } from './chunk-clients.ts';
import { ChunkNetwork } from './chunk-network.ts';
import { ChunkRest } from './chunk-rest.ts';
import { SimulatedHost, type SimulatedProcess } from './clock.ts';
import { DiskOperators, OPERATOR_BRANCHES } from './disk-operators.ts';
import { LATE_ORDER_BRANCHES, LateOrders } from './late-orders.ts';
import { LiveBlobs } from './live-blobs.ts';
import type { HistoryRecord, KeyOperation, Outcome } from './operations.ts';
import { type Attempted, GatewayPool, machinesOf, type Part, type PartWorld } from './part.ts';
import { PlacementBoard } from './placement-board.ts';
import { type OpenChunks, openChunks } from './product-gateway.ts';
import { SimulationFailure } from './scheduler.ts';
import {
  INSTEAD,
  planStorageFaults,
  STORAGE_FAULTS,
  type StorageFaultName,
  type StoredCopy,
  storageFaultOf,
} from './storage-faults.ts';
import { StorageSite } from './storage-site.ts';
import { nameOf, StoredCopies } from './stored-copies.ts';

/** Where storage nodes stand, and how many disks each has; the last one joins later. */
const STORAGE = [
  { zone: 'zone-0', diskCount: 2 },
  { zone: 'zone-1', diskCount: 2 },
  { zone: 'zone-2', diskCount: 1 },
  { zone: 'zone-0', diskCount: 1 },
  { zone: 'zone-1', diskCount: 1 },
];
const CLIENT_COUNT = 3;
const OPERATIONS_OF_CLIENT = 14;
const PAUSE_MAX_MS = 4500;
const KEYS = ['gnu', 'hen', 'ibex'];
const SWEEP_EVERY_MS = 7000;
const FAULTS_FROM_MS = 3000;
const FAULTS_TO_MS = 38_000;
const LOOK_EVERY_MS = 500;
const HOUR_MS = 60 * 60_000;
const AUDITED_AFTER_MS = 8 * 24 * HOUR_MS;
const SETTLED_AFTER_MS = 100_000;
/** A disk that did not answer when all was looked at is looked at again two minutes after the last such look. */
const WHOLE_AFTER_MS = 200_000;
const READ_SOON_MAX_MS = 3000;
const READ_AGAIN_MS = 1000;
const READABLE_AFTER_MS = 60_000;

const ALL_WELL = createDiskHealth({ monotonicMs: () => 0 });

const BRANCHES = {
  ...CHUNK_DEEDS,
  erased: 'chunks: blob erased',
  damaged: 'chunks: damaged copy met',
  repaired: 'chunks: copies owed',
  mapChanged: 'chunks: map changed',
  written: 'extents: written into',
  usedAgain: 'extents: file used again',
  removed: 'extents: file removed',
};

export const CHUNK_BRANCHES: readonly string[] = [
  ...Object.values(BRANCHES),
  ...OPERATOR_BRANCHES,
  ...LATE_ORDER_BRANCHES,
  ...STORAGE_FAULTS.map((name) => `fault: ${name}`),
];

export class ChunkPart implements Part {
  readonly #world: PartWorld;
  readonly #chance: Chance;
  readonly #pool: GatewayPool;
  readonly #network: ChunkNetwork;
  readonly #board: PlacementBoard;
  /** Those that were there at first. */
  readonly #sites: readonly StorageSite[];
  readonly #opened = new WeakMap<SimulatedProcess, OpenChunks>();
  readonly #history: HistoryRecord[] = [];
  readonly #clients: ChunkClients;
  readonly #heals = new Set<() => void>();
  readonly #blobs: LiveBlobs;
  readonly #copies: StoredCopies;
  readonly #operators: DiskOperators;
  readonly #lateOrders: LateOrders;
  readonly #rest: ChunkRest;
  #lossesUnderWay = 0;
  #hasEnded = false;

  constructor(world: PartWorld) {
    this.#world = world;
    const { ground } = world;
    const { network } = ground;
    const chance = ground.chance.fork('chunks');
    this.#chance = chance;
    this.#pool = new GatewayPool(world, chance.fork('gateways'));
    this.#clients = new ChunkClients(ground, {
      chance: chance.fork('bodies'),
      chunksOf: (process) => this.open(process),
    });
    this.#network = new ChunkNetwork(network, chance.fork('network'));
    this.#board = new PlacementBoard(ground, chance.fork('board'));
    this.#copies = new StoredCopies({
      onDropped: (id) => this.#blobs.checkChunk(id),
      nowMs: () => ground.scheduler.nowMs,
    });
    const sites = STORAGE.map((where, index) => {
      const parts = { ground, ...where, chunks: this.#network, board: this.#board };
      const site = new StorageSite(`storage-${index}`, parts);
      for (const disk of site.disks) this.#copies.watch(disk, site.name);
      return site;
    });
    this.#sites = sites.slice(0, -1);
    this.#operators = new DiskOperators(ground, {
      chance: chance.fork('operators'),
      board: this.#board,
      sites: this.#sites,
      joiningDisk: sites.at(-1) as StorageSite,
      isEmpty: ({ disks }) => disks.every((disk) => this.#copies.on(disk).next().done === true),
      onRemoved: ({ disks }) => {
        for (const disk of disks) this.#copies.retire(disk);
      },
    });
    this.#lateOrders = new LateOrders(ground, {
      chance: chance.fork('late orders'),
      board: this.#board,
      network: this.#network,
      operators: this.#operators,
      liveChunks: () => this.#blobs.chunks(),
    });
    this.#blobs = new LiveBlobs({
      nodesOf: (id) => this.#copies.nodesOf(id),
      lostOf: (id) => this.#copies.lostOf(id),
    });
    this.#rest = new ChunkRest({
      scheduler: ground.scheduler,
      board: this.#board,
      operators: this.#operators,
      blobs: this.#blobs,
      copies: this.#copies,
      mayBeCreated: (atMs) => world.attempts.mayGoOn(atMs, ground.scheduler.nowMs),
    });
    this.#board.observe((before, after) => {
      try {
        this.check();
        this.#rest.checkForgotten(before, after);
      } catch (error) {
        // A caller that changes the map must not take it for a failure of its own.
        ground.scheduler.fail(error);
      }
    });
  }

  /** Chunks as a process sees them; the same for the same process. */
  open(process: SimulatedProcess): OpenChunks {
    let opened = this.#opened.get(process);
    if (opened === undefined) {
      const { ground } = this.#world;
      opened = openChunks(process, { ground, chunks: this.#network, board: this.#board });
      this.#opened.set(process, opened);
    }
    return opened;
  }

  async prepare(): Promise<void> {
    const { scheduler } = this.#world.ground;
    for (const site of this.#sites) site.startSoon(this.#chance.between(0, 50));
    while (this.#board.map === undefined) await scheduler.sleep(10, 'disks are placed');
    for (let shard = 0; shard < this.#world.shardCount; shard++) {
      const { bucketId, name } = chunkBucketOf(shard).believed;
      const command = { bucketId, name, owner: CHUNK_OWNER };
      for (let isDone = false; !isDone; ) {
        const gateway = await this.#pool.pick();
        const attempt = await this.#pool.run(gateway, 'makes a bucket', ({ metadata }) =>
          metadata.execute({ shard }, 'create-bucket', command),
        );
        isDone = attempt.kind === 'done' && attempt.value.kind === 'done';
      }
    }
  }

  /** What places disks, on a metadata node (cmd/cluster/metadata.ts). */
  get board(): PlacementBoard {
    return this.#board;
  }

  async run(): Promise<void> {
    this.#planFaults();
    this.#operators.begin();
    this.#lateOrders.begin();
    const clients = Array.from({ length: CLIENT_COUNT }, (_, id) => this.#runClient(id));
    void this.#sweepNowAndThen();
    await Promise.all(clients);
    this.#hasEnded = true;
  }

  check(): void {
    for (let shard = 0; shard < this.#world.shardCount; shard++)
      this.#blobs.follow(this.#world.history(shard));
  }

  heal(): void {
    for (const heal of [...this.#heals]) heal();
    this.#lateOrders.end();
  }

  /** What a chunk lacks is known without a look at everything, and is repaired at once (R36, R39). */
  async soon(): Promise<void> {
    const { scheduler } = this.#world.ground;
    const endMs = scheduler.nowMs + WHOLE_AFTER_MS;
    for (let lacking = this.#rest.lacking(); lacking.length > 0; lacking = this.#rest.lacking()) {
      if (scheduler.nowMs > endMs)
        throw new SimulationFailure(`I16: chunks: nobody mends: ${lacking.slice(0, 5).join('; ')}`);
      await scheduler.sleep(LOOK_EVERY_MS, 'chunks become whole');
    }
  }

  /** All that lives is readable, and was so all the time, or failed. */
  async rest(): Promise<void> {
    const { counts, scheduler } = this.#world.ground;
    this.#rest.begin();
    while (!this.#rest.areAllUp()) await scheduler.sleep(50, 'disks come back');
    // First what is found for a reason; then also what only a look at everything finds (R39).
    await this.#settle({ hasAudited: false });
    // By clocks that were set ahead more than once some are dated later still.
    const passMs = Math.max(AUDITED_AFTER_MS, this.#rest.datedAheadMs() + LIMITS.sweepAfterMs + HOUR_MS);
    SimulatedHost.letTimePass(scheduler, passMs);
    await this.#settle({ hasAudited: true });
    this.#blobs.check();
    for (let shard = 0; shard < this.#world.shardCount; shard++)
      for (const key of KEYS) await this.#readAtRest(shard, key);
    if (this.#blobs.erasedCount > 0) counts.add(BRANCHES.erased);
    for (const { extents } of this.#sites.flatMap(({ disks }) => disks))
      for (const name of ['written', 'usedAgain', 'removed'] as const)
        if (extents.counts[name] > 0) counts.add(BRANCHES[name], extents.counts[name]);
    for (let shard = 0; shard < this.#world.shardCount; shard++)
      checkKeys(
        `bodies of shard ${shard}`,
        this.#history.filter((record) => record.shard === shard),
      );
  }

  /** I16: chunks of live blobs come to lie on exactly their owners, and no repair entry is left. */
  async #settle(when: { hasAudited: boolean }): Promise<void> {
    const { counts, scheduler } = this.#world.ground;
    if (this.#blobs.repairsEver > 0) counts.add(BRANCHES.repaired);
    const endMs = scheduler.nowMs + SETTLED_AFTER_MS;
    for (let unrest = this.#rest.unrest(when); unrest.length > 0; unrest = this.#rest.unrest(when)) {
      if (scheduler.nowMs > endMs)
        throw new SimulationFailure(`I16: chunks: ${unrest.slice(0, 5).join('; ')}`);
      await scheduler.sleep(LOOK_EVERY_MS, 'chunks come to rest');
    }
  }

  async #readAtRest(shard: number, key: string): Promise<void> {
    const { scheduler } = this.#world.ground;
    const endMs = scheduler.nowMs + READABLE_AFTER_MS;
    for (;;) {
      const record = await this.#do(-1, shard, { kind: 'read', key });
      if (record.outcome !== undefined) return;
      if (scheduler.nowMs > endMs)
        throw new SimulationFailure(`I12: nothing is wrong, and ${shard}/${key} cannot be read`);
      await scheduler.sleep(READ_AGAIN_MS, 'reads again');
    }
  }

  async #runClient(id: number): Promise<void> {
    const { scheduler } = this.#world.ground;
    const chance = this.#chance.fork(`client ${id}`);
    for (let count = 0; count < OPERATIONS_OF_CLIENT; count++) {
      await scheduler.sleep(chance.between(0, PAUSE_MAX_MS), `client of chunks ${id} begins`);
      const shard = chance.int(0, this.#world.shardCount - 1);
      const key = chance.pick(KEYS);
      const drawn = chance.float();
      const value = `${id}.${count}`;
      if (drawn < 0.45) await this.#do(id, shard, { kind: 'put', key, value });
      else if (drawn < 0.55) await this.#do(id, shard, { kind: 'create', key, value });
      else if (drawn < 0.62) await this.#do(id, shard, { kind: 'remove', key });
      else await this.#do(id, shard, { kind: 'read', key });
    }
  }

  async #do(client: number, shard: number, operation: KeyOperation): Promise<HistoryRecord> {
    const { scheduler } = this.#world.ground;
    const record: HistoryRecord = {
      requestId: `chunks-${this.#history.length}`,
      shard,
      client,
      operation,
      outcome: undefined,
      invokedAt: scheduler.stepCount,
      invokedAtMs: scheduler.nowMs,
      answeredAt: Number.POSITIVE_INFINITY,
      answeredAtMs: Number.POSITIVE_INFINITY,
    };
    this.#history.push(record);
    const gateway = await this.#pool.pick();
    const attempt = await this.#pool.run(gateway, `chunks: ${operation.kind} ${operation.key}`, () =>
      this.#clients.perform(gateway, shard, operation),
    );
    record.answeredAt = scheduler.stepCount;
    record.answeredAtMs = scheduler.nowMs;
    record.outcome = outcomeOf(attempt);
    return record;
  }

  /** So that a reader meets what is damaged, now and then before the disk finds it by itself. */
  async #readSoon(): Promise<void> {
    const { scheduler } = this.#world.ground;
    await scheduler.sleep(this.#chance.between(0, READ_SOON_MAX_MS), 'reads what may be damaged');
    for (let shard = 0; shard < this.#world.shardCount; shard++)
      for (const key of KEYS) if (!this.#hasEnded) await this.#do(CLIENT_COUNT, shard, { kind: 'read', key });
  }

  async #sweepNowAndThen(): Promise<void> {
    const { scheduler } = this.#world.ground;
    while (!this.#hasEnded) {
      await scheduler.sleep(SWEEP_EVERY_MS, 'the sweep begins');
      const gateway = await this.#pool.pick();
      await this.#pool.run(gateway, 'sweeps', () => this.#clients.sweep(gateway));
    }
  }

  #planFaults(): void {
    const { scheduler } = this.#world.ground;
    const plan = planStorageFaults(this.#chance.fork('faults'), {
      fromMs: FAULTS_FROM_MS,
      toMs: FAULTS_TO_MS,
    });
    for (const { name, afterMs, durationMs } of plan)
      scheduler.after(afterMs, {
        name: `fault: ${name} for ${durationMs.toFixed(0)} ms`,
        run: () => this.#begin(name, durationMs),
      });
  }

  #readCopies(): StoredCopy[] {
    const chunks = this.#blobs.chunks();
    if (chunks.length === 0) return [];
    const first = this.#readCopyOf(this.#chance.pick(chunks));
    if (first === undefined) return [];
    const all = chunks.flatMap((id) => this.#readCopyOf(id) ?? []);
    const beside = all.filter(({ disk, id }) => disk === first.disk && nameOf(id) !== nameOf(first.id));
    return [first, ...beside];
  }

  #readCopyOf(id: ChunkId): StoredCopy | undefined {
    const { map } = this.#board;
    if (map === undefined) return undefined;
    const stored = this.#copies.disksOf(id);
    for (const { id: first } of readingOrder(map, id, { near: {}, health: ALL_WELL }))
      for (const site of this.#operators.staying)
        for (const disk of site.disks)
          if (StorageSite.idOf(disk) === first && stored.has(disk) && !this.#copies.wasDamaged(disk, id))
            return { site, disk, id };
    return undefined;
  }

  #begin(name: StorageFaultName, durationMs: number): void {
    const { network, scheduler, counts } = this.#world.ground;
    const fault = storageFaultOf(name);
    if (fault.losesData && (this.#lossesUnderWay > 0 || !this.#rest.isLevel())) {
      const run = () => this.#begin(name, durationMs);
      if (!this.#hasEnded) scheduler.after(LOOK_EVERY_MS, { name: `fault: ${name} waits`, run });
      return;
    }
    const askers = machinesOf(this.#world);
    let isDamaged = false;
    const end = fault.begin(
      {
        sites: this.#operators.staying,
        network,
        askers,
        readCopies: () => this.#readCopies(),
        damaged: ({ disk, id }) => {
          this.#copies.damage(disk, id);
          isDamaged = true;
        },
      },
      this.#chance,
    );
    if (isDamaged) void this.#readSoon();
    if (end === undefined) {
      if (name !== INSTEAD) this.#begin(INSTEAD, durationMs);
      return;
    }
    counts.add(`fault: ${name}`);
    if (fault.losesData) this.#lossesUnderWay++;
    const heal = () => {
      if (!this.#heals.delete(heal)) return;
      if (fault.losesData) this.#lossesUnderWay--;
      end();
    };
    this.#heals.add(heal);
    scheduler.after(durationMs, { name: `fault: ${name} is over`, run: heal });
  }
}

/** undefined: nobody knows. */
function outcomeOf(attempt: Attempted<Outcome>): Outcome | undefined {
  if (attempt.kind === 'done') return attempt.value;
  if (attempt.kind === 'failed' && !(attempt.error instanceof AppError)) throw attempt.error;
  return undefined;
}
