// Growing blobs with several writers, repeated evaluation, and a history that was given up (R23): acknowledged data is
// never overwritten, and no reader gets another's bytes.
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type FsckWorld, openFsckWorld } from '../../tests/support/fsck/fsck-world.ts';
import { OWNER } from '../../tests/support/metadata/metadata-shards.ts';
import { append, appendMany, versioned } from '../../tests/support/objects/appends.ts';
import { beginUpload, completeUpload } from '../../tests/support/objects/object-uploads.ts';
import { codeOf, type ObjectWorld, openObjectWorld } from '../../tests/support/objects/object-world.ts';
import { must } from '../base/assert.ts';
import { rowKey } from '../metadata/engine/row-keys.ts';
import { blobRow, HISTORY_ROW, TABLES } from '../metadata/schema/keyspace.ts';
import { pieceRow } from '../metadata/versions/piece-rows.ts';
import type { RowAddress } from '../ports/state-machine.ts';
import { LIMITS } from '../types/limits.ts';
import type { BlobId, ObjectKey } from '../types/names.ts';
import { blobCodec, foreignCodec, historyCodec } from '../types/records/rows.ts';
import { growingUse, ownBody } from '../types/version.ts';
import type { BucketTarget } from './object-store.ts';

const key = 'k' as ObjectKey;

async function storedRow(world: ObjectWorld, { table, key }: RowAddress): Promise<Uint8Array> {
  const [value] = await world.metadata.kv.getMany(table.column, [rowKey(0, table, key)]);
  return must(value, 'a row');
}

async function growing(world: ObjectWorld, name = 'k', bucket = world.bucket()) {
  const { version } = await world.find(name, { bucket });
  return must(growingUse(version.manifest), 'it ends with a blob that may grow');
}

