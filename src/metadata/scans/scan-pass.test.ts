import { expect, test } from 'vitest';
import { type MetadataShards, openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import { NOTE_EVERY_MS, ScanPass } from './scan-pass.ts';

const HOUR = 3600_000;

function passOver({ shards: metadata, clock }: MetadataShards) {
  return new ScanPass<number>({
    metadata,
    clock,
    name: 'count',
    everyMs: HOUR,
    compare: (a, b) => a - b,
  });
}

test('a shard that is led only since a pass began has the next one, and the others rest', async () => {
  const world = await openMetadata({ shardCount: 2 });
  const pass = passOver(world);
  expect(await pass.next([0])).toEqual({ shards: [0], after: undefined });
  await pass.reached(5);
  expect(await pass.next([0, 1])).toEqual({ shards: [0], after: 5 });
  await pass.ended();
  expect(await pass.next([0, 1])).toEqual({ shards: [1], after: undefined });
  await pass.ended();
  world.clock.advance(HOUR - 1000);
  expect(await pass.next([0, 1])).toEqual({ waitMs: 1000 });
  world.clock.advance(1000);
  expect(await pass.next([0, 1])).toEqual({ shards: [0, 1], after: undefined });
});

test('another primary goes on where the shard had come least far', async () => {
  const world = await openMetadata({ shardCount: 2 });
  for (const shard of [0, 1]) {
    const before = passOver(world);
    await before.next([shard]);
    world.clock.advance(NOTE_EVERY_MS);
    await before.reached(10 + shard);
  }
  const pass = passOver(world);
  expect(await pass.next([0, 1])).toEqual({ shards: [0, 1], after: 10 });
  await pass.ended();
  expect(await passOver(world).next([0, 1])).toEqual({ shards: [0, 1], after: undefined });
});

test('who was primary before leaves the pass of the one after it alone', async () => {
  const world = await openMetadata();
  const [old, young] = [passOver(world), passOver(world)];
  await old.next([0]);
  world.clock.advance(NOTE_EVERY_MS);
  await old.reached(3);
  await young.next([0]);
  await young.ended();
  world.clock.advance(NOTE_EVERY_MS);
  await old.reached(4);
  expect(await passOver(world).next([0])).toEqual({ shards: [0], after: undefined });
});

test('a shard that does not say how far it had come is asked again before it is scanned', async () => {
  const world = await openMetadata();
  const { query } = world.shards;
  world.shards.query = async () => ({ kind: 'unknown' });
  const pass = passOver(world);
  expect(await pass.next([0])).toEqual({ waitMs: 10_000 });
  world.shards.query = query;
  expect(await pass.next([0])).toEqual({ shards: [0], after: undefined });
});
