// service 4.2, append: the current version grows, whatever other appends there are.
import { beforeEach, describe, expect, test } from 'vitest';
import { DRIVER, driveJob } from '../../../tests/support/metadata/drive-job.ts';
import {
  BUCKET,
  beginUpload,
  etagOf,
  kek,
  type MetadataShards,
  type NewData,
  openMetadata,
  putPart,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { toBase64 } from '../../base/bytes/bytes.ts';
import { crcOf } from '../../base/crypto/crc.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { multipartETag } from '../../types/etag.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BlobId, ObjectKey } from '../../types/names.ts';
import { countOriginals } from '../../types/originals.ts';
import { type BlobUse, linksOf, type VersionRecord } from '../../types/version.ts';

let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata();
});

type Command = CommandOf<'append-version'>;
const key = 'log' as ObjectKey;
const keys = { found: kek, renewed: kek };
const MiB = 1024 * 1024;

async function current(): Promise<VersionRecord> {
  const found = await world.query('get-version', { bucketId: BUCKET, key, includeBody: false });
  if (found.kind !== 'found') throw new Error(found.kind);
  return found.version;
}

function append(
  text = 'piece',
  more: Partial<Command> & { data?: NewData } = {},
): Promise<OutcomeOf<'append-version'>> {
  const { data = world.newData(), ...rest } = more;
  const { births } = data.grant;
  const piece = { sizeBytes: data.sizeBytes, md5: etagOf(text), births, crcs: {} };
  const command = { bucketId: BUCKET, key, piece, kek: keys, linkId: world.newLinkId(), ...rest };
  return world.execute('append-version', command);
}

test('an object with versions is renamed after hundreds of appends, though each version lists all pieces', {
  timeout: 120_000,
}, async () => {
  await world.createBucket('enabled');
  const count = 500;
  await world.put('log', { data: world.newData({ sizeBytes: 2 * MiB }) });
  for (let at = 0; at < count; at++) {
    const data = world.newData({ sizeBytes: 2 * MiB });
    // As large together as those of some thousand pieces.
    for (const { use } of data.grant.births) use.wrappedDataKey = new Uint8Array(250);
    await append('piece', { data });
  }
  const before = await current();
  const move = { from: key, to: 'renamed' };
  const command = { bucketId: BUCKET, move, overwrites: false };
  expect(await world.execute('move-key', command)).toMatchObject({ result: { kind: 'too-many-versions' } });
  const begun = await world.execute('begin-key-move', { ...command, driver: DRIVER });
  if (begun.kind !== 'begun') throw new Error(begun.kind);
  const { ended } = await driveJob(world, begun.job);
  expect(ended).toMatchObject({ movedCount: count + 1, endedAtMs: expect.any(Number) });
  const page = { bucketId: BUCKET, prefix: '', max: 1000 };
  const { versions } = await world.query('list-versions', page);
  expect(new Set(versions.map((version) => version.key))).toEqual(new Set(['renamed']));
  expect(versions).toHaveLength(count + 1);
  const query = { bucketId: BUCKET, key: 'renamed' as ObjectKey, includeBody: false };
  expect(await world.query('get-version', query)).toMatchObject({ version: before });
});

const empty = { sizeBytes: 0, md5: etagOf('nothing'), births: [], crcs: {} };
const blobsOf = ({ uses }: { uses: BlobUse[] }) => uses.map(({ blobId }) => blobId);
const setVersioning = (versioning: 'enabled' | 'suspended') =>
  world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'versioning',
    document: { status: versioning },
  });

