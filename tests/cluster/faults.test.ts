// Faults of real processes under a continuous checked load: nothing acknowledged is lost, nothing is answered wrongly,
// and writes are back soon; each fault prints how soon. At last any process is harmed by chance, less than a minute or as long
// as is asked for; what chance or another test does as well is done by itself in the long form alone. `long` is an hour of
// chance with more load, and etcd away for ten minutes:
//   HOLDFAST_TEST_CLUSTER_FAULTS=long npm test -- tests/cluster/faults.test.ts
//   HOLDFAST_TEST_CLUSTER_FAULTS=60min npm test -- tests/cluster/faults.test.ts -t 'by chance|intact'
// The seed on the first line repeats the requests and the faults, not the moments of the kernel and the disk.
import { cp, readdir, rename, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { seededNumbers } from '../support/clients/tree.ts';
import { busiestNode, type Endurance, eventCount, type Watch } from '../support/cluster/endure.ts';
import { COMPARE_MS, isLong, openFaults, RANDOM_MS, SEED } from '../support/cluster/fault-drills.ts';
import { ETCD, type TestCluster } from '../support/cluster/start-cluster.ts';
import { hangBeneath, mountHangingDrive } from '../support/disks/hanging-drive.ts';
import type { ClusterLoad } from '../support/load/cluster-load.ts';
import { casesOf, isLongForm } from '../support/run/long-form.ts';
import type { Access } from '../support/servers/raw-s3.ts';

const ETCD_AWAY_MS = isLong ? 600_000 : 5000;
const CUT_MS = isLong ? 30_000 : 4000;
/** As long as a promise of silence and more: others have taken over. */
const STOPPED_MS = 8000;
const HANG_AFTER_MS = 5000;
const DRIVE_BYTES = 4 * 1024 ** 3;
/** Of one by chance. */
const HARM_MS_MAX = 6000;

/** By name of the node whose data is on it. */
const drives = new Map(
  casesOf({ short: ['metadata-1'], longOnly: ['storage-1'] }).flatMap((name) => {
    const drive = mountHangingDrive(DRIVE_BYTES);
    return drive === undefined ? [] : [[name, drive] as const];
  }),
);

let endurance: Endurance;
let cluster: TestCluster;
let load: ClusterLoad;

beforeAll(async () => {
  endurance = await openFaults({
    cluster: {
      settings: { 'storage.hangAfter': `${HANG_AFTER_MS}ms` },
      folders: Object.fromEntries([...drives].map(([name, { folder }]) => [name, folder])),
    },
    async prepare(made) {
      if (!isLongForm) return;
      // A backup, for later.
      await made.end(ETCD);
      await cp(join(made.folder, 'etcd'), join(made.folder, 'etcd-backup'), { recursive: true });
      await made.run(ETCD);
      await made.untilHealthy();
    },
  });
  ({ cluster, load } = endurance);
});

afterAll(async () => {
  await endurance?.stop();
  for (const drive of drives.values()) drive.unmount();
});

const endure = (name: string, harm: (watch: Watch) => Promise<void>) => endurance.endure(name, harm);
const others = (...names: string[]) => cluster.names.filter((name) => !names.includes(name));
const otherNodes = (name: string) => others(name).filter((other) => other.startsWith('metadata'));

test.runIf(isLongForm)('kill -9 of a metadata node that leads', () =>
  endure('kill -9 of a primary', async ({ back }) => {
    const name = await busiestNode(cluster);
    await cluster.kill(name);
    await back('killed');
    await cluster.run(name);
    await back('started again');
  }),
);

test.runIf(isLongForm)('SIGSTOP of a metadata node that leads, which then continues', () =>
  endure(`SIGSTOP of a primary for ${STOPPED_MS / 1000} s`, async ({ back }) => {
    const name = await busiestNode(cluster);
    cluster.pause(name);
    const until = sleep(STOPPED_MS);
    await back('stopped');
    await until;
    cluster.resume(name);
    await back('gone on');
  }),
);

describe.skipIf(drives.size === 0)('drives that hang (skipped where nobody may mount one)', () => {
  test.each([...drives])('under %s: the node ends, and others serve', (name, drive) =>
    endure(`the drive of ${name} leaves writes unanswered`, async ({ back, note }) => {
      const failures = await eventCount(cluster, name, 'store-failed');
      await hangBeneath(must(cluster.processId(name), 'it runs'), drive);
      const sinceMs = performance.now();
      try {
        await back('hangs');
        const failed = () => eventCount(cluster, name, 'store-failed');
        await expect.poll(failed, { timeout: 180_000, interval: 400 }).toBeGreaterThan(failures);
        const members = async () => (await cluster.status()).members.length;
        await expect.poll(members, { timeout: 180_000, interval: 1000 }).toBe(cluster.names.length - 2);
        note(`nobody counts on it after ${Math.round(performance.now() - sinceMs)} ms`);
        await back('it has ended');
      } finally {
        drive.goOn();
      }
      await expect.poll(() => cluster.processId(name), { timeout: 180_000 }).toBeUndefined();
      await cluster.run(name);
      await back('started again');
    }),
  );
});

test.runIf(isLongForm)('kill -9 of a gateway', () =>
  endure('kill -9 of a gateway', async ({ back }) => {
    await cluster.kill('gateway-1');
    await back('killed');
    await cluster.run('gateway-1');
  }),
);

test.runIf(isLongForm)('kill -9 and restart of etcd', () =>
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
      const name = await busiestNode(cluster);
      await cluster.kill(name);
      await back('node killed');
      await sleep(500);
      await cluster.kill(ETCD);
      await back('etcd killed');
      // A busy machine may let a promise between metadata nodes end; what needed etcd would fail again and again.
      const failed = async () => {
        const before = load.clients.unansweredCount;
        await sleep(ETCD_AWAY_MS);
        return load.clients.unansweredCount - before;
      };
      const wanted = { timeout: 60_000 + ETCD_AWAY_MS, message: 'requests without an answer in a row' };
      await expect.poll(failed, wanted).toBe(0);
      await cluster.run(ETCD);
      await back('etcd started again');
      await cluster.run(name);
    }),
);

