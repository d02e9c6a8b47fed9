import { beforeEach, describe, expect, test } from 'vitest';
import {
  BUCKET,
  copyOf,
  dataOf,
  type MetadataShards,
  type NewData,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { must } from '../../base/assert.ts';
import type { PendingClaim } from '../../ports/metadata/blobs.ts';
import type { OutcomeOf } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BlobId, LinkId } from '../../types/names.ts';
import { NO_ORIGINALS } from '../../types/originals.ts';

// The blobs' home is shard 1; the bucket that copies them is in shard 0.
const HOME = 1;
let world: MetadataShards;
let source: NewData;
let blobId: BlobId;
beforeEach(async () => {
  world = await openMetadata({ shardCount: 2 });
  await world.createBucket();
  await world.execute(
    'create-bucket',
    { bucketId: BUCKET, name: 'other' as never, owner: '1' as never },
    HOME,
  );
  source = world.newData({ homeShard: HOME });
  blobId = source.uses[0]?.blobId as BlobId;
  await commitSource(source);
});

async function commitSource(data: NewData): Promise<void> {
  const { sizeBytes, manifest, grant } = data;
  const version = { sizeBytes, manifest, etag: 'e'.repeat(32), owner: '1' as never, originals: NO_ORIGINALS };
  await world.execute(
    'commit-version',
    { bucketId: BUCKET, key: 'src' as never, version, data: grant },
    HOME,
  );
}

const claim = (linkId: LinkId) => world.execute('claim-links', { shard: 0, linkId, blobIds: [blobId] }, HOME);

async function claimedCopy(linkId = world.newLinkId()): Promise<{ linkId: LinkId; data: NewData }> {
  const outcome = await claim(linkId);
  if (outcome.kind !== 'claimed') throw new Error(outcome.kind);
  const uses = source.uses.map((use) => ({ ...use, linkId }));
  const links = uses.map((use, at) => ({ blobId: use.blobId, linkId, claim: outcome.layouts[at] as never }));
  return { linkId, data: dataOf(uses, { births: [], links }) };
}

async function stateAtHome(): Promise<'live' | 'condemned' | undefined> {
  const { blobs } = await world.query('get-blobs', { blobIds: [blobId] }, HOME);
  if (!blobs[0]) return undefined;
  return blobs[0].condemnedAtMs === undefined ? 'live' : 'condemned';
}

async function removeSource(): Promise<void> {
  const items = [{ key: 'src' as never }];
  await world.execute('delete-versions', { bucketId: BUCKET, owner: '1' as never, items }, HOME);
  await world.markUnlinked(HOME);
}

const held = async (linkId: LinkId) =>
  (await world.query('resolve-claims', { claims: [{ blobId, linkId }] })).held[0];
const pending = async () =>
  // Of this moment, too.
  (await world.query('list-pending-claims', { olderThanMs: -1, limit: 9 }, HOME)).claims;
/** The verdict if it is asked about now. */
async function settle(linkId: LinkId, verdict: 'confirmed' | 'dropped'): Promise<void> {
  const asked = (await pending()).filter((one) => one.linkId === linkId);
  await world.execute('settle-claims', { claims: asked.map((one) => ({ ...one, verdict })) }, HOME);
}
const outbox = async () => (await world.query('list-outbox', { limit: 9 })).items;

async function deliver(): Promise<void> {
  for (const { id, record } of await outbox()) {
    if (record.kind !== 'release-link') throw new Error(record.kind);
    await world.execute('release-links', { links: [record] }, record.homeShard);
    await world.execute('finish-outbox', { ids: [id] });
  }
}

