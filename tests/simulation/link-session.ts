// How clients of the links part do things: through a gateway that is picked, perhaps cut between two steps, with what
// they did and were told kept as the history of the buckets.

import type { CommandOf } from '../../src/ports/metadata/port.ts';
import type { ListedVersion } from '../../src/ports/metadata/versions.ts';
import { AppError } from '../../src/types/errors.ts';
import type { VersionId } from '../../src/types/names.ts';
import type { BucketOperation, BucketRecord } from './bucket-operations.ts';
import type { Chance } from './chance.ts';
import type { LinkBuckets } from './link-buckets.ts';
import type { LinkClients, LinkPlace } from './link-clients.ts';
import type { GatewayStep, LinkCuts } from './link-cuts.ts';
import type { Became, StepWatch } from './link-watch.ts';
import { type Attempted, GatewayPool, type PartWorld } from './part.ts';
import type { ProductGateway } from './product-gateway.ts';

/** Of claims: somebody makes them once more, perhaps when they are released long since. */
const AGAIN_SHARE = 0.3;
const AGAIN_MAX_MS = 15_000;

/** Of deletions where versions are kept. */
const FOR_GOOD_SHARE = 0.6;
/** Of those for good: all versions, one after the other. */
const ALL_SHARE = 0.5;

/** What has many pieces is folded behind a read. */
const READ_STEPS: readonly GatewayStep[] = ['fold-version'];

const BRANCHES = {
  again: 'links: claim made again',
  gone: 'links: source gone',
  read: 'links: copy read',
  marked: 'links: delete marker written',
  removedVersion: 'links: version removed for good',
};

export const SESSION_BRANCHES: readonly string[] = Object.values(BRANCHES);

export interface Attempt {
  gateway: ProductGateway;
  watch: StepWatch;
}

export interface Asked {
  shard: number;
  /** In words. */
  name: string;
  /** Behind which of its steps it may be cut; absent: those of copies. */
  steps?: readonly GatewayStep[];
}

export interface SessionOptions {
  chance: Chance;
  clients: LinkClients;
  cuts: LinkCuts;
  buckets: LinkBuckets;
  history: BucketRecord[];
}

export class LinkSession {
  readonly pool: GatewayPool;
  readonly #world: PartWorld;
  readonly #chance: Chance;
  readonly #clients: LinkClients;
  readonly #cuts: LinkCuts;
  readonly #buckets: LinkBuckets;
  readonly #history: BucketRecord[];

  constructor(world: PartWorld, { chance, clients, cuts, buckets, history }: SessionOptions) {
    this.#buckets = buckets;
    this.#world = world;
    this.#chance = chance;
    this.#clients = clients;
    this.#cuts = cuts;
    this.#history = history;
    this.pool = new GatewayPool(world, chance.fork('gateways'));
  }

  /** Does something that changes keys, perhaps cut between two of its steps. */
  async attempt(
    client: number,
    { shard, name, steps }: Asked,
    act: (attempt: Attempt) => Promise<void>,
  ): Promise<boolean> {
    const { counts, scheduler } = this.#world.ground;
    const gateway = await this.pool.pick();
    const left = Promise.withResolvers<void>();
    const cut = this.#cuts.request(
      gateway.process,
      () => {
        scheduler.after(1, { name: `${name}: left`, run: left.resolve });
      },
      steps,
    );
    const watch: StepWatch = {
      onChange: this.#noteChanges(client, shard),
      after: async (step, command, of) => {
        if (step === 'claim-links' && this.#chance.happens(AGAIN_SHARE))
          this.#claimAgain(command as CommandOf<'claim-links'>, of);
        await cut(step, of);
      },
    };
    const does = () => act({ gateway, watch });
    const attempt = await this.pool.run(gateway, `links: ${name}`, does, left.promise);
    throwUnlessAnswer(attempt);
    if (attempt.kind === 'failed' && (attempt.error as AppError).code === 'NoSuchKey')
      counts.add(BRANCHES.gone);
    return attempt.kind === 'done';
  }