test('a network cut: a leading metadata node and a gateway on one side, all others on the other', () =>
  endure(`network cut for ${CUT_MS / 1000} s`, async ({ back }) => {
    const name = await busiestNode(cluster);
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
    await expect.poll(health, { timeout: 180_000, interval: 200 }).toBe(503);
    cluster.network.heal();
    load.use([0, 1]);
    await back('healed');
  }));

test.runIf(isLongForm)('one-way cuts: a leading node that is not heard, and one that does not hear', () =>
  endure(`one-way cuts for ${CUT_MS / 1000} s each`, async ({ back }) => {
    for (const isDelivered of [false, true]) {
      const name = await busiestNode(cluster);
      if (isDelivered) cluster.network.cutOneWay(otherNodes(name), [name]);
      else cluster.network.cutOneWay([name], otherNodes(name));
      const until = sleep(CUT_MS);
      await back(isDelivered ? 'it hears nobody' : 'nobody hears it');
      await until;
      cluster.network.heal();
      await back('healed');
    }
  }),
);

test.runIf(isLongForm)(
  'a log of RocksDB that is cut behind its back: the replica is quarantined, and heals',
  () =>
    endure('cut write-ahead log', async ({ back }) => {
      const name = await busiestNode(cluster);
      const [other = ''] = otherNodes(name);
      await cluster.kill(name);
      const before = await eventCount(cluster, name, 'replica-quarantined');
      const cutBytes = await cutNewestLog(join(cluster.folder, name, 'metadata'));
      expect(cutBytes).toBeGreaterThan(0);
      await cluster.run(name);
      await back('cut and started again');
      await cluster.untilHealthy();
      expect(await eventCount(cluster, name, 'replica-quarantined')).toBeGreaterThan(before);
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

test.runIf(isLongForm)(
  'etcd restored from an old copy is refused, and all is well when the right one is back',
  () =>
    endure('etcd from an old copy', async ({ back }) => {
      const name = await busiestNode(cluster);
      const at = (folder: string) => join(cluster.folder, folder);
      const refused = async () => {
        const counts = otherNodes(name).map((other) => eventCount(cluster, other, 'registry-was-set-back'));
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
      await expect.poll(refused, { timeout: 180_000, interval: 200 }).toBeGreaterThan(before);
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
  async restart(name) {
    await cluster.end(name);
    return () => cluster.run(name);
  },
  async cut(name) {
    cluster.network.cut(
      [name],
      cluster.names.filter((other) => other !== name),
    );
    return async () => cluster.network.heal();
  },
};

test(`any process by chance, for ${RANDOM_MS / 1000} s`, { timeout: COMPARE_MS + 2 * RANDOM_MS }, () =>
  endurance.endure(`faults at random for ${RANDOM_MS / 1000} s`, async ({ back, note }) => {
    const random = seededNumbers(`faults:${SEED}`);
    const one = <T>(of: readonly T[]): T => must(of[Math.floor(random() * of.length)], 'one of them');
    const endMs = performance.now() + RANDOM_MS;
    const counts = new Map<string, number>();
    const backs: { ms: number; what: string }[] = [];
    while (performance.now() < endMs) {
      const [kind, name] = [one(Object.keys(HARMS)), one(cluster.names)];
      const undo = await must(HARMS[kind], 'a harm')(name);
      await sleep(random() * HARM_MS_MAX);
      await undo();
      const what = `${kind} ${name.replace(/-\d+$/, '')}`;
      counts.set(what, (counts.get(what) ?? 0) + 1);
      backs.push({ ms: await back(''), what: `${kind} ${name}` });
    }
    backs.sort((a, b) => a.ms - b.ms);
    const [middle, worst] = [backs[Math.floor(backs.length / 2)], backs.at(-1)];
    note(`${backs.length} faults (${[...counts].map(([what, count]) => `${count} ${what}`).join(', ')})`);
    note(`writes back after ${middle?.ms} ms in the middle, ${worst?.ms} ms after ${worst?.what}`);
  }),
);

test('all data is intact, and no client got an internal error', { timeout: COMPARE_MS }, () =>
  // In the short form what is compared has just been read.
  endurance.expectSound({ readsData: isLong }),
);
