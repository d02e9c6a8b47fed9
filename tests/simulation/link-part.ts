// Copies across shards: gateways copy objects and parts between buckets of different shards, overwrite and remove sources
// and copies in any order, and end or stand still between any two steps (R27 to R32). Checked: what is committed leads to
// live data that its home knows of (I9, I10), a body comes back as it was (I12), and at rest links are owners, exactly (I16).

import { rowKey } from '../../src/metadata/engine/row-keys.ts';
import { pieceRow } from '../../src/metadata/versions/piece-rows.ts';
import type { MetadataPort } from '../../src/ports/metadata/port.ts';
import type { ListedVersion } from '../../src/ports/metadata/versions.ts';
import { AppError } from '../../src/types/errors.ts';
import { homeShardOf } from '../../src/types/names.ts';
import { decodePiece } from '../../src/types/records/piece-record.ts';
import type { BucketRecord } from './bucket-operations.ts';
import type { Chance } from './chance.ts';
import { checkBucket } from './check-history.ts';
import type { SimulatedProcess } from './clock.ts';
import { closeHistories, madeVersions } from './committed-versions.ts';
import { LinkBodies } from './link-bodies.ts';
import { BUCKET_BRANCHES, LinkBuckets } from './link-buckets.ts';
import { type Begun, CLIENT_BRANCHES, LINK_KEYS, LinkClients, type LinkPlace } from './link-clients.ts';
import { CUT_BRANCHES, LinkCuts, UPLOAD_STEPS } from './link-cuts.ts';
import { JOIN_BRANCHES, LinkJoins } from './link-joins.ts';
import { LinkRows } from './link-rows.ts';
import { LinkSession, SESSION_BRANCHES } from './link-session.ts';
import type { Part, PartWorld } from './part.ts';
import type { OpenChunks } from './product-gateway.ts';
import { SimulationFailure } from './scheduler.ts';
import { SupersededCompactions } from './superseded-compactions.ts';

const CLIENT_COUNT = 5;
const OPERATIONS_OF_CLIENT = 10;
const PAUSE_MAX_MS = 2500;
const BEGUN: readonly Begun[] = ['now', 'now', 'hours ago', 'a day ago', 'a day ago'];
const LOOK_EVERY_MS = 500;
const SETTLED_AFTER_MS = 100_000;

const BRANCHES = {
  copied: 'links: copied across shards',
  part: 'links: part copied across shards',
  movedVersion: 'links: version moved',
  movedMarker: 'links: delete marker moved',
};

export const LINK_BRANCHES: readonly string[] = [
  ...Object.values(BRANCHES),
  ...SESSION_BRANCHES,
  ...JOIN_BRANCHES,
  ...CLIENT_BRANCHES,
  ...BUCKET_BRANCHES,
  ...CUT_BRANCHES,
];

export class LinkPart implements Part {
  readonly #world: PartWorld;
  readonly #chance: Chance;
  readonly #clients: LinkClients;
  readonly #bodies: LinkBodies;
  readonly #buckets: LinkBuckets;
  readonly #cuts: LinkCuts;
  readonly #session: LinkSession;
  readonly #joins: LinkJoins;
  readonly #rows = new LinkRows();
  readonly #compactions = new SupersededCompactions();
  /** Entries of all shards that it has looked at. */
  #seenCount = 0;
  readonly #history: BucketRecord[] = [];

