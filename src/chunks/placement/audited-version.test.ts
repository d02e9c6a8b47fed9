import { expect, test } from 'vitest';
import { openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import { auditedVersion } from './audited-version.ts';

test('the lowest version at which all shards have ended an audit', async () => {
  const world = await openMetadata({ shardCount: 3 });
  const beganAtMs = world.clock.wallMs();
  const audit = async (shard: number, mapVersion: number) => {
    await world.execute('note-audit', { step: 'begin', mapVersion }, shard);
    await world.execute('note-audit', { step: 'end', mapVersion, beganAtMs }, shard);
  };
  await audit(0, 4);
  await audit(1, 7);
  await world.execute('note-audit', { step: 'begin', mapVersion: 5 }, 2);
  expect(await auditedVersion(world.shards)).toBeUndefined();
  await audit(2, 5);
  expect(await auditedVersion(world.shards)).toBe(4);
  // An audit under way does not lower it.
  await world.execute('note-audit', { step: 'begin', mapVersion: 9 }, 1);
  expect(await auditedVersion(world.shards)).toBe(4);
  const away = { ...world.shards, shardCount: 3, query: async () => ({ kind: 'unknown' as const }) };
  expect(await auditedVersion(away)).toBeUndefined();
});
