// Disks that are lost for good, away for a while, or full of flipped bits, under a continuous checked load: full replication
// returns without help, and little is moved for who comes back. Where every copy lies is asked of every disk
// (tests/support/cluster/copies.ts), not of those who repair.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { seededBytes } from '../support/clients/tree.ts';
import { findCopies, readPlacementMap, untilWhole } from '../support/cluster/copies.ts';
import { type Endurance, eventCount, openEndurance } from '../support/cluster/endure.ts';
import type { TestCluster } from '../support/cluster/start-cluster.ts';
import { flipBits } from '../support/disks/flip-bits.ts';
import { digestOf } from '../support/load/ledger.ts';
import { amountOf, isLongForm } from '../support/run/long-form.ts';
import { send } from '../support/servers/raw-s3.ts';

const MiB = 1024 * 1024;
const SEED = process.env.HOLDFAST_TEST_SEED ?? String(Date.now());
const AWAY_AFTER_MS = 10_000;
const BULK_COUNT = amountOf({ short: 50, long: 100 });
const WITHIN = { timeout: 180_000, interval: 2000 };

let endurance: Endurance;
let cluster: TestCluster;

beforeAll(async () => {
  endurance = await openEndurance({
    seed: SEED,
    workersPerShard: 1,
    restMs: 400,
    compare: 'touched',
    betweenMs: 500,
    cluster: {
      storage: 4,
      settings: {
        'storage.awayAfter': `${AWAY_AFTER_MS / 1000}s`,
        'storage.readingGrace': '1s',
        'storage.scrubPeriod': '20s',
        'storage.scrubRate': '64MiB',
      },
    },
  });
  cluster = endurance.cluster;
  const [gateway] = cluster.gateways;
  const put = async (path: string, body?: Buffer) => {
    const wanted = { method: 'PUT', path, ...(body && { body }) } as const;
    expect((await send(must(gateway, 'a gateway'), wanted)).status).toBe(200);
  };
  await put('/bulk');
  for (let index = 0; index < BULK_COUNT; index++) {
    const body = seededBytes(`bulk ${index}`, MiB);
    await put(`/bulk/${index}`, body);
    endurance.load.ledger.acknowledge(`/bulk/${index}`, digestOf(body));
  }
});
afterAll(() => endurance?.stop());

/** Resolves with ms until `look` says so. */
async function until(look: () => Promise<boolean>): Promise<number> {
  const sinceMs = performance.now();
  await expect.poll(() => look().catch(() => false), WITHIN).toBe(true);
  return Math.round(performance.now() - sinceMs);
}

const whole = () => untilWhole(cluster.config);

async function diskOf(name: string): Promise<string> {
  const { members } = await cluster.status();
  for (const { nodeId, role, disks } of members)
    if (role === 'storage' && (await cluster.nameOf(nodeId)) === name) return must(disks[0], 'a disk').diskId;
  throw new Error(`${name} is no member`);
}

/** Resolves with ms until the disk owns nothing. */
const untilWithout = (disk: string) =>
  until(async () => (await readPlacementMap(cluster.config)).owners.every((ids) => !ids.includes(disk)));

test('a storage node is lost for good and replaced', () =>
  endurance.endure('a storage node lost for good', async ({ back, note }) => {
    const name = 'storage-2';
    const disk = await diskOf(name);
    await cluster.kill(name);
    await rm(join(cluster.folder, name), { recursive: true });
    await back('lost');
    note(`done without after ${await untilWithout(disk)} ms`);
    note(`all copies there again ${await whole()} ms later`);
    await cluster.run(name);
    const joinedMs = await until(async () => {
      const next = await diskOf(name);
      const map = await readPlacementMap(cluster.config);
      return next !== disk && map.owners.some((ids) => ids.includes(next));
    });
    note(`an empty one takes its place after ${joinedMs} ms, and has its share ${await whole()} ms later`);
    await back('replaced');
  }));

