// The random run against the model of retention over three voters: whoever leads, and whatever their clocks are set to, what
// is protected stays, and what may go goes (service 3; R12, R19). Reproduced by its seed.
import { expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { metadataMachine } from '../../src/metadata/state-machine.ts';
import type { QueryName, QueryOf, ResultOf } from '../../src/ports/metadata/port.ts';
import type { ShardReply } from '../../src/ports/shard-calls.ts';
import type { ModelledShard } from '../support/metadata/retention-buckets.ts';
import { RetentionRun } from '../support/metadata/retention-run.ts';
import { type ClusterNode, openShardCluster, type ShardCluster } from '../support/metadata/shard-cluster.ts';
import { amountOf } from '../support/run/long-form.ts';

const DAY = 24 * 3600_000;
const WEEK = 7 * DAY;
const NODES = [0, 1, 2];
const SEEDS = amountOf({ short: 1, long: 10 });
const STEPS = 400;
const TRIES_MAX = 60;
/** What goes by while a step of the clock is looked at. */
const SLACK_MS = 60_000;
/** An idle shard writes its time this often. */
const UNKEPT_MS = 10 * 60_000;

class Voters implements ModelledShard {
  readonly #cluster: ShardCluster;
  #requestCount = 0;
  #unacceptedMs = 0;
  /** Since the operator has last accepted something: by what the clocks were set ahead, and what has passed while nothing happened. */
  #setMs = 0;
  #skippedMs = 0;
  #timeMs = 0;
  takeoverCount = 0;
  jumpCount = 0;

  constructor(cluster: ShardCluster) {
    this.#cluster = cluster;
  }

  unacceptedMs = () => this.#unacceptedMs;

  async execute(name: never, body: never, bucket?: never): Promise<never> {
    const requestId = `request ${++this.#requestCount}`;
    const envelope = { shard: 0, requestId, ...(bucket === undefined ? {} : { bucket }) };
    const reply = await this.#ask('execute', { envelope, name, body });
    // Time never runs backwards, whoever leads, but for what no entry has kept: where clocks are behind nobody else knows it.
    expect(reply.timeMs).toBeGreaterThanOrEqual(this.#timeMs - UNKEPT_MS);
    this.#timeMs = reply.timeMs;
    return reply as never;
  }

  async query<N extends QueryName>(name: N, body: QueryOf<N>): Promise<ResultOf<N>> {
    const reply = await this.#ask('query', { envelope: { shard: 0 }, name: name as never, body });
    if (reply.kind !== 'done') throw new Error(`${name}: ${reply.kind}`);
    return reply.value as ResultOf<N>;
  }

  async #ask(kind: 'execute' | 'query', call: { envelope: { shard: number }; name: never; body: unknown }) {
    for (;;) {
      const reply = await this.#send(await this.#cluster.primary(), kind, call);
      if (reply?.kind === 'done' || reply?.kind === 'stale-bucket') return reply;
      await this.#cluster.run(100);
    }
  }

  /** undefined: the node is no more. */
  async #send(
    own: ClusterNode,
    kind: 'execute' | 'query',
    call: { envelope: { shard: number }; name: never; body: unknown },
  ): Promise<ShardReply | undefined> {
    const { node } = own;
    if (node === undefined) return undefined;
    let reply: ShardReply | undefined;
    void node.handle({ kind, ...call, ticket: node.ticket(), budgetMs: 10_000 }).then((got) => {
      reply = got;
    });
    return this.#cluster.until('a reply', () => reply);
  }

  /** Something that befalls voters or their clocks, and what retention should go by then. */
  async disturb(run: RetentionRun, drawn = run.below(100)): Promise<void> {
    if (drawn < 45) {
      const ms = run.below(6 * DAY);
      run.note(`${ms} ms pass`);
      this.#cluster.skip(ms);
      this.#skippedMs += ms;
    } else if (drawn < 75) await this.#changePrimary(run);
    else if (drawn < 92) await this.#setClocks(run);
    else {
      run.note('the operator accepts the time');
      const body = { atMostMs: this.#unacceptedMs };
      await this.#ask('execute', { envelope: { shard: 0 }, name: 'accept-time-jump' as never, body });
      if (this.#unacceptedMs > 0) {
        this.#setMs = 0;
        this.#skippedMs = 0;
      }
    }
    await run.hearTime();
    await (await this.#cluster.primary()).node?.replica(0)?.shard?.keepTime();
    const { jumpMs } = await this.query('get-time-jump', {});
    // Of what the clocks were set by, a week is believed, and a week more in four. What passes while no primary keeps time may be
    // taken for a step.
    const least = this.#setMs - WEEK - this.#skippedMs / 4;
    expect(jumpMs).toBeGreaterThanOrEqual(least - SLACK_MS);
    expect(jumpMs).toBeLessThan(this.#setMs + this.#skippedMs + SLACK_MS);
    if (jumpMs > this.#unacceptedMs) this.jumpCount++;
    this.#unacceptedMs = jumpMs;
  }

  /** It is killed, or cut off from the others until one of them has taken its place. */
  async #changePrimary(run: RetentionRun): Promise<void> {
    const cluster = this.#cluster;
    const before = cluster.nodes.indexOf(await cluster.primary());
    const isKilled = run.below(2) === 0;
    run.note(`voter ${before} is ${isKilled ? 'killed' : 'cut off'}`);
    if (isKilled) cluster.kill(before);
    else for (const other of NODES) if (other !== before) cluster.cut(before, other);
    await cluster.until('another primary', () =>
      cluster.nodes.find(({ node }, at) => at !== before && node?.replica(0)?.status().role === 'primary'),
    );
    cluster.heal();
    if (isKilled) await cluster.start(before);
    else
      await cluster.until('it knows', () =>
        must(cluster.nodes[before]?.node, 'it lives').replica(0)?.status().role === 'primary'
          ? undefined
          : true,
      );
    this.takeoverCount++;
  }

  /** All at once: one alone is not believed. */
  async #setClocks(run: RetentionRun): Promise<void> {
    const days = run.below(3) === 0 ? run.below(12) - 6 : 300 + run.below(4000);
    run.note(`the clocks are set by ${days} days`);
    this.#cluster.shiftWall(days * DAY);
    this.#setMs += Math.max(0, this.#cluster.wallMs() - this.#timeMs);
    // They are believed once a majority has said what they are.
    for (let tries = 0; this.#timeMs < this.#cluster.wallMs() - SLACK_MS; tries++) {
      expect(tries).toBeLessThan(TRIES_MAX);
      await this.#cluster.run(1000);
      await run.hearTime();
    }
  }
}

test.each(Array.from({ length: SEEDS }, (_, at) => at + 1))(
  'retention is as its model has it, over takeovers (seed %i)',
  async (seed) => {
    const cluster = await openShardCluster({ nodeCount: NODES.length, machine: metadataMachine });
    for (const index of NODES) await cluster.start(index);
    const shard = new Voters(cluster);
    const run = new RetentionRun(shard, seed);
    await run.hearTime();
    for (let step = 0; step < STEPS; step++) {
      try {
        if (run.below(8) === 0) await shard.disturb(run);
        // Some of each in every seed.
        if (step % 100 === 50) for (const drawn of [80, 50]) await shard.disturb(run, drawn);
        await run.step();
      } catch (error) {
        throw new Error(`seed ${seed}, step ${step}:\n${run.history}`, { cause: error });
      }
    }
    expect(shard.takeoverCount).toBeGreaterThan(3);
    expect(shard.jumpCount).toBeGreaterThan(0);
    expect(run.counts.get('kept: a version')).toBeGreaterThan(5);
  },
);
