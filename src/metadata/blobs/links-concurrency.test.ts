import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  BUCKET,
  copyOf,
  kek,
  type MetadataShards,
  type NewData,
  OWNER,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { openBackground } from '../../../tests/support/metadata/metadata-workers.ts';
import { createSeededRandom } from '../../../tests/support/run/simulated.ts';
import type { RandomPort } from '../../ports/clock.ts';
import type { BlobId, ObjectKey } from '../../types/names.ts';
import { dataLinkId, linksOf } from '../../types/version.ts';

// Invariants I9 and I10: whatever runs at once, every blob of a version is live and has its link; at rest every blob
// without a version is marked for deletion.

const KEYS = ['a', 'b', 'c'];
const keyArbitrary = fc.constantFrom(...KEYS);
const actArbitrary = fc.oneof(
  fc.record({ kind: fc.constant('put' as const), key: keyArbitrary }),
  fc.record({ kind: fc.constant('copy' as const), from: keyArbitrary, key: keyArbitrary }),
  fc.record({ kind: fc.constant('remove' as const), key: keyArbitrary, isLatest: fc.boolean() }),
  fc.record({ kind: fc.constant('recommit' as const), key: keyArbitrary }),
  fc.record({ kind: fc.constant('mark' as const) }),
  fc.record({ kind: fc.constant('hold' as const) }),
);
type Act = typeof actArbitrary extends fc.Arbitrary<infer T> ? T : never;

async function current(world: MetadataShards, key: string) {
  const query = { bucketId: BUCKET, key: key as ObjectKey, includeBody: false };
  const found = await world.query('get-version', query);
  return found.kind === 'found' ? found.version : undefined;
}

/** Reads what it needs and then acts, as a gateway does: what it read may have gone by then. */
async function perform(world: MetadataShards, act: Act, blobIds: Set<BlobId>): Promise<unknown> {
  if (act.kind === 'put') {
    const data = world.newData();
    for (const { blobId } of data.uses) blobIds.add(blobId);
    return world.put(act.key, { data });
  }
  if (act.kind === 'mark') return world.markUnlinked();
  if (act.kind === 'hold') return world.kv.holdCommits();
  const source = await current(world, act.kind === 'copy' ? act.from : act.key);
  if (act.kind === 'remove') return world.remove(act.key, act.isLatest ? source?.versionId : undefined);
  if (source?.manifest.kind !== 'direct') return undefined;
  const linkId = world.newLinkId();
  if (act.kind === 'copy') {
    const data: NewData = { ...world.newData(), uses: source.manifest.uses };
    return world.put(act.key, { data: copyOf(data, linkId) });
  }
  const { versionId, order, manifest } = source;
  return world.execute('recommit-version', {
    bucketId: BUCKET,
    key: act.key as ObjectKey,
    expected: { versionId, order, dataLinkId: dataLinkId(manifest) },
    version: { owner: OWNER, kek },
    linkId,
  });
}

const CLIENTS = 6;

/** Reads take a while, each its own, so that others act between what a command reads and what it writes. */
function slowReads({ kv }: MetadataShards, random: RandomPort): void {
  const { getMany, range } = kv;
  const wait = async () => {
    for (let turns = (random.bytes(1)[0] ?? 0) % 4; turns > 0; turns--)
      await new Promise((resolve) => setImmediate(resolve));
  };
  kv.getMany = async (...args) => {
    await wait();
    const values = await getMany.apply(kv, args);
    await wait();
    return values;
  };
  kv.range = async (...args) => {
    await wait();
    const rows = await range.apply(kv, args);
    await wait();
    return rows;
  };
}

/** Each client does its share one by one; commits that are held back go on after a while. */
async function performAll(world: MetadataShards, acts: readonly Act[], blobIds: Set<BlobId>): Promise<void> {
  let workingCount = CLIENTS;
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let at = client; at < acts.length; at += CLIENTS) await perform(world, acts[at] as Act, blobIds);
    workingCount--;
  });
  while (workingCount > 0) {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    world.kv.releaseCommits();
  }
  await Promise.all(clients);
}

/** The blobs of all versions. */
async function checkLinks(world: MetadataShards): Promise<Set<BlobId>> {
  const { versions } = await world.query('list-versions', { bucketId: BUCKET, prefix: '', max: 1000 });
  const used = new Set<BlobId>();
  for (const { key, versionId, summary } of versions) {
    if (summary.isDeleteMarker) continue;
    const found = await world.query('get-version', { bucketId: BUCKET, key, versionId, includeBody: false });
    if (found.kind !== 'found') throw new Error(found.kind);
    for (const { blobId } of linksOf(found.version.manifest)) used.add(blobId);
  }
  expect(await world.stateOf(...used)).toEqual([...used].map(() => 'live'));
  return used;
}

test.each(['unversioned', 'enabled', 'suspended'] as const)('%s: links are exact', async (versioning) => {
  const property = fc.asyncProperty(
    fc.array(actArbitrary, { minLength: 10, maxLength: 80 }),
    fc.integer(),
    async (acts, seed) => {
      const { world, run } = await openBackground();
      if (versioning !== 'unversioned') {
        await world.execute('set-bucket-config', {
          bucketId: BUCKET,
          kind: 'versioning',
          document: { status: versioning },
        });
      }
      slowReads(world, createSeededRandom(seed));
      const blobIds = new Set<BlobId>();
      await performAll(world, acts, blobIds);
      await checkLinks(world);
      await run('mark');
      const used = await checkLinks(world);
      const born = [...blobIds];
      const expected = born.map((blobId) => (used.has(blobId) ? 'live' : 'condemned'));
      expect(await world.stateOf(...born)).toEqual(expected);
    },
  );
  await fc.assert(property, { numRuns: 60 });
});
