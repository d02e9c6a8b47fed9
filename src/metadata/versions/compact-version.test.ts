// A run of small pieces of the current version becomes one blob of the same bytes (service 4.2, append): whatever was
// appended, versioned, copied or deleted since it was read.
import { beforeEach, describe, expect, test } from 'vitest';
import {
  BUCKET,
  copyOf,
  etagOf,
  kek,
  type MetadataShards,
  type NewData,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { CompactedSegment } from '../../ports/metadata/versions.ts';
import type { BlobId, ObjectKey, VersionId } from '../../types/names.ts';
import { type BlobUse, dataLinkId, linksOf, type VersionRecord } from '../../types/version.ts';

let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata();
});

type Command = CommandOf<'fold-version'>;
const key = 'log' as ObjectKey;
const MiB = 1024 * 1024;

async function find(versionId?: VersionId): Promise<VersionRecord> {
  const query = { bucketId: BUCKET, key, includeBody: false, ...(versionId && { versionId }) };
  const found = await world.query('get-version', query);
  if (found.kind !== 'found') throw new Error(found.kind);
  return found.version;
}

const blobsOf = ({ uses }: { uses: BlobUse[] }) => uses.map(({ blobId }) => blobId);
const linkedBy = ({ manifest }: VersionRecord) => linksOf(manifest).map(({ blobId }) => blobId);

async function append(data: NewData, renewed = kek): Promise<{ mayFold: boolean }> {
  const piece = { sizeBytes: data.sizeBytes, md5: etagOf('piece'), births: data.grant.births, crcs: {} };
  const command = { bucketId: BUCKET, key, piece, kek: { found: kek, renewed }, linkId: world.newLinkId() };
  const outcome = await world.execute('append-version', command);
  if (outcome.kind !== 'committed') throw new Error(outcome.kind);
  return outcome;
}

/** An object with so many pieces behind it, and their blobs. */
async function appendMany(count: number): Promise<BlobId[]> {
  await world.put('log', { data: world.newData({ sizeBytes: MiB }) });
  const blobs: BlobId[] = [];
  for (let at = 0; at < count; at++) {
    const data = world.newData({ sizeBytes: 10 });
    blobs.push(...blobsOf(data));
    await append(data);
  }
  return blobs;
}

/** A compaction of these pieces, as a reader of this version would request it. */
function compactionOf({ manifest }: VersionRecord, from: number, to: number): Command {
  if (manifest.kind !== 'direct') throw new Error(manifest.kind);
  const run: CompactedSegment[] = manifest.segments.slice(from, to).map(({ use, offsetBytes, sizeBytes }) => {
    const { blobId, grown } = manifest.uses[use] as BlobUse;
    return { blobId, offsetBytes, sizeBytes, ...(grown && { lastPieceId: grown.lastPieceId }) };
  });
  const sizeBytes = run.reduce((sum, one) => sum + one.sizeBytes, 0);
  const [birth] = world.newData({ sizeBytes }).grant.births;
  if (birth === undefined) throw new Error('a birth');
  return { bucketId: BUCKET, key, kek, run, birth };
}

const compaction = (command: Command): Promise<OutcomeOf<'fold-version'>> =>
  world.execute('fold-version', command);
const setVersioning = (versioning: 'enabled' | 'suspended') =>
  world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'versioning',
    document: { status: versioning },
  });
const all = (count: number, state: 'live' | 'condemned') => Array(count).fill(state);

