import { beforeEach, describe, expect, test } from 'vitest';
import { createAccount, type MetadataShards, OWNER } from '../../../tests/support/metadata-shards.ts';
import { type Background, openBackground } from '../../../tests/support/metadata-workers.ts';
import type { BucketId, BucketName } from '../../model/names.ts';

let world: MetadataShards;
let background: Background;
async function setUp(shardCount = 1): Promise<void> {
  background = await openBackground(shardCount);
  ({ world } = background);
}
const run: Background['run'] = (...names) => background.run(...names);
describe('names whose gateway went away', () => {
  const name = 'fresh' as BucketName;
  beforeEach(async () => {
    await setUp(2);
    await createAccount(world, OWNER);
  });

  async function reserve(): Promise<{ bucketId: BucketId; homeShard: number }> {
    const outcome = await world.execute('reserve-name', { name, owner: OWNER });
    if (outcome.kind !== 'reserved') throw new Error(outcome.kind);
    return outcome;
  }
  const find = async () => (await world.query('find-name', { name })).record;

  test('R41: after reserving: the bucket is made and shown', async () => {
    const { bucketId, homeShard } = await reserve();
    await run('deliver');
    expect(await find()).toMatchObject({ state: 'active', bucketId });
    const { bucket } = await world.query('get-bucket', { bucketId }, homeShard);
    expect(bucket).toMatchObject({ state: 'open', name });
    expect((await world.query('list-outbox', { limit: 9 })).items).toEqual([]);
  });

  test('R41: after creating: the name is shown', async () => {
    const { bucketId, homeShard } = await reserve();
    await world.execute('create-bucket', { bucketId, name, owner: OWNER }, homeShard);
    await run('deliver');
    expect(await find()).toMatchObject({ state: 'active', bucketId });
  });

  test('R41, R42: deleted before it was shown: the name is free again', async () => {
    const { bucketId, homeShard } = await reserve();
    await world.execute('create-bucket', { bucketId, name, owner: OWNER }, homeShard);
    await world.execute('delete-bucket', { bucketId }, homeShard);
    await run('deliver');
    expect(await find()).toBeNull();
    const { account } = await world.query('get-account', { accountId: OWNER });
    expect(account?.bucketCount).toBe(0);
  });

  test('R42: after deleting: the name is free', async () => {
    const { bucketId, homeShard } = await reserve();
    await run('deliver');
    await world.execute('delete-bucket', { bucketId }, homeShard);
    await run('deliver');
    expect(await find()).toBeNull();
    expect((await world.query('list-outbox', { limit: 9 }, homeShard)).items).toEqual([]);
  });
});
