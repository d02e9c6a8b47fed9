// Disks of a cluster that fill up, under a continuous checked load: what a full disk refuses others take; with too few
// left what grows is refused early with 507, and nothing else; and room that deletes give back is used again.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { must } from '../../src/base/assert.ts';
import { SYSTEM_SHARD } from '../../src/ports/metadata/port.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { seededBytes } from '../support/clients/tree.ts';
import { untilWhole } from '../support/cluster/copies.ts';
import { bucketsByShard, busiestNode, type Endurance, openEndurance } from '../support/cluster/endure.ts';
import { sendAgain } from '../support/cluster/send-again.ts';
import type { TestCluster } from '../support/cluster/start-cluster.ts';
import { mountSmallDisk, type SmallDisk } from '../support/disks/small-disk.ts';
import type { RawAnswer, RawRequest } from '../support/servers/raw-s3.ts';

const MiB = 1024 * 1024;
const SEED = process.env.HOLDFAST_TEST_SEED ?? String(Date.now());
const DISK_BYTES = 1024 * MiB;
const RESERVE_BYTES = DISK_BYTES * LIMITS.diskReserveShareMax;
/** What a disk has above its reserve before it is filled, and what is then written. */
const LEFT_BYTES = 40 * MiB;
/** What a disk has that is full for certain: more than is freed at once is missing. */
const FULL_BYTES = RESERVE_BYTES - 80 * MiB;
const FILLING_COUNT = 120;
const WRITERS = 6;
const WITHIN = { timeout: 180_000, interval: 800 };
const SMALL = seededBytes('small', 5000);

/** Without content a file system in memory takes none. */
const NAMES = ['storage-1', 'storage-2', 'storage-3', 'metadata-1', 'metadata-2', 'metadata-3'];
const disks = new Map<string, SmallDisk>();
for (const name of NAMES) {
  const disk = mountSmallDisk(DISK_BYTES);
  if (disk !== undefined) disks.set(name, disk);
}
afterAll(() => {
  for (const disk of disks.values()) disk.unmount();
});