test('R27: a claim keeps the blobs alive, all or none', async () => {
  const linkId = world.newLinkId();
  const layout = { kind: 'data', sizeBytes: 10, storage: 'chunks', chunkSizeBytes: 1024 * 1024 };
  const claimed: OutcomeOf<'claim-links'> = {
    kind: 'claimed',
    layouts: [{ homeShard: HOME, linkId, layout: layout as never }],
  };
  expect(await claim(linkId)).toEqual(claimed);
  expect(await claim(linkId)).toEqual(claimed);
  await removeSource();
  expect(await stateAtHome()).toBe('live');
  const unknown = world.newData({ homeShard: HOME }).uses[0]?.blobId as BlobId;
  const both = { shard: 0, linkId: world.newLinkId(), blobIds: [blobId, unknown] };
  expect(await world.execute('claim-links', both, HOME)).toEqual({ kind: 'gone', blobIds: [unknown] });
  expect(await pending()).toEqual([{ blobId, linkId, shard: 0, nonce: expect.any(String) }]);
});

test('R27: a blob that is marked for deletion cannot be claimed', async () => {
  await removeSource();
  expect(await claim(world.newLinkId())).toEqual({ kind: 'gone', blobIds: [blobId] });
});

test('R28, R30: a commit uses the claim, which is then confirmed for good', async () => {
  const { linkId, data } = await claimedCopy();
  expect(await held(linkId)).toBe(false);
  await world.put('copy', { data });
  expect(await held(linkId)).toBe(true);
  await settle(linkId, 'confirmed');
  expect(await pending()).toEqual([]);
  await claim(linkId);
  expect(await pending()).toEqual([]);
  await removeSource();
  expect(await stateAtHome()).toBe('live');
});

test('R28: a commit a day after its claim is refused', async () => {
  const { data } = await claimedCopy();
  world.clock.advance(LIMITS.linkIdAgeMaxMs + 1);
  expect(await world.put('copy', { data })).toEqual({ kind: 'late' });
});

describe('R28: a second copy while the foreign row is there', () => {
  test('uses the first claim; its own is dropped', async () => {
    const first = await claimedCopy();
    const second = await claimedCopy();
    await world.put('one', { data: first.data });
    await world.put('two', { data: second.data });
    expect([await held(first.linkId), await held(second.linkId)]).toEqual([true, false]);
    await settle(second.linkId, 'dropped');
    await removeSource();
    await world.remove('one');
    await world.markUnlinked();
    expect(await outbox()).toEqual([]);
    expect(await stateAtHome()).toBe('live');
    await world.remove('two');
    await world.markUnlinked();
    await deliver();
    await world.markUnlinked(HOME);
    expect(await stateAtHome()).toBe('condemned');
  });
});

describe('R29: the last local link', () => {
  let linkId: LinkId;
  beforeEach(async () => {
    const copy = await claimedCopy();
    linkId = copy.linkId;
    await world.put('copy', { data: copy.data });
    await removeSource();
    await world.remove('copy');
    await world.markUnlinked();
  });

  test('releases the claim, once', async () => {
    expect(await held(linkId)).toBe(false);
    expect((await outbox()).map(({ record }) => record)).toEqual([
      { kind: 'release-link', homeShard: HOME, blobId, linkId },
    ]);
    await deliver();
    expect(await outbox()).toEqual([]);
    await world.execute('release-links', { links: [{ blobId, linkId }] }, HOME);
    await world.markUnlinked(HOME);
    expect(await stateAtHome()).toBe('condemned');
    expect(await pending()).toEqual([]);
  });

  test('a confirmation after the release revives nothing', async () => {
    await deliver();
    await world.execute('settle-claims', { claims: [{ blobId, linkId, verdict: 'confirmed' }] }, HOME);
    await world.markUnlinked(HOME);
    expect(await stateAtHome()).toBe('condemned');
  });

  test('a copy before the release is delivered claims again', async () => {
    const again = await claimedCopy();
    await world.put('copy', { data: again.data });
    await deliver();
    await world.markUnlinked(HOME);
    expect(await stateAtHome()).toBe('live');
    expect(await held(again.linkId)).toBe(true);
  });
});