describe('unversioned', () => {
  beforeEach(() => world.createBucket());

  test('the version is replaced; its data keeps its link and is erased with the new one', async () => {
    const [base, piece] = [world.newData({ sizeBytes: 7 }), world.newData({ sizeBytes: 5 })];
    await world.put('log', { data: base, version: { tags: [{ key: 'a', value: 'b' }] } });
    const before = await current();
    world.clock.advance(1000);
    const etag = multipartETag([etagOf('log'), etagOf('piece')]);
    expect(await append('piece', { data: piece })).toMatchObject({
      kind: 'committed',
      versionId: 'null',
      etag,
      sizeBytes: 12,
      mayFold: false,
      modifiedAtMs: before.modifiedAtMs + 1000,
    });
    const after = await current();
    expect(after).toMatchObject({ etag, sizeBytes: 12, appendCount: 1, tags: before.tags, order: 2 });
    expect(after.sealedHeaders).toEqual(before.sealedHeaders);
    expect(linksOf(after.manifest)[0]).toEqual(linksOf(before.manifest)[0]);
    await world.markUnlinked();
    expect(await world.stateOf(...blobsOf(base), ...blobsOf(piece))).toEqual(['live', 'live']);
    await world.remove('log');
    await world.markUnlinked();
    expect(await world.stateOf(...blobsOf(base), ...blobsOf(piece))).toEqual(['condemned', 'condemned']);
  });

  test('data that only appends keep alive is counted', async () => {
    await world.put('log', { data: world.newData({ sizeBytes: 100 }) });
    const count = async () => (await world.query('count-composed-only', { limit: 10 })).buckets;
    expect(await count()).toEqual([]);
    await append();
    expect(await count()).toEqual([{ bucketId: BUCKET, sizeBytes: 110, blobCount: 2 }]);
  });

  test('50 at once: each is stored once, in the order of their answers', async () => {
    await world.put('log', { data: world.newData({ sizeBytes: 1 }) });
    const datas = Array.from({ length: 50 }, (_, at) => world.newData({ sizeBytes: 1 + at }));
    const outcomes = await Promise.all(datas.map((data, at) => append(`${at}`, { data })));
    const sizes = outcomes.map((outcome) => (outcome.kind === 'committed' ? outcome.sizeBytes : 0));
    const { manifest, originals, etag, sizeBytes, appendCount } = await current();
    expect([sizeBytes, appendCount]).toEqual([1 + (50 * 51) / 2, 50]);
    const inOrder = datas
      .map((data, at) => ({ blobId: blobsOf(data)[0], md5: etagOf(`${at}`), end: sizes[at] ?? 0 }))
      .sort((a, b) => a.end - b.end);
    expect(
      linksOf(manifest)
        .slice(1)
        .map(({ blobId }) => blobId),
    ).toEqual(inOrder.map(({ blobId }) => blobId));
    expect(countOriginals(originals)).toBe(51);
    expect(etag).toBe(multipartETag([etagOf('log'), ...inOrder.map(({ md5 }) => md5)]));
  });

  test('no bytes: another version of the same data', async () => {
    const data = world.newData();
    await world.put('log', { data });
    const before = await current();
    world.clock.advance(1000);
    expect(await append('', { piece: empty })).toMatchObject({ etag: before.etag, sizeBytes: 10 });
    const after = await current();
    const { originals, manifest } = before;
    expect(after).toMatchObject({ originals, manifest, appendCount: 1, order: 2 });
    expect(after.modifiedAtMs).toBe(before.modifiedAtMs + 1000);
  });
});

describe('versions', () => {
  test('enabled: the old version stays, with links of its own; they may be deleted in any order', async () => {
    await world.createBucket('enabled');
    const [base, one, two] = [world.newData(), world.newData(), world.newData()];
    const first = (await world.put('log', { data: base })) as { versionId: string };
    const second = (await append('1', { data: one })) as { versionId: string };
    await append('2', { data: two });
    const all = [...blobsOf(base), ...blobsOf(one), ...blobsOf(two)];
    expect(await world.versions()).toEqual(['log v3*', 'log v2', 'log v1']);
    await world.remove('log', second.versionId);
    await world.markUnlinked();
    expect(await world.stateOf(...all)).toEqual(['live', 'live', 'live']);
    await world.remove('log', (await current()).versionId);
    await world.markUnlinked();
    expect(await world.stateOf(...all)).toEqual(['live', 'condemned', 'condemned']);
    await world.remove('log', first.versionId);
    await world.markUnlinked();
    expect(await world.stateOf(...all)).toEqual(['condemned', 'condemned', 'condemned']);
  });

  test('suspended: a null version beside the one with an id, then in its own place', async () => {
    await world.createBucket('enabled');
    const [base, one] = [world.newData(), world.newData()];
    await world.put('log', { data: base });
    await setVersioning('suspended');
    expect(await append('1', { data: one })).toMatchObject({ versionId: 'null', versioning: 'suspended' });
    await append('2');
    expect(await world.versions()).toEqual(['log null*', 'log v1']);
    await world.remove('log', 'null');
    await world.markUnlinked();
    expect(await world.stateOf(...blobsOf(base), ...blobsOf(one))).toEqual(['live', 'condemned']);
  });
});