describe('unversioned', () => {
  beforeEach(() => world.createBucket());

  test('the 16th small piece makes it worthwhile; the run becomes one piece, and nothing else changes', async () => {
    const blobs = await appendMany(14);
    for (const mayFold of [false, true]) {
      const data = world.newData({ sizeBytes: 10 });
      blobs.push(...blobsOf(data));
      expect(await append(data)).toMatchObject({ mayFold });
    }
    const before = await find();
    expect(await compaction(compactionOf(before, 1, 17))).toEqual({ kind: 'folded' });
    const after = await find();
    const { manifest: _before, ...restBefore } = before;
    const { manifest, ...rest } = after;
    expect(rest).toEqual(restBefore);
    expect(manifest).toMatchObject({
      segments: [{ sizeBytes: MiB }, { use: 1, offsetBytes: 0, sizeBytes: 160 }],
    });
    await world.markUnlinked();
    expect(await world.stateOf(...blobs)).toEqual(all(16, 'condemned'));
    expect(await world.stateOf(...linkedBy(after))).toEqual(all(2, 'live'));
  });

  test('pieces that were appended meanwhile are unchanged', async () => {
    await appendMany(16);
    const read = await find();
    const late = world.newData({ sizeBytes: 3 });
    await append(late);
    expect(await compaction(compactionOf(read, 1, 17))).toEqual({ kind: 'folded' });
    const after = await find();
    expect(after.sizeBytes).toBe(read.sizeBytes + 3);
    expect(linkedBy(after)).toHaveLength(3);
    expect(linkedBy(after)).toContain(blobsOf(late)[0]);
  });

  test('a run that does not exist any more is left', async () => {
    await appendMany(16);
    const command = compactionOf(await find(), 1, 17);
    await compaction(compactionOf(await find(), 1, 9));
    expect(await compaction(command)).toEqual({ kind: 'changed' });
    await world.put('log');
    expect(await compaction(command)).toEqual({ kind: 'changed' });
    await world.remove('log');
    expect(await compaction(command)).toEqual({ kind: 'changed' });
    await world.execute('delete-bucket', { bucketId: BUCKET });
    expect(await compaction(command)).toEqual({ kind: 'changed' });
  });

  test('a blob of the same size with another last piece, from a lost history, is left (R23)', async () => {
    await world.put('log', { data: world.newData({ sizeBytes: MiB }) });
    await append(world.newData({ storage: 'inline' }));
    const command = compactionOf(await find(), 1, 2);
    const [piece] = command.run;
    if (piece?.lastPieceId === undefined) throw new Error('a blob of pieces');
    const forgotten = { ...piece, lastPieceId: `${piece.lastPieceId.slice(0, -2)}ff` as BlobId };
    expect(await compaction({ ...command, run: [forgotten] })).toEqual({ kind: 'changed' });
    expect(await compaction(command)).toEqual({ kind: 'folded' });
  });

  test('readers still know the version by its first link, even if its beginning was compacted', async () => {
    await appendMany(16);
    const before = await find();
    expect(await compaction(compactionOf(before, 0, 17))).toEqual({ kind: 'folded' });
    const after = await find();
    expect(linksOf(after.manifest)).toHaveLength(1);
    expect(dataLinkId(after.manifest)).toBe(dataLinkId(before.manifest));
  });

  test('an object that replaced it with the same data is compacted under its own links, unless it is composed', async () => {
    const blobs = await appendMany(16);
    const read = await find();
    const { appendCount: _ofAppends, order: _order, versionId: _id, modifiedAtMs: _at, ...version } = read;
    const data = {
      sizeBytes: read.sizeBytes,
      uses: read.manifest.kind === 'direct' ? read.manifest.uses : [],
    };
    const copy = async (appendCount: number) => {
      const copied = copyOf(
        { ...data, grant: { births: [], links: [] }, manifest: read.manifest },
        world.newLinkId(),
      );
      await world.put('log', {
        data: copied,
        version: { ...version, manifest: copied.manifest, appendCount },
      });
    };
    await copy(0);
    expect(await compaction(compactionOf(read, 1, 17))).toEqual({ kind: 'changed' });
    await copy(16);
    const before = await find();
    expect(await compaction(compactionOf(read, 1, 17))).toEqual({ kind: 'folded' });
    const after = await find();
    expect(new Set(linksOf(after.manifest).map(({ linkId }) => linkId))).toEqual(
      new Set(linksOf(before.manifest).map(({ linkId }) => linkId)),
    );
    await world.markUnlinked();
    expect(await world.stateOf(...blobs)).toEqual(all(16, 'condemned'));
  });
});

