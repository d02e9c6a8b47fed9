// Deletes of versions that are of many pieces: their rows are large, and each piece has a link that ends.
import { beforeEach, expect, test } from 'vitest';
import {
  BUCKET,
  copyOf,
  dataOf,
  type MetadataShards,
  OWNER,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import type { DeleteItem, DeleteOutcome } from '../../ports/metadata/versions.ts';
import { LIMITS } from '../../types/limits.ts';
import type { ObjectKey, VersionId } from '../../types/names.ts';

/** Of a version's row: more than those have that are of as many pieces as there may be. */
const ROW_BYTES = 400 * 1024;

let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata();
});

/** Versions with large rows; gives their ids. */
async function putLarge(keys: readonly string[]): Promise<VersionId[]> {
  const versionIds: VersionId[] = [];
  for (const key of keys) {
    const outcome = await world.put(key, { version: { sealedHeaders: new Uint8Array(ROW_BYTES) } });
    if (outcome.kind !== 'committed') throw new Error(outcome.kind);
    versionIds.push(outcome.versionId);
  }
  return versionIds;
}

/** As gateways ask: for the rest, until all items have an outcome. */
async function removeAll(items: readonly DeleteItem[]) {
  const outcomes: DeleteOutcome[] = [];
  const counts: number[] = [];
  while (outcomes.length < items.length) {
    const command = { bucketId: BUCKET, owner: OWNER, items: items.slice(outcomes.length) };
    const done = await world.execute('delete-versions', command);
    outcomes.push(...done.items);
    counts.push(done.items.length);
  }
  return { outcomes, counts };
}

const keysOf = (count: number) => Array.from({ length: count }, (_, at) => `c/${1000 + at}` as ObjectKey);

test('one entry takes the first of them; the rest is unchanged', async () => {
  await world.createBucket();
  const keys = keysOf(70);
  await putLarge(keys);
  const items = keys.map((key) => ({ key }));
  const { items: first } = await world.execute('delete-versions', { bucketId: BUCKET, owner: OWNER, items });
  expect(first.length).toBeGreaterThanOrEqual(LIMITS.deleteItemsMin);
  expect(first.length).toBeLessThan(keys.length);
  expect((await world.versions()).map((line) => line.split(' ')[0])).toEqual([...keys.slice(first.length)]);
  await removeAll(items.slice(first.length));
  expect(await world.versions()).toEqual([]);
});

test('all of a thousand small ones fit', async () => {
  await world.createBucket('enabled');
  const items = keysOf(LIMITS.deleteObjectsKeysMax).map((key) => ({ key }));
  for (const { key } of items.slice(0, 50)) await world.put(key);
  const { outcomes, counts } = await removeAll(items);
  expect(counts).toEqual([LIMITS.deleteObjectsKeysMax]);
  expect(outcomes.filter((outcome) => outcome.kind === 'deleted' && outcome.madeMarker)).toHaveLength(1000);
});

test('of versions of many pieces one entry ends a bounded number of links', async () => {
  await world.createBucket();
  const keys = keysOf(200);
  const pieces = Array.from({ length: 60 }, () => world.newData().uses).flat();
  for (const use of pieces) Object.assign(use, { wrappedDataKey: new Uint8Array(60) });
  const source = dataOf(pieces, { births: pieces.map((use) => ({ use })), links: [] });
  await world.put('source', { data: source });
  for (const key of keys) {
    await world.put(key, { data: copyOf(source, world.newLinkId()) });
  }
  let rowsMax = 0;
  const { commit } = world.kv;
  world.kv.commit = (puts, ...rest) => {
    rowsMax = Math.max(rowsMax, puts.length);
    return commit.call(world.kv, puts, ...rest);
  };
  const { outcomes } = await removeAll(keys.map((key) => ({ key })));
  expect(outcomes.every(({ kind }) => kind === 'deleted')).toBe(true);
  // Two rows for each link that ends.
  expect(rowsMax).toBeLessThan(2 * 10_000);
});

test('small ones before large ones: the entry ends before the large ones', async () => {
  await world.createBucket();
  const keys = keysOf(90);
  await putLarge(keys.slice(40));
  const { counts } = await removeAll(keys.map((key) => ({ key })));
  expect(counts[0]).toBeLessThanOrEqual(40);
  expect(await world.versions()).toEqual([]);
});

test('small ones before large ones: few of the large ones are looked at', async () => {
  await world.createBucket();
  const keys = keysOf(60);
  await putLarge(keys.slice(LIMITS.deleteItemsMin));
  let readBytes = 0;
  const { getMany } = world.kv;
  world.kv.getMany = async (...asked) => {
    const values = await getMany.apply(world.kv, asked);
    for (const value of values) readBytes += value?.length ?? 0;
    return values;
  };
  const items = keys.map((key) => ({ key }));
  await world.execute('delete-versions', { bucketId: BUCKET, owner: OWNER, items });
  expect(readBytes).toBeLessThan(17 * ROW_BYTES);
});

test('markers move the rows, which keep their links', async () => {
  await world.createBucket('enabled');
  const keys = keysOf(70);
  await putLarge(keys);
  const { outcomes } = await removeAll(keys.map((key) => ({ key })));
  expect(outcomes.filter((outcome) => outcome.kind === 'deleted' && outcome.madeMarker)).toHaveLength(70);
  const lines = await world.versions();
  expect(lines.filter((line) => line.endsWith('v2*-'))).toHaveLength(70);
  expect(lines.filter((line) => line.endsWith('v1'))).toHaveLength(70);
  expect(await world.query('list-ended-links', { limit: 1 })).toMatchObject({ ended: [] });
});

test('a repeated key in another entry sees the earlier changes', async () => {
  await world.createBucket('enabled');
  const keys = keysOf(40);
  const versionIds = await putLarge([...keys, ...keys]);
  const older = keys.map((key, at) => ({ key, versionId: versionIds[at] as VersionId }));
  const latest = keys.map((key, at) => ({ key, versionId: versionIds[40 + at] as VersionId }));
  const marked = keys.map((key) => ({ key }));
  const { outcomes, counts } = await removeAll([...marked, ...latest, ...older]);
  expect(counts.length).toBeGreaterThan(2);
  expect(outcomes.every(({ kind }) => kind === 'deleted')).toBe(true);
  expect(await world.versions()).toEqual(keys.map((key) => `${key} v3*-`));
});

test('versions of one key, the latest first: the next one is always known', async () => {
  await world.createBucket('enabled');
  const keys = Array.from({ length: 40 }, () => 'a' as ObjectKey);
  const versionIds = await putLarge(keys);
  const items = keys.map((key, at) => ({ key, versionId: versionIds[39 - at] as VersionId }));
  const half = await removeAll(items.slice(0, 35));
  expect(half.outcomes.every(({ kind }) => kind === 'deleted')).toBe(true);
  expect((await world.versions())[0]).toBe('a v5*');
  await removeAll(items.slice(35));
  expect(await world.versions()).toEqual([]);
});