describe('refusals write nothing', () => {
  beforeEach(() => world.createBucket('suspended'));

  test('no object, or a delete marker', async () => {
    expect(await append()).toEqual({ kind: 'no-such-key' });
    await world.put('log');
    await world.remove('log');
    expect(await append()).toEqual({ kind: 'no-such-key' });
  });

  test('another key than the one of the piece', async () => {
    await world.put('log');
    for (const found of [
      { ...kek, keyId: 'k2' },
      { ...kek, wrapped: Uint8Array.of(3, 2, 1) },
      { ...kek, by: 'customer' as const },
    ])
      expect(await append('', { kek: { found, renewed: found } })).toEqual({ kind: 'other-key' });
    const renewed = { ...kek, keyId: 'k2', wrapped: Uint8Array.of(9) };
    expect(await append('', { kek: { found: kek, renewed } })).toMatchObject({ kind: 'committed' });
    expect((await current()).kek).toMatchObject({ keyId: 'k2' });
  });

  test('offset, conditions, size', async () => {
    await world.put('log');
    expect(await append('', { offsetBytes: 9 })).toEqual({ kind: 'wrong-offset', sizeBytes: 10 });
    expect(await append('', { offsetBytes: 10 })).toMatchObject({ kind: 'committed' });
    const failed = { kind: 'precondition-failed', condition: 'If-Match' };
    expect(await append('', { conditions: { ifMatch: ['x'] } })).toEqual(failed);
    await world.put('log', { version: { sizeBytes: LIMITS.objectBytesMax - 9 } });
    expect(await append()).toEqual({ kind: 'too-large' });
  });

  test(`the ${LIMITS.appendCountMax + 1}th`, async () => {
    await world.put('log', { version: { appendCount: LIMITS.appendCountMax - 1 } });
    expect(await append()).toMatchObject({ kind: 'committed' });
    expect(await append()).toEqual({ kind: 'too-many-appends' });
    expect(await append('', { piece: empty })).toEqual({ kind: 'too-many-appends' });
  });

  test('a blob that exists, or is too old', async () => {
    await world.put('log');
    const data = world.newData();
    await append('', { data });
    expect(await append('', { data })).toEqual({ kind: 'exists' });
    const old = world.newData();
    world.clock.advance(LIMITS.blobIdAgeMaxMs + 1);
    expect(await append('', { data: old })).toEqual({ kind: 'late' });
    expect((await current()).appendCount).toBe(1);
  });

  test('a token repeats the answer, whatever else was appended', async () => {
    await world.put('log');
    const token = { token: 't', digest: 'd' };
    const outcome = await append('1', { token });
    await append('2');
    expect(await append('1', { token })).toEqual({ kind: 'repeated', outcome });
    expect(await append('3', { token: { token: 't', digest: 'other' } })).toEqual({ kind: 'token-reused' });
    expect((await current()).appendCount).toBe(2);
  });
});

test('checksums continue while they can be combined', async () => {
  await world.createBucket();
  const sum = (text: string) => toBase64(crcOf('CRC32', Buffer.from(text)));
  const checksum = { algorithm: 'CRC32', type: 'FULL_OBJECT', value: sum('abc') } as const;
  await world.put('log', { version: { checksum }, data: world.newData({ sizeBytes: 3 }) });
  const { grant } = world.newData({ sizeBytes: 2 });
  const piece = { sizeBytes: 2, md5: etagOf('de'), births: grant.births, crcs: { CRC32: sum('de') } };
  expect(await append('', { piece })).toMatchObject({ checksum: { ...checksum, value: sum('abcde') } });
  const other = { ...piece, births: world.newData({ sizeBytes: 2 }).grant.births, crcs: { CRC32C: '' } };
  expect(await append('', { piece: other }), 'one that would end it is asked for again').toEqual({
    kind: 'other-key',
  });
  expect(await current()).toMatchObject({ checksum: { ...checksum, value: sum('abcde') } });
  // Of parts: it does not combine, whatever the piece brings.
  const ofParts = { ...checksum, type: 'COMPOSITE' } as const;
  await world.put('log', { version: { checksum: ofParts }, data: world.newData({ sizeBytes: 3 }) });
  expect(await append('', { piece: other })).not.toHaveProperty('checksum');
});

describe('a paged manifest', () => {
  let parts: BlobId[];
  beforeEach(async () => {
    await world.createBucket();
    parts = [];
    const uploadId = await beginUpload(world, key);
    for (let partNumber = 1; partNumber <= 70; partNumber++) {
      const data = world.newData({ sizeBytes: 5 * MiB });
      parts.push(...blobsOf(data));
      await putPart(world, { key, uploadId }, { partNumber, data });
    }
    const listed = parts.map((_id, at) => ({ partNumber: at + 1, etag: etagOf(`part ${at + 1}`) }));
    await world.execute('complete-upload', { bucketId: BUCKET, key, uploadId, parts: listed });
  });

  test('is unchanged, with a tail; all of it is erased with the last link', async () => {
    const before = (await current()).manifest;
    const [one, two] = [world.newData(), world.newData()];
    await append('1', { data: one });
    await append('2', { data: two });
    const { manifest, sizeBytes } = await current();
    if (manifest.kind !== 'paged' || before.kind !== 'paged') throw new Error(manifest.kind);
    expect(manifest).toMatchObject({ ...before, partCount: 0 });
    expect(manifest.tail).toMatchObject({ startBytes: 350 * MiB, segments: [{ use: 0 }, { use: 1 }] });
    expect(sizeBytes).toBe(350 * MiB + 20);
    expect(linksOf(manifest)).toHaveLength(3);
    const tail = [...blobsOf(one), ...blobsOf(two)];
    await world.remove(key);
    await world.markUnlinked();
    expect(await world.stateOf(manifest.manifestId, ...tail)).toEqual(Array(3).fill('condemned'));
    await world.execute('release-manifest-page', { manifestId: manifest.manifestId, page: 0 });
    await world.markUnlinked();
    expect(await world.stateOf(...parts)).toEqual(Array(70).fill('condemned'));
  });

  test('is kept by an older version with a link of its own', async () => {
    await setVersioning('enabled');
    const { manifest } = await current();
    if (manifest.kind !== 'paged') throw new Error(manifest.kind);
    const data = world.newData();
    await append('1', { data });
    await world.remove(key, 'null');
    await world.markUnlinked();
    expect(await world.stateOf(manifest.manifestId, ...blobsOf(data))).toEqual(['live', 'live']);
  });
});