describe('where versions are kept', () => {
  /** A version of 17 pieces, and another one with more behind them. */
  async function superseded(): Promise<{ read: VersionRecord; pieces: BlobId[]; late: BlobId }> {
    await world.createBucket('enabled');
    const pieces = await appendMany(16);
    const read = await find();
    const data = world.newData({ sizeBytes: 3 });
    await append(data);
    return { read, pieces, late: blobsOf(data)[0] as BlobId };
  }

  test('the current version is compacted under links of its own; the one that was read keeps its pieces', async () => {
    const { read, pieces, late } = await superseded();
    const before = await find();
    expect(await compaction(compactionOf(read, 1, 17))).toEqual({ kind: 'folded' });
    expect(await find(read.versionId)).toEqual(read);
    const after = await find();
    const { manifest: manifestBefore, ...restBefore } = before;
    const { manifest, ...rest } = after;
    expect(rest).toEqual(restBefore);
    const [base, compacted, behind] = linksOf(manifest);
    expect([linksOf(manifest).length, behind?.blobId]).toEqual([3, late]);
    expect(dataLinkId(manifest)).toBe(dataLinkId(manifestBefore));
    expect(compacted?.linkId, 'of the piece that it replaces').toBe(linksOf(manifestBefore)[1]?.linkId);

    // Only the links of older versions keep the pieces, and that of the newer one the compacted blob.
    await world.markUnlinked();
    expect(await world.stateOf(...pieces)).toEqual(all(16, 'live'));
    await world.remove('log', read.versionId);
    await world.markUnlinked();
    expect((await world.stateOf(...pieces)).slice(14), 'the last piece had no other').toEqual([
      'live',
      'condemned',
    ]);
    await world.remove('log', after.versionId);
    await world.markUnlinked();
    const [baseId, compactedId] = [base?.blobId as BlobId, compacted?.blobId as BlobId];
    expect(await world.stateOf(baseId, compactedId, late)).toEqual(['live', 'condemned', 'condemned']);
  });

  test('later appends have the compacted blob, and no run is compacted twice', async () => {
    const { read } = await superseded();
    const command = compactionOf(read, 1, 17);
    await compaction(command);
    const [again] = world.newData({ sizeBytes: 160 }).grant.births;
    if (again === undefined) throw new Error('a birth');
    expect(await compaction({ ...command, birth: again }), 'by another gateway').toEqual({ kind: 'changed' });
    expect(await compaction(command), 'sent again').toEqual({ kind: 'exists' });
    await append(world.newData());
    expect(await compaction({ ...command, birth: again })).toEqual({ kind: 'changed' });
    const { manifest } = await find();
    expect(linksOf(manifest)).toHaveLength(4);
    expect(new Set(linksOf(manifest).map(({ linkId }) => linkId)).size, 'links of its own').toBe(2);
  });

  test('an object with a rewrapped key is left, and so is any other in its place', async () => {
    const { read } = await superseded();
    const command = compactionOf(read, 1, 17);
    await append(world.newData(), { ...kek, keyId: 'k2', wrapped: Uint8Array.of(9) });
    expect(await compaction(command)).toEqual({ kind: 'changed' });
    await world.remove('log', (await find()).versionId);
    await world.remove('log');
    expect(await compaction(command), 'a delete marker').toEqual({ kind: 'changed' });
    await world.put('log');
    expect(await compaction(command), 'another object').toEqual({ kind: 'changed' });
  });

  test('a moved object is not compacted at the old key; its versions have their pieces at the new one', async () => {
    const { read } = await superseded();
    const command = compactionOf(read, 1, 17);
    const move = { from: key, to: 'there' as ObjectKey };
    await world.execute('move-key', { bucketId: BUCKET, move, overwrites: false });
    expect(await compaction(command)).toEqual({ kind: 'changed' });
    expect(await compaction({ ...command, key: move.to })).toEqual({ kind: 'folded' });
  });

  test('suspended: the null version on top, and then in its own place', async () => {
    const { read, pieces } = await superseded();
    await setVersioning('suspended');
    const command = compactionOf(read, 1, 9);
    await append(world.newData());
    expect((await find()).versionId).toBe('null');
    expect(await compaction(command)).toEqual({ kind: 'folded' });
    const compacted = linkedBy(await find())[1] as BlobId;
    const next = compactionOf(await find(read.versionId), 9, 17);
    await append(world.newData());
    expect(await compaction(next)).toEqual({ kind: 'folded' });
    const after = await find();
    expect(linkedBy(after)).toHaveLength(6);
    expect(linkedBy(after)[1], 'carried over').toBe(compacted);
    await world.markUnlinked();
    expect(await world.stateOf(...pieces, compacted)).toEqual(all(17, 'live'));
    expect(await find(read.versionId)).toEqual(read);
  });
});