  constructor(world: PartWorld, chunksOf: ((process: SimulatedProcess) => OpenChunks) | undefined) {
    this.#world = world;
    const chance = world.ground.chance.fork('links');
    this.#chance = chance;
    const bodies = new LinkBodies((blobId, index) => {
      const shard = homeShardOf(blobId);
      const { table, key } = pieceRow(blobId, index);
      const row = world.history(shard).lastOf({ column: table.column, key: rowKey(shard, table, key) });
      return row && decodePiece(row);
    });
    this.#bodies = bodies;
    this.#buckets = new LinkBuckets(world, chance.fork('buckets'));
    const history = this.#history;
    const shared = { bodies, chunksOf, buckets: this.#buckets };
    this.#clients = new LinkClients(world.ground, { chance: chance.fork('bodies'), ...shared });
    this.#cuts = new LinkCuts(world, chance.fork('cuts'));
    this.#session = new LinkSession(world, {
      chance,
      history,
      clients: this.#clients,
      cuts: this.#cuts,
      buckets: this.#buckets,
    });
    const ofJoins = chance.fork('joins');
    const clients = new LinkClients(world.ground, { chance: ofJoins.fork('bodies'), ...shared });
    this.#joins = new LinkJoins(world, { chance: ofJoins, clients, history, buckets: this.#buckets });
  }

  /** The port of a node's workers. */
  ofWorkers(metadata: MetadataPort, process: SimulatedProcess): MetadataPort {
    return this.#cuts.ofWorkers(metadata, process);
  }

  prepare(): Promise<void> {
    return this.#buckets.create();
  }

  async run(): Promise<void> {
    this.#cuts.plan();
    await Promise.all([
      ...Array.from({ length: CLIENT_COUNT }, (_, id) => this.#runClient(id)),
      this.#joins.run(),
      this.#buckets.run(),
    ]);
  }

  check(): void {
    const { shardCount } = this.#world;
    let committedCount = 0;
    for (let shard = 0; shard < shardCount; shard++) committedCount += this.#world.history(shard).lastSeq;
    // Most steps commit nothing.
    if (committedCount === this.#seenCount) return;
    this.#seenCount = committedCount;
    this.#rows.follow(Array.from({ length: shardCount }, (_, shard) => this.#world.history(shard)));
    this.#checkCompactions();
    this.#joins.check();
  }

  #checkCompactions(): void {
    for (let shard = 0; shard < this.#world.shardCount; shard++)
      for (const { key, pieces } of this.#compactions.follow(this.#world.history(shard)))
        throw new SimulationFailure(
          `I16: a superseded version of ${shard}/${key} is folded, and newer ones keep ${pieces.join(', ')}`,
        );
  }

  heal(): void {
    this.#cuts.heal();
    this.#joins.heal();
  }

  async rest(): Promise<void> {
    const { scheduler } = this.#world.ground;
    const endMs = scheduler.nowMs + SETTLED_AFTER_MS;
    const unrestNow = () => [...this.#rows.unrest(), ...this.#joins.unrest()];
    for (let unrest = unrestNow(); unrest.length > 0; unrest = unrestNow()) {
      if (scheduler.nowMs > endMs)
        throw new SimulationFailure(`I16: links: ${unrest.slice(0, 5).join('; ')}`);
      await scheduler.sleep(LOOK_EVERY_MS, 'links come to rest');
    }
    await this.#readAll(endMs);
    for (let shard = 0; shard < this.#world.shardCount; shard++) {
      const undecidedCount = checkBucket(`copies in shard ${shard}`, [
        ...this.#settled(shard),
        ...this.#joins.sweeps().filter((record) => record.shard === shard),
      ]);
      if (undecidedCount > 0) this.#world.ground.counts.add('history undecided', undecidedCount);
    }
  }

  /** Each key, and where versions are kept each version of it. */
  async #readAll(endMs: number): Promise<void> {
    const { scheduler } = this.#world.ground;
    const done = async (act: () => Promise<boolean>) => {
      while (!(await act())) {
        if (scheduler.nowMs > endMs)
          throw new SimulationFailure('I12: nothing is wrong, and a copy cannot be read');
        await scheduler.sleep(LOOK_EVERY_MS, 'reads again');
      }
    };
    for (let shard = 0; shard < this.#world.shardCount; shard++)
      for (const key of [...LINK_KEYS, ...this.#joins.keys()]) {
        const place = { shard, key };
        await done(() => this.#session.read(-1, place));
        if (!this.#buckets.keepsVersions(shard)) continue;
        const listed: ListedVersion[] = [];
        await done(async () => {
          const versions = await this.#session.list(-1, place);
          listed.push(...(versions ?? []));
          return versions !== undefined;
        });
        for (const { versionId, isLatest } of listed)
          if (!isLatest) await done(() => this.#session.read(-1, place, versionId));
      }
  }

  /** What was done in a shard's bucket, with what its log says of it where nobody was told. */
  #settled(shard: number): BucketRecord[] {
    const history = this.#history.filter((record) => record.shard === shard);
    if (!this.#buckets.keepsVersions(shard)) return history;
    const made = madeVersions(this.#world.history(shard), {
      bucketId: this.#buckets.bucketId(shard),
      tell: (manifest) => this.#bodies.valueOfVersion(manifest),
    });
    for (const { isMoved, value } of made)
      if (isMoved)
        this.#world.ground.counts.add(value === null ? BRANCHES.movedMarker : BRANCHES.movedVersion);
    return closeHistories(history, { made, mayBeNull: this.#buckets.isEverSuspended(shard) });
  }

  async #runClient(id: number): Promise<void> {
    const { scheduler } = this.#world.ground;
    const chance = this.#chance.fork(`client ${id}`);
    const place = (shard = chance.int(0, this.#world.shardCount - 1)): LinkPlace => ({
      shard,
      key: chance.pick(LINK_KEYS),
    });
    for (let count = 0; count < OPERATIONS_OF_CLIENT; count++) {
      await scheduler.sleep(chance.between(0, PAUSE_MAX_MS), `client of links ${id} begins`);
      const drawn = chance.float();
      const from = place();
      const to = chance.happens(0.85) ? place(1 - from.shard) : place();
      const value = `${id}.${count}`;
      if (count === 0 || drawn < 0.2) await this.#put(id, to, value);
      else if (drawn < 0.55) await this.#copy(id, from, to, chance);
      else if (drawn < 0.75)
        await this.#copyByPart(id, [from, ...(chance.happens(0.3) ? [place()] : [])], to, chance);
      else if (drawn < 0.88) await this.#session.remove(id, to);
      else await this.#session.read(id, to);
    }
  }

  async #put(client: number, place: LinkPlace, value: string): Promise<void> {
    const what = { shard: place.shard, name: `puts ${place.shard}/${place.key}` };
    await this.#session.attempt(client, what, ({ gateway, watch }) =>
      this.#clients.put(gateway, place, value, watch),
    );
  }

  async #copy(client: number, from: LinkPlace, to: LinkPlace, chance: Chance): Promise<void> {
    const begun = chance.pick(BEGUN);
    const name = `copies ${from.shard}/${from.key} to ${to.shard}/${to.key}, begun ${begun}`;
    const isDone = await this.#session.attempt(
      client,
      { shard: to.shard, name },
      async ({ gateway, watch }) => {
        const source = await this.#clients.find(gateway, from);
        if (source === undefined) throw new AppError('NoSuchKey');
        await this.#clients.copy(gateway, source, { to, begun, watch });
      },
    );
    if (isDone && from.shard !== to.shard) this.#world.ground.counts.add(BRANCHES.copied);
  }

  async #copyByPart(
    client: number,
    from: readonly LinkPlace[],
    to: LinkPlace,
    chance: Chance,
  ): Promise<void> {
    const begun = chance.pick(BEGUN);
    const end = chance.pick(['complete', 'complete', 'complete', 'abort', 'leave'] as const);
    const names = from.map(({ shard, key }) => `${shard}/${key}`).join(' and ');
    const name = `copies ${names} to a part of ${to.shard}/${to.key}, begun ${begun}, to ${end}`;
    const isDone = await this.#session.attempt(
      client,
      { shard: to.shard, name, steps: UPLOAD_STEPS },
      async ({ gateway, watch }) => {
        const sources = [];
        for (const place of from) {
          const source = await this.#clients.find(gateway, place);
          if (source === undefined) throw new AppError('NoSuchKey');
          sources.push(source);
        }
        await this.#clients.copyByPart(gateway, sources, { to, begun, end, watch });
      },
    );
    if (isDone && from.some(({ shard }) => shard !== to.shard)) this.#world.ground.counts.add(BRANCHES.part);
  }
}
