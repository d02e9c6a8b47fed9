// A cluster of real processes under a checked load, to which tests do harm: what was acknowledged before, during and after
// each harm is compared with what is read, how soon writes are back is noted, and at the end fsck compares everything.
// Not here: the harms (tests/cluster).
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { ShardStatus } from '../../../src/admin/status/cluster-status.ts';
import { must } from '../../../src/base/assert.ts';
import { Refusal } from '../../../src/base/refusal.ts';
import { runFsck } from '../../../src/cli/fsck-command.ts';
import { SYSTEM_SHARD } from '../../../src/ports/metadata/port.ts';
import { ClusterLoad, createShardFinder } from '../load/cluster-load.ts';
import { createPrintedTool } from '../run/printed-tool.ts';
import { sendAgain } from './send-again.ts';
import { type ClusterOptions, startCluster, type TestCluster } from './start-cluster.ts';

/**
 * A primary is back after a lease and a few round trips. A busy machine takes longer, and a client gives a request up only
 * after 40 s.
 */
const BACK_WITHIN_MS = 180_000;

/** A disk that has not answered may rest for a minute, and what waits for it comes in turn again after half of one. */
const REPAIRED_WITHIN_MS = 240_000;

export interface EnduranceOptions {
  /** Of the requests. */
  seed: string;
  workersPerShard: number;
  /** Of so many shards a prefix is renamed all the time. Default: none. */
  renamedPrefixes?: number;
  /** Of a worker between two things that it does: the load goes on, and leaves the machine to others. Default: none. */
  restMs?: number;
  /** After each harm: everything, or what was written to since the last comparison. */
  compare: 'all' | 'touched';
  /** Of load before a harm. */
  betweenMs: number;
  cluster?: ClusterOptions;
  /** Before the load is made ready. */
  prepare?(cluster: TestCluster): Promise<void>;
}

export interface Watch {
  /** Until writes are back after what has just been done; notes how long that took. Resolves with that, ms. */
  back(what: string): Promise<number>;
  /** A figure more. */
  note(text: string): void;
}

