// Usage against a calculation of its own: random changes over many days, with restarts, days without anybody at work, and the
// worker that closes days. Equal to the byte, for each bucket and day.
import { expect, test } from 'vitest';
import {
  BUCKET,
  type MetadataShards,
  OWNER,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { runUntilIdle } from '../../../tests/support/metadata/run-worker.ts';
import { createSeededRandom } from '../../../tests/support/run/simulated.ts';
import { createUsages } from '../../accounts/usages.ts';
import { accountTrafficId, DEFAULT_METERING, METERED, type Metered } from '../../types/metered.ts';
import type { BucketId } from '../../types/names.ts';
import { packOriginals } from '../../types/originals.ts';
import { DAY_MS } from '../../types/usage.ts';
import { counterKey } from '../engine/counters.ts';
import { CLOSED_AFTER_MS, createUsageCloser } from './close-usage-worker.ts';

const MD5 = '0'.repeat(32);
const MINIMUM_DAYS = 90;

function put(world: MetadataShards, key: string, sizeBytes: number) {
  const data = world.newData({ sizeBytes });
  return world.put(key, { data, version: { originals: packOriginals({ sizeBytes, md5: MD5 }) } });
}

function closeDays({ shards, clock }: MetadataShards): Promise<void> {
  return runUntilIdle(
    createUsageCloser({
      metadata: shards,
      shards: () => [0],
      metering: DEFAULT_METERING,
      clock,
      telemetry: { gauge() {} },
    }),
  );
}

const today = ({ clock }: MetadataShards) => Math.floor(clock.wallMs() / DAY_MS);

/** What is stored, and when each object that is gone came and went: sums are taken anew for each day. */
class Book {
  readonly live = new Map<string, { sizeBytes: number; day: number }>();
  readonly gone: { sizeBytes: number; cameOn: number; wentOn: number }[] = [];

  put(key: string, sizeBytes: number, day: number): void {
    this.remove(key, day);
    this.live.set(key, { sizeBytes, day });
  }

  remove(key: string, day: number): void {
    const before = this.live.get(key);
    if (before !== undefined) this.gone.push({ ...before, cameOn: before.day, wentOn: day });
    this.live.delete(key);
  }

  /** At the end of a day, as long as it is the last one that anything was done on. */
  atEndOf(day: number) {
    const charged = (sizeBytes: number) => Math.max(sizeBytes, 4096);
    const sizes = [...this.live.values()].map(({ sizeBytes }) => sizeBytes);
    const sum = (all: number[]) => all.reduce((total, each) => total + each, 0);
    const deleted = this.gone.filter(
      ({ cameOn, wentOn }) => wentOn <= day && wentOn < cameOn + MINIMUM_DAYS && day < cameOn + MINIMUM_DAYS,
    );
    return {
      objects: sizes.length,
      rawBytes: sum(sizes),
      paddedBytes: sum(sizes.map(charged)),
      metadataBytes: 48 * sizes.length,
      deletedObjects: deleted.length,
      deletedBytes: sum(deleted.map(({ sizeBytes }) => charged(sizeBytes))),
    };
  }
}

test('records of 250 days are equal to an independent calculation, across restarts and idle days', async () => {
  const seed = 17;
  const random = createSeededRandom(seed);
  const pick = (count: number) => random.bytes(2).reduce((sum, byte) => sum * 256 + byte, 0) % count;
  let world = await openMetadata();
  await world.createBucket();
  const first = today(world);
  const book = new Book();
  const wanted = new Map<number, object>();
  for (let day = first; day < first + 250; day++) {
    const isIdle = pick(5) === 0;
    for (let step = 0; step < 4 && !isIdle; step++) {
      const key = `k${pick(6)}`;
      const sizeBytes = pick(3) * 3000;
      if (pick(3) === 0) {
        await world.remove(key);
        book.remove(key, day);
      } else {
        await put(world, key, sizeBytes);
        book.put(key, sizeBytes, day);
      }
    }
    wanted.set(day, book.atEndOf(day));
    const present = createUsages(world.shards, world.clock);
    const { items } = await present.current(OWNER, { page: { page: 1, size: 1 } });
    expect(items, `seed ${seed}, day ${day}`).toMatchObject([{ ...book.atEndOf(day), day, isClosed: false }]);
    expect(await present.currentOf(OWNER), `seed ${seed}, day ${day}`).toMatchObject(book.atEndOf(day));
    world.clock.advance(DAY_MS);
    if (pick(10) === 0) {
      await world.shards.close();
      const { kv, clock } = world;
      world = await openMetadata({ kv, clock, seed: day });
    }
    if (pick(4) === 0) {
      world.clock.advance(CLOSED_AFTER_MS);
      await closeDays(world);
      world.clock.advance(-CLOSED_AFTER_MS);
    }
    expect(await world.query('recount-usage', { bucketId: BUCKET })).toMatchObject({ missing: [0, 0, 0, 0] });
  }
  world.clock.advance(CLOSED_AFTER_MS);
  await closeDays(world);
  const usages = createUsages(world.shards, world.clock);
  expect(await usages.lastClosedDay()).toBe(first + 249);
  const range = { fromDay: first, toDay: first + 249 };
  const days = await usages.byAccount([OWNER], range);
  expect(days.map(({ day }) => day)).toEqual([...wanted.keys()]);
  for (const usage of days) expect(usage, `seed ${seed}`).toMatchObject(wanted.get(usage.day) ?? {});
  expect((await usages.byBucket(OWNER, range)).map(({ bucketName }) => bucketName)).toEqual(
    days.map(() => 'bucket'),
  );
});

test('deleted storage is in the records of the minimum duration, and of no day more', async () => {
  const world = await openMetadata();
  await world.createBucket();
  const first = today(world);
  await put(world, 'a', 10);
  await world.remove('a');
  world.clock.advance(91 * DAY_MS + CLOSED_AFTER_MS);
  await closeDays(world);
  const days = await createUsages(world.shards, world.clock).byAccount([OWNER], {
    fromDay: first,
    toDay: first + 90,
  });
  expect(days.map(({ deletedBytes }) => deletedBytes)).toEqual([...Array(90).fill(4096), 0]);
});

test('a recount finds what was lost, and what it finds is mended', async () => {
  const world = await openMetadata();
  await world.createBucket();
  await put(world, 'a', 10);
  const name = `usage/${BUCKET}/${today(world)}`;
  await world.kv.commit([{ column: 'rows', key: counterKey(0, name), value: null }]);
  const again = await openMetadata({ kv: world.kv, clock: world.clock, seed: 9 });
  const found = await again.query('recount-usage', { bucketId: BUCKET });
  expect(found).toMatchObject({ kind: 'counted', counted: [1, 10, 4096, 48], missing: [1, 10, 4096, 48] });
  if (found.kind !== 'counted') return;
  again.clock.advance(1000);
  await put(again, 'b', 5000);
  await again.execute('mend-usage', { accountId: OWNER, bucketId: BUCKET, missing: found.missing });
  expect(await again.query('recount-usage', { bucketId: BUCKET })).toMatchObject({
    kind: 'counted',
    counted: [2, 5010, 9096, 96],
    missing: [0, 0, 0, 0],
  });
});

test('traffic is in the record of its day; what comes late, or too early, in the nearest that is open', async () => {
  const world = await openMetadata();
  await world.createBucket();
  const first = today(world);
  const add = (day: number, figures: Partial<Record<Metered, number>>, bucketId = BUCKET) =>
    world.execute('add-traffic', {
      days: [{ accountId: OWNER, bucketId, day, figures: METERED.map((field) => figures[field] ?? 0) }],
    });
  // What is said of what is stored means nothing.
  await add(first, { getCalls: 3, downloadBytes: 1000, objects: 7 });
  await add(first + 5, { getCalls: 1 });
  await add(first, { listCalls: 2 }, accountTrafficId(OWNER));
  world.clock.advance(DAY_MS + CLOSED_AFTER_MS);
  await closeDays(world);
  await add(first, { putCalls: 1 });
  world.clock.advance(2 * DAY_MS);
  await closeDays(world);
  const usages = createUsages(world.shards, world.clock);
  const range = { fromDay: first, toDay: first + 2 };
  const buckets = await usages.byBucket(OWNER, range);
  expect(
    buckets.map(({ getCalls, putCalls, downloadBytes, objects }) => [
      getCalls,
      putCalls,
      downloadBytes,
      objects,
    ]),
  ).toEqual([
    [4, 0, 1000, 0],
    [0, 1, 0, 0],
    [0, 0, 0, 0],
  ]);
  const days = await usages.byAccount([OWNER], range);
  expect(days.map(({ listCalls }) => listCalls)).toEqual([2, 0, 0]);
  const unplaced = await add(first, { getCalls: 1 }, 'b0000000000000ff' as BucketId);
  expect(unplaced).toEqual({ kind: 'added', unplaced: [0] });
});

test('of a bucket that comes and goes within a day nothing is left to close, unless something of it is to be charged', async () => {
  const traffic = METERED.map((field) => (field === 'putCalls' ? 1 : 0));
  const count = (world: MetadataShards) => {
    const day = { accountId: OWNER, bucketId: BUCKET, day: today(world), figures: traffic };
    return world.execute('add-traffic', { days: [day] });
  };
  const cases: { before(world: MetadataShards): unknown; left: Partial<Record<Metered, number>>[] }[] = [
    { before: () => {}, left: [] },
    { before: count, left: [{ putCalls: 1, deletedBytes: 0 }] },
    {
      before: async (world) => {
        await put(world, 'k', 5000);
        await world.remove('k');
      },
      left: [{ objects: 0, deletedObjects: 1, deletedBytes: 5000 }],
    },
    // Its record of the day before is followed by one that says when it was deleted.
    {
      before: async (world) => {
        world.clock.advance(DAY_MS + CLOSED_AFTER_MS);
        await closeDays(world);
      },
      left: [{ objects: 0 }],
    },
  ];
  for (const { before, left } of cases) {
    const world = await openMetadata();
    await world.createBucket();
    await before(world);
    expect((await world.execute('delete-bucket', { bucketId: BUCKET })).kind).toBe('deleted');
    const present = createUsages(world.shards, world.clock);
    const { items } = await present.current(OWNER, { page: { page: 1, size: 10 } });
    expect(items).toMatchObject(left);
    // What is told later of one that is gone counts for its account.
    expect(await count(world)).toEqual({ kind: 'added', unplaced: left.length === 0 ? [0] : [] });
  }
});

test('counters of buckets and accounts that are lost, as those of earlier releases, are counted anew', async () => {
  const world = await openMetadata();
  await world.createBucket();
  await put(world, 'a', 10);
  await put(world, 'b', 5000);
  for (const name of [`bucket/${BUCKET}/objects`, `bucket/${BUCKET}/bytes`, `account/${OWNER}/bytes`])
    await world.kv.commit([{ column: 'rows', key: counterKey(0, name), value: null }]);
  const again = await openMetadata({ kv: world.kv, clock: world.clock, seed: 9 });
  const bucket = await again.query('recount-usage', { bucketId: BUCKET });
  expect(bucket).toMatchObject({ missing: [0, 0, 0, 0], held: { objects: 2, bytes: 5010 } });
  if (bucket.kind !== 'counted') return;
  again.clock.advance(1000);
  await put(again, 'c', 1);
  const { missing, held } = bucket;
  await again.execute('mend-usage', { accountId: OWNER, bucketId: BUCKET, missing, held });
  const account = await again.query('recount-account', { accountId: OWNER });
  expect(account.missing).toEqual({ objects: 0, bytes: 5010, uploadBytes: 0 });
  await again.execute('mend-account', { accountId: OWNER, missing: account.missing });
  expect(await again.query('recount-usage', { bucketId: BUCKET })).toMatchObject({
    held: { objects: 0, bytes: 0 },
  });
  expect(await again.query('recount-account', { accountId: OWNER })).toEqual({
    missing: { objects: 0, bytes: 0, uploadBytes: 0 },
  });
  expect(await again.query('get-held', { accountId: OWNER })).toMatchObject({
    held: { bytes: 5011, objects: 3 },
  });
});
