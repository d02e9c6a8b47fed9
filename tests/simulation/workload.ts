// The clients of the simulated world: each does one thing after another on a few keys that all of them use, through any
// gateway, and keeps what it was told. They come in rushes, and now and then several race to create the same key.
import type { Chance } from './chance.ts';
import type { Driver } from './driver.ts';
import type { SimulatedGateway } from './gateway.ts';
import type { HistoryRecord, Operation } from './operations.ts';
import type { Scheduler } from './scheduler.ts';

const KEYS = ['ant', 'bee', 'cat', 'dog', 'eel', 'fox'];
const LIST_LIMIT_MAX = 8;
const RUSH_EVERY_MS = 1400;
/** Replicas that start together may take each other's first epochs: a shard is open for good a lease later. */
const FIRST_RUSH = 2;
/** What a client does in one, at most. */
const RUSH_MAX = 5;
const RACE_SHARE = 0.3;
/** Clients that give up soon show what is done behind their backs. */
const SHORT_SHARE = 0.3;
const SHORT_PATIENCE_MS = 1500;

/** Shares of what clients do, where the machine can do it. */
const SHARES: Record<Operation['kind'], number> = {
  put: 0.25,
  create: 0.12,
  remove: 0.13,
  append: 0.15,
  read: 0.22,
  list: 0.13,
};

export interface WorkloadOptions {
  scheduler: Scheduler;
  chance: Chance;
  driver: Driver;
  shardCount: number;
  /** Shard time when the clients begin, by shard. */
  timesMs: readonly number[];
  /** Those that run at the moment. */
  gateways(): readonly SimulatedGateway[];
  /** Operations of each client. */
  operationCount: number;
  patienceMaxMs: number;
  onBegun(record: HistoryRecord): void;
  /** It turned out to say nothing about the state. */
  onNothing(record: HistoryRecord): void;
}

export class Client {
  readonly #id: number;
  readonly #options: WorkloadOptions;
  readonly #chance: Chance;
  /** By shard, the newest time and value that it has seen. */
  readonly #timesMs = new Map<number, number>();
  readonly #seen = new Map<string, string>();
  #count = 0;

  constructor(id: number, options: WorkloadOptions) {
    this.#id = id;
    this.#options = options;
    this.#chance = options.chance.fork(`client ${id}`);
  }

  async run(): Promise<void> {
    const { operationCount, shardCount } = this.#options;
    let left = operationCount;
    while (left > 0) {
      const rush = await this.#nextRush();
      const key = `race-${rush}`;
      if (this.#chance.happens(RACE_SHARE)) {
        left--;
        await this.#do(rush % shardCount, { kind: 'create', key, value: this.#newValue() });
      }
      for (let count = this.#chance.int(1, RUSH_MAX); count > 0 && left > 0; count--, left--) {
        await this.#options.scheduler.sleep(this.#pauseMs(), `client ${this.#id} begins`);
        const shard = this.#chance.int(0, shardCount - 1);
        await this.#do(shard, this.#draw(shard));
      }
    }
  }

  /** All clients wait for the same moments, so that what they do meets. */
  async #nextRush(): Promise<number> {
    const { scheduler } = this.#options;
    const rush = Math.max(FIRST_RUSH, Math.floor(scheduler.nowMs / RUSH_EVERY_MS) + 1);
    await scheduler.sleep(rush * RUSH_EVERY_MS - scheduler.nowMs, `client ${this.#id} joins in`);
    return rush;
  }

  #pauseMs(): number {
    if (this.#chance.happens(0.8)) return this.#chance.between(0, 3);
    return this.#chance.between(0, RUSH_EVERY_MS / 2);
  }

  async #do(shard: number, operation: Operation): Promise<void> {
    const { scheduler, driver } = this.#options;
    const requestId = `${this.#id}-${this.#count++}`;
    const record: HistoryRecord = {
      requestId,
      shard,
      client: this.#id,
      operation,
      invokedAt: scheduler.stepCount,
      answeredAt: Number.POSITIVE_INFINITY,
      invokedAtMs: scheduler.nowMs,
      answeredAtMs: Number.POSITIVE_INFINITY,
      outcome: undefined,
    };
    this.#options.onBegun(record);
    const timeMs = this.#timesMs.get(shard) ?? this.#options.timesMs[shard] ?? 0;
    const call = driver.call(operation, { shard, timeMs, chance: this.#chance });
    const patienceMs = this.#chance.happens(SHORT_SHARE)
      ? this.#chance.between(100, SHORT_PATIENCE_MS)
      : this.#chance.between(SHORT_PATIENCE_MS, this.#options.patienceMaxMs);
    const answer = await this.#ask({ requestId, call, patienceMs });
    record.answeredAt = scheduler.stepCount;
    record.answeredAtMs = scheduler.nowMs;
    if (answer?.kind !== 'done') return;
    this.#timesMs.set(shard, answer.timeMs);
    record.outcome = driver.outcome(operation, answer.value);
    // Refused for a reason of its own: nothing happened, and nothing was said about the state.
    if (record.outcome === undefined) this.#options.onNothing(record);
    this.#remember(record);
  }

  /** undefined: the gateway went away meanwhile. */
  async #ask(request: Parameters<SimulatedGateway['run']>[0]) {
    const { scheduler, gateways } = this.#options;
    let running = gateways();
    while (running.length === 0) {
      await scheduler.sleep(100, `client ${this.#id} finds no gateway`);
      running = gateways();
    }
    const gateway = this.#chance.pick(running);
    return Promise.race([
      gateway.run(request),
      new Promise<undefined>((resolve) => {
        gateway.process.onEnd(() =>
          scheduler.after(1, { name: `client ${this.#id} is cut off`, run: () => resolve(undefined) }),
        );
      }),
    ]);
  }

  #draw(shard: number): Operation {
    const chance = this.#chance;
    const key = chance.pick(KEYS);
    switch (this.#drawKind()) {
      case 'put':
        return { kind: 'put', key, value: this.#newValue() };
      case 'create':
        return { kind: 'create', key, value: this.#newValue() };
      case 'remove': {
        const ifValue = this.#seen.get(`${shard}/${key}`);
        return ifValue !== undefined && chance.happens(0.6)
          ? { kind: 'remove', key, ifValue }
          : { kind: 'remove', key };
      }
      case 'append':
        return { kind: 'append', key, value: `${this.#newValue()} ` };
      case 'read':
        return { kind: 'read', key };
      case 'list':
        return {
          kind: 'list',
          after: chance.happens(0.6) ? '' : chance.pick(KEYS),
          limit: chance.int(1, LIST_LIMIT_MAX),
        };
    }
  }

  #drawKind(): Operation['kind'] {
    const { operations } = this.#options.driver;
    const total = operations.reduce((sum, kind) => sum + SHARES[kind], 0);
    let left = this.#chance.float() * total;
    for (const kind of operations) {
      left -= SHARES[kind];
      if (left < 0) return kind;
    }
    return 'read';
  }

  #newValue(): string {
    return `${this.#id}.${this.#count}`;
  }

  #remember({ shard, operation, outcome }: HistoryRecord): void {
    if (operation.kind === 'list' || outcome === undefined) return;
    const name = `${shard}/${operation.key}`;
    if (outcome.kind === 'written' && 'value' in operation) this.#seen.set(name, operation.value);
    if (outcome.kind === 'value' && outcome.value !== null) this.#seen.set(name, outcome.value);
  }
}
