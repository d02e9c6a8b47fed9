// Clients that rename, compose and append what lives in the buckets of the links part: keys and prefixes are moved, with
// and without overwriting, several append to one object at once, and compositions take data of their own shard and of
// others. They are cut between any two steps, and a job whose driver went away is driven on by the shard.

import type { CopyFrom } from '../../src/objects/object-store.ts';
import { AppError } from '../../src/types/errors.ts';
import { LIMITS } from '../../src/types/limits.ts';
import type { JobId } from '../../src/types/names.ts';
import type { BucketRecord } from './bucket-operations.ts';
import type { Chance } from './chance.ts';
import type { LinkBuckets } from './link-buckets.ts';
import { type Begun, LINK_KEYS, type LinkClients, type LinkPlace } from './link-clients.ts';
import { type GatewayStep, LinkCuts } from './link-cuts.ts';
import { LinkSession } from './link-session.ts';
import { type AskedMove, MoveJobs } from './move-jobs.ts';
import type { PartWorld } from './part.ts';

const CLIENT_COUNT = 4;
const OPERATIONS_OF_CLIENT = 9;
const PAUSE_MAX_MS = 2500;
/** Keys of two prefixes, each of which is moved onto the other. */
const PREFIXES = ['owl/', 'yak/'];
const NAMES = ['a', 'b', 'c', 'd'];
const BEGUN: readonly Begun[] = ['now', 'now', 'hours ago', 'a day ago'];
const COMPONENTS_MAX = 3;
/** Appends to one object at the same moment. */
const APPENDS_MAX = 3;
/** Where versions are kept: of MOVEs, those of a key whose latest version is a delete marker. */
const HIDDEN_SHARE = 0.25;
/** Where versions are kept: of all that is done, MOVEs of a key with so many versions that it takes several entries. */
const MANY_SHARE = 0.2;
/** One after the other behind those, where versions are kept. */
const APPENDS_BEHIND = 2;
const REPEATED_SHARE = 0.3;
const REPEATED_MAX_MS = 4000;

/** Behind which steps each is cut. */
const STEPS = {
  append: ['append-version', 'fold-version', 'fold-version'],
  compose: ['claim-links', 'compose-version'],
  move: ['move-key'],
  moveMany: ['begin-key-move', 'begin-key-move', 'step-key-move'],
  movePrefix: ['begin-move', 'step-move', 'step-key-move'],
} satisfies Record<string, readonly GatewayStep[]>;

const BRANCHES = {
  moved: 'links: key moved',
  movedInSteps: 'links: key of many versions moved',
  composed: 'links: composed',
  appended: 'links: appended',
  appendedTogether: 'links: several appended at once',
  moving: 'links: prefix moved',
  repeated: 'links: move of a prefix repeated',
};

export const JOIN_BRANCHES: readonly string[] = Object.values(BRANCHES);

export class LinkJoins {
  readonly #world: PartWorld;
  readonly #chance: Chance;
  readonly #clients: LinkClients;
  readonly #session: LinkSession;
  readonly #cuts: LinkCuts;
  readonly #buckets: LinkBuckets;
  readonly #jobs = new MoveJobs();
  readonly #asked: AskedMove[] = [];

