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
} from '../../../tests/support/metadata/metadata-shards.ts';
import { type Background, MINUTE, openBackground } from '../../../tests/support/metadata/metadata-workers.ts';
import { createSilentShards } from '../../../tests/support/metadata/silent-shards.ts';
import { must } from '../../base/assert.ts';
import type { ClaimVerdict } from '../../ports/metadata/blobs.ts';
import type { CommandOf } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';
import {
  type BlobId,
  type BucketName,
  type LinkId,
  makeBlobId,
  makeLinkId,
  type ObjectKey,
} from '../../types/names.ts';
import { NO_ORIGINALS } from '../../types/originals.ts';
import { linkCodec } from '../../types/records/rows.ts';
import { rowKey } from '../engine/row-keys.ts';
import { linkRow, PRESENT, pendingClaimRow } from '../schema/keyspace.ts';
import { createClaimResolver } from './resolve-claims.ts';

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
    await run('mark', 'deliver', 'mark');
    world.clock.advance(11 * MINUTE);
    await run('release');
  }

  test('a copy keeps the data alive; with the last of them it is erased', async () => {
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

  test('a claim without a commit is dropped a day after its link id, not before', async () => {
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

  test('a waiting claim does not hide younger ones', async () => {
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

  /** As a claim of the version before is stored. */
  async function forgetNonce(linkId: LinkId): Promise<void> {
    const { table, key } = linkRow(blobOf(data), linkId);
    const value = linkCodec.encode({ state: 'pending', shard: 0 });
    await world.kv.commit([{ column: 'rows', key: rowKey(HOME, table, key), value }]);
  }

  test('a claim of the previous version that is held stays as long as it is held', async () => {
    const copy = await claim();
    await forgetNonce(must(copy.uses[0], 'one').linkId);
    await world.put('copy', { data: copy });
    await removeSource();
    world.clock.advance(LIMITS.claimResolveAfterMs + 1);
    await run('resolve');
    expect(await pendingCount()).toBe(1);
    await run('resolve');
    expect(await pendingCount()).toBe(0);
    await everythingElse();
    expect(await chunksLeft()).toBe(1);
    await world.remove('copy');
    await everythingElse();
    expect(await chunksLeft()).toBe(0);
  });

  const stateOfLink = async (linkId: LinkId) =>
    (await world.query('get-links', { links: [{ blobId: blobOf(data), linkId }] }, HOME)).links[0]?.state;

  /** What befalls between the answer of the claiming shard and its settling; gives the verdicts. */
  function beforeSettling(act: () => Promise<unknown>): ClaimVerdict[] {
    const verdicts: ClaimVerdict[] = [];
    const { execute } = world.shards;
    world.shards.execute = async (envelope, name, command) => {
      if (name !== 'settle-claims') return execute(envelope, name, command);
      world.shards.execute = execute;
      verdicts.push(...(command as CommandOf<'settle-claims'>).claims);
      await act();
      return execute(envelope, name, command);
    };
    return verdicts;
  }

  test("a verdict carries the claim's nonce, and does not apply to a later claim with the same id", async () => {
    const copy = await claim();
    const linkId = must(copy.uses[0], 'one').linkId;
    await world.put('copy', { data: copy });
    await removeSource();
    world.clock.advance(LIMITS.claimResolveAfterMs + 1);
    const { claims } = await world.query('list-pending-claims', { olderThanMs: 0, limit: 9 }, HOME);
    const [asked] = claims.map(({ blobId, nonce }) => ({ blobId, linkId, nonce }));
    const verdicts = beforeSettling(async () => {
      await world.remove('copy');
      await run('mark', 'deliver');
      expect(await stateOfLink(linkId)).toBeUndefined();
      // A message that was sent twice.
      await world.execute('claim-links', { shard: 0, linkId, blobIds: [blobOf(data)] }, HOME);
    });
    await run('resolve');
    expect(verdicts).toEqual([{ ...asked, verdict: 'confirmed' }]);
    expect(asked?.nonce).toEqual(expect.any(String));
    expect(await stateOfLink(linkId)).toBe('pending');
    world.clock.advance(LIMITS.linkIdAgeMaxMs);
    await run('resolve');
    expect(await stateOfLink(linkId)).toBeUndefined();
    await everythingElse();
    expect(await chunksLeft()).toBe(0);
  });

  test('an order that cannot be delivered waits and does not delay the others', async () => {
    await world.put('copy', { data: await claim() });
    await world.remove('copy');
    await run('mark');
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
    world.clock.advance(LIMITS.shardRestMinMs);
    await run('deliver');
    expect((await world.query('list-outbox', { limit: 9 })).items).toEqual([]);
  });
});

describe('many claims', () => {
  const HOME = 0;
  const [AWAY, WELL] = [1, 2];
  let serial = 0;
  beforeEach(() => setUp(3));

  /** Made so long ago that nobody can use them any more; younger the later they are made. */
  async function plant(
    shard: number,
    count: number,
    { isDangling = false, link: ofLink = { nonce: 'n' } as object } = {},
  ): Promise<void> {
    const timeMs = world.clock.wallMs() - LIMITS.linkIdAgeMaxMs - MINUTE;
    const rows = Array.from({ length: count }, () => {
      const random = Buffer.from(String(serial++).padStart(10, '0'));
      const linkId = makeLinkId({ timeMs: timeMs + serial, random });
      const blobId = makeBlobId({ timeMs, homeShard: HOME, random: random.subarray(2) });
      const [link, pending] = [linkRow(blobId, linkId), pendingClaimRow(blobId, linkId)];
      const value = linkCodec.encode({ state: 'pending', shard, ...ofLink });
      return [
        ...(isDangling ? [] : [{ column: 'rows', key: rowKey(HOME, link.table, link.key), value }]),
        { column: 'rows', key: rowKey(HOME, pending.table, pending.key), value: PRESENT },
      ];
    });
    await world.kv.commit(rows.flat());
  }

  async function open(): Promise<number[]> {
    const query = { olderThanMs: 0, limit: 5000 };
    return (await world.query('list-pending-claims', query, HOME)).claims.map(({ shard }) => shard);
  }

  test('of a shard that does not answer wait, and those of others do not', async () => {
    await plant(AWAY, 300);
    await plant(WELL, 300);
    const shards = createSilentShards(world.shards);
    const nothing = () => {};
    const resolver = createClaimResolver({
      metadata: shards.port,
      shards: () => [HOME],
      clock: world.clock,
      log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    });
    const work = () => resolver.work(new AbortController().signal);
    shards.silence(AWAY);
    const working = work();
    await shards.wasAsked(`tick ${AWAY}`);
    world.clock.advance(LIMITS.shardLateMs);
    await working;
    expect(new Set(await open())).toEqual(new Set([AWAY]));
    await work();
    expect(shards.asked.filter((call) => call === `tick ${AWAY}`)).toHaveLength(1);
    shards.answerAgain(AWAY);
    const count = shards.asked.filter((call) => call === `settle-claims ${HOME}`).length;
    await shards.hasAnswered(`settle-claims ${HOME}`, count + 1);
    await work();
    expect(await open()).toEqual([]);
  });

  test.each([
    ['none', {}],
    ['a time in place of one', { claimedAtMs: 1 }],
  ])(
    'of the version before, with %s, get a nonce first, and are settled by the next look',
    async (_, link) => {
      await plant(WELL, 300, { link });
      const { claims: before } = await world.query('list-pending-claims', { olderThanMs: 0, limit: 1 });
      expect(before).toMatchObject([{ shard: WELL }]);
      expect(before[0]).not.toHaveProperty('nonce');
      // Long before whatever is looked at each time.
      world.clock.advance(LIMITS.linkIdAgeMaxMs / 2);
      await world.execute('tick', {}, HOME);
      world.clock.advance(LIMITS.linkIdAgeMaxMs / 2);
      await run('resolve');
      const { claims } = await world.query('list-pending-claims', { olderThanMs: 0, limit: 5000 });
      expect(claims).toHaveLength(300);
      for (const claim of claims) expect(claim.nonce).toEqual(expect.any(String));
      await run('resolve');
      expect(await open()).toEqual([]);
    },
  );

  test('are processed to the last, whatever a page of them has lost meanwhile', async () => {
    await plant(WELL, 3, { isDangling: true });
    await plant(WELL, 600);
    await run('resolve');
    expect(await open()).toEqual([]);
  });
});
