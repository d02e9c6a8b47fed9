// Small appends go into one growing blob (metadata/blobs/grow-blob.ts): through the whole data path, with copies,
// compositions and versions that use its beginning, up to its deletion.
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { openFsckWorld } from '../../tests/support/fsck/fsck-world.ts';
import { OWNER } from '../../tests/support/metadata/metadata-shards.ts';
import { append, appendMany, segmentsOf, versioned } from '../../tests/support/objects/appends.ts';
import { uploadCopies } from '../../tests/support/objects/object-uploads.ts';
import { type ObjectWorld, openObjectWorld, readAll } from '../../tests/support/objects/object-world.ts';
import { must } from '../base/assert.ts';
import { rowKey } from '../metadata/engine/row-keys.ts';
import { blobRow } from '../metadata/schema/keyspace.ts';
import { pieceRow } from '../metadata/versions/piece-rows.ts';
import type { RowAddress } from '../ports/state-machine.ts';
import { LIMITS } from '../types/limits.ts';
import type { BlobId, ObjectKey } from '../types/names.ts';
import { blobCodec } from '../types/records/rows.ts';
import { growingUse, linksOf, ownBody } from '../types/version.ts';

const KiB = 1024;

const manifestOf = async (world: ObjectWorld, key: string) => (await world.find(key)).version.manifest;
const grownOf = async (world: ObjectWorld, key: string) => {
  const use = growingUse(await manifestOf(world, key));
  return use && { blobId: use.blobId, ...use.grown, sizeBytes: use.sizeBytes };
};
const piecesLeft = async (world: ObjectWorld) =>
  (await world.metadata.query('list-pieces', { limit: 1000 })).pieces;

async function compose(world: ObjectWorld, to: string, ...from: string[]) {
  const components = await Promise.all(
    from.map(async (key) => ({
      bucket: world.bucket(),
      key: key as ObjectKey,
      found: await world.find(key),
    })),
  );
  await world.store.composeObject({
    calls: world.calls,
    bucket: world.bucket(),
    key: to as ObjectKey,
    owner: OWNER,
    components,
  });
}

describe('a growing blob', () => {
  test('takes one small append after the other, and no larger one', async () => {
    const world = await openObjectWorld();
    const first = randomBytes(100);
    await world.put('k', first);
    const expected = await appendMany(world, 'k', 5, 300);
    expect(await segmentsOf(world, 'k')).toHaveLength(2);
    expect(await grownOf(world, 'k')).toMatchObject({ pieceCount: 5, sizeBytes: 1500 });
    expect(linksOf(await manifestOf(world, 'k'))).toHaveLength(2);
    const large = randomBytes(LIMITS.grownPieceBytesMax + 1);
    await append(world, 'k', large);
    expect(await grownOf(world, 'k')).toBeUndefined();
    const last = randomBytes(7);
    await append(world, 'k', last);
    expect(await grownOf(world, 'k')).toMatchObject({ pieceCount: 1, sizeBytes: 7 });
    expect((await world.get('k')).equals(Buffer.concat([expected, large, last]))).toBe(true);
  });

  test('is full after a number of pieces or bytes; then it is compacted, and the next append begins another', async () => {
    const world = await openObjectWorld();
    await world.put('many', Buffer.from('0'));
    const many = await appendMany(world, 'many', LIMITS.grownPiecesMax + 1, 10);
    await world.store.compactionIdle();
    const [, compacted, rest] = ownBody(await manifestOf(world, 'many'))?.uses ?? [];
    expect([compacted?.storage, compacted?.sizeBytes]).toEqual(['inline', 10 * LIMITS.grownPiecesMax]);
    expect([rest?.storage, rest?.grown?.pieceCount]).toEqual(['pieces', 1]);
    expect((await world.get('many')).equals(many)).toBe(true);
    await world.put('large', Buffer.from('0'));
    // Larger bodies go into chunks in this world.
    const large = await appendMany(world, 'large', 17, 4 * KiB);
    const sizes = ownBody(await manifestOf(world, 'large'))?.uses.map(({ sizeBytes }) => sizeBytes);
    expect(sizes).toEqual([1, LIMITS.grownBlobBytesMax, 4 * KiB]);
    await world.store.compactionIdle();
    expect((await world.get('large')).equals(large)).toBe(true);
  });

  test('is read in any range', async () => {
    const world = await openObjectWorld();
    await world.put('k', randomBytes(10));
    const whole = await appendMany(world, 'k', 6, 10);
    for (let offsetBytes = 0; offsetBytes < whole.length; offsetBytes += 3) {
      for (let sizeBytes = 1; sizeBytes <= whole.length - offsetBytes; sizeBytes += 4) {
        const got = await world.get('k', { range: { offsetBytes, sizeBytes } });
        expect(got.equals(whole.subarray(offsetBytes, offsetBytes + sizeBytes))).toBe(true);
      }
    }
  });

  test('is erased with its last link, each piece of it', async () => {
    const world = await openObjectWorld();
    await world.put('k', Buffer.from('0'));
    await appendMany(world, 'k', 3, 10);
    const { blobId } = (await grownOf(world, 'k')) as { blobId: BlobId };
    await world.put('k', Buffer.from('another'));
    await world.metadata.markUnlinked();
    expect(await world.metadata.stateOf(blobId)).toEqual(['condemned']);
    expect(await piecesLeft(world)).toHaveLength(3);
    await world.metadata.execute('erase-blobs', { blobIds: [blobId] });
    expect(await piecesLeft(world)).toEqual([]);
  });
});

