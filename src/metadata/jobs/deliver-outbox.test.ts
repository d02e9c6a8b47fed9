import { beforeEach, describe, expect, test } from 'vitest';
import {
  createAccount,
  type MetadataShards,
  OWNER,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { type Background, openBackground } from '../../../tests/support/metadata/metadata-workers.ts';
import { createSilentShards, type SilentShards } from '../../../tests/support/metadata/silent-shards.ts';
import type { Worker } from '../../ports/worker.ts';
import type { CreationSettings } from '../../types/bucket-config.ts';
import { LIMITS } from '../../types/limits.ts';
import { type BucketId, type BucketName, makeBlobId, makeLinkId, makeOutboxId } from '../../types/names.ts';
import { outboxCodec } from '../../types/records/rows.ts';
import { rowKey } from '../engine/row-keys.ts';
import { outboxRow } from '../schema/keyspace.ts';
import { createOutboxDelivery } from './deliver-outbox.ts';

let world: MetadataShards;
let background: Background;
async function setUp(shardCount = 1): Promise<void> {
  background = await openBackground(shardCount);
  ({ world } = background);
}
const run: Background['run'] = (...names) => background.run(...names);
describe('names whose gateway has gone', () => {
  const name = 'fresh' as BucketName;
  beforeEach(async () => {
    await setUp(2);
    await createAccount(world, OWNER);
  });

  async function reserve(
    settings: CreationSettings = {},
  ): Promise<{ bucketId: BucketId; homeShard: number }> {
    const outcome = await world.execute('reserve-name', { name, owner: OWNER, settings });
    if (outcome.kind !== 'reserved') throw new Error(outcome.kind);
    return outcome;
  }
  const find = async () => (await world.query('find-name', { name })).record;

  test('R41: after reserving: the bucket is created with all that it was asked with, and listed', async () => {
    const settings: CreationSettings = {
      acl: { grants: [] },
      versioning: { status: 'enabled' },
      objectLock: {},
    };
    const { bucketId, homeShard } = await reserve(settings);
    await run('deliver');
    expect(await find()).toMatchObject({ state: 'active', bucketId });
    const { bucket, configs } = await world.query('get-bucket', { bucketId }, homeShard);
    expect(bucket).toMatchObject({ state: 'open', name, versioning: 'enabled', objectLock: {} });
    expect(configs).toEqual(settings);
    expect((await world.query('list-outbox', { limit: 9 })).items).toEqual([]);
  });

  test('R41: after creating: the name is listed', async () => {
    const { bucketId, homeShard } = await reserve();
    await world.execute('create-bucket', { bucketId, name, owner: OWNER }, homeShard);
    await run('deliver');
    expect(await find()).toMatchObject({ state: 'active', bucketId });
  });

  test('R41, R42: deleted before it was listed: the name is free again', async () => {
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

describe('a shard that does not answer', () => {
  const [AWAY, WELL] = [1, 2];
  let shards: SilentShards;
  let worker: Worker;
  let serial = 0;
  let led = [0];
  beforeEach(async () => {
    await setUp(3);
    shards = createSilentShards(world.shards);
    led = [0];
    const nothing = () => {};
    worker = createOutboxDelivery({
      metadata: shards.port,
      shards: () => led,
      clock: world.clock,
      log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    });
  });

  const work = () => worker.work(new AbortController().signal);

  /** Orders that are older the earlier they are made. */
  async function order(homeShard: number, count: number, { by = 0, isOfLastMs = false } = {}): Promise<void> {
    const rows = Array.from({ length: count }, () => {
      const timeMs = world.clock.wallMs() + (isOfLastMs ? serial - 1 : serial++);
      const tail = isOfLastMs ? Buffer.alloc(10) : Buffer.from(String(serial).padStart(10, '0'));
      const { table, key } = outboxRow(makeOutboxId({ timeMs, tail: tail.subarray(2) }));
      const blobId = makeBlobId({ timeMs, homeShard, random: tail.subarray(2) });
      const linkId = makeLinkId({ timeMs, random: tail });
      const value = outboxCodec.encode({ kind: 'release-link', homeShard, blobId, linkId });
      return { column: table.column, key: rowKey(by, table, key), value };
    });
    await world.kv.commit(rows);
  }

  async function leftFor({ by = 0 } = {}): Promise<number[]> {
    const { items } = await world.query('list-outbox', { limit: 5000 }, by);
    return items.flatMap(({ record }) => ('homeShard' in record ? [record.homeShard] : []));
  }

  function askedSince(from: number): string[] {
    return shards.asked.slice(from);
  }

  test('does not delay items for others, and is sent one page at most', async () => {
    await order(AWAY, 300);
    await order(WELL, 300);
    shards.silence(AWAY);
    const working = work();
    await shards.wasAsked(`release-links ${AWAY}`);
    world.clock.advance(LIMITS.shardLateMs);
    await working;
    expect(new Set(await leftFor())).toEqual(new Set([AWAY]));
    expect(shards.asked.filter((call) => call === `release-links ${AWAY}`)).toHaveLength(1);

    // What waits for it is not gone through again, whatever comes behind it.
    const before = shards.asked.length;
    await order(WELL, 1);
    await work();
    expect(askedSince(before)).toEqual(['list-outbox 0', `release-links ${WELL}`, 'finish-outbox 0']);
    expect(await leftFor()).toHaveLength(300);

    // When it answers, what it was asked is done and not asked again.
    const finished = shards.hasAnswered('finish-outbox 0', shards.asked.filter(isFinish).length + 1);
    shards.answerAgain(AWAY);
    await finished;
    expect(await leftFor()).toHaveLength(50);
    await work();
    expect(await leftFor()).toEqual([]);
    expect(shards.asked.filter((call) => call === `release-links ${AWAY}`)).toHaveLength(2);
  });

  const isFinish = (call: string) => call === 'finish-outbox 0';

  test('an item of the last ms of a page that comes while the page is delivered is delivered, too', async () => {
    await order(WELL, 250);
    shards.silence(WELL);
    const working = work();
    await shards.wasAsked(`release-links ${WELL}`);
    await order(WELL, 1, { isOfLastMs: true });
    await order(WELL, 1);
    shards.answerAgain(WELL);
    await working;
    await work();
    expect(await leftFor()).toEqual([]);
  });

  test('is tried once in a walk, and again after a pause: waiting items are delivered then', async () => {
    await order(AWAY, 600);
    await order(WELL, 1);
    shards.refuse(AWAY);
    await work();
    expect(await leftFor()).toHaveLength(600);
    expect(shards.asked.filter((call) => call === `release-links ${AWAY}`)).toHaveLength(1);
    shards.answerAgain(AWAY);
    await work();
    expect(await leftFor()).toHaveLength(600);
    world.clock.advance(LIMITS.shardRestMinMs);
    await work();
    expect(await leftFor()).toEqual([]);
  });

  test('an item that fails again and again delays no others, of any shard', async () => {
    led = [0, 1];
    const name = 'bad' as BucketName;
    const timeMs = world.clock.wallMs();
    const { table, key } = outboxRow(makeOutboxId({ timeMs, tail: Buffer.alloc(8) }));
    const bucketId = '0'.repeat(32) as BucketId;
    const value = outboxCodec.encode({
      kind: 'create-bucket',
      homeShard: WELL,
      bucketId,
      name,
      owner: OWNER,
    });
    await world.kv.commit([{ column: table.column, key: rowKey(0, table, key), value }]);
    await order(WELL, 600);
    await order(WELL, 10, { by: 1 });
    const { execute } = shards.port;
    shards.port.execute = async (envelope, kind, command) =>
      kind === 'create-bucket' ? { kind: 'unknown' } : execute.call(shards.port, envelope, kind, command);
    for (let round = 0; round < 3; round++) {
      await work();
      world.clock.advance(LIMITS.shardRestMaxMs);
    }
    expect([await leftFor(), await leftFor({ by: 1 })]).toEqual([[WELL], []]);
  });
});
