// Random sequences of every command that changes versions, with steps of the clock and restarts between them, against a small
// model of retention: nothing that is protected is removed, replaced, renamed or altered, and nothing is kept that may go
// (service 2.4, 2.5, 3; R19). Reproduced by its seed.
import { expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import type { QueryName, QueryOf, ResultOf } from '../../src/ports/metadata/port.ts';
import { type MetadataShards, openMetadata } from '../support/metadata/metadata-shards.ts';
import type { ModelledShard } from '../support/metadata/retention-buckets.ts';
import { RetentionRun } from '../support/metadata/retention-run.ts';
import { amountOf } from '../support/run/long-form.ts';

const DAY = 24 * 3600_000;
const WEEK = 7 * DAY;
/** Less is not counted. */
const MINUTE = 60_000;
const STEPS = 1000;
const SEEDS = amountOf({ short: 10, long: 100, byHand: process.env.HOLDFAST_TEST_RETENTION_SEEDS });

/** One shard in one process after another, over one store and one clock. */
class Lives implements ModelledShard {
  #world: MetadataShards | undefined;
  #lives = 0;
  #unacceptedMs = 0;
  /** What smaller steps came to, at a time of the shard. */
  #steps = { sumMs: 0, atMs: 0 };

  get #open(): MetadataShards {
    return must(this.#world, 'a process');
  }

  async begin(): Promise<void> {
    const before = this.#world;
    const stores = before && { kv: before.kv, clock: before.clock };
    this.#world = await openMetadata({ ...stores, seed: ++this.#lives });
  }

  async execute(name: never, command: never, bucket?: never): Promise<never> {
    const envelope = bucket === undefined ? { shard: 0 } : { shard: 0, bucket };
    const reply = await this.#open.shards.execute(envelope, name, command);
    if (reply.kind !== 'done' && reply.kind !== 'stale-bucket') throw new Error(`${name}: ${reply.kind}`);
    return reply as never;
  }

  query<N extends QueryName>(name: N, query: QueryOf<N>): Promise<ResultOf<N>> {
    return this.#open.query(name, query);
  }

  unacceptedMs = () => this.#unacceptedMs;

  /** Something that befalls a server, and what it should make of it. */
  async disturb(run: RetentionRun): Promise<void> {
    const { clock } = this.#open;
    const drawn = run.below(100);
    if (drawn < 60) {
      const ms = run.below(drawn < 40 ? DAY : 10 * DAY);
      run.note(`${ms} ms pass`);
      clock.advance(ms);
    } else if (drawn < 75) {
      const days = run.below(2) === 0 ? run.below(60) - 30 : run.below(8000) - 4000;
      run.note(`the clock is set by ${days} days`);
      clock.shiftWall(days * DAY);
    } else if (drawn < 92) await this.#restart(run);
    else {
      run.note('the operator accepts the time');
      await this.#open.shards.timeJumps.accept(this.#unacceptedMs);
      if (this.#unacceptedMs > 0) this.#steps.sumMs = 0;
      this.#unacceptedMs = 0;
    }
    await run.hearTime();
  }

  async #restart(run: RetentionRun): Promise<void> {
    const { shards, clock } = this.#open;
    const reply = await shards.query({ shard: 0 }, 'count-usage', {});
    if (reply.kind !== 'done') throw new Error(reply.kind);
    const stepMs = Math.max(0, clock.wallMs() - reply.timeMs);
    run.note(`a restart, ${stepMs} ms behind the last entry`);
    await this.begin();
    // Seven days and no more are believed, in one step or in several.
    const { sumMs, atMs } = this.#steps;
    const leftMs = Math.max(0, sumMs - (reply.timeMs - atMs) / 4);
    if (leftMs + stepMs > WEEK) {
      this.#unacceptedMs += Math.floor(leftMs + stepMs);
      this.#steps = { sumMs: 0, atMs: reply.timeMs + stepMs };
    } else if (stepMs >= MINUTE)
      this.#steps = { sumMs: Math.floor(leftMs + stepMs), atMs: reply.timeMs + stepMs };
    expect(await this.#open.shards.timeJumps.unacceptedMs()).toBe(this.#unacceptedMs);
  }
}

const all = new Map<string, number>();

test.each(Array.from({ length: SEEDS }, (_, at) => at + 1))(
  'retention is as its model has it (seed %i)',
  async (seed) => {
    const shard = new Lives();
    await shard.begin();
    const run = new RetentionRun(shard, seed);
    await run.hearTime();
    for (let step = 0; step < STEPS; step++) {
      try {
        if (run.below(8) === 0) await shard.disturb(run);
        await run.step();
      } catch (error) {
        throw new Error(`seed ${seed}, step ${step}:\n${run.history}`, { cause: error });
      }
    }
    expect((await shard.query('check-counters', { counted: [] })).findings).toEqual([]);
    for (const [what, count] of run.counts) all.set(what, (all.get(what) ?? 0) + count);
  },
);

test('each kind of refusal was met', () => {
  const kept = [...all.keys()].filter((what) => what.startsWith('kept: ')).sort();
  expect(kept).toEqual(
    [
      'a bucket',
      'a key',
      'a null version',
      'a protection',
      'a version',
      'has-compliance',
      'has-object-lock',
      'keys-are-moving',
      'locked-lock-time',
      'locked-retention-days',
      'locked-status',
      'needs-versioning',
      'what lifecycle would take',
    ].map((what) => `kept: ${what}`),
  );
});