  /** The latest version; where versions are kept, by a delete marker, or any one or all of them for good. */
  async remove(client: number, place: LinkPlace): Promise<void> {
    const keepsVersions = this.#buckets.keepsVersions(place.shard);
    if (!keepsVersions || !this.#chance.happens(FOR_GOOD_SHARE)) return this.hide(client, place);
    const versions = (await this.list(client, place)) ?? [];
    if (versions.length === 0) return;
    const removed = this.#chance.happens(ALL_SHARE) ? versions : [this.#chance.pick(versions)];
    for (const { versionId } of removed) await this.#remove(client, place, versionId);
    this.#world.ground.counts.add(BRANCHES.removedVersion, removed.length);
  }

  /** A deletion that names no version. */
  async hide(client: number, place: LinkPlace): Promise<void> {
    await this.#remove(client, place, undefined);
    if (this.#buckets.keepsVersions(place.shard)) this.#world.ground.counts.add(BRANCHES.marked);
  }

  async #remove(client: number, place: LinkPlace, versionId: VersionId | undefined): Promise<void> {
    const { shard, key } = place;
    const watch = { onChange: this.#noteChanges(client, shard), after: async () => undefined };
    const of = versionId === undefined ? '' : ` version ${versionId} of`;
    const gateway = await this.pool.pick();
    const attempt = await this.pool.run(gateway, `removes${of} ${shard}/${key}`, () =>
      this.#clients.remove(gateway, place, { watch, ...(versionId && { versionId }) }),
    );
    throwUnlessAnswer(attempt);
  }

  /** The latest version, or one. Whether it was read. */
  async read(client: number, place: LinkPlace, versionId?: VersionId): Promise<boolean> {
    const { shard, key } = place;
    const operation: BucketOperation =
      versionId === undefined ? { kind: 'read', key } : { kind: 'read-version', key, versionId };
    const record = this.#begin(client, shard, operation);
    const gateway = await this.pool.pick();
    const cut = this.#cuts.request(gateway.process, () => undefined, READ_STEPS);
    const after: StepWatch['after'] = (step, _command, of) => cut(step, of);
    const attempt = await this.pool.run(gateway, `reads ${shard}/${key}`, () =>
      this.#clients.read(gateway, place, { after, ...(versionId && { versionId }) }),
    );
    throwUnlessAnswer(attempt);
    if (attempt.kind !== 'done') return this.#forget(record);
    this.#end(record, { outcome: attempt.value });
    this.#world.ground.counts.add(BRANCHES.read);
    return true;
  }

  /** undefined: it could not be had. */
  async list(client: number, place: LinkPlace): Promise<ListedVersion[] | undefined> {
    const { shard, key } = place;
    const record = this.#begin(client, shard, { kind: 'list', key });
    const gateway = await this.pool.pick();
    const attempt = await this.pool.run(gateway, `lists versions of ${shard}/${key}`, () =>
      this.#clients.list(gateway, place),
    );
    throwUnlessAnswer(attempt);
    if (attempt.kind !== 'done') {
      this.#forget(record);
      return undefined;
    }
    const versions = attempt.value.map(({ versionId, summary: { isDeleteMarker: isMarker } }) => ({
      versionId,
      isMarker,
    }));
    this.#end(record, { outcome: { kind: 'listed', versions } });
    return attempt.value;
  }

  #begin(client: number, shard: number, operation: BucketOperation): BucketRecord {
    const { scheduler } = this.#world.ground;
    const record: BucketRecord = {
      requestId: `links-${this.#history.length}`,
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
    return record;
  }

  #end(record: BucketRecord, { outcome, versionId, keepsNull }: Became): void {
    const { scheduler } = this.#world.ground;
    record.answeredAt = scheduler.stepCount;
    record.answeredAtMs = scheduler.nowMs;
    record.outcome = outcome;
    if (versionId !== undefined) record.operation = { ...record.operation, versionId } as BucketOperation;
    if (keepsNull !== undefined) record.operation = { ...record.operation, keepsNull } as BucketOperation;
  }

  /** What was not answered says nothing of what was only looked at; and what has done nothing, nothing at all. */
  #forget(record: BucketRecord): false {
    this.#history.splice(this.#history.indexOf(record), 1);
    return false;
  }

  #noteChanges(client: number, shard: number): StepWatch['onChange'] {
    return (operation) => {
      const record = this.#begin(client, shard, operation);
      return (became) => {
        if (became === null) this.#forget(record);
        else this.#end(record, became);
      };
    };
  }

  /** As a message that was sent twice, through another gateway. */
  #claimAgain(command: CommandOf<'claim-links'>, shard: number): void {
    const { scheduler, counts } = this.#world.ground;
    scheduler.after(this.#chance.between(0, AGAIN_MAX_MS), {
      name: 'a claim is made again',
      run: () => {
        const running = this.pool.running();
        if (running.length === 0) return;
        counts.add(BRANCHES.again);
        void this.pool.run(this.#chance.pick(running), 'claims again', ({ metadata }) =>
          metadata.execute({ shard }, 'claim-links', command),
        );
      },
    });
  }
}

/** After a refusal, or without an answer, the client may go on. */
function throwUnlessAnswer(attempt: Attempted<unknown>): void {
  if (attempt.kind === 'failed' && !(attempt.error instanceof AppError)) throw attempt.error;
}
