// Copies across shards: gateways copy objects and parts between buckets of different shards, overwrite and remove sources
// and copies in any order, and end or stand still between any two steps (R27 to R32). Checked: what is committed leads to
// live data that its home knows of (I9, I10), a body comes back as it was (I12), and at rest links are owners, exactly (I16).
import { AppError } from '../../src/model/errors.ts';
import type { CommandOf, MetadataPort } from '../../src/ports/metadata.ts';
import type { Chance } from './chance.ts';
import { checkKeys } from './check-history.ts';
import type { SimulatedProcess } from './clock.ts';
import {
  type Begun,
  LINK_OWNER,
  LinkClients,
  type LinkPlace,
  linkBucketOf,
  type StepWatch,
} from './link-clients.ts';
import { CUT_BRANCHES, LinkCuts } from './link-cuts.ts';
import { LinkRows } from './link-rows.ts';
import type { HistoryRecord, KeyOperation, Outcome } from './operations.ts';
import { type Attempted, GatewayPool, type Part, type PartWorld } from './part.ts';
import type { OpenChunks, ProductGateway } from './product-gateway.ts';
import { SimulationFailure } from './scheduler.ts';

const CLIENT_COUNT = 5;
const OPERATIONS_OF_CLIENT = 10;
const PAUSE_MAX_MS = 2500;
const KEYS = ['lynx', 'mole', 'newt'];
const BEGUN: readonly Begun[] = ['now', 'now', 'hours ago', 'a day ago', 'a day ago'];
/** Of claims: somebody makes them once more, perhaps when they are released long since. */
const AGAIN_SHARE = 0.3;
const AGAIN_MAX_MS = 15_000;
const LOOK_EVERY_MS = 500;
const SETTLED_AFTER_MS = 100_000;

const BRANCHES = {
  copied: 'links: copied across shards',
  part: 'links: part copied across shards',
  again: 'links: claim made again',
  gone: 'links: source gone',
  read: 'links: copy read',
};

export const LINK_BRANCHES: readonly string[] = [...Object.values(BRANCHES), ...CUT_BRANCHES];

interface Attempt {
  gateway: ProductGateway;
  watch: StepWatch;
  commits: HistoryRecord[];
}

export class LinkPart implements Part {
  readonly #world: PartWorld;
  readonly #chance: Chance;
  readonly #pool: GatewayPool;
  readonly #clients: LinkClients;
  readonly #cuts: LinkCuts;
  readonly #rows = new LinkRows();
  readonly #history: HistoryRecord[] = [];

  constructor(world: PartWorld, chunksOf: ((process: SimulatedProcess) => OpenChunks) | undefined) {
    this.#world = world;
    const chance = world.ground.chance.fork('links');
    this.#chance = chance;
    this.#pool = new GatewayPool(world, chance.fork('gateways'));
    this.#clients = new LinkClients(world.ground, { chance: chance.fork('bodies'), chunksOf });
    this.#cuts = new LinkCuts(world, chance.fork('cuts'));
  }

  /** The port of a node's workers. */
  ofWorkers(metadata: MetadataPort, process: SimulatedProcess): MetadataPort {
    return this.#cuts.ofWorkers(metadata, process);
  }

