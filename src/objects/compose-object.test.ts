// Compositions through the whole data path: their bytes, what they keep, and which keys they refuse.
import { createHash, createSecretKey, randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { OWNER } from '../../tests/support/metadata/metadata-shards.ts';
import { uploadCopies } from '../../tests/support/objects/object-uploads.ts';
import {
  CHUNK_BYTES,
  codeOf,
  HEADERS,
  type ObjectWorld,
  openObjectWorld,
} from '../../tests/support/objects/object-world.ts';
import { fromHex, toBase64 } from '../base/bytes/bytes.ts';
import { crcOf } from '../base/crypto/crc.ts';
import { LIMITS } from '../types/limits.ts';
import type { ObjectKey } from '../types/names.ts';
import { type ComposeObject, MemoryTooSmall } from './object-store.ts';

const md5 = (...bodies: Uint8Array[]) => createHash('md5').update(Buffer.concat(bodies)).digest('hex');
const composite = (...bodies: Buffer[]) =>
  `${md5(...bodies.map((body) => fromHex(md5(body))))}-${bodies.length}`;

async function compose(
  world: ObjectWorld,
  key: string,
  names: readonly string[],
  more: Partial<ComposeObject> = {},
) {
  const bucket = world.bucket();
  const components = await Promise.all(
    names.map(async (name) => ({ bucket, key: name as ObjectKey, found: await world.find(name) })),
  );
  return world.store.composeObject({
    calls: world.calls,
    components,
    bucket,
    key: key as ObjectKey,
    owner: OWNER,
    ...more,
  });
}

async function putAll(world: ObjectWorld, sizes: readonly number[]): Promise<Buffer[]> {
  const bodies = sizes.map((size) => randomBytes(size));
  for (const [at, body] of bodies.entries()) await world.put(`${at}`, body);
  return bodies;
}

test('inline, chunked and empty objects become one, whose ETag is made of their MD5s', async () => {
  const world = await openObjectWorld();
  const bodies = await putAll(world, [100, 2 * CHUNK_BYTES + 7, 0, 3000]);
  const chunksBefore = await world.chunkCount();
  const written = await compose(world, 'whole', ['0', '1', '2', '3']);
  expect(written).toMatchObject({ etag: composite(...bodies), sizeBytes: Buffer.concat(bodies).length });
  expect((await world.get('whole')).equals(Buffer.concat(bodies))).toBe(true);
  const range = { offsetBytes: 50, sizeBytes: 2 * CHUNK_BYTES + 100 };
  const expected = Buffer.concat(bodies).subarray(50, 50 + range.sizeBytes);
  expect((await world.get('whole', { range })).equals(expected)).toBe(true);
  expect(await world.chunkCount(), 'nothing is copied').toBe(chunksBefore);
});

test('a composition in a composition counts by its originals; an object may occur twice', async () => {
  const world = await openObjectWorld();
  const [a, b] = (await putAll(world, [10, 20])) as [Buffer, Buffer];
  await compose(world, 'pair', ['0', '1']);
  const written = await compose(world, 'whole', ['pair', '0', 'pair']);
  expect(written.etag).toBe(composite(a, b, a, a, b));
  expect((await world.get('whole')).equals(Buffer.concat([a, b, a, a, b]))).toBe(true);
  await compose(world, '0', ['0', '1']);
  expect((await world.get('0')).equals(Buffer.concat([a, b])), 'the target among its components').toBe(true);
});

test('headers are the first component’s, user metadata is the request’s if it has any', async () => {
  const world = await openObjectWorld();
  await putAll(world, [1, 1]);
  await world.put('0', Buffer.from('x'), { headers: { contentType: 'image/png', userMetadata: { a: 'b' } } });
  await compose(world, 'kept', ['0', '1']);
  const headers = async (key: string) => world.store.headersOf((await world.find(key)).version);
  expect(await headers('kept')).toEqual({ contentType: 'image/png', userMetadata: { a: 'b' } });
  await compose(world, 'other', ['1', '0'], { userMetadata: { c: 'd' } });
  expect(await headers('other')).toEqual({ ...HEADERS, userMetadata: { c: 'd' } });
});

test('compositions of a multipart object with pages, and of copies from another shard, read the same bytes', async () => {
  const world = await openObjectWorld();
  const source = randomBytes(LIMITS.partBytesMin + 100);
  await world.put('source', source);
  const ranges = Array.from({ length: 70 }, (_, at) => ({ offsetBytes: at, sizeBytes: LIMITS.partBytesMin }));
  await uploadCopies(world, { from: 'source', to: 'multi', ranges });
  const elsewhere = world.bucket(1);
  await world.put('there', randomBytes(5000), { bucket: elsewhere });
  await world.copy('there', 'here', { fromBucket: elsewhere });
  await world.put('tiny', Buffer.from('tiny'));
  const written = await compose(world, 'whole', ['tiny', 'multi', 'here', 'multi']);
  expect(written.etag.endsWith('-4'), 'a multipart object counts as one').toBe(true);
  const { version } = await world.find('whole');
  expect(version.manifest.kind).toBe('paged');
  const at = 4 + 70 * LIMITS.partBytesMin;
  expect(version.sizeBytes).toBe(2 * at - 4 + 5000);
  const got = await world.get('whole', { range: { offsetBytes: at - 10, sizeBytes: 5020 } });
  const end = source.subarray(69, 69 + LIMITS.partBytesMin);
  const there = await world.get('there', { bucket: elsewhere });
  const expected = Buffer.concat([end.subarray(-10), there, source.subarray(0, 10)]);
  expect(got.equals(expected)).toBe(true);
  expect(await partOf(world, 'whole', 1)).toEqual({ offsetBytes: 0, sizeBytes: version.sizeBytes });
  expect(await partOf(world, 'whole', 2)).toBeUndefined();
});

async function partOf(world: ObjectWorld, key: string, partNumber: number) {
  const { version } = await world.find(key);
  return (await world.store.partRange({ calls: world.calls, bucket: world.bucket(), version, partNumber }))
    ?.range;
}

describe('limits', () => {
  test(`compose rule 3 (service 8): ${LIMITS.composeOriginalsMax} originals, not one more, however they come`, async () => {
    const world = await openObjectWorld();
    await putAll(world, [3]);
    const many = Array.from({ length: 31 }, () => '0');
    expect((await compose(world, 'most', [...many, '0'])).etag).toMatch(/-32$/);
    expect(await codeOf(compose(world, 'more', ['most', '0']))).toBe('InvalidRequest');
    expect(await codeOf(compose(world, 'more', ['0', ...many, '0']))).toBe('InvalidRequest');
    expect(await codeOf(world.get('more'))).toMatch('no-such-key');
  });

  test('service 8: 5 TiB and not a byte more', async () => {
    const world = await openObjectWorld();
    await putAll(world, [1]);
    // A row without stored bytes, under the key of an object that the store has written.
    const { kek, sealedHeaders } = (await world.find('0')).version;
    if (kek === undefined || sealedHeaders === undefined) throw new Error('an object has a key');
    const data = world.metadata.newData({ sizeBytes: LIMITS.objectBytesMax - 1 });
    await world.metadata.put('large', {
      data,
      bucketId: world.bucket().believed.bucketId,
      version: { kek, sealedHeaders },
    });
    const { sizeBytes } = await compose(world, 'whole', ['large', '0']);
    expect(sizeBytes).toBe(LIMITS.objectBytesMax);
    expect((await world.find('whole')).version.sizeBytes).toBe(LIMITS.objectBytesMax);
    expect(await codeOf(compose(world, 'more', ['large', '0', '0']))).toBe('EntityTooLarge');
    await expect(world.find('more')).rejects.toThrow('no-such-key');
  });

  test(`${LIMITS.composeSegmentsMax} pieces, not one more (docs/extensions.md, bounds)`, async () => {
    const world = await openObjectWorld();
    const [body] = (await putAll(world, [10])) as [Buffer];
    const found = await world.find('0');
    const { manifest } = found.version;
    const [segment] = manifest.kind === 'direct' ? manifest.segments : [];
    if (manifest.kind !== 'direct' || segment === undefined) throw new Error(manifest.kind);
    const count = LIMITS.composeSegmentsMax / 2;
    const segments = Array.from({ length: count }, () => segment);
    const version = { ...found.version, sizeBytes: count * 10, manifest: { ...manifest, segments } };
    const component = { bucket: world.bucket(), key: '0' as ObjectKey, found };
    const half = { ...component, found: { ...found, version } };
    await compose(world, 'most', [], { components: [half, half] });
    const { manifest: laid, sizeBytes } = (await world.find('most')).version;
    expect(laid).toMatchObject({ kind: 'paged', segmentCount: LIMITS.composeSegmentsMax });
    expect(sizeBytes).toBe(LIMITS.composeSegmentsMax * 10);
    const range = { offsetBytes: sizeBytes - 15, sizeBytes: 15 };
    expect((await world.get('most', { range })).equals(Buffer.concat([body.subarray(5), body]))).toBe(true);
    const more = { components: [half, component, half] };
    expect(await codeOf(compose(world, 'most', [], more))).toBe('InvalidRequest');
    expect((await world.find('most')).version.sizeBytes, 'as it was').toBe(sizeBytes);
  });
});

test('many pieces count in the memory for bodies from before they are read until all is done; few do not', async () => {
  const world = await openObjectWorld();
  await putAll(world, [10, 20]);
  const found = await world.find('0');
  const { manifest } = found.version;
  const [segment] = manifest.kind === 'direct' ? manifest.segments : [];
  if (manifest.kind !== 'direct' || segment === undefined) throw new Error(manifest.kind);
  const segments = Array.from({ length: 1000 }, () => segment);
  const version = { ...found.version, sizeBytes: 10_000, manifest: { ...manifest, segments } };
  const component = { bucket: world.bucket(), key: '0' as ObjectKey, found: { ...found, version } };
  await compose(world, 'paged', [], { components: [component] });
  expect((await world.find('paged')).version.manifest).toMatchObject({ kind: 'paged', segmentCount: 1000 });
  const seen: string[] = [];
  const calls = {
    ...world.calls,
    query: (...query: Parameters<typeof world.calls.query>) => {
      seen.push(query[1]);
      return world.calls.query(...query);
    },
  } as typeof world.calls;
  const many = ['paged', 'paged', '1'];
  const error = await compose(world, 'many', many, { countedBytes: 2000 * 1024, calls }).catch((e) => e);
  expect(error).toBeInstanceOf(MemoryTooSmall);
  expect(error.neededBytes).toBeGreaterThanOrEqual(2001 * 1024);
  expect(seen).not.toContain('get-manifest-pages');
  await compose(world, 'many', many, { countedBytes: error.neededBytes, calls });
  expect(seen).toContain('get-manifest-pages');
  await compose(world, 'few', ['0', '1'], { countedBytes: 2 * 1024 });
});

test('CRCs of whole objects are combined; other checksums are left out', async () => {
  const world = await openObjectWorld();
  const bodies = [randomBytes(1000), randomBytes(CHUNK_BYTES + 1)];
  const sum = (body: Buffer, algorithm: 'CRC32' | 'CRC64NVME') => ({
    said: { checksum: { algorithm, value: toBase64(crcOf(algorithm, body)) } },
  });
  for (const [at, body] of bodies.entries()) {
    await world.put(`64 ${at}`, body, sum(body, 'CRC64NVME'));
    await world.put(`32 ${at}`, body, sum(body, 'CRC32'));
  }
  const value = toBase64(crcOf('CRC64NVME', Buffer.concat(bodies)));
  const checksum = { algorithm: 'CRC64NVME', type: 'FULL_OBJECT', value };
  expect(await compose(world, 'whole', ['64 0', '64 1'])).toMatchObject({ checksum });
  expect((await world.find('whole')).version.checksum).toEqual(checksum);
  expect(await compose(world, 'mixed', ['64 0', '32 1'])).not.toHaveProperty('checksum');
});

test('compose rule 5: an object under a customer’s key is no component', async () => {
  const world = await openObjectWorld();
  await putAll(world, [10]);
  const customerKey = createSecretKey(randomBytes(32));
  await world.put('secret', randomBytes(10), { customerKey });
  expect(await codeOf(compose(world, 'whole', ['0', 'secret']))).toBe('EncryptionNotAllowed');
  expect(await codeOf(compose(world, 'whole', ['secret', '0']))).toBe('EncryptionNotAllowed');
});

test('components that were replaced meanwhile are read again; one that was deleted is NoSuchKey', async () => {
  const world = await openObjectWorld();
  await putAll(world, [10, 20]);
  const stale = await Promise.all(
    ['0', '1'].map(async (key) => ({
      bucket: world.bucket(),
      key: key as ObjectKey,
      found: await world.find(key),
    })),
  );
  const later = randomBytes(30);
  await world.put('1', later);
  await world.metadata.markUnlinked();
  await compose(world, 'whole', [], { components: stale });
  expect((await world.get('whole')).subarray(10).equals(later)).toBe(true);
  for (const key of ['0', '1']) await world.remove(key);
  await world.metadata.markUnlinked();
  expect(await codeOf(compose(world, 'other', [], { components: stale }))).toBe('NoSuchKey');
});