  constructor(
    world: PartWorld,
    {
      chance,
      clients,
      history,
      buckets,
    }: {
      chance: Chance;
      clients: LinkClients;
      history: BucketRecord[];
      buckets: LinkBuckets;
    },
  ) {
    this.#world = world;
    this.#buckets = buckets;
    this.#chance = chance;
    this.#clients = clients;
    this.#cuts = new LinkCuts(world, chance.fork('cuts'));
    this.#session = new LinkSession(world, { chance, clients, history, buckets, cuts: this.#cuts });
  }

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: CLIENT_COUNT }, (_, id) => this.#runClient(id + 100)));
  }

  check(): void {
    const { scheduler } = this.#world.ground;
    const now = { step: scheduler.stepCount, ms: scheduler.nowMs };
    for (let shard = 0; shard < this.#world.shardCount; shard++)
      this.#jobs.follow(this.#world.history(shard), now);
  }

  heal(): void {
    this.#cuts.heal();
  }

  unrest(): string[] {
    return this.#jobs.unrest();
  }

  /** Keys that these clients have to do with, besides those of others. */
  keys(): string[] {
    return PREFIXES.flatMap((prefix) => NAMES.map((name) => prefix + name));
  }

  /** What the jobs have done. */
  sweeps(): BucketRecord[] {
    return this.#jobs.sweeps(this.#asked, () => this.keys());
  }

  async #runClient(id: number): Promise<void> {
    const { scheduler } = this.#world.ground;
    const chance = this.#chance.fork(`client ${id}`);
    for (let count = 0; count < OPERATIONS_OF_CLIENT; count++) {
      await scheduler.sleep(chance.between(0, PAUSE_MAX_MS), `client of joins ${id} begins`);
      const shard = chance.int(0, this.#world.shardCount - 1);
      const drawn = chance.float();
      const name = `${id}.${count}`;
      const isOfMany = this.#buckets.keepsVersions(shard) && chance.happens(MANY_SHARE);
      if (count > 0 && isOfMany) await this.#moveMany(id, shard, { name, chance });
      else if (count === 0 || drawn < 0.12) await this.#put(id, { shard, key: this.#drawKey(chance) }, name);
      else if (drawn < 0.22) await this.#copy(id, shard, chance);
      else if (drawn < 0.42)
        await this.#append(id, { shard, key: this.#drawAppended(chance) }, { name, chance });
      else if (drawn < 0.58) await this.#compose(id, shard, chance);
      else if (drawn < 0.76) await this.#move(id, shard, chance);
      else if (drawn < 0.92) await this.#movePrefix(id, shard, { name, chance });
      else if (drawn < 0.96) await this.#session.remove(id, { shard, key: this.#drawKey(chance) });
      else await this.#session.read(id, { shard, key: this.#drawKey(chance) });
    }
  }

  #drawKey(chance: Chance): string {
    return chance.happens(0.5) ? chance.pick(LINK_KEYS) : chance.pick(PREFIXES) + chance.pick(NAMES);
  }

  /** Mostly one that all have to do with: it is there, and others have appended to it. */
  #drawAppended(chance: Chance): string {
    return chance.happens(0.5) ? chance.pick(LINK_KEYS) : this.#drawKey(chance);
  }

  async #put(client: number, place: LinkPlace, name: string): Promise<void> {
    const what = { shard: place.shard, name: `puts ${show(place)}` };
    await this.#session.attempt(client, what, ({ gateway, watch }) =>
      this.#clients.put(gateway, place, name, watch),
    );
  }

  /** From another shard, so that what is moved, composed and appended to is of other homes too. */
  async #copy(client: number, shard: number, chance: Chance): Promise<void> {
    const to = { shard, key: this.#drawKey(chance) };
    const from = { shard: 1 - shard, key: this.#drawKey(chance) };
    const begun = chance.pick(BEGUN);
    const what = { shard, name: `copies ${show(from)} to ${show(to)}, begun ${begun}` };
    await this.#session.attempt(client, what, async ({ gateway, watch }) => {
      const source = await this.#clients.find(gateway, from);
      if (source === undefined) throw new AppError('NoSuchKey');
      await this.#clients.copy(gateway, source, { to, begun, watch });
    });
  }

  async #append(
    client: number,
    place: LinkPlace,
    { name, chance }: { name: string; chance: Chance },
  ): Promise<void> {
    const { counts } = this.#world.ground;
    const what = { shard: place.shard, name: `appends to ${show(place)}`, steps: STEPS.append };
    const append = (index: number) =>
      this.#session.attempt(client + index / 10, what, ({ gateway, watch }) =>
        this.#clients.append(gateway, place, `${name}.${index}`, watch),
      );
    const count = chance.int(1, APPENDS_MAX);
    const done = await Promise.all(Array.from({ length: count }, (_, index) => append(index)));
    const doneCount = done.filter(Boolean).length;
    if (doneCount > 0) counts.add(BRANCHES.appended);
    if (doneCount > 1) counts.add(BRANCHES.appendedTogether);
    // While pieces of those are folded, which may come to a version that is not the latest any more.
    if (this.#buckets.keepsVersions(place.shard))
      for (let index = count; index < count + APPENDS_BEHIND; index++) await append(index);
  }

  async #compose(client: number, shard: number, chance: Chance): Promise<void> {
    const count = chance.int(1, COMPONENTS_MAX);
    const from = Array.from({ length: count }, () => ({ shard, key: this.#drawKey(chance) }));
    const to = { shard, key: this.#drawKey(chance) };
    const begun = chance.pick(BEGUN);
    const name = `composes ${from.map(show).join(' and ')} to ${show(to)}, begun ${begun}`;
    const isDone = await this.#session.attempt(
      client,
      { shard, name, steps: STEPS.compose },
      async ({ gateway, watch }) => {
        const components: CopyFrom[] = [];
        for (const place of from) {
          const found = await this.#clients.find(gateway, place);
          // Of the others it is composed.
          if (found !== undefined) components.push(found);
        }
        if (components.length === 0) throw new AppError('NoSuchKey');
        await this.#clients.compose(gateway, components, { to, begun, watch });
      },
    );
    if (isDone) this.#world.ground.counts.add(BRANCHES.composed);
  }

  async #move(client: number, shard: number, chance: Chance): Promise<void> {
    const { key, to } = this.#drawEnds(chance);
    if (this.#buckets.keepsVersions(shard) && chance.happens(HIDDEN_SHARE))
      await this.#session.hide(client, { shard, key });
    await this.#moveKey(client, { shard, key }, { to, chance, steps: STEPS.move });
  }

  /** Mostly: others may take some of its versions in between. */
  async #moveMany(
    client: number,
    shard: number,
    { name, chance }: { name: string; chance: Chance },
  ): Promise<void> {
    const { key, to } = this.#drawEnds(chance);
    const place = { shard, key };
    const has = (await this.#session.list(client, place))?.length ?? 0;
    for (let count = has; count <= LIMITS.moveVersionsMax; count++)
      await this.#put(client, place, `${name}.${count}`);
    await this.#moveKey(client, place, { to, chance, steps: STEPS.moveMany });
  }

  /** Of one set: what moves between all keys would have all of them be looked at together. */
  #drawEnds(chance: Chance): { key: string; to: string } {
    const name = chance.pick(NAMES);
    const keys = chance.happens(0.5) ? LINK_KEYS : PREFIXES.map((prefix) => prefix + name);
    const [key = '', to = ''] = chance.shuffled(keys);
    return { key, to };
  }

  async #moveKey(
    client: number,
    { shard, key }: LinkPlace,
    { to, chance, steps }: { to: string; chance: Chance; steps: readonly GatewayStep[] },
  ): Promise<void> {
    const { counts } = this.#world.ground;
    const overwrites = chance.happens(0.6);
    const name = `moves ${shard}/${key} to ${to}${overwrites ? ', overwriting' : ''}`;
    const { asked, onBegun } = this.#ask({ shard, from: key, to, overwrites });
    const isDone = await this.#session.attempt(client, { shard, name, steps }, ({ gateway, watch }) =>
      this.#clients.move(gateway, { shard, key }, { to, overwrites, watch, onBegun }),
    );
    if (isDone) counts.add(BRANCHES.moved);
    if (isDone && asked.jobId !== undefined) counts.add(BRANCHES.movedInSteps);
  }

  async #movePrefix(
    client: number,
    shard: number,
    { name, chance }: { name: string; chance: Chance },
  ): Promise<void> {
    const { scheduler, counts } = this.#world.ground;
    const [from = '', to = ''] = chance.shuffled(PREFIXES);
    const overwrites = chance.happens(0.6);
    const { onBegun } = this.#ask({ shard, from, to, overwrites });
    const token = chance.happens(0.5) ? { token: name, digest: name } : undefined;
    const ask = () =>
      this.#session.attempt(
        client,
        { shard, name: `moves ${shard}/${from} to ${to}`, steps: STEPS.movePrefix },
        ({ gateway, watch }) =>
          this.#clients.movePrefix(gateway, { shard, from, to, overwrites, token }, { watch, onBegun }),
      );
    const repeat = async () => {
      await scheduler.sleep(chance.between(0, REPEATED_MAX_MS), 'a prefix is moved again');
      if (await ask()) counts.add(BRANCHES.repeated);
    };
    const isRepeated = token !== undefined && chance.happens(REPEATED_SHARE);
    const [isDone] = await Promise.all([ask(), ...(isRepeated ? [repeat()] : [])]);
    if (isDone) counts.add(BRANCHES.moving);
  }

  /** What may become a job. */
  #ask(move: Pick<AskedMove, 'shard' | 'from' | 'to' | 'overwrites'>) {
    const { scheduler } = this.#world.ground;
    const asked: AskedMove = {
      ...move,
      jobId: undefined,
      askedAt: scheduler.stepCount,
      askedAtMs: scheduler.nowMs,
    };
    this.#asked.push(asked);
    const onBegun = (jobId: JobId) => {
      asked.jobId = jobId;
    };
    return { asked, onBegun };
  }
}

function show({ shard, key }: LinkPlace): string {
  return `${shard}/${key}`;
}
