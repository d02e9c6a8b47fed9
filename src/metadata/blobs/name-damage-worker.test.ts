// Which objects a search finds, through copies, claims and pages of manifests, is tested beside fsck, whose world has them all.
import { expect, test } from 'vitest';
import { chunkIds, type HomeWorld, openHomeWorld } from '../../../tests/support/disks/home-world.ts';
import { nameOf } from '../../../tests/support/disks/order-disks.ts';
import { BUCKET } from '../../../tests/support/metadata/metadata-shards.ts';
import { DAMAGE_NAMED_MAX } from '../../types/named-damage.ts';
import type { ObjectKey } from '../../types/names.ts';

const keyAt = (at: number) => `k${String(at).padStart(2, '0')}` as ObjectKey;

/** Objects, each with a chunk that no disk has. */
async function loseObjects(home: HomeWorld, count: number) {
  const datas = [];
  for (let at = 0; at < count; at++) datas.push(await home.newBlob(keyAt(at), 'ab'));
  for (const id of datas.flatMap(chunkIds))
    for (const disk of 'ab') home.disk(disk).stored.delete(nameOf(id));
  await home.run('repair');
  return datas;
}

const keysOf = (home: HomeWorld) => home.names.of(0)?.objects.map(({ key }) => key);

test('objects whose data no disk has are named and logged, as many as a report has; others follow once these are gone', async () => {
  const home = await openHomeWorld();
  await home.newBlob('a whole one', 'ab');
  await home.run('name');
  expect(home.names.of(0)).toBeUndefined();
  const count = DAMAGE_NAMED_MAX + 2;
  const [first] = await loseObjects(home, count);
  await home.run('name');
  const keys = Array.from({ length: count }, (_, at) => keyAt(at));
  expect(keysOf(home)).toEqual(keys.slice(0, DAMAGE_NAMED_MAX));
  expect(home.names.of(0)).toMatchObject({ blobCount: count, unnamed: [] });
  expect(home.names.of(0)?.objects[0]).toEqual({
    bucket: expect.any(String),
    key: keyAt(0),
    version: 'null',
    blob: first?.uses[0]?.blobId,
  });
  const logged = () => home.warnings.filter((event) => event === 'object-damaged').length;
  expect(logged()).toBe(DAMAGE_NAMED_MAX);
  await home.newBlob(keyAt(0), 'abc');
  await home.world.markUnlinked();
  await home.run('name');
  expect(keysOf(home)).toEqual(keys.slice(1, DAMAGE_NAMED_MAX + 1));
  expect(logged()).toBe(DAMAGE_NAMED_MAX + 1);
  home.leads = false;
  await home.run('name');
  expect(home.names.of(0)).toBeUndefined();
});

test('an object that was renamed after it was named gets its new name within minutes', async () => {
  const home = await openHomeWorld();
  await loseObjects(home, 1);
  await home.run('name');
  expect(keysOf(home)).toEqual([keyAt(0)]);
  const move = { from: keyAt(0), to: 'new' };
  await home.world.execute('move-key', { bucketId: BUCKET, move, overwrites: false });
  home.world.clock.advance(10 * 60_000);
  await home.run('name', 'name');
  expect(keysOf(home)).toEqual(['new']);
});
