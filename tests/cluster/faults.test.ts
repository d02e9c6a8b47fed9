// Faults of real processes under a continuous checked load: nothing acknowledged is lost, nothing is answered wrongly,
// and writes are back soon; each fault prints how soon. Longer by hand, with more load and etcd away for ten minutes:
//   HOLDFAST_TEST_CLUSTER_FAULTS=long npm test -- tests/cluster/faults.test.ts
// The seed on the first line repeats the requests, not the moments of the kernel and the disk.
import { cp, readdir, rename, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ShardStatus } from '../../cmd/cluster/status.ts';
import { runFsck } from '../../src/cli/fsck-command.ts';
import { must } from '../../src/lib/assert.ts';
import { ClusterLoad } from '../support/cluster-load.ts';
import type { Access } from '../support/raw-s3.ts';
import { ETCD, startCluster, type TestCluster } from '../support/start-cluster.ts';
import { seededNumbers } from '../support/tree.ts';

const isLong = process.env.HOLDFAST_TEST_CLUSTER_FAULTS === 'long';
const SEED = process.env.HOLDFAST_TEST_SEED ?? String(Date.now());
const ETCD_AWAY_MS = isLong ? 600_000 : 5000;
const CUT_MS = isLong ? 30_000 : 4000;
/** As long as a promise of silence and more: others have taken over. */
const STOPPED_MS = 8000;
/** A primary is back after a lease and a few round trips; a machine that does other things as well takes its time. */
const BACK_WITHIN_MS = 30_000;
/** In the long form there are tens of thousands of objects to compare. */
const COMPARE_MS = isLong ? 900_000 : 180_000;
/** Of load before the next harm. */
const BETWEEN_MS = isLong ? 5000 : 500;
const SHARDS = 4;
const RANDOM_ROUNDS = isLong ? 40 : 1;
const RANDOM_MS_MAX = 6000;

let cluster: TestCluster;
let load: ClusterLoad;
const figures: string[] = [];

beforeAll(async () => {
  console.log(`seed ${SEED}`);
  cluster = await startCluster({ shards: SHARDS });
  // A backup, for later.
  await cluster.end(ETCD);
  await cp(join(cluster.folder, 'etcd'), join(cluster.folder, 'etcd-backup'), { recursive: true });
  await cluster.run(ETCD);
  await cluster.untilHealthy();
  load = new ClusterLoad({
    ...{ gateways: cluster.gateways, seed: SEED, workersPerShard: isLong ? 4 : 2 },
    appliedSeqs: async () => (await cluster.status()).shards.map(appliedSeqOf),
  });
  await load.prepare();
}, 180_000);

afterAll(async () => {
  console.log(figures.join('\n'));
  load?.close();
  await cluster?.stop();
});

/** The primary's. */
function appliedSeqOf({ primary, voters }: ShardStatus): number {
  return voters.find(({ nodeId }) => nodeId === primary)?.appliedSeq ?? 0;
}

interface Watch {
  /** Until writes are back after what has just been done; notes how long that took. */
  back(what: string): Promise<void>;
}

/** Does harm under load, waits until all is well again, and compares everything with what was promised. */
async function endure(name: string, harm: (watch: Watch) => Promise<void>): Promise<void> {
  const before = {
    acknowledged: load.ledger.acknowledgedCount,
    unanswered: new Map(load.clients.unanswered),
  };
  const notes: string[] = [];
  await cluster.mend();
  load.start();
  await load.back(performance.now(), BACK_WITHIN_MS);
  await sleep(BETWEEN_MS);
  const begunMs = performance.now();
  try {
    await harm({
      async back(what) {
        const ms = await load.back(performance.now(), BACK_WITHIN_MS);
        notes.push(`${what}: writes back after ${Math.round(ms)} ms`);
      },
    });
    await cluster.untilHealthy();
    await load.back(performance.now(), BACK_WITHIN_MS);
    notes.push(`longest pause ${Math.round(load.longestPauseMs(begunMs))} ms`);
  } finally {
    await load.stop();
  }
  const wrong = [...load.problems.splice(0), ...(await load.verify(isLong ? 'all' : 'touched'))];
  const unanswered = [...load.clients.unanswered].flatMap(([kind, count]) => {
    const more = count - (before.unanswered.get(kind) ?? 0);
    return more > 0 ? [`${more} ${kind}`] : [];
  });
  notes.push(`${load.ledger.acknowledgedCount - before.acknowledged} writes acknowledged`);
  if (unanswered.length > 0) notes.push(`without an answer: ${unanswered.join(', ')}`);
  figures.push(`${name}: ${notes.join('; ')}`);
  console.log(figures.at(-1));
  expect(wrong).toEqual([]);
}

