// How clients of the links part do things: through a gateway that is picked, perhaps cut between two steps, with what
// they did and were told kept as the history of the buckets.
import { AppError } from '../../src/model/errors.ts';
import type { CommandOf } from '../../src/ports/metadata.ts';
import type { BucketOperation, BucketOutcome, BucketRecord } from './bucket-operations.ts';
import type { Chance } from './chance.ts';
import type { LinkClients, LinkPlace } from './link-clients.ts';
import type { GatewayStep, LinkCuts } from './link-cuts.ts';
import type { StepWatch } from './link-watch.ts';
import { type Attempted, GatewayPool, type PartWorld } from './part.ts';
import type { ProductGateway } from './product-gateway.ts';

/** Of claims: somebody makes them once more, perhaps when they are released long since. */
const AGAIN_SHARE = 0.3;
const AGAIN_MAX_MS = 15_000;

/** What has many pieces is folded behind a read. */
const READ_STEPS: readonly GatewayStep[] = ['fold-version'];

const BRANCHES = {
  again: 'links: claim made again',
  gone: 'links: source gone',
  read: 'links: copy read',
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
  history: BucketRecord[];
}

export class LinkSession {
  readonly pool: GatewayPool;
  readonly #world: PartWorld;
  readonly #chance: Chance;
  readonly #clients: LinkClients;
  readonly #cuts: LinkCuts;
  readonly #history: BucketRecord[];

  constructor(world: PartWorld, { chance, clients, cuts, history }: SessionOptions) {
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
      onChange: (operation) => {
        const record = this.begin(client, shard, operation);
        return (outcome) => {
          if (outcome !== null) this.end(record, outcome);
          else this.#history.splice(this.#history.indexOf(record), 1);
        };
      },
      after: async (step, command, of) => {
        if (step === 'claim-links' && this.#chance.happens(AGAIN_SHARE))
          this.#claimAgain(command as CommandOf<'claim-links'>, of);
        await cut(step, of);
      },
    };
    const does = () => act({ gateway, watch });
    const attempt = await this.pool.run(gateway, `links: ${name}`, does, left.promise);
    if (attempt.kind === 'failed' && !(attempt.error instanceof AppError)) throw attempt.error;
    if (attempt.kind === 'failed' && (attempt.error as AppError).code === 'NoSuchKey')
      counts.add(BRANCHES.gone);
    return attempt.kind === 'done';
  }

  async remove(client: number, place: LinkPlace): Promise<void> {
    const record = this.begin(client, place.shard, { kind: 'remove', key: place.key });
    const gateway = await this.pool.pick();
    const attempt = await this.pool.run(gateway, `removes ${place.shard}/${place.key}`, () =>
      this.#clients.remove(gateway, place),
    );
    this.end(
      record,
      outcomeOf(attempt, () => ({ kind: 'gone' })),
    );
  }

  /** Whether it was read. */
  async read(client: number, place: LinkPlace): Promise<boolean> {
    const record = this.begin(client, place.shard, { kind: 'read', key: place.key });
    const gateway = await this.pool.pick();
    const cut = this.#cuts.request(gateway.process, () => undefined, READ_STEPS);
    const attempt = await this.pool.run(gateway, `reads ${place.shard}/${place.key}`, () =>
      this.#clients.read(gateway, place, (step, _command, of) => cut(step, of)),
    );
    this.end(
      record,
      outcomeOf(attempt, (value) => ({ kind: 'value', value })),
    );
    if (record.outcome !== undefined) this.#world.ground.counts.add(BRANCHES.read);
    return record.outcome !== undefined;
  }

  begin(client: number, shard: number, operation: BucketOperation): BucketRecord {
    const { scheduler } = this.#world.ground;
    const record: BucketRecord = {
      ...{ requestId: `links-${this.#history.length}`, shard, client, operation, outcome: undefined },
      ...{ invokedAt: scheduler.stepCount, invokedAtMs: scheduler.nowMs },
      ...{ answeredAt: Number.POSITIVE_INFINITY, answeredAtMs: Number.POSITIVE_INFINITY },
    };
    this.#history.push(record);
    return record;
  }

  end(record: BucketRecord, outcome: BucketOutcome | undefined): void {
    const { scheduler } = this.#world.ground;
    record.answeredAt = scheduler.stepCount;
    record.answeredAtMs = scheduler.nowMs;
    record.outcome = outcome;
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

/** undefined: nobody knows. */
function outcomeOf<T>(attempt: Attempted<T>, known: (value: T) => BucketOutcome): BucketOutcome | undefined {
  if (attempt.kind === 'done') return known(attempt.value);
  if (attempt.kind === 'failed' && !(attempt.error instanceof AppError)) throw attempt.error;
  return undefined;
}