describe('data that only compositions keep is counted once, however it was compacted', () => {
  const told = async () => {
    const { buckets } = await world.query('count-composed-only', { limit: 1000 });
    return buckets.map(({ sizeBytes, blobCount }) => ({ sizeBytes, blobCount }));
  };
  const removeAll = async (...orders: number[]) => {
    const page = await world.query('list-versions', { bucketId: BUCKET, prefix: '', max: 1000 });
    for (const { versionId, summary } of page.versions)
      if (orders.includes(summary.order)) await world.remove('log', versionId);
    await world.markUnlinked();
  };
  const from = (first: number, count: number) => Array.from({ length: count }, (_one, at) => first + at);

  test('without versions: with the compacted blob', async () => {
    await world.createBucket();
    await appendMany(16);
    await compaction(compactionOf(await find(), 1, 17));
    await world.markUnlinked();
    expect(await told()).toEqual([{ sizeBytes: MiB + 160, blobCount: 2 }]);
  });

  test('while older versions have the pieces: with these, and with the compacted blob for the rest', async () => {
    await world.createBucket('enabled');
    await appendMany(16);
    await compaction(compactionOf(await find(), 1, 17));
    await append(world.newData({ sizeBytes: 3 }));
    await world.markUnlinked();
    // The first bytes belong to an object of their own; only the compacted blob has the last piece.
    expect(await told()).toEqual([{ sizeBytes: 160 + 3, blobCount: 15 + 1 + 1 }]);
    await removeAll(16, 15);
    expect(await told()).toEqual([{ sizeBytes: 160 + 3, blobCount: 13 + 1 + 1 }]);
    await removeAll(...from(2, 13));
    expect(await told()).toEqual([{ sizeBytes: 160 + 3, blobCount: 2 }]);
    await removeAll(1);
    expect(await told()).toEqual([{ sizeBytes: MiB + 160 + 3, blobCount: 3 }]);
  });

  test('compacted again, with the tiers deleted in any order', async () => {
    await world.createBucket('enabled');
    await appendMany(8);
    await compaction(compactionOf(await find(), 1, 5));
    await append(world.newData({ sizeBytes: 3 }));
    await compaction(compactionOf(await find(), 1, 7));
    await append(world.newData({ sizeBytes: 5 }));
    await world.markUnlinked();
    const allBytes = 80 + 3 + 5;
    // Only the ninth version has the first compacted blob.
    expect((await told())[0]?.sizeBytes).toBe(allBytes);
    await removeAll(9);
    expect((await told())[0]?.sizeBytes, 'without the first fold').toBe(allBytes);
    await removeAll(...from(4, 5));
    expect((await told())[0]?.sizeBytes, 'two pieces are left').toBe(allBytes);
    await removeAll(2, 3);
    expect(await told()).toEqual([{ sizeBytes: allBytes, blobCount: 2 }]);
  });

  test('a copy that still has the pieces', async () => {
    await world.createBucket();
    await appendMany(16);
    const { manifest, ...read } = await find();
    const uses = manifest.kind === 'direct' ? manifest.uses : [];
    const data = { sizeBytes: read.sizeBytes, uses, grant: { births: [], links: [] }, manifest };
    const copied = copyOf(data, world.newLinkId());
    await world.put('copy', { data: copied, version: { appendCount: 16 } });
    await compaction(compactionOf(await find(), 1, 17));
    await world.markUnlinked();
    expect(await told()).toEqual([{ sizeBytes: MiB + 160, blobCount: 17 }]);
    await world.remove('copy');
    await world.markUnlinked();
    expect(await told()).toEqual([{ sizeBytes: MiB + 160, blobCount: 2 }]);
  });
});