/** The metadata node that leads most shards. */
async function busiestNode(): Promise<string> {
  const { shards } = await cluster.status();
  const counts = new Map<string, number>();
  for (const { primary } of shards)
    if (primary !== undefined) counts.set(primary, (counts.get(primary) ?? 0) + 1);
  const [busiest] = [...counts].sort(([, a], [, b]) => b - a);
  return cluster.nameOf(must(busiest, 'a primary')[0]);
}

const others = (...names: string[]) => cluster.names.filter((name) => !names.includes(name));
const otherNodes = (name: string) => others(name).filter((other) => other.startsWith('metadata'));

async function eventsOf(name: string, event: string): Promise<number> {
  return (await cluster.logOf(name)).filter((line) => line.event === event).length;
}

test('kill -9 of a metadata node that leads', { timeout: 180_000 }, () =>
  endure('kill -9 of a primary', async ({ back }) => {
    const name = await busiestNode();
    await cluster.kill(name);
    await back('killed');
    await cluster.run(name);
    await back('started again');
  }),
);

test('SIGSTOP of a metadata node that leads, and it goes on', { timeout: 180_000 }, () =>
  endure(`SIGSTOP of a primary for ${STOPPED_MS / 1000} s`, async ({ back }) => {
    const name = await busiestNode();
    cluster.pause(name);
    const until = sleep(STOPPED_MS);
    await back('stopped');
    await until;
    cluster.resume(name);
    await back('gone on');
  }),
);

test('kill -9 of a gateway', { timeout: 180_000 }, () =>
  endure('kill -9 of a gateway', async ({ back }) => {
    await cluster.kill('gateway-1');
    await back('killed');
    await cluster.run('gateway-1');
  }),
);

test('kill -9 and restart of etcd', { timeout: 180_000 }, () =>
  endure('kill -9 of etcd', async ({ back }) => {
    await cluster.kill(ETCD);
    await back('killed');
    await cluster.run(ETCD);
    await back('started again');
  }),
);

test(
  'etcd away with one metadata node dead: no request fails',
  { timeout: COMPARE_MS + 60_000 + ETCD_AWAY_MS },
  () =>
    endure(`etcd away for ${ETCD_AWAY_MS / 1000} s with a metadata node dead`, async ({ back }) => {
      const name = await busiestNode();
      await cluster.kill(name);
      await back('node killed');
      await sleep(BETWEEN_MS);
      const before = load.clients.unansweredCount;
      await cluster.kill(ETCD);
      await back('etcd killed');
      await sleep(ETCD_AWAY_MS);
      const failed = load.clients.unansweredCount - before;
      expect(failed, 'requests without an answer while etcd was away').toBe(0);
      await cluster.run(ETCD);
      await back('etcd started again');
      await cluster.run(name);
    }),
);

test(
  'a network cut: a leading metadata node and a gateway on one side, all others on the other',
  {
    timeout: 180_000,
  },
  () =>
    endure(`network cut for ${CUT_MS / 1000} s`, async ({ back }) => {
      const name = await busiestNode();
      const minority = [name, 'gateway-1'];
      cluster.network.cut(minority, others(...minority));
      // Clients leave the gateway that is cut off; it is still asked, and must not answer from the past.
      load.use([1]);
      const until = sleep(CUT_MS);
      await back('cut');
      await until;
      // Whoever sends clients to it hears that they should go elsewhere.
      const [{ endpoint }] = cluster.gateways as [Access];
      const health = async () => (await fetch(`${endpoint}/health/ready`)).status;
      await expect.poll(health, { timeout: 30_000, interval: 200 }).toBe(503);
      cluster.network.heal();
      load.use([0, 1]);
      await back('healed');
    }),
);

test('one-way cuts: a leading node that is not heard, and one that does not hear', { timeout: 180_000 }, () =>
  endure(`one-way cuts for ${CUT_MS / 1000} s each`, async ({ back }) => {
    for (const isHeard of [false, true]) {
      const name = await busiestNode();
      if (isHeard) cluster.network.cutOneWay(otherNodes(name), [name]);
      else cluster.network.cutOneWay([name], otherNodes(name));
      const until = sleep(CUT_MS);
      await back(isHeard ? 'it hears nobody' : 'nobody hears it');
      await until;
      cluster.network.heal();
      await back('healed');
    }
  }),
);