describe('R30: a verdict about a claim', () => {
  const linkOfClaim = async (linkId: LinkId) =>
    (await world.query('get-links', { links: [{ blobId, linkId }] }, HOME)).links[0];

  async function asked(linkId: LinkId): Promise<PendingClaim> {
    const claims = await pending();
    return must(
      claims.find((one) => one.linkId === linkId),
      'it is pending',
    );
  }

  /** Then released, and claimed again by a message that was sent twice; shard time stands still meanwhile, as it may (R19). */
  async function askedAndClaimedAgain(linkId: LinkId): Promise<PendingClaim> {
    await claim(linkId);
    const first = await asked(linkId);
    await world.execute('release-links', { links: [{ blobId, linkId }] }, HOME);
    await claim(linkId);
    return first;
  }

  test.each(['confirmed', 'dropped'] as const)('%s: not of a later one by the same id', async (verdict) => {
    const linkId = world.newLinkId();
    const first = await askedAndClaimedAgain(linkId);
    await world.execute('settle-claims', { claims: [{ ...first, verdict }] }, HOME);
    expect(await linkOfClaim(linkId)).toMatchObject({ state: 'pending' });
    await world.execute('settle-claims', { claims: [{ ...(await asked(linkId)), verdict }] }, HOME);
    const settled = verdict === 'confirmed' ? { state: 'confirmed', shard: 0 } : null;
    expect(await linkOfClaim(linkId)).toEqual(settled);
  });

  test.each(['confirmed', 'dropped'] as const)('%s: not of one that it does not name', async (verdict) => {
    const linkId = world.newLinkId();
    await claim(linkId);
    for (const claimed of [{}, { claimedAtMs: world.clock.wallMs() }]) {
      // As of a version that had no nonces.
      const claims = [{ blobId, linkId, ...claimed, verdict }];
      await world.execute('settle-claims', { claims }, HOME);
    }
    expect(await linkOfClaim(linkId)).toMatchObject({ state: 'pending' });
  });

  test('does not apply to a claim that an assertion has made since', async () => {
    const linkId = world.newLinkId();
    await claim(linkId);
    const first = await asked(linkId);
    await world.execute('release-links', { links: [{ blobId, linkId }] }, HOME);
    const layout = { kind: 'data' as const, sizeBytes: 10, storage: 'chunks' as const, chunkSizeBytes: 1024 };
    const assertion = { shard: 0, claims: [{ blobId, linkId, layout }] };
    const { pending: made = [] } = await world.execute('assert-links', assertion, HOME);
    await world.execute('settle-claims', { claims: [{ ...first, verdict: 'confirmed' }] }, HOME);
    expect(await linkOfClaim(linkId)).toMatchObject({ state: 'pending' });
    // Told again, it is the same one.
    expect((await world.execute('assert-links', assertion, HOME)).pending).toEqual(made);
    const claims = made.map((one) => ({ ...one, verdict: 'confirmed' as const }));
    await world.execute('settle-claims', { claims }, HOME);
    expect(await linkOfClaim(linkId)).toEqual({ state: 'confirmed', shard: 0 });
    expect((await world.execute('assert-links', assertion, HOME)).pending).toEqual([]);
  });
});

test('R30: an unused claim disappears when it is dropped', async () => {
  const { linkId } = await claimedCopy();
  await removeSource();
  expect(await stateAtHome()).toBe('live');
  await settle(linkId, 'dropped');
  await world.markUnlinked(HOME);
  expect(await stateAtHome()).toBe('condemned');
});

test('a link that begins while others end is seen: the blob stays', async () => {
  const data = world.newData();
  await world.put('a', { data });
  const localBlob = data.uses[0]?.blobId as BlobId;
  const copies = Array.from({ length: 20 }, (_, at) =>
    world.put(`c${at}`, { data: copyOf(data, world.newLinkId()) }),
  );
  const outcomes = await Promise.all([
    ...copies,
    world.remove('a'),
    world.markUnlinked(),
    world.markUnlinked(),
  ]);
  await world.markUnlinked();
  expect(outcomes[0]).toMatchObject({ kind: 'committed' });
  expect(await world.stateOf(localBlob)).toEqual(['live']);
});
