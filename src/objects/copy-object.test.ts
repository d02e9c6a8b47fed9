import { createHash, createSecretKey, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { beginUpload, completeUpload, uploadCopies } from '../../tests/support/objects/object-uploads.ts';
import {
  CHUNK_BYTES,
  codeOf,
  HEADERS,
  INLINE_BYTES_MAX,
  openObjectWorld,
} from '../../tests/support/objects/object-world.ts';
import { nextTurn } from '../base/async/next-turn.ts';
import { toBase64 } from '../base/bytes/bytes.ts';
import { crcOf } from '../base/crypto/crc.ts';
import type { MetadataPort } from '../ports/metadata/port.ts';
import { LIMITS } from '../types/limits.ts';
import type { ObjectKey } from '../types/names.ts';
import { linksOf } from '../types/version.ts';

const md5 = (body: Buffer) => createHash('md5').update(body).digest('hex');
const OTHER_HEADERS = { contentType: 'image/png', userMetadata: { other: 'value' } };

test.each([
  ['empty', 0],
  ['inline', 1000],
  ['chunked', 3 * CHUNK_BYTES + 5],
])('a copy of an %s object is a link, within a shard and across shards', async (_name, sizeBytes) => {
  const world = await openObjectWorld();
  const body = randomBytes(sizeBytes);
  await world.put('k', body);
  const chunksBefore = await world.chunkCount();
  for (const shard of [0, 1]) {
    const bucket = world.bucket(shard);
    const copy = await world.copy('k', 'copy', { bucket });
    expect(copy).toMatchObject({ etag: md5(body), sizeBytes });
    expect((await world.get('copy', { bucket })).equals(body)).toBe(true);
    expect(world.store.headersOf((await world.find('copy', { bucket })).version)).toEqual(HEADERS);
    const replaced = await world.copy('k', 'replaced', { bucket, headers: OTHER_HEADERS });
    expect(replaced.etag).toBe(md5(body));
    expect((await world.get('replaced', { bucket })).equals(body)).toBe(true);
    expect(world.store.headersOf((await world.find('replaced', { bucket })).version)).toEqual(OTHER_HEADERS);
  }
  expect(await world.chunkCount()).toBe(chunksBefore);
  const third = world.bucket(2);
  await world.copy('copy', 'copy', { fromBucket: world.bucket(1), bucket: third });
  expect((await world.get('copy', { bucket: third })).equals(body)).toBe(true);
});

test('a copy outlives its source, and the data is erased when the last of them is deleted', async () => {
  const world = await openObjectWorld();
  const { metadata } = world;
  const body = randomBytes(2 * CHUNK_BYTES);
  await world.put('k', body);
  const bucket = world.bucket(1);
  await world.copy('k', 'here');
  await world.copy('k', 'there', { bucket });
  const [link] = linksOf((await world.find('k')).version.manifest);
  if (link === undefined) throw new Error('one blob');
  const remove = async (key: string, shard: number) => {
    await world.remove(key, { bucket: world.bucket(shard) });
    metadata.clock.advance(60_000);
    await metadata.markUnlinked(0);
    await metadata.markUnlinked(1);
  };
  await remove('k', 0);
  await remove('here', 0);
  expect(await metadata.stateOf(link.blobId)).toEqual(['live']);
  expect((await world.get('there', { bucket })).equals(body)).toBe(true);
});

test('an object of many parts is copied by one link', async () => {
  const world = await openObjectWorld();
  await world.put('source', randomBytes(LIMITS.partBytesMin + 100));
  const ranges = Array.from({ length: 70 }, (_, at) => ({ offsetBytes: at, sizeBytes: LIMITS.partBytesMin }));
  await uploadCopies(world, { from: 'source', to: 'k', ranges });
  const { version } = await world.find('k');
  expect(version.manifest.kind).toBe('paged');
  const bucket = world.bucket(1);
  await world.copy('k', 'copy', { bucket, headers: OTHER_HEADERS });
  const range = { offsetBytes: 3 * LIMITS.partBytesMin - 100, sizeBytes: 200 };
  const copied = await world.find('copy', { bucket });
  expect(copied.version).toMatchObject({ etag: version.etag, sizeBytes: version.sizeBytes });
  expect(linksOf(copied.version.manifest)).toHaveLength(1);
  expect((await world.get('copy', { bucket, range })).equals(await world.get('k', { range }))).toBe(true);
});

test('an object of many parts is copied from one customer’s key to another and back, and keeps its pages', async () => {
  const world = await openObjectWorld();
  await world.put('source', randomBytes(LIMITS.partBytesMin + 100));
  const ranges = Array.from({ length: 70 }, (_, at) => ({ offsetBytes: at, sizeBytes: LIMITS.partBytesMin }));
  await uploadCopies(world, { from: 'source', to: 'k', ranges });
  const range = { offsetBytes: 3 * LIMITS.partBytesMin - 100, sizeBytes: 200 };
  const expected = await world.get('k', { range });
  const [first, second] = [1, 2].map(() => createSecretKey(randomBytes(32)));
  const chunksBefore = await world.chunkCount();
  let from = 'k';
  for (const [index, [old, next]] of [
    [undefined, first],
    [first, second],
    [second, undefined],
  ].entries()) {
    const bucket = world.bucket(index);
    const source = {
      bucket: world.bucket(Math.max(0, index - 1)),
      key: from as ObjectKey,
      customerKey: old,
      found: await world.find(from, { bucket: world.bucket(Math.max(0, index - 1)) }),
    };
    from = `copy ${index}`;
    await world.copy('k', from, { bucket, source, customerKey: next, headers: OTHER_HEADERS });
    const { version } = await world.find(from, { bucket });
    expect(version.manifest.kind).toBe('paged');
    expect(world.store.headersOf(version, next)).toEqual(OTHER_HEADERS);
    const key = { ...(next && { customerKey: next }) };
    expect((await world.get(from, { bucket, range, ...key })).equals(expected)).toBe(true);
    const others = { ...(old && { customerKey: old }) };
    if (next !== undefined)
      expect(await codeOf(world.get(from, { bucket, range, ...others }))).toBe('InternalError');
  }
  expect(await world.chunkCount()).toBe(chunksBefore);
});

test('a copied part has a bounded number of segments: a larger range is refused, a smaller one copied', async () => {
  const world = await openObjectWorld();
  await world.put('source', randomBytes(LIMITS.partBytesMin));
  const piece = { offsetBytes: 0, sizeBytes: LIMITS.partBytesMin };
  const count = LIMITS.partSegmentsMax + 1;
  await uploadCopies(world, { from: 'source', to: 'k', ranges: Array(count).fill(piece) });
  const part = await beginUpload(world, 'copy');
  const source = { bucket: world.bucket(), key: 'k' as ObjectKey, found: await world.find('k') };
  const copy = (pieces: number) =>
    world.store.copyPart({
      ...part(1),
      source,
      range: { offsetBytes: 0, sizeBytes: pieces * LIMITS.partBytesMin },
    });
  expect(await codeOf(copy(count))).toBe('InvalidRequest');
  expect((await copy(count - 1)).sizeBytes).toBe((count - 1) * LIMITS.partBytesMin);
});

test('a copy onto itself with other headers keeps the data', async () => {
  const world = await openObjectWorld();
  const body = randomBytes(2 * CHUNK_BYTES);
  await world.put('k', body);
  const [before] = linksOf((await world.find('k')).version.manifest);
  await world.copy('k', 'k', { headers: OTHER_HEADERS });
  const { version } = await world.find('k');
  expect(linksOf(version.manifest)).toEqual([before]);
  expect(world.store.headersOf(version)).toEqual(OTHER_HEADERS);
  expect((await world.get('k')).equals(body)).toBe(true);
});

test('a copy keeps the checksum of its source, or gets one of another algorithm', async () => {
  const world = await openObjectWorld();
  const body = randomBytes(2 * CHUNK_BYTES + 1);
  const value = toBase64(crcOf('CRC32', body));
  await world.put('k', body, { said: { checksum: { algorithm: 'CRC32', value } } });
  const full = (algorithm: string, sum: string) => ({ algorithm, type: 'FULL_OBJECT', value: sum });
  expect((await world.copy('k', 'a')).checksum).toEqual(full('CRC32', value));
  expect((await world.copy('k', 'a', { checksumAlgorithm: 'CRC32' })).checksum).toEqual(full('CRC32', value));
  const sha256 = createHash('sha256').update(body).digest('base64');
  expect((await world.copy('k', 'b', { checksumAlgorithm: 'SHA256' })).checksum).toEqual(
    full('SHA256', sha256),
  );
  const crc64 = toBase64(crcOf('CRC64NVME', body));
  expect((await world.copy('k', 'c', { checksumAlgorithm: 'CRC64NVME' })).checksum).toEqual(
    full('CRC64NVME', crc64),
  );
});

test('copies of one account digest one piece in each turn of the loop', async () => {
  const world = await openObjectWorld();
  const pieces = 4;
  await world.put('k', randomBytes(pieces * CHUNK_BYTES));
  let turnCount = 0;
  const copies = Array.from({ length: 16 }, (_, at) =>
    world.copy('k', `c${at}`, { checksumAlgorithm: 'SHA256' }),
  );
  const done = Promise.all(copies).then(() => true);
  while (!(await Promise.race([done, nextTurn()]))) turnCount++;
  expect(turnCount).toBeGreaterThanOrEqual(copies.length * pieces);
});

test('copies that wait for memory to digest take no waiting places: their requests are counted', async () => {
  const bodyBufferBytes = 16 * (2 * CHUNK_BYTES + LIMITS.sealBlockBytes);
  const world = await openObjectWorld({ bodyBufferBytes });
  await world.put('k', randomBytes(INLINE_BYTES_MAX + 1));
  const ended = Promise.withResolvers<void>();
  const held = Array.from({ length: 8 }, (_, at) => {
    const tenant = { account: `a${at}`, address: `192.0.2.${at}` };
    return world.store.withMemory({ sizeBytes: bodyBufferBytes / 8, tenant }, () => ended.promise);
  });
  const copies = Array.from({ length: LIMITS.bodiesWaitingMax + 1 }, (_, at) =>
    codeOf(world.copy('k', `c${at}`, { checksumAlgorithm: 'SHA256' })),
  );
  for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
  ended.resolve();
  await Promise.all(held);
  expect(new Set(await Promise.all(copies))).toEqual(new Set(['no error']));
});

/** Runs `before` once, ahead of the first command of this name that commits a copy. */
function ahead(name: string, before: () => Promise<void>) {
  let isDone = false;
  const makesCopy = (command: object) => 'blobIds' in command || ('key' in command && command.key === 'copy');
  return (metadata: MetadataPort): MetadataPort => ({
    shardCount: metadata.shardCount,
    query: (...args) => metadata.query(...args),
    async execute(envelope, commandName, command) {
      if (commandName === name && !isDone && makesCopy(command)) {
        isDone = true;
        await before();
      }
      return metadata.execute(envelope, commandName, command);
    },
  });
}

test.each([
  ['claimed', 1, 'claim-links'],
  ['linked', 0, 'commit-version'],
])('data that goes before it is %s: the source is read again', async (_name, shard, command) => {
  const second = randomBytes(CHUNK_BYTES);
  const world = await openObjectWorld({
    intercept: ahead(command, async () => {
      await world.put('k', second);
      world.metadata.clock.advance(60_000);
      await world.metadata.markUnlinked(0);
    }),
  });
  const bucket = world.bucket(shard);
  await world.put('k', randomBytes(10_000));
  const copied = await world.copy('k', 'copy', { bucket });
  expect(copied.etag).toBe(md5(second));
  expect((await world.get('copy', { bucket })).equals(second)).toBe(true);
});

test('a source that is deleted meanwhile is NoSuchKey, and nothing is copied', async () => {
  const world = await openObjectWorld({
    intercept: ahead('claim-links', async () => {
      await world.remove('k');
      world.metadata.clock.advance(60_000);
      await world.metadata.markUnlinked(0);
    }),
  });
  await world.put('k', randomBytes(10_000));
  const bucket = world.bucket(1);
  expect(await codeOf(world.copy('k', 'copy', { bucket }))).toBe('NoSuchKey');
  await expect(world.find('copy', { bucket })).rejects.toThrow('no-such-key');
});

test('parts that are ranges: links, keys, ETags and checksums', async () => {
  const world = await openObjectWorld();
  const body = randomBytes(12 * CHUNK_BYTES + 345);
  await world.put('k', body);
  const chunksBefore = await world.chunkCount();
  for (const algorithm of ['CRC32', 'CRC64NVME', 'SHA1'] as const) {
    const bucket = world.bucket(1);
    const type = algorithm === 'SHA1' ? 'COMPOSITE' : 'FULL_OBJECT';
    const part = await beginUpload(world, `to-${algorithm}`, { bucket, checksum: { algorithm, type } });
    const source = { bucket: world.bucket(), key: 'k' as ObjectKey, found: await world.find('k') };
    const range = { offsetBytes: 1000, sizeBytes: LIMITS.partBytesMin + 17 };
    const first = await world.store.copyPart({ ...part(1), source, range });
    const again = await world.store.copyPart({ ...part(1), source, range });
    const whole = await world.store.copyPart({ ...part(2), source });
    const bytes = body.subarray(range.offsetBytes, range.offsetBytes + range.sizeBytes);
    const sumOf = (some: Buffer) =>
      algorithm === 'SHA1'
        ? createHash('sha1').update(some).digest('base64')
        : toBase64(crcOf(algorithm, some));
    expect(first).toMatchObject({ sizeBytes: bytes.length, checksum: { algorithm, value: sumOf(bytes) } });
    expect(first.etag).toMatch(/^[0-9a-f]{32}$/);
    expect(first.etag).toBe(again.etag);
    expect(whole).toMatchObject({ etag: md5(body), checksum: { algorithm, value: sumOf(body) } });
    const outcome = await completeUpload(world, part(1), [first, whole]);
    expect(outcome).toMatchObject({ kind: 'committed' });
    const joined = Buffer.concat([bytes, body]);
    expect((await world.get(`to-${algorithm}`, { bucket })).equals(joined)).toBe(true);
    if (outcome.kind === 'committed' && type === 'FULL_OBJECT')
      expect(outcome.checksum?.value).toBe(sumOf(joined));
  }
  expect(await world.chunkCount()).toBe(chunksBefore);
});

test('the CRC of a range reads its edge chunks at most', async () => {
  const reads: number[] = [];
  const world = await openObjectWorld({
    interceptChunks: (chunks) => ({
      put: (id, bytes) => chunks.put(id, bytes),
      get(id) {
        reads.push(id.index);
        return chunks.get(id);
      },
      have: (ids) => chunks.have(ids),
      drop: (ids, fence) => chunks.drop(ids, fence),
      list: (options) => chunks.list(options),
      usage: () => chunks.usage(),
      recount: () => chunks.recount(),
    }),
  });
  await world.put('k', randomBytes(20 * CHUNK_BYTES));
  const part = await beginUpload(world, 'to', { checksum: { algorithm: 'CRC32', type: 'FULL_OBJECT' } });
  const source = { bucket: world.bucket(), key: 'k' as ObjectKey, found: await world.find('k') };
  const range = { offsetBytes: 2 * CHUNK_BYTES + 10, sizeBytes: 12 * CHUNK_BYTES };
  await world.store.copyPart({ ...part(1), source, range });
  expect(reads).toEqual([2, 14]);
  await world.store.copyPart({ ...part(2), source });
  expect(reads).toHaveLength(2);
});

test('a range beyond the source is refused', async () => {
  const world = await openObjectWorld();
  await world.put('k', randomBytes(100));
  const part = await beginUpload(world, 'to');
  const source = { bucket: world.bucket(), key: 'k' as ObjectKey, found: await world.find('k') };
  const beyond = world.store.copyPart({ ...part(1), source, range: { offsetBytes: 50, sizeBytes: 51 } });
  expect(await codeOf(beyond)).toBe('InvalidRange');
});