/** Delays the first read of a blob's row. */
function holdRead(world: ObjectWorld, blobId: BlobId) {
  const { kv } = world.metadata;
  const read = kv.getMany.bind(kv);
  const wanted = Buffer.from(rowKey(0, TABLES.blobs, blobRow(blobId).key));
  const [isRead, mayGoOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let isArmed = true;
  kv.getMany = async (column, keys) => {
    const values = await read(column, keys);
    if (isArmed && column === 'rows' && keys.some((one) => wanted.equals(one))) {
      isArmed = false;
      isRead.resolve();
      await mayGoOn.promise;
    }
    return values;
  };
  return { isRead: isRead.promise, goOn: mayGoOn.resolve };
}

describe('a writer that read the row before it grew does not write it', () => {
  async function worldOfVersions() {
    const world = await openObjectWorld();
    const bucket = await versioned(world);
    await world.put('k', Buffer.from('0'), { bucket });
    await append(world, 'k', randomBytes(10), { bucket });
    return { world, bucket, blobId: (await growing(world, 'k', bucket)).blobId };
  }

  async function growsByItsCopy(
    { world, bucket, blobId }: Awaited<ReturnType<typeof worldOfVersions>>,
    begin: () => Promise<unknown>,
  ): Promise<void> {
    const held = holdRead(world, blobId);
    const slow = begin();
    await held.isRead;
    await world.copy('k', 'copy', { bucket, fromBucket: bucket });
    await append(world, 'copy', randomBytes(10), { bucket });
    const expected = await world.get('copy', { bucket });
    expect((await growing(world, 'copy', bucket)).grown?.pieceCount).toBe(2);
    held.goOn();
    await slow;
    await append(world, 'k', randomBytes(10), { bucket });
    expect((await world.get('copy', { bucket })).equals(expected)).toBe(true);
  }

  test('a copy onto itself', async () => {
    const at = await worldOfVersions();
    const { world, bucket } = at;
    await growsByItsCopy(at, () => world.copy('k', 'k', { bucket, fromBucket: bucket }));
  });

  test('an append that names no blob', async () => {
    const at = await worldOfVersions();
    const { world, bucket } = at;
    const kek = must((await world.find('k', { bucket })).version.kek, 'a key');
    const piece = { sizeBytes: 0, births: [], md5: '0'.repeat(32), crcs: {} };
    const linkId = world.metadata.newLinkId();
    const command = { key, piece, linkId, kek: { found: kek, renewed: kek } };
    await growsByItsCopy(at, () =>
      world.metadata.execute('append-version', { bucketId: bucket.believed.bucketId, ...command }),
    );
  });
});

describe('alternating appends', () => {
  async function blobsOf(
    world: ObjectWorld,
    run: (seen: () => Promise<void>) => Promise<void>,
  ): Promise<number> {
    const blobs = new Set<BlobId>();
    await run(async () => {
      for (const { blobId, storage } of ownBody((await world.find('k')).version.manifest)?.uses ?? [])
        if (storage === 'pieces') blobs.add(blobId);
    });
    return blobs.size;
  }

  test('two gateways let one blob grow', async () => {
    const world = await openObjectWorld();
    const other = { ...world, store: world.anotherStore() };
    await world.put('k', Buffer.from('0'));
    await Promise.all([append(world, 'k', randomBytes(10)), append(other, 'k', randomBytes(10))]);
    const count = await blobsOf(world, async (seen) => {
      for (let at = 0; at < 20; at++) {
        await append(at % 2 === 0 ? world : other, 'k', randomBytes(10));
        await seen();
      }
    });
    expect(count).toBeLessThanOrEqual(2);
  });

  test.each([2, 4])('and so do %i writers of one gateway, full ones left aside', async (writers) => {
    const world = await openObjectWorld();
    await world.put('k', Buffer.from('0'));
    const count = await blobsOf(world, async (seen) => {
      const write = async () => {
        for (let at = 0; at < 240 / writers; at++) {
          await append(world, 'k', randomBytes(10));
          await seen();
        }
      };
      await Promise.all(Array.from({ length: writers }, write));
    });
    expect(count).toBeLessThanOrEqual(12);
    expect((await world.find('k')).version).toMatchObject({ sizeBytes: 2401, appendCount: 240 });
  });
});

test('R24: the last piece, evaluated twice, is stored once', async () => {
  const world = await openObjectWorld();
  await world.put('k', Buffer.from('0'));
  await append(world, 'k', randomBytes(10));
  const kek = must((await world.find('k')).version.kek, 'a key');
  const data = world.metadata.newData({ sizeBytes: 5, storage: 'inline' });
  const piece = { sizeBytes: 5, births: data.grant.births, md5: '0'.repeat(32), crcs: {} };
  const command = {
    bucketId: world.bucket().believed.bucketId,
    key,
    piece,
    kek: { found: kek, renewed: kek },
    growingId: (await growing(world)).blobId,
    linkId: world.metadata.newLinkId(),
  };
  expect((await world.metadata.execute('append-version', command)).kind).toBe('committed');
  expect((await world.metadata.execute('append-version', command)).kind).toBe('exists');
  expect((await world.find('k')).version.sizeBytes).toBe(16);
});

describe('after a history that was given up (R23)', () => {
  test('nothing is appended to pieces that may be lost with a restored row', async () => {
    const world = await openFsckWorld({ isEmpty: true });
    await world.put('k', Buffer.from('0'));
    await appendMany(world, 'k', 2, 10);
    const { blobId } = await growing(world);
    await world.copy('k', 'far', { bucket: world.bucket(1) });
    const foreign = (await world.rows('foreign', 1)).map(({ value }) => foreignCodec.decode(value));
    const { layout, linkId } = must(
      foreign.find((one) => one.layout.grown !== undefined),
      'a claim',
    );
    await world.plant(blobRow(blobId), null);
    for (const index of [0, 1]) await world.plant(pieceRow(blobId, index), null);
    for (const row of await world.rows('links'))
      await world.plant({ table: TABLES.links, key: row.key }, null);
    const history = { incarnation: 2, begunAtMs: 0, assertedBy: [], linkCount: 0, blobCount: 0 };
    await world.plant(HISTORY_ROW, historyCodec.encode(history));
    await world.metadata.execute('assert-links', { shard: 1, claims: [{ blobId, linkId, layout }] });
    await world.copy('far', 'back', { bucket: world.bucket(0), fromBucket: world.bucket(1) });
    await append(world, 'back', Buffer.from('acknowledged'));
    expect((await growing(world, 'back')).blobId).not.toBe(blobId);
    const range = { offsetBytes: 21, sizeBytes: 12 };
    expect(String(await world.get('back', { range }))).toBe('acknowledged');
  });

  test('a restored row learns what the most informed user of the blob reports', async () => {
    const world = await openFsckWorld({ isEmpty: true });
    await world.put('k', Buffer.from('0'));
    await appendMany(world, 'k', 2, 10);
    const { blobId } = await growing(world);
    await world.copy('k', 'short', { bucket: world.bucket(1) });
    await appendMany(world, 'k', 2, 10);
    await world.copy('k', 'long', { bucket: world.bucket(2) });
    await world.plant(blobRow(blobId), null);
    for (const row of await world.rows('links'))
      await world.plant({ table: TABLES.links, key: row.key }, null);
    const history = { incarnation: 2, begunAtMs: 0, assertedBy: [], linkCount: 0, blobCount: 0 };
    await world.plant(HISTORY_ROW, historyCodec.encode(history));
    for (const shard of [1, 2, 1]) {
      const foreign = (await world.rows('foreign', shard)).map(({ value }) => foreignCodec.decode(value));
      const { layout, linkId } = must(
        foreign.find((one) => one.layout.grown !== undefined),
        'a claim',
      );
      await world.metadata.execute('assert-links', { shard, claims: [{ blobId, linkId, layout }] });
    }
    const row = blobCodec.decode(await storedRow(world, blobRow(blobId)));
    expect(row).toMatchObject({ sizeBytes: 40, grown: { pieceCount: 4 }, isClosed: true });
  });

  /** The home has lost the third piece, and two others came since: a copy from before ends with the lost one. */
  async function forgotten(first = Buffer.from('0')): Promise<{ world: FsckWorld; far: BucketTarget }> {
    const world = await openFsckWorld({ isEmpty: true });
    const far = world.bucket(1);
    await world.put('k', first);
    await appendMany(world, 'k', 2, 10);
    const { blobId } = await growing(world);
    const blob = await storedRow(world, blobRow(blobId));
    const objects = await world.rows('objects');
    await append(world, 'k', Buffer.alloc(10, 'A'));
    await world.copy('k', 'far', { bucket: far });
    for (const row of objects) await world.plant({ table: TABLES.objects, key: row.key }, row.value);
    await world.plant(blobRow(blobId), blob);
    await world.plant(pieceRow(blobId, 2), null);
    const later = { ...world, store: world.anotherStore() };
    await append(later, 'k', Buffer.alloc(10, 'B'));
    await append(later, 'k', Buffer.alloc(10, 'C'));
    expect((await growing(world)).grown?.pieceCount).toBe(4);
    return { world, far };
  }

  test('an object that ends with a lost piece is an error, and so is a composition of both', async () => {
    const { world, far } = await forgotten();
    expect(await codeOf(world.get('far', { bucket: far }))).toBe('InternalError');
    for (const names of [
      ['far', 'k'],
      ['k', 'far'],
    ]) {
      const components = await Promise.all(
        names.map(async (name) => {
          const bucket = name === 'far' ? far : world.bucket();
          return { bucket, key: name as ObjectKey, found: await world.find(name, { bucket }) };
        }),
      );
      const target = { bucket: far, key: 'whole' as ObjectKey, owner: OWNER };
      expect(await codeOf(world.store.composeObject({ calls: world.calls, ...target, components }))).toBe(
        'InternalError',
      );
    }
  });

  test('a copy of parts that were copied from both does not mix their bytes', async () => {
    const { world, far } = await forgotten(randomBytes(LIMITS.partBytesMin));
    const part = await beginUpload(world, 'parts', { bucket: far });
    const sources = [
      { bucket: far, key: 'far' as ObjectKey },
      { bucket: world.bucket(), key },
    ];
    const parts = [];
    for (const [at, source] of sources.entries()) {
      const found = await world.find(source.key, source);
      parts.push(await world.store.copyPart({ ...part(at + 1), source: { ...source, found } }));
    }
    await completeUpload(world, part(1), parts);
    const range = { offsetBytes: LIMITS.partBytesMin, sizeBytes: 30 };
    expect(await codeOf(world.get('parts', { bucket: far, range }))).toBe('InternalError');
    expect(await codeOf(world.copy('parts', 'copy', { bucket: far, fromBucket: far }))).toBe('InternalError');
  });

  test('fsck reports it', async () => {
    const { world } = await forgotten();
    const { findings } = await world.fsck();
    expect(findings).toContainEqual(
      expect.objectContaining({
        kind: 'layout-differs',
        shard: 1,
        key: 'far',
        note: expect.stringContaining('piece 3 is '),
      }),
    );
  });
});