/** Prints the seed. */
export async function openEndurance(options: EnduranceOptions): Promise<Endurance> {
  console.log(`seed ${options.seed}`);
  const cluster = await startCluster(options.cluster);
  try {
    await options.prepare?.(cluster);
    const load = new ClusterLoad({
      gateways: cluster.gateways,
      seed: options.seed,
      workersPerShard: options.workersPerShard,
      ...(options.restMs !== undefined && { restMs: options.restMs }),
      ...(options.renamedPrefixes !== undefined && { renamedPrefixes: options.renamedPrefixes }),
      appliedSeqs: () => appliedSeqs(cluster),
    });
    await load.prepare();
    return new Endurance(options, cluster, load);
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

export class Endurance {
  readonly cluster: TestCluster;
  readonly load: ClusterLoad;
  readonly #options: EnduranceOptions;
  readonly #figures: string[] = [];

  constructor(options: EnduranceOptions, cluster: TestCluster, load: ClusterLoad) {
    this.#options = options;
    this.cluster = cluster;
    this.load = load;
  }

  /** Does harm under load, waits until all is well again, and compares what was touched with what was promised. */
  async endure(name: string, harm: (watch: Watch) => Promise<void>): Promise<void> {
    const { cluster, load } = this;
    const before = {
      acknowledged: load.ledger.acknowledgedCount,
      unanswered: new Map(load.clients.unanswered),
      renamed: load.renamedCount,
      askedAgain: load.askedAgainCount,
    };
    const notes: string[] = [];
    await cluster.mend();
    load.start();
    await load.back(performance.now(), BACK_WITHIN_MS);
    await sleep(this.#options.betweenMs);
    const begunMs = performance.now();
    try {
      await harm({
        async back(what) {
          const ms = Math.round(await load.back(performance.now(), BACK_WITHIN_MS));
          if (what !== '') notes.push(`${what}: writes back after ${ms} ms`);
          return ms;
        },
        note: (text) => void notes.push(text),
      });
      await cluster.untilHealthy();
      await load.back(performance.now(), BACK_WITHIN_MS);
      notes.push(`longest pause ${Math.round(load.longestPauseMs(begunMs))} ms`);
    } finally {
      await load.stop();
    }
    const wrong = [...load.problems.splice(0), ...(await load.verify(this.#options.compare))];
    const unanswered = [...load.clients.unanswered].flatMap(([kind, count]) => {
      const more = count - (before.unanswered.get(kind) ?? 0);
      return more > 0 ? [`${more} ${kind}`] : [];
    });
    notes.push(`${load.ledger.acknowledgedCount - before.acknowledged} writes acknowledged`);
    const renamed = load.renamedCount - before.renamed;
    const askedAgain = load.askedAgainCount - before.askedAgain;
    if (renamed > 0) notes.push(`${renamed} prefixes renamed, ${askedAgain} requests of that sent again`);
    if (unanswered.length > 0) notes.push(`without an answer: ${unanswered.join(', ')}`);
    this.#figures.push(`${name}: ${notes.join('; ')}`);
    console.log(this.#figures.at(-1));
    expect(wrong).toEqual([]);
  }

  /**
   * Of all that was acknowledged nothing is lost or wrong, and no copy is owed any more; fsck finds nothing; nobody was told
   * of an error of ours.
   */
  async expectSound({ readsData }: { readsData: boolean }): Promise<void> {
    const { cluster, load } = this;
    const beganMs = performance.now();
    const debts = async () => (await cluster.status()).repair.debts;
    await expect.poll(debts, { timeout: REPAIRED_WITHIN_MS, interval: 1000 }).toEqual([]);
    const repairedMs = performance.now();
    // Everything is read behind all harms; in the short form what was not when it was compared behind the last one.
    expect(await load.verify(this.#options.compare === 'all' ? 'all' : 'unread')).toEqual([]);
    const readMs = performance.now();
    expect(await fsckFindings(cluster, { readsData })).toEqual([]);
    const times = [repairedMs - beganMs, readMs - repairedMs, performance.now() - readMs].map(Math.round);
    this.#figures.push(
      `in the end: no copy owed after ${times[0]} ms; of ${load.ledger.paths.length} keys those not read behind the last harm read in ${times[1]} ms; fsck took ${times[2]} ms`,
    );
    for (const name of cluster.names)
      expect(
        (await cluster.logOf(name)).filter(({ status }) => status === 500),
        name,
      ).toEqual([]);
  }

  async stop(): Promise<void> {
    console.log(this.#figures.join('\n'));
    this.load.close();
    await this.cluster.stop();
  }
}

const FSCK_TRIES = 5;

/** What `holdfast fsck` finds wrong, of metadata, links and chunks, and with `readsData` by reading every byte. */
export async function fsckFindings(
  cluster: TestCluster,
  { readsData }: { readsData: boolean },
): Promise<unknown[]> {
  const options = { dataDir: join(cluster.folder, 'keys'), json: true, readData: readsData, fullSpeed: true };
  for (let tries = 1; ; tries++) {
    const { context, taken } = createPrintedTool();
    try {
      await runFsck(context, options);
      return JSON.parse(taken()).findings;
    } catch (error) {
      // It says so where a node did not answer in time, as on a busy machine, and is asked again.
      if (!(error instanceof Refusal) || tries === FSCK_TRIES) throw error;
    }
  }
}

/** Of each shard's primary. */
const appliedSeqs = async (cluster: TestCluster): Promise<number[]> =>
  (await cluster.status()).shards.map(appliedSeqOf);

/** The primary's. */
function appliedSeqOf({ primary, voters }: ShardStatus): number {
  return voters.find(({ nodeId }) => nodeId === primary)?.appliedSeq ?? 0;
}

/** One bucket of each shard but the system's, by number, made here: `PREFIX-0` and so on. Nothing else may write meanwhile. */
export async function bucketsByShard(cluster: TestCluster, prefix: string): Promise<string[]> {
  const put = async (path: string) => {
    const { status } = await sendAgain(() => must(cluster.gateways[0], 'a gateway'), { method: 'PUT', path });
    expect(status).toBe(200);
  };
  const { length } = await appliedSeqs(cluster);
  const buckets: string[] = [];
  const isLacking = () =>
    Array.from({ length }, (_, shard) => buckets[shard]).some(
      (bucket, shard) => shard !== SYSTEM_SHARD && bucket === undefined,
    );
  const findShard = createShardFinder(() => appliedSeqs(cluster));
  for (let index = 0; isLacking(); index++) {
    const bucket = `${prefix}-${index}`;
    const shard = await findShard(async () => {
      await put(`/${bucket}`);
      for (let count = 0; count < 20; count++) await put(`/${bucket}/some`);
    });
    buckets[shard] ??= bucket;
  }
  return buckets;
}

/** The metadata node that leads most shards. */
export async function busiestNode(cluster: TestCluster): Promise<string> {
  const { shards } = await cluster.status();
  const counts = new Map<string, number>();
  for (const { primary } of shards)
    if (primary !== undefined) counts.set(primary, (counts.get(primary) ?? 0) + 1);
  const [busiest] = [...counts].sort(([, a], [, b]) => b - a);
  return cluster.nameOf(must(busiest, 'a primary')[0]);
}

/** How often a process has logged it, over all its starts. */
export async function eventCount(cluster: TestCluster, name: string, event: string): Promise<number> {
  return (await cluster.logOf(name)).filter((line) => line.event === event).length;
}