describe('uses of its beginning', () => {
  test('a copy ends where the source ended, and continues in a blob of its own', async () => {
    const world = await openObjectWorld();
    await world.put('k', Buffer.from('0'));
    const before = await appendMany(world, 'k', 3, 10);
    await world.copy('k', 'copy');
    const after = await appendMany(world, 'k', 2, 10);
    const [original, copied] = [await grownOf(world, 'k'), await grownOf(world, 'copy')];
    expect([original?.blobId, original?.pieceCount]).toEqual([copied?.blobId, 5]);
    expect(copied?.pieceCount).toBe(3);
    expect((await world.get('copy')).equals(before)).toBe(true);
    const own = randomBytes(10);
    await append(world, 'copy', own);
    expect((await grownOf(world, 'copy'))?.blobId).not.toBe(original?.blobId);
    expect((await world.get('copy')).equals(Buffer.concat([before, own]))).toBe(true);
    expect((await world.get('k')).equals(after)).toBe(true);
  });

  test('of an object and its copy, the first one that appends lets it grow', async () => {
    const world = await openObjectWorld();
    await world.put('k', Buffer.from('0'));
    const before = await appendMany(world, 'k', 3, 10);
    const shared = await grownOf(world, 'k');
    await world.copy('k', 'copy');
    const pieces = { k: randomBytes(10), copy: randomBytes(10) };
    await Promise.all([append(world, 'copy', pieces.copy), append(world, 'k', pieces.k)]);
    const ends = [await grownOf(world, 'k'), await grownOf(world, 'copy')];
    expect(ends.filter((grown) => grown?.blobId === shared?.blobId)).toHaveLength(1);
    for (const key of ['k', 'copy'] as const)
      expect((await world.get(key)).equals(Buffer.concat([before, pieces[key]]))).toBe(true);
  });

  test('a copy in another shard, and appends to it', async () => {
    const world = await openObjectWorld();
    await world.put('k', Buffer.from('0'));
    const before = await appendMany(world, 'k', 3, 10);
    await world.copy('k', 'copy', { bucket: world.bucket(1) });
    await appendMany(world, 'k', 3, 10);
    const bucket = world.bucket(1);
    expect((await world.get('copy', { bucket })).equals(before)).toBe(true);
    const own = randomBytes(10);
    await append(world, 'copy', own, { bucket });
    expect((await world.get('copy', { bucket })).equals(Buffer.concat([before, own]))).toBe(true);
  });

  test('a later, longer copy in another shard passes fsck', async () => {
    const world = await openFsckWorld({ isEmpty: true });
    const bucket = world.bucket(1);
    await world.put('k', Buffer.from('0'));
    await appendMany(world, 'k', 2, 10);
    await world.copy('k', 'short', { bucket });
    const whole = await appendMany(world, 'k', 2, 10);
    await world.copy('k', 'long', { bucket });
    await appendMany(world, 'k', 2, 10);
    expect((await world.get('long', { bucket })).equals(whole)).toBe(true);
    expect((await world.fsck({ readData: true })).findings).toEqual([]);
  });

  test('a composition of it twice, shorter and longer, and of it under another key', async () => {
    const world = await openObjectWorld();
    await world.put('k', Buffer.from('0'));
    await appendMany(world, 'k', 2, 10);
    await world.copy('k', 'short');
    await appendMany(world, 'k', 2, 10);
    await world.put('other', Buffer.from('other'));
    const bytes = new Map<string, Buffer>();
    for (const key of ['k', 'short', 'other']) bytes.set(key, await world.get(key));
    for (const from of [
      ['short', 'k'],
      ['k', 'short'],
      ['other', 'k'],
      ['k', 'k'],
    ]) {
      await compose(world, 'whole', ...from);
      const expected = Buffer.concat(from.map((key) => bytes.get(key) as Buffer));
      expect((await world.get('whole')).equals(expected), from.join(' ')).toBe(true);
      const more = randomBytes(5);
      await append(world, 'whole', more);
      expect((await world.get('whole')).equals(Buffer.concat([expected, more])), from.join(' ')).toBe(true);
    }
    for (const [key, expected] of bytes) expect((await world.get(key)).equals(expected)).toBe(true);
  });

  test('parts that are ranges of it', async () => {
    const world = await openObjectWorld();
    await world.put('k', randomBytes(LIMITS.partBytesMin));
    const whole = await appendMany(world, 'k', 5, 10);
    const range = (offsetBytes: number, sizeBytes: number) => ({ offsetBytes, sizeBytes });
    const end = LIMITS.partBytesMin;
    await uploadCopies(world, { from: 'k', to: 'parts', ranges: [range(5, end + 12), range(end + 3, 44)] });
    const expected = Buffer.concat([whole.subarray(5, end + 17), whole.subarray(end + 3, end + 47)]);
    expect((await world.get('parts')).equals(expected)).toBe(true);
  });

  test('versions: each has the pieces that it was made of, in whatever order they are deleted', async () => {
    const world = await openObjectWorld();
    const bucket = await versioned(world);
    await world.put('k', Buffer.from('0'), { bucket });
    const pieces = [Buffer.from('0')];
    const ids: string[] = [];
    for (let at = 1; at <= 6; at++) {
      pieces.push(randomBytes(10));
      ids.push((await append(world, 'k', pieces[at] as Buffer, { bucket })).versionId);
    }
    const { manifest } = (await world.find('k', { bucket })).version;
    expect(growingUse(manifest)?.grown?.pieceCount).toBe(6);
    const read = async (at: number) => {
      const found = await world.find('k', { bucket, versionId: ids[at] as never });
      const opened = await world.store.openObject({
        calls: world.calls,
        bucket,
        key: 'k' as ObjectKey,
        found,
        range: { offsetBytes: 0, sizeBytes: found.version.sizeBytes },
        signal: new AbortController().signal,
      });
      return opened.kind === 'bytes' ? opened.bytes : readAll(opened.stream);
    };
    for (const at of [0, 3, 5])
      expect((await read(at)).equals(Buffer.concat(pieces.slice(0, at + 2)))).toBe(true);
    for (const at of [5, 0, 3]) {
      await world.metadata.execute('delete-versions', {
        bucketId: bucket.believed.bucketId,
        items: [{ key: 'k' as ObjectKey, versionId: ids[at] as never }],
        owner: OWNER,
      });
      await world.metadata.markUnlinked();
    }
    expect((await read(4)).equals(Buffer.concat(pieces.slice(0, 6)))).toBe(true);
  });
});