test.runIf(isLongForm)('a storage node is away, for less and for more than it is waited for', () =>
  endurance.endure('a storage node away and back', async ({ back, note }) => {
    const name = 'storage-1';
    const disk = await diskOf(name);
    const before = await readPlacementMap(cluster.config);
    const ownedCount = ({ owners }: typeof before) => owners.filter((ids) => ids.includes(disk)).length;

    await cluster.kill(name);
    await back('away for a moment');
    await cluster.run(name);
    note(`back at once, whole after ${await whole()} ms`);
    expect((await readPlacementMap(cluster.config)).owners).toEqual(before.owners);

    await cluster.kill(name);
    await back('away');
    note(`done without after ${await untilWithout(disk)} ms, whole ${await whole()} ms later`);
    await cluster.run(name);
    const returnMs = await until(async () => ownedCount(await readPlacementMap(cluster.config)) > 0);
    note(`back in the map after ${returnMs} ms, whole ${await whole()} ms later`);
    const after = await readPlacementMap(cluster.config);
    const same = after.owners.filter((ids, at) => ids.includes(disk) && before.owners[at]?.includes(disk));
    note(
      `it has ${same.length} of its ${ownedCount(before)} partitions again, and ${ownedCount(after)} in all`,
    );
    expect(same.length).toBeGreaterThan(0.8 * ownedCount(before));
  }),
);

test('bits flipped in all tables and extents of a disk', () =>
  endurance.endure('bits flipped in chunks', async ({ back, note }) => {
    const name = 'storage-3';
    const disk = await diskOf(name);
    // A copy of what is deleted while its disk does not answer stays there for a day (R32), and is damaged as long where a bit of
    // it is flipped: so nothing is deleted before all damage is found, and what was is gone.
    await endurance.load.stop();
    await until(async () => ((await findCopies(cluster.config)).deadByDisk.get(disk) ?? 0) === 0);
    // What is in a log goes into tables at a start. Where the index is hit as well, a disk may be lost as a whole.
    await cluster.kill(name);
    await cluster.run(name);
    await whole();
    await cluster.kill(name);
    const shares = Array.from({ length: 20 }, (_, index) => 0.02 + index * 0.04);
    const flippedCount = await flipBits(join(cluster.folder, name, 'chunks'), {
      shares,
      tableBytesMin: MiB,
    });
    expect(flippedCount).toBeGreaterThan(0);
    const scrubCount = () => eventCount(cluster, name, 'scrub-ended');
    const scrubbedBefore = await scrubCount();
    await cluster.run(name);
    const startedMs = performance.now();
    const { clients, ledger } = endurance.load;
    for (let index = 0; index < BULK_COUNT; index++) {
      const path = `/bulk/${index}`;
      const answer = await clients.send(index % 2, { method: 'GET', path });
      expect(answer?.status, path).toBe(200);
      expect(ledger.check(path, digestOf(must(answer, 'an answer').body))).toBe(undefined);
    }
    // A pass that had begun before ends first; bits of what no row names are nobody's. When RocksDB merges such a table the
    // disk takes no more writes, and its node ends: it is done without, then.
    let hasEnded = false;
    await until(async () => {
      hasEnded = cluster.processId(name) === undefined;
      return hasEnded || (await scrubCount()) >= scrubbedBefore + 2;
    });
    const foundCount = await eventCount(cluster, name, 'chunk-damaged');
    // The merge may come before any read finds a damaged copy: the disk is named as failed, then.
    if (hasEnded) expect(await eventCount(cluster, name, 'disk-failed')).toBeGreaterThan(0);
    else expect(foundCount).toBeGreaterThan(0);
    note(
      `${foundCount} damaged copies found by reads and scrub, ${Math.round(performance.now() - startedMs)} ms after the start`,
    );
    note(`whole ${await whole()} ms later`);
    await cluster.untilHealthy();
    endurance.load.start();
    await back(`${flippedCount} bits flipped, and mended`);
    // A disk that loses bytes is replaced, as one that is lost.
    if (!isLongForm) return;
    await cluster.kill(name);
    await rm(join(cluster.folder, name), { recursive: true });
    await back('a second node lost');
    await untilWithout(disk);
    note(`all copies there again, of the replaced disk's too, ${await whole()} ms after it was given up`);
    await cluster.run(name);
    note(`replaced, and whole ${await whole()} ms later`);
    await until(async () => (await cluster.command('cluster', 'remove', disk)).code === 0);
  }));

test('all remaining data is intact', () => endurance.expectSound({ readsData: true }));
