// What a bucket's days say of versions that come and go, by the fields of types/metered.ts.
import { beforeEach, expect, test } from 'vitest';
import {
  BUCKET,
  type MetadataShards,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { AT, dayOf, METADATA_BYTES, METERED, STORED_FIELDS } from '../../types/metered.ts';
import { packOriginals } from '../../types/originals.ts';
import { DAY_MS } from '../../types/usage.ts';
import { readVectors } from '../engine/counters.ts';
import { COUNTER, sumDeltas } from './counters.ts';

const MD5 = '0'.repeat(32);

let world: MetadataShards;
/** Begins at midnight. */
beforeEach(async () => {
  world = await openMetadata();
  await world.createBucket();
});

function put(key: string, sizeBytes: number) {
  const data = world.newData({ sizeBytes });
  return world.put(key, { data, version: { originals: packOriginals({ sizeBytes, md5: MD5 }) } });
}

async function vector(name: string): Promise<Record<string, number>> {
  const [values = []] = await readVectors(0, world.kv, [name]);
  const named = METERED.slice(0, STORED_FIELDS).map((field) => [field, values[AT[field]] ?? 0] as const);
  return Object.fromEntries(named.filter(([, value]) => value !== 0));
}

const today = () => dayOf(world.clock.wallMs());
const onDay = (day: number) => vector(COUNTER.dayUsage(BUCKET, day));

test('a small object counts for 4 KiB on its day', async () => {
  await put('a', 10);
  await put('b', 5000);
  const both = { objects: 2, rawBytes: 5010, paddedBytes: 9096, metadataBytes: 2 * METADATA_BYTES };
  expect(await onDay(today())).toEqual(both);
});

test('what is overwritten inside the minimum duration is deleted storage until that has passed', async () => {
  const began = today();
  await put('a', 10);
  world.clock.advance(15 * DAY_MS);
  await put('a', 8192);
  expect(await onDay(began + 15)).toEqual({
    rawBytes: 8182,
    paddedBytes: 4096,
    deletedObjects: 1,
    deletedBytes: 4096,
  });
  expect(await onDay(began + 90)).toEqual({ deletedObjects: -1, deletedBytes: -4096 });
});

test('the last day of the minimum duration is the 90th, and what it gives back may be what another one adds', async () => {
  const began = today();
  await put('a', 10);
  world.clock.advance(90 * DAY_MS - 1);
  await put('b', 10);
  await world.remove('a');
  expect(await onDay(began + 89)).toMatchObject({ deletedBytes: 4096 });
  world.clock.advance(1);
  await world.remove('b');
  expect(await onDay(began + 90)).toEqual({
    objects: -1,
    rawBytes: -10,
    paddedBytes: -4096,
    metadataBytes: -METADATA_BYTES,
  });
  expect(await onDay(began + 89 + 90)).toEqual({ deletedObjects: -1, deletedBytes: -4096 });
});

test('deltas of one counter become one', () => {
  const name = 'v';
  expect(
    sumDeltas([
      { name, delta: [1, 2] },
      { name: 's', delta: 3 },
      { name, delta: [0, 1, 5] },
      { name: 's', delta: -1 },
    ]),
  ).toEqual([
    { name, delta: [1, 3, 5] },
    { name: 's', delta: 2 },
  ]);
});