describe('damage', () => {
  async function grown() {
    const world = await openFsckWorld({ isEmpty: true });
    const stored = async ({ table, key }: RowAddress) => {
      const [value] = await world.metadata.kv.getMany(table.column, [rowKey(0, table, key)]);
      return must(value, 'a row');
    };
    await world.put('k', Buffer.from('0'));
    const whole = await appendMany(world, 'k', 3, 10);
    const { blobId } = (await grownOf(world, 'k')) as { blobId: BlobId };
    return { world, whole, blobId, stored };
  }

  test('a blob with other pieces than the object knows does not grow, and both are read correctly (R23)', async () => {
    const { world, whole, blobId, stored } = await grown();
    const row = blobRow(blobId);
    const blob = blobCodec.decode(await stored(row));
    const lastPieceId = `${blobId.slice(0, -2)}ff` as BlobId;
    await world.plant(row, blobCodec.encode({ ...blob, grown: { pieceCount: 3, lastPieceId } }));
    const own = randomBytes(10);
    await append(world, 'k', own);
    expect((await grownOf(world, 'k'))?.blobId).not.toBe(blobId);
    expect((await world.get('k')).equals(Buffer.concat([whole, own]))).toBe(true);
  });

  test('another piece in the place of the last one is never returned for it', async () => {
    const { world, blobId, stored } = await grown();
    await world.put('other', Buffer.from('0'));
    await appendMany(world, 'other', 3, 10);
    const { blobId: otherId } = (await grownOf(world, 'other')) as { blobId: BlobId };
    await world.plant(pieceRow(blobId, 2), await stored(pieceRow(otherId, 2)));
    await expect(world.get('k')).rejects.toMatchObject({ code: 'InternalError' });
    expect(world.events).toContain('pieces-are-others');
  });

  test('a missing piece, or a flipped bit, is an error', async () => {
    const { world, blobId, stored } = await grown();
    const row = pieceRow(blobId, 1);
    const sound = await stored(row);
    await world.plant(row, null);
    await expect(world.get('k')).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    const bad = Uint8Array.from(sound);
    bad[bad.length - 1] = 1 ^ (bad.at(-1) ?? 0);
    await world.plant(row, bad);
    await expect(world.get('k')).rejects.toMatchObject({ code: 'InternalError' });
    expect(world.events).toContain('piece-does-not-open');
  });
});
