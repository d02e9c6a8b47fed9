import { expect, test } from 'vitest';
import { openMetadata } from '../../../tests/support/metadata-shards.ts';
import { auditedAt } from './audited-at.ts';

test('the least version by which all shards have ended an audit', async () => {
  const world = await openMetadata({ shardCount: 3 });
  const beganAtMs = world.clock.wallMs();
  const audit = async (shard: number, mapVersion: number) => {
    await world.execute('note-audit', { step: 'begin', mapVersion }, shard);
    await world.execute('note-audit', { step: 'end', mapVersion, beganAtMs }, shard);
  };
  await audit(0, 4);
  await audit(1, 7);
  await world.execute('note-audit', { step: 'begin', mapVersion: 5 }, 2);
  expect(await auditedAt(world.shards)).toBeUndefined();
  await audit(2, 5);
  expect(await auditedAt(world.shards)).toBe(4);
  // One that is under way takes nothing back.
  await world.execute('note-audit', { step: 'begin', mapVersion: 9 }, 1);
  expect(await auditedAt(world.shards)).toBe(4);
  const away = { ...world.shards, shardCount: 3, query: async () => ({ kind: 'unknown' as const }) };
  expect(await auditedAt(away)).toBeUndefined();
});
