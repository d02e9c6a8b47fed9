// Appends through the whole data path, and the compaction of their pieces.
import { createSecretKey, randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { append, appendMany } from '../../tests/support/objects/appends.ts';
import { uploadCopies } from '../../tests/support/objects/object-uploads.ts';
import { CHUNK_BYTES, codeOf, HEADERS, openObjectWorld } from '../../tests/support/objects/object-world.ts';
import { amongOthers, keptBytesOf } from '../../tests/support/run/kept-memory.ts';
import { toBase64 } from '../base/bytes/bytes.ts';
import { crcOf } from '../base/crypto/crc.ts';
import type { MetadataPort } from '../ports/metadata/port.ts';
import { LIMITS } from '../types/limits.ts';

const KiB = 1024;

/** The checksum of an object of these bytes. */
const crc = (algorithm: 'CRC32C' | 'CRC64NVME', ...parts: Buffer[]) => ({
  algorithm,
  type: 'FULL_OBJECT' as const,
  value: toBase64(crcOf(algorithm, Buffer.concat(parts))),
});

test('appends inline and chunked bodies to inline, chunked and empty objects', async () => {
  const world = await openObjectWorld();
  for (const first of [0, 100, CHUNK_BYTES + 3]) {
    const bodies = [randomBytes(first), randomBytes(50), randomBytes(2 * CHUNK_BYTES + 1), randomBytes(7)];
    await world.put('k', bodies[0] as Buffer);
    for (const body of bodies.slice(1)) await append(world, 'k', body);
    expect((await world.get('k')).equals(Buffer.concat(bodies))).toBe(true);
    expect(world.store.headersOf((await world.find('k')).version)).toEqual(HEADERS);
  }
});

test('appends to an object with pages: the tail is read in ranges and by copies, and part numbers are gone', async () => {
  const world = await openObjectWorld();
  const source = randomBytes(LIMITS.partBytesMin + 100);
  await world.put('source', source);
  const ranges = Array.from({ length: 70 }, (_, at) => ({ offsetBytes: at, sizeBytes: LIMITS.partBytesMin }));
  await uploadCopies(world, { from: 'source', to: 'k', ranges });
  const pieces = [randomBytes(100), randomBytes(CHUNK_BYTES + 1)];
  for (const piece of pieces) await append(world, 'k', piece);
  const { version } = await world.find('k');
  const { manifest } = version;
  if (manifest.kind !== 'paged') throw new Error(manifest.kind);
  const startBytes = manifest.tail?.startBytes ?? 0;
  expect(startBytes).toBe(70 * LIMITS.partBytesMin);
  const whole = Buffer.concat([source.subarray(69, 69 + LIMITS.partBytesMin), ...pieces]);
  const before = LIMITS.partBytesMin;
  const bucket = world.bucket(1);
  await world.copy('k', 'copy', { bucket });
  for (const [offset, sizeBytes] of [
    [-10, 10],
    [-10, 120],
    [0, 100],
    [50, CHUNK_BYTES],
    [100 + CHUNK_BYTES, 1],
  ] as const) {
    const range = { offsetBytes: startBytes + offset, sizeBytes };
    const expected = whole.subarray(before + offset, before + offset + sizeBytes);
    expect((await world.get('k', { range })).equals(expected), `${offset} ${sizeBytes}`).toBe(true);
    expect((await world.get('copy', { bucket, range })).equals(expected), 'of the copy').toBe(true);
  }
  const found = await world.find('copy', { bucket });
  expect(found.version).toMatchObject({ etag: version.etag, appendCount: 2, originals: version.originals });
  const part = (partNumber: number) =>
    world.store.partRange({ calls: world.calls, bucket: world.bucket(), version, partNumber });
  expect((await part(1))?.range).toEqual({ offsetBytes: 0, sizeBytes: version.sizeBytes });
  expect(await part(2)).toBeUndefined();
});

test('the checksum continues over appends, whatever checksums the pieces had', async () => {
  const world = await openObjectWorld();
  const bodies = [randomBytes(100), randomBytes(CHUNK_BYTES + 5), randomBytes(3)];
  const said = { checksum: crc('CRC64NVME', bodies[0] as Buffer) };
  await world.put('k', bodies[0] as Buffer, { said });
  await append(world, 'k', bodies[1] as Buffer);
  const written = await append(world, 'k', bodies[2] as Buffer);
  expect(written.checksum).toEqual(crc('CRC64NVME', ...bodies));
});

describe('a refused append leaves nothing', () => {
  test('for a wrong digest, an offset, a missing object, a customer’s key', async () => {
    const world = await openObjectWorld();
    const body = randomBytes(CHUNK_BYTES);
    await world.put('k', body);
    const chunks = await world.chunkCount();
    const large = randomBytes(2 * CHUNK_BYTES);
    const wrong = { contentMd5: '0'.repeat(32) };
    expect(await codeOf(append(world, 'k', large, { said: wrong }))).toBe('BadDigest');
    expect(await codeOf(append(world, 'k', large, { offsetBytes: 3 }))).toBe('InvalidWriteOffset');
    expect(await codeOf(append(world, 'k', large, { conditions: { ifMatch: ['x'] } }))).toBe(
      'PreconditionFailed',
    );
    expect(await codeOf(append(world, 'missing', large))).toBe('NoSuchKey');
    await world.put('secret', randomBytes(5), { customerKey: createSecretKey(randomBytes(32)) });
    expect(await codeOf(append(world, 'secret', large))).toBe('EncryptionNotAllowed');
    expect(await world.chunkCount()).toBe(chunks);
    expect((await world.get('k')).equals(body)).toBe(true);
  });

  test('and is refused before its body is requested', async () => {
    const world = await openObjectWorld();
    await world.put('k', randomBytes(5));
    async function* never(): AsyncGenerator<Buffer> {
      yield await Promise.reject(new Error('the body was read'));
    }
    const said = { awaitsContinue: true, stream: never() };
    expect(await codeOf(append(world, 'k', randomBytes(9), { said, offsetBytes: 1 }))).toBe(
      'InvalidWriteOffset',
    );
  });
});

test('if the object is replaced during the body, the piece is appended to the new one, and its data is not written again', async () => {
  const world = await openObjectWorld();
  await world.put('k', randomBytes(10));
  const [later, piece] = [randomBytes(20), randomBytes(2 * CHUNK_BYTES)];
  async function* stream(): AsyncGenerator<Buffer> {
    await world.put('k', later);
    yield Buffer.from(piece);
  }
  await append(world, 'k', piece, { said: { stream: stream() } });
  expect((await world.get('k')).equals(Buffer.concat([later, piece]))).toBe(true);
  expect(await world.chunkCount()).toBe(2);
});

describe('the result of the last append is remembered', () => {
  async function openCounting() {
    const lookUps: string[] = [];
    const intercept = (metadata: MetadataPort): MetadataPort => ({
      shardCount: metadata.shardCount,
      execute: (envelope, name, command) => metadata.execute(envelope, name, command),
      query: (envelope, name, query) => {
        lookUps.push(name);
        return metadata.query(envelope, name, query);
      },
    });
    return { world: await openObjectWorld({ intercept }), lookUps };
  }
  test('without what its version came together with', async () => {
    const othersBytes = 32 * KiB * KiB;
    const intercept = (metadata: MetadataPort): MetadataPort => ({
      shardCount: metadata.shardCount,
      execute: (envelope, name, command) => metadata.execute(envelope, name, command),
      async query(envelope, name, query) {
        return amongOthers(await metadata.query(envelope, name, query), othersBytes);
      },
    });
    const world = await openObjectWorld({ intercept });
    await world.put('k', randomBytes(10));
    expect(await keptBytesOf(() => append(world, 'k', randomBytes(10)))).toBeLessThan(othersBytes / 2);
  });

  test('and not looked up again', async () => {
    const { world, lookUps } = await openCounting();
    const first = randomBytes(10);
    await world.put('k', first, { said: { checksum: crc('CRC64NVME', first) } });
    const pieces = [first, randomBytes(20), randomBytes(2 * CHUNK_BYTES), randomBytes(30)];
    lookUps.splice(0);
    const written = [];
    for (const piece of pieces.slice(1)) written.push(await append(world, 'k', piece));
    expect(lookUps.filter((name) => name === 'get-version')).toHaveLength(1);
    expect(written.at(-1)?.checksum).toEqual(crc('CRC64NVME', ...pieces));
    expect((await world.get('k')).equals(Buffer.concat(pieces))).toBe(true);
  });

  test('also when another object with another checksum replaced it: the piece gets that checksum, inline or in chunks', async () => {
    const { world } = await openCounting();
    for (const pieceBytes of [50, 2 * CHUNK_BYTES + 1]) {
      const [first, later, piece] = [randomBytes(10), randomBytes(20), randomBytes(pieceBytes)];
      await world.put('k', first, { said: { checksum: crc('CRC64NVME', first) } });
      await append(world, 'k', randomBytes(5));
      await world.put('k', later, { said: { checksum: crc('CRC32C', later) } });
      const written = await append(world, 'k', piece);
      expect(written.checksum).toEqual(crc('CRC32C', later, piece));
      expect((await world.get('k')).equals(Buffer.concat([later, piece]))).toBe(true);
    }
  });

  test('also when the object was copied onto itself with another checksum: that one continues', async () => {
    const { world } = await openCounting();
    const pieces = [randomBytes(10), randomBytes(5), randomBytes(2 * CHUNK_BYTES + 1)];
    await world.put('k', pieces[0] as Buffer, { said: { checksum: crc('CRC64NVME', pieces[0] as Buffer) } });
    await append(world, 'k', pieces[1] as Buffer);
    await world.copy('k', 'k', { checksumAlgorithm: 'CRC32C' });
    const written = await append(world, 'k', pieces[2] as Buffer);
    expect(written.checksum).toEqual(crc('CRC32C', ...pieces));
  });

  test('but an object under a customer’s key, or none, in its place refuses the append and leaves nothing', async () => {
    const { world } = await openCounting();
    const customerKey = createSecretKey(randomBytes(32));
    for (const [code, change] of [
      ['EncryptionNotAllowed', () => world.put('k', randomBytes(5), { customerKey })],
      ['NoSuchKey', () => world.remove('k')],
    ] as const) {
      await world.put('k', randomBytes(5));
      await append(world, 'k', randomBytes(5));
      await change();
      const chunks = await world.chunkCount();
      expect(await codeOf(append(world, 'k', randomBytes(2 * CHUNK_BYTES)))).toBe(code);
      expect(await world.chunkCount()).toBe(chunks);
    }
  });

  test('several appends at once, with failures in between', async () => {
    const { world } = await openCounting();
    await world.put('k', Buffer.alloc(0));
    const pieces = Array.from({ length: 30 }, (_, at) => Buffer.alloc(10, at + 1));
    await append(world, 'k', Buffer.alloc(10, 99));
    await Promise.all(
      pieces.map(async (piece, at) => {
        const wrong = at % 3 === 0 && { said: { contentMd5: '0'.repeat(32) } };
        const done = append(world, 'k', piece, { ...wrong });
        if (wrong) expect(await codeOf(done)).toBe('BadDigest');
        else await done;
      }),
    );
    const got = await world.get('k');
    const values = Array.from({ length: got.length / 10 }, (_, at) => got[10 * at]);
    const kept = pieces.flatMap((piece, at) => (at % 3 === 0 ? [] : [piece[0]]));
    expect(values.toSorted()).toEqual([99, ...kept].toSorted());
  });
});

test('of many appends at once each is stored once, whole', async () => {
  const world = await openObjectWorld();
  await world.put('k', Buffer.alloc(0));
  const pieces = Array.from({ length: 50 }, (_, at) => Buffer.alloc(200 + at, at + 1));
  await Promise.all(pieces.map((piece) => append(world, 'k', piece)));
  await world.store.compactionIdle();
  const got = await world.get('k');
  const found: number[] = [];
  for (let at = 0; at < got.length; ) {
    const value = got[at] ?? 0;
    expect(got.subarray(at, at + 199 + value).every((byte) => byte === value)).toBe(true);
    found.push(value);
    at += 199 + value;
  }
  expect(found.sort((a, b) => a - b)).toEqual(pieces.map((_piece, at) => at + 1));
});

test('small bodies are read together', async () => {
  let asked = 0;
  const intercept = (metadata: MetadataPort): MetadataPort => ({
    shardCount: metadata.shardCount,
    execute: (envelope, name, command) => metadata.execute(envelope, name, command),
    query: (envelope, name, query) => {
      if (name === 'get-bodies') asked++;
      return metadata.query(envelope, name, query);
    },
  });
  const world = await openObjectWorld({ intercept });
  await world.put('k', randomBytes(10));
  await world.store.stopCompaction();
  const expected = await appendMany(world, 'k', 100, 2 * KiB);
  asked = 0;
  expect((await world.get('k')).equals(expected)).toBe(true);
  expect(asked).toBe(1);
  const range = { offsetBytes: 5000, sizeBytes: 10_000 };
  expect((await world.get('k', { range })).equals(expected.subarray(5000, 15_000))).toBe(true);
});

test('a copy of an object that has grown since is looked up once more, and begins a blob of its own', async () => {
  const asked: string[] = [];
  const intercept = (metadata: MetadataPort): MetadataPort => ({
    shardCount: metadata.shardCount,
    execute(envelope, name, command) {
      if (name === 'append-version') asked.push(name);
      return metadata.execute(envelope, name, command);
    },
    query(envelope, name, query) {
      if (name === 'get-version') asked.push(name);
      return metadata.query(envelope, name, query);
    },
  });
  const world = await openObjectWorld({ intercept });
  await world.put('k', randomBytes(10));
  const copied = await appendMany(world, 'k', 3, 100);
  await world.copy('k', 'copy');
  const grown = await appendMany(world, 'k', 1, 100);
  asked.length = 0;
  const piece = randomBytes(50);
  await append(world, 'copy', piece);
  expect(asked).toEqual(['get-version', 'append-version', 'get-version', 'append-version']);
  expect(await world.get('copy')).toEqual(Buffer.concat([copied, piece]));
  expect(await world.get('k')).toEqual(grown);
});
