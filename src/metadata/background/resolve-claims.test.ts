import { beforeEach, describe, expect, test } from 'vitest';
import {
  BUCKET,
  BUCKET_NAME,
  createAccount,
  dataOf,
  etagOf,
  type MetadataShards,
  type NewData,
  OWNER,
} from '../../../tests/support/metadata-shards.ts';
import { type Background, MINUTE, openBackground } from '../../../tests/support/metadata-workers.ts';
import { LIMITS } from '../../model/limits.ts';
import type { BlobId, BucketName, ObjectKey } from '../../model/names.ts';
import { NO_ORIGINALS } from '../../model/originals.ts';

let world: MetadataShards;
let background: Background;
async function setUp(shardCount = 1): Promise<void> {
  background = await openBackground(shardCount);
  ({ world } = background);
}
const run: Background['run'] = (...names) => background.run(...names);
const newStored: Background['newStored'] = (...args) => background.newStored(...args);
const chunksLeft = () => background.chunksLeft();
const blobOf = (data: NewData) => data.uses[0]?.blobId as BlobId;

describe('links across shards', () => {
  const HOME = 1;
  let data: NewData;
  beforeEach(async () => {
    await setUp(2);
    data = await newStored(1, HOME);
    await world.execute('create-bucket', { bucketId: BUCKET, name: BUCKET_NAME, owner: OWNER }, HOME);
    const { sizeBytes, manifest, grant } = data;
    const version = { sizeBytes, manifest, etag: etagOf('src'), owner: OWNER, originals: NO_ORIGINALS };
    const source = { bucketId: BUCKET, key: 'src' as ObjectKey, version, data: grant };
    await world.execute('commit-version', source, HOME);
  });

  async function claim(): Promise<NewData> {
    const linkId = world.newLinkId();
    const outcome = await world.execute('claim-links', { shard: 0, linkId, blobIds: [blobOf(data)] }, HOME);
    if (outcome.kind !== 'claimed') throw new Error(outcome.kind);
    const uses = data.uses.map((use) => ({ ...use, linkId }));
    const links = [{ blobId: blobOf(data), linkId, claim: outcome.layouts[0] as never }];
    return dataOf(uses, { births: [], links });
  }

  async function removeSource(): Promise<void> {
    const command = { bucketId: BUCKET, owner: OWNER, items: [{ key: 'src' as ObjectKey }] };
    await world.execute('delete-versions', command, HOME);
  }

  const pendingCount = async () =>
    (await world.query('list-pending-claims', { olderThanMs: 0, limit: 9 }, HOME)).claims.length;

  async function everythingElse(): Promise<void> {
    await run('condemn', 'deliver', 'condemn');
    world.clock.advance(11 * MINUTE);
    await run('release');
  }

  test('a copy keeps the data; when it goes, all goes', async () => {
    await world.put('copy', { data: await claim() });
    await removeSource();
    world.clock.advance(LIMITS.claimResolveAfterMs + 1);
    await run('resolve');
    expect(await pendingCount()).toBe(0);
    await everythingElse();
    expect(await chunksLeft()).toBe(1);
    await world.remove('copy');
    await everythingElse();
    expect(await chunksLeft()).toBe(0);
  });

  test('a claim without a commit goes a day after its link id, not before', async () => {
    await claim();
    await removeSource();
    world.clock.advance(LIMITS.linkIdAgeMaxMs);
    await run('resolve');
    expect(await pendingCount()).toBe(1);
    await everythingElse();
    expect(await chunksLeft()).toBe(1);
    world.clock.advance(1);
    await run('resolve');
    expect(await pendingCount()).toBe(0);
    await everythingElse();
    expect(await chunksLeft()).toBe(0);
  });

  test('a claim that waits does not hide younger ones', async () => {
    await claim();
    world.clock.advance(MINUTE);
    await world.put('copy', { data: await claim() });
    world.clock.advance(20 * MINUTE);
    await run('resolve');
    expect(await pendingCount()).toBe(1);
    world.clock.advance(LIMITS.linkIdAgeMaxMs);
    await run('resolve');
    expect(await pendingCount()).toBe(0);
  });

  test('an order that cannot be delivered waits and does not hold up the others', async () => {
    await world.put('copy', { data: await claim() });
    await world.remove('copy');
    await run('condemn');
    const { execute } = world.shards;
    world.shards.execute = async (envelope, name, command) =>
      name === 'release-links' ? { kind: 'unknown' } : execute(envelope, name, command);
    await createAccount(world, OWNER);
    await world.execute('reserve-name', { name: 'fresh' as BucketName, owner: OWNER });
    await run('deliver');
    expect(background.warnings).toEqual(['outbox-delivery-failed']);
    const { items } = await world.query('list-outbox', { limit: 9 });
    expect(items.map(({ record }) => record.kind)).toEqual(['release-link']);
    world.shards.execute = execute;
    await run('deliver');
    expect((await world.query('list-outbox', { limit: 9 })).items).toEqual([]);
  });
});