test(
  'a log of RocksDB that is cut behind its back: the replica is quarantined, and heals',
  {
    timeout: 240_000,
  },
  () =>
    endure('cut write-ahead log', async ({ back }) => {
      const name = await busiestNode();
      const [other = ''] = otherNodes(name);
      await cluster.kill(name);
      const before = await eventsOf(name, 'replica-quarantined');
      const cutBytes = await cutNewestLog(join(cluster.folder, name, 'metadata'));
      expect(cutBytes).toBeGreaterThan(0);
      await cluster.run(name);
      await back('cut and started again');
      await cluster.untilHealthy();
      expect(await eventsOf(name, 'replica-quarantined')).toBeGreaterThan(before);
      // From now on a majority rests on the one that was cut.
      await cluster.kill(other);
      await back('another killed');
      await cluster.run(other);
    }),
);

/** Takes the second half of the newest write-ahead log away; resolves with how many bytes. */
async function cutNewestLog(folder: string): Promise<number> {
  const names = (await readdir(folder)).filter((name) => /^\d+\.log$/.test(name)).sort();
  const path = join(folder, must(names.at(-1), 'a write-ahead log'));
  const { size } = await stat(path);
  await truncate(path, Math.floor(size / 2));
  return Math.ceil(size / 2);
}

test(
  'etcd restored from an old copy is refused, and all is well when the right one is back',
  {
    timeout: 300_000,
  },
  () =>
    endure('etcd from an old copy', async ({ back }) => {
      const name = await busiestNode();
      const at = (folder: string) => join(cluster.folder, folder);
      const refused = async () => {
        const counts = otherNodes(name).map((other) => eventsOf(other, 'registry-was-set-back'));
        return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
      };
      const before = await refused();
      await cluster.kill(ETCD);
      await rename(at('etcd'), at('etcd-right'));
      await cp(at('etcd-backup'), at('etcd'), { recursive: true });
      await cluster.run(ETCD);
      await back('set back, nothing else wrong');
      // Somebody would have to take over. Who has noticed it before says so once.
      await cluster.kill(name);
      await expect.poll(refused, { timeout: 60_000, interval: 200 }).toBeGreaterThan(before);
      await cluster.kill(ETCD);
      await rename(at('etcd'), at('etcd-set-back'));
      await rename(at('etcd-right'), at('etcd'));
      await cluster.run(ETCD);
      await back('right one back');
      await cluster.run(name);
    }),
);

/** Each does harm to a process, and gives what takes it back. */
const HARMS: Readonly<Record<string, (name: string) => Promise<() => Promise<void>>>> = {
  async kill(name) {
    await cluster.kill(name);
    return () => cluster.run(name);
  },
  async stop(name) {
    cluster.pause(name);
    return async () => cluster.resume(name);
  },
  async cut(name) {
    cluster.network.cut([name], others(name));
    return async () => cluster.network.heal();
  },
};

test(`any process at random, ${RANDOM_ROUNDS} times`, { timeout: 120_000 + RANDOM_ROUNDS * 60_000 }, () =>
  endure(`${RANDOM_ROUNDS} faults at random`, async ({ back }) => {
    const random = seededNumbers(`faults:${SEED}`);
    const one = <T>(of: readonly T[]): T => must(of[Math.floor(random() * of.length)], 'one of them');
    for (let round = 0; round < RANDOM_ROUNDS; round++) {
      const [kind, name] = [one(Object.keys(HARMS)), one(cluster.names)];
      const undo = await must(HARMS[kind], 'a harm')(name);
      await sleep(random() * RANDOM_MS_MAX);
      await undo();
      await back(`${kind} ${name}`);
    }
  }),
);

test('all that is left is sound, and nobody was told of an error of ours', {
  timeout: COMPARE_MS,
}, async () => {
  // Behind all faults; what was written before one is also read behind it, in the long form.
  expect(await load.verify('all')).toEqual([]);
  const printed: string[] = [];
  const print = (line: string) => void printed.push(line);
  const context = { env: {}, print, nowMs: Date.now, sleep: (ms: number) => sleep(ms) };
  // What is compared above has been read.
  await runFsck(context, { dataDir: join(cluster.folder, 'keys'), json: true, readData: isLong });
  expect(JSON.parse(printed.join('')).findings).toEqual([]);
  for (const name of cluster.names)
    expect(
      (await cluster.logOf(name)).filter(({ status }) => status === 500),
      name,
    ).toEqual([]);
});