  async prepare(): Promise<void> {
    for (let shard = 0; shard < this.#world.shardCount; shard++) {
      const { bucketId, name } = linkBucketOf(shard).claim;
      const command = { bucketId, name, owner: LINK_OWNER };
      for (let isDone = false; !isDone; ) {
        const attempt = await this.#pool.run(await this.#pool.pick(), 'makes a bucket', ({ metadata }) =>
          metadata.execute({ shard }, 'create-bucket', command),
        );
        isDone = attempt.kind === 'done' && attempt.value.kind === 'done';
      }
    }
  }

  async run(): Promise<void> {
    this.#cuts.plan();
    await Promise.all(Array.from({ length: CLIENT_COUNT }, (_, id) => this.#runClient(id)));
  }

  check(): void {
    const { shardCount } = this.#world;
    this.#rows.follow(Array.from({ length: shardCount }, (_, shard) => this.#world.history(shard)));
  }

  heal(): void {
    this.#cuts.heal();
  }

  async rest(): Promise<void> {
    const { scheduler } = this.#world.ground;
    const endMs = scheduler.nowMs + SETTLED_AFTER_MS;
    for (let unrest = this.#rows.unrest(); unrest.length > 0; unrest = this.#rows.unrest()) {
      if (scheduler.nowMs > endMs)
        throw new SimulationFailure(`I16: links: ${unrest.slice(0, 5).join('; ')}`);
      await scheduler.sleep(LOOK_EVERY_MS, 'links come to rest');
    }
    for (let shard = 0; shard < this.#world.shardCount; shard++)
      for (const key of KEYS)
        while (!(await this.#read(-1, { shard, key })) && scheduler.nowMs < endMs)
          await scheduler.sleep(LOOK_EVERY_MS, 'reads again');
    if (scheduler.nowMs > endMs)
      throw new SimulationFailure('I12: nothing is wrong, and a copy cannot be read');
    for (let shard = 0; shard < this.#world.shardCount; shard++)
      checkKeys(
        `copies in shard ${shard}`,
        this.#history.filter((record) => record.shard === shard),
      );
  }

  async #runClient(id: number): Promise<void> {
    const { scheduler } = this.#world.ground;
    const chance = this.#chance.fork(`client ${id}`);
    const place = (shard = chance.int(0, this.#world.shardCount - 1)): LinkPlace => ({
      shard,
      key: chance.pick(KEYS),
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
      else if (drawn < 0.88) await this.#remove(id, to);
      else await this.#read(id, to);
    }
  }

  async #put(client: number, place: LinkPlace, value: string): Promise<void> {
    await this.#attempt(client, place, `puts ${place.shard}/${place.key}`, ({ gateway, watch }) =>
      this.#clients.put(gateway, place, value, watch),
    );
  }

  async #copy(client: number, from: LinkPlace, to: LinkPlace, chance: Chance): Promise<void> {
    const begun = chance.pick(BEGUN);
    const name = `copies ${from.shard}/${from.key} to ${to.shard}/${to.key}, begun ${begun}`;
    const isDone = await this.#attempt(client, to, name, async ({ gateway, watch }) => {
      const source = await this.#clients.find(gateway, from);
      if (source === undefined) throw new AppError('NoSuchKey');
      await this.#clients.copy(gateway, source, { to, begun, watch });
    });
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
    const isDone = await this.#attempt(client, to, name, async ({ gateway, watch }) => {
      const sources = [];
      for (const place of from) {
        const source = await this.#clients.find(gateway, place);
        if (source === undefined) throw new AppError('NoSuchKey');
        sources.push(source);
      }
      await this.#clients.copyByPart(gateway, sources, { to, begun, end, watch });
    });
    if (isDone && from.some(({ shard }) => shard !== to.shard)) this.#world.ground.counts.add(BRANCHES.part);
  }

  async #remove(client: number, place: LinkPlace): Promise<void> {
    const record = this.#begin(client, place, { kind: 'remove', key: place.key });
    const gateway = await this.#pool.pick();
    const attempt = await this.#pool.run(gateway, `removes ${place.shard}/${place.key}`, () =>
      this.#clients.remove(gateway, place),
    );
    this.#end(
      record,
      outcomeOf(attempt, () => ({ kind: 'gone' })),
    );
  }

  /** Whether it was read. */
  async #read(client: number, place: LinkPlace): Promise<boolean> {
    const record = this.#begin(client, place, { kind: 'read', key: place.key });
    const gateway = await this.#pool.pick();
    const attempt = await this.#pool.run(gateway, `reads ${place.shard}/${place.key}`, () =>
      this.#clients.read(gateway, place),
    );
    this.#end(
      record,
      outcomeOf(attempt, (value) => ({ kind: 'value', value })),
    );
    if (record.outcome !== undefined) this.#world.ground.counts.add(BRANCHES.read);
    return record.outcome !== undefined;
  }

  /** Does something that gives a key a value, perhaps cut between two of its steps. */
  async #attempt(
    client: number,
    to: LinkPlace,
    name: string,
    act: (attempt: Attempt) => Promise<void>,
  ): Promise<boolean> {
    const { counts, scheduler } = this.#world.ground;
    const gateway = await this.#pool.pick();
    const left = Promise.withResolvers<Attempted<void>>();
    const cut = this.#cuts.request(gateway.process, () => {
      scheduler.after(1, { name: `${name}: left`, run: () => left.resolve({ kind: 'cut-off' }) });
    });
    const commits: HistoryRecord[] = [];
    const watch: StepWatch = {
      onCommit: (value) => {
        commits.push(this.#begin(client, to, { kind: 'put', key: to.key, value }));
      },
      after: async (step, command, shard) => {
        if (step === 'claim-links' && this.#chance.happens(AGAIN_SHARE))
          this.#claimAgain(command as CommandOf<'claim-links'>, shard);
        await cut(step, shard);
      },
    };
    const attempt = await Promise.race([
      this.#pool.run(gateway, `links: ${name}`, () => act({ gateway, watch, commits })),
      left.promise,
    ]);
    if (attempt.kind === 'failed' && !(attempt.error instanceof AppError)) throw attempt.error;
    if (attempt.kind === 'failed' && (attempt.error as AppError).code === 'NoSuchKey')
      counts.add(BRANCHES.gone);
    const last = commits.at(-1);
    if (attempt.kind === 'done' && last !== undefined) this.#end(last, { kind: 'written' });
    return attempt.kind === 'done';
  }

  /** As a message that was sent twice, through another gateway. */
  #claimAgain(command: CommandOf<'claim-links'>, shard: number): void {
    const { scheduler, counts } = this.#world.ground;
    scheduler.after(this.#chance.between(0, AGAIN_MAX_MS), {
      name: 'a claim is made again',
      run: () => {
        const running = this.#pool.running();
        if (running.length === 0) return;
        counts.add(BRANCHES.again);
        void this.#pool.run(this.#chance.pick(running), 'claims again', ({ metadata }) =>
          metadata.execute({ shard }, 'claim-links', command),
        );
      },
    });
  }

  #begin(client: number, { shard }: LinkPlace, operation: KeyOperation): HistoryRecord {
    const { scheduler } = this.#world.ground;
    const record: HistoryRecord = {
      ...{ requestId: `links-${this.#history.length}`, shard, client, operation, outcome: undefined },
      ...{ invokedAt: scheduler.stepCount, invokedAtMs: scheduler.nowMs },
      ...{ answeredAt: Number.POSITIVE_INFINITY, answeredAtMs: Number.POSITIVE_INFINITY },
    };
    this.#history.push(record);
    return record;
  }

  #end(record: HistoryRecord, outcome: Outcome | undefined): void {
    const { scheduler } = this.#world.ground;
    record.answeredAt = scheduler.stepCount;
    record.answeredAtMs = scheduler.nowMs;
    record.outcome = outcome;
  }
}

/** undefined: nobody knows. */
function outcomeOf<T>(attempt: Attempted<T>, known: (value: T) => Outcome): Outcome | undefined {
  if (attempt.kind === 'done') return known(attempt.value);
  if (attempt.kind === 'failed' && !(attempt.error instanceof AppError)) throw attempt.error;
  return undefined;
}