describe.skipIf(disks.size === 0)('full disks (skipped where nobody may mount one)', () => {
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
        settings: { 'storage.readingGrace': '1s', 'storage.reclaimAfter': '16MiB' },
        folders: Object.fromEntries([...disks].map(([name, { folder }]) => [name, folder])),
      },
    });
    cluster = endurance.cluster;
  });
  // A test that fails leaves no full disk to those behind it.
  afterEach(() => {
    for (const disk of disks.values()) disk.leave('all');
  });
  afterAll(() => endurance?.stop());

  const diskOf = (name: string) => must(disks.get(name), 'a disk');
  let turn = 0;
  const ask = (wanted: RawRequest) =>
    sendAgain(() => must(cluster.gateways[turn++ % cluster.gateways.length], 'a gateway'), wanted);
  const put = (path: string, body?: Buffer) => ask({ method: 'PUT', path, ...(body && { body }) });
  const statusOf = async (wanted: RawRequest) => (await ask(wanted)).status;
  const expectFull = ({ status, body }: RawAnswer) => {
    expect(status).toBe(507);
    expect(body.toString()).toContain('<Code>InsufficientStorage</Code>');
  };
  const bytesOf = (index: number) => seededBytes(`filling ${index}`, MiB);

  async function forAll(count: number, work: (index: number) => Promise<void>): Promise<void> {
    let next = 0;
    const writer = async () => {
      while (next < count) await work(next++);
    };
    await Promise.all(Array.from({ length: WRITERS }, writer));
  }

  /** Resolves with ms until `look` says so. */
  async function until(look: () => Promise<boolean> | boolean): Promise<number> {
    const sinceMs = performance.now();
    await expect.poll(look, WITHIN).toBe(true);
    return Math.round(performance.now() - sinceMs);
  }

  test('of storage nodes', () =>
    endurance.endure('disks of storage nodes filled', async ({ back, note }) => {
      const [full, other] = [diskOf('storage-1'), diskOf('storage-2')];
      expect((await put('/filling')).status).toBe(200);
      full.leave(RESERVE_BYTES + LEFT_BYTES);
      const beganMs = performance.now();
      await forAll(FILLING_COUNT, async (index) => {
        expect((await put(`/filling/${index}`, bytesOf(index))).status).toBe(200);
      });
      const rate = (FILLING_COUNT * 1000) / (performance.now() - beganMs);
      note(
        `${FILLING_COUNT} MiB written at ${Math.round(rate)} MiB/s, ${LEFT_BYTES / MiB} MiB of them fit on the one that was filled`,
      );
      // What was let through is still being written out to tables: that, too, the reserve is for.
      expect(full.freeBytes()).toBeGreaterThan(RESERVE_BYTES / 2);
      note(
        `its reserve of ${Math.round(RESERVE_BYTES / MiB)} MiB was at ${Math.round(full.freeBytes() / MiB)}`,
      );
      await back('one is full');

      // The one would stay at its bound, and what the load overwrites would give it room for a chunk now and then.
      full.leave(FULL_BYTES);
      other.leave(FULL_BYTES);
      await until(async () => (await put('/filling/probe', bytesOf(0))).status === 507);
      const askedMs = performance.now();
      expectFull(await put('/filling/refused', bytesOf(0)));
      note(`two of three full: 507 after ${Math.round(performance.now() - askedMs)} ms`);
      const needed = 'new chunks are refused: of 2 storage nodes that they need 1 takes them';
      const alarm = expect.stringMatching(new RegExp(`^${needed} .*is full, .*is full`));
      expect((await cluster.status()).alarms).toContainEqual(alarm);
      expect(await statusOf({ method: 'HEAD', path: '/filling/refused' })).toBe(404);
      expect((await put('/filling/small', SMALL)).status).toBe(200);
      await back('two are full');
      await forAll(FILLING_COUNT, async (index) => {
        if (index % 10 > 0) return;
        const { body } = await ask({ method: 'GET', path: `/filling/${index}` });
        expect(body.equals(bytesOf(index)), `/filling/${index}`).toBe(true);
      });
      const beforeBytes = full.freeBytes();
      await forAll(FILLING_COUNT, async (index) => {
        expect(await statusOf({ method: 'DELETE', path: `/filling/${index}` })).toBe(204);
      });
      const roomMs = await until(() => full.freeBytes() > beforeBytes + LEFT_BYTES / 2);
      note(`room of what was deleted is back on the one after ${roomMs} ms`);
      other.leave('all');
      const againMs = await until(async () => (await put('/filling/again', bytesOf(0))).status === 200);
      note(`two have room: writes after ${againMs} ms`);
      full.leave('all');
      note(`all copies where they belong ${await untilWhole(cluster.config)} ms later`);
    }));

  test('of a metadata node', async () => {
    // Of every shard, so that the node that is filled leads that of one. Made while nothing else writes: who writes tells.
    const buckets = Object.values(await bucketsByShard(cluster, 'meta'));
    await endurance.endure('disk of a metadata node filled', async ({ back, note }) => {
      for (const bucket of buckets) {
        for (const key of ['kept', 'deleted'])
          expect((await put(`/${bucket}/${key}`, SMALL)).status).toBe(200);
      }
      const name = await busiestNode(cluster);
      const disk = diskOf(name);
      const leadsAll = async () => {
        const led = (await cluster.status()).shards.filter(({ shard }) => shard !== SYSTEM_SHARD);
        const names = await Promise.all(led.map(({ primary }) => primary && cluster.nameOf(primary)));
        return names.every((leading) => leading === name);
      };
      const ledAll = await leadsAll();
      disk.leave(FULL_BYTES);
      // Once it has measured its disk again.
      await until(async () => {
        const answers = await Promise.all(buckets.map((bucket) => put(`/${bucket}/probe`, SMALL)));
        return answers.some(({ status }) => status === 507);
      });
      let fullCount = 0;
      for (const bucket of buckets) {
        const answer = await put(`/${bucket}/refused`, SMALL);
        if (answer.status !== 200) {
          expectFull(answer);
          fullCount++;
        }
        expect(await statusOf({ method: 'DELETE', path: `/${bucket}/deleted` })).toBe(204);
        const { body } = await ask({ method: 'GET', path: `/${bucket}/kept` });
        expect(body.equals(SMALL)).toBe(true);
        const list = await ask({ method: 'GET', path: `/${bucket}?list-type=2` });
        expect(list.body.toString()).toContain('<Key>kept</Key>');
        expect(list.body.toString()).not.toContain('<Key>deleted</Key>');
      }
      note(`507 in ${fullCount} of ${buckets.length} buckets`);
      expect(fullCount).toBeGreaterThan(0);
      // Shards may have come together on it.
      if (!ledAll && !(await leadsAll())) expect(fullCount).toBeLessThan(buckets.length);
      disk.leave('all');
      await back('room again');
      for (const bucket of buckets) expect((await put(`/${bucket}/again`, SMALL)).status).toBe(200);
    });
  });

  test('all data is intact', () => endurance.expectSound({ readsData: true }));
});
