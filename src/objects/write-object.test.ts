import { createHash, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { settleAll } from '../../tests/support/disks/replicated-world.ts';
import { OWNER } from '../../tests/support/metadata/metadata-shards.ts';
import { beginUpload } from '../../tests/support/objects/object-uploads.ts';
import {
  CHUNK_BYTES,
  codeOf,
  HEADERS,
  INLINE_BYTES_MAX,
  openObjectWorld,
  sourceOf,
} from '../../tests/support/objects/object-world.ts';
import { toBase64 } from '../base/bytes/bytes.ts';
import { crcOf } from '../base/crypto/crc.ts';
import type { MetadataPort, Reply } from '../ports/metadata/port.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import { unpackOriginals } from '../types/originals.ts';
import type { WriteConditions } from '../types/preconditions.ts';

const BLOCK_BYTES = LIMITS.sealBlockBytes;
const md5 = (body: Buffer) => createHash('md5').update(body).digest('hex');

test.each([
  0,
  1,
  INLINE_BYTES_MAX - 1,
  INLINE_BYTES_MAX,
  INLINE_BYTES_MAX + 1,
  BLOCK_BYTES - 1,
  BLOCK_BYTES,
  BLOCK_BYTES + 1,
  CHUNK_BYTES - 1,
  CHUNK_BYTES,
  CHUNK_BYTES + 1,
  3 * CHUNK_BYTES,
  6 * CHUNK_BYTES + 12_345,
])('a body of %i bytes is stored as it came', async (sizeBytes) => {
  const world = await openObjectWorld();
  const body = randomBytes(sizeBytes);
  const written = await world.put('k', body);
  expect(written).toMatchObject({ etag: md5(body), sizeBytes, versioning: 'unversioned' });
  const { version } = await world.find('k');
  expect(version).toMatchObject({ etag: md5(body), sizeBytes });
  expect(unpackOriginals(version.originals)).toEqual([{ sizeBytes, md5: md5(body) }]);
  expect((await world.get('k')).equals(body)).toBe(true);
  expect(world.store.headersOf(version)).toEqual(HEADERS);
  expect(await world.chunkCount()).toBe(
    sizeBytes > INLINE_BYTES_MAX ? Math.ceil(sizeBytes / CHUNK_BYTES) : 0,
  );
  expect(world.heldBytes()).toBe(0);
});

test.each([1, 13, 1000, 2048, 65_537, 3 * CHUNK_BYTES])(
  'pieces of %i bytes make no difference',
  async (blockBytes) => {
    const world = await openObjectWorld();
    const body = randomBytes(blockBytes < 100 ? 20_000 : 2 * CHUNK_BYTES + 777);
    const written = await world.put('k', body, { blockBytes });
    expect(written.etag).toBe(md5(body));
    expect((await world.get('k')).equals(body)).toBe(true);
  },
);

test('nothing of a body or of user metadata is readable in what is stored', async () => {
  const world = await openObjectWorld();
  const marked = (sizeBytes: number) => Buffer.alloc(sizeBytes, 'plainly readable ');
  await world.put('inline', marked(1000));
  await world.put('chunked', marked(2 * CHUNK_BYTES + 5));
  const stored = await world.everythingStored();
  expect(stored.length).toBeGreaterThan(2 * CHUNK_BYTES);
  expect(stored.includes('inline')).toBe(true);
  for (const text of ['readable', 'plainly', 'colour']) expect(stored.includes(text)).toBe(false);
});

test('user metadata with any name is sealed and returned unchanged', async () => {
  const world = await openObjectWorld();
  const names = ['__proto__', 'constructor', 'length', '1'];
  const userMetadata: Record<string, string> = Object.create(null);
  for (const name of names) userMetadata[name] = `value of ${name}`;
  await world.put('k', Buffer.from('x'), { headers: { userMetadata } });
  const kept = world.store.headersOf((await world.find('k')).version).userMetadata;
  expect(new Map(Object.entries(kept))).toEqual(new Map(names.map((name) => [name, `value of ${name}`])));
});

test('two versions of the same bytes have nothing in common', async () => {
  const world = await openObjectWorld();
  const body = Buffer.alloc(CHUNK_BYTES, 7);
  await world.put('a', body);
  await world.put('b', body);
  const rows = await world.chunkKv.range({
    column: 'data',
    gte: Uint8Array.of(0),
    lt: Uint8Array.of(255),
    limit: 9,
  });
  expect(rows).toHaveLength(2);
  expect(Buffer.compare(rows[0]?.value ?? Buffer.alloc(0), rows[1]?.value ?? Buffer.alloc(0))).not.toBe(0);
});

test('stores the checksum that the client sent, and CRCs of its chunks', async () => {
  const world = await openObjectWorld();
  const body = randomBytes(2 * CHUNK_BYTES + 100);
  const value = toBase64(crcOf('CRC64NVME', body));
  const written = await world.put('k', body, { said: { checksum: { algorithm: 'CRC64NVME', value } } });
  const checksum = { algorithm: 'CRC64NVME', type: 'FULL_OBJECT', value };
  expect(written.checksum).toEqual(checksum);
  const { version } = await world.find('k');
  expect(version.checksum).toEqual(checksum);
  const use = version.manifest.kind === 'direct' ? version.manifest.uses[0] : undefined;
  if (use === undefined) throw new Error('one blob');
  const { blobs } = await world.metadata.query('get-blobs', { blobIds: [use.blobId] });
  const chunks = [0, 1, 2].map((index) => body.subarray(index * CHUNK_BYTES, (index + 1) * CHUNK_BYTES));
  expect(blobs[0]?.chunkCrc32).toEqual(Buffer.concat(chunks.map((chunk) => crcOf('CRC32', chunk))));
  expect(blobs[0]?.chunkCrcs).toEqual({
    algorithm: 'CRC64NVME',
    values: Buffer.concat(chunks.map((chunk) => crcOf('CRC64NVME', chunk))),
  });
});

test.each(['CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256'] as const)(
  'verifies %s in the headers or in the trailer',
  async (algorithm) => {
    const world = await openObjectWorld();
    for (const body of [Buffer.alloc(0), randomBytes(100), randomBytes(CHUNK_BYTES + 1)]) {
      const right = algorithm.startsWith('CRC')
        ? toBase64(crcOf(algorithm as 'CRC32', body))
        : createHash(algorithm.toLowerCase()).update(body).digest('base64');
      const wrong = `${right.startsWith('A') ? 'B' : 'A'}${right.slice(1)}`;
      for (const said of [
        { checksum: { algorithm, value: right } },
        { trailerAlgorithm: algorithm, trailerChecksum: () => right },
      ])
        expect((await world.put('right', body, { said })).checksum?.value).toBe(right);
      for (const said of [
        { checksum: { algorithm, value: wrong } },
        { trailerAlgorithm: algorithm, trailerChecksum: () => wrong },
        { trailerAlgorithm: algorithm },
      ])
        expect(await codeOf(world.put('wrong', body, { said }))).toBe('BadDigest');
    }
    await expect(world.find('wrong')).rejects.toThrow('no-such-key');
    // Two bodies of 2 chunks each were accepted; the others left nothing.
    expect(await world.chunkCount()).toBe(4);
  },
);

test.each([500, 3 * CHUNK_BYTES])('a wrong digest of %i bytes leaves nothing', async (sizeBytes) => {
  const world = await openObjectWorld();
  const body = randomBytes(sizeBytes);
  const sha256 = createHash('sha256').update(body).digest('hex');
  expect((await world.put('k', body, { said: { contentMd5: md5(body), contentSha256: sha256 } })).etag).toBe(
    md5(body),
  );
  const stored = await world.chunkCount();
  const other = md5(Buffer.from('other'));
  expect(await codeOf(world.put('m', body, { said: { contentMd5: other } }))).toBe('BadDigest');
  const otherSha = sha256.replace(/./, (digit) => (digit === '0' ? '1' : '0'));
  expect(await codeOf(world.put('m', body, { said: { contentSha256: otherSha } }))).toBe(
    'XAmzContentSHA256Mismatch',
  );
  await expect(world.find('m')).rejects.toThrow('no-such-key');
  expect(await world.chunkCount()).toBe(stored);
  expect(world.heldBytes()).toBe(0);
});

test('a source that fails, ends early or is too long leaves nothing', async () => {
  const world = await openObjectWorld();
  const body = randomBytes(3 * CHUNK_BYTES);
  async function* failing() {
    yield Buffer.from(body);
    throw new AppError('SignatureDoesNotMatch');
  }
  const said = { stream: failing(), sizeBytes: 4 * CHUNK_BYTES };
  expect(await codeOf(world.put('k', body, { said }))).toBe('SignatureDoesNotMatch');
  for (const sizeBytes of [body.length + 1, body.length - 1])
    expect(await codeOf(world.put('k', body, { said: { sizeBytes } }))).toBe('IncompleteBody');
  expect(await codeOf(world.put('k', Buffer.alloc(10), { said: { sizeBytes: 11 } }))).toBe('IncompleteBody');
  await expect(world.find('k')).rejects.toThrow('no-such-key');
  expect(await world.chunkCount()).toBe(0);
  expect(world.heldBytes()).toBe(0);
});

test('a client that disconnects ends its body', async () => {
  const world = await openObjectWorld();
  const client = new AbortController();
  const body = randomBytes(3 * CHUNK_BYTES);
  async function* leaving() {
    yield Buffer.from(body.subarray(0, CHUNK_BYTES + 10));
    client.abort();
    await new Promise(() => {});
  }
  const put = world.put('k', body, { said: { stream: leaving() }, signal: client.signal });
  expect(await codeOf(put)).toBe('RequestTimeout');
  expect(await world.chunkCount()).toBe(0);
  expect(world.heldBytes()).toBe(0);
});

test('a refused commit leaves nothing', async () => {
  const world = await openObjectWorld();
  await world.put('k', Buffer.from('first'));
  const body = randomBytes(2 * CHUNK_BYTES);
  expect(await codeOf(world.put('k', body, { conditions: { ifNoneMatch: '*' } }))).toBe('PreconditionFailed');
  expect(await codeOf(world.put('new', body, { conditions: { ifMatch: ['x'] } }))).toBe('NoSuchKey');
  async function* overtaken() {
    yield body;
    await world.put('overtaken', Buffer.from('first'));
  }
  const late = world.put('overtaken', body, {
    conditions: { ifNoneMatch: '*' },
    said: { stream: overtaken() },
  });
  expect(await codeOf(late)).toBe('PreconditionFailed');
  expect(await world.chunkCount()).toBe(0);
  expect((await world.get('k')).toString()).toBe('first');
  expect((await world.get('overtaken')).toString()).toBe('first');
});

test('conditions that fail already are refused before the body is requested', async () => {
  const world = await openObjectWorld();
  await world.put('k', Buffer.from('first'));
  // biome-ignore lint/correctness/useYield: nothing comes of it
  async function* unread(): AsyncGenerator<Buffer> {
    expect.fail('the body was read');
  }
  const said = { stream: unread(), awaitsContinue: true };
  const put = (key: string, conditions: WriteConditions) =>
    codeOf(world.put(key, randomBytes(CHUNK_BYTES), { conditions, said }));
  expect(await put('k', { ifNoneMatch: '*' })).toBe('PreconditionFailed');
  expect(await put('k', { ifMatch: ['x', 'y'] })).toBe('PreconditionFailed');
  expect(await put('new', { ifMatch: '*' })).toBe('NoSuchKey');
});

/** Answers commits with the result of `answer`, if there is one. */
function answering(answer: (evaluate: () => Promise<Reply<unknown>>) => Promise<Reply<unknown>>) {
  return (metadata: MetadataPort): MetadataPort => ({
    shardCount: metadata.shardCount,
    query: (...args) => metadata.query(...args),
    execute(envelope, name, command) {
      const evaluate = () => metadata.execute(envelope, name, command);
      return (name.startsWith('commit-') ? answer(evaluate) : evaluate()) as never;
    },
  });
}

test.each([
  ['busy', { kind: 'busy' }, 'SlowDown'],
  ['the disk is full', { kind: 'full' }, 'InsufficientStorage'],
  ['the bucket is another', { kind: 'stale-bucket', bucket: null, timeMs: 0 }, 'no bucket changes here'],
] as [string, Reply<never>, string][])(
  '%s: nothing was evaluated, nothing stays',
  async (_name, reply, said) => {
    const world = await openObjectWorld({ intercept: answering(async () => reply) });
    const body = randomBytes(2 * CHUNK_BYTES);
    expect(await codeOf(world.put('k', body))).toContain(said);
    const part = await beginUpload(world, 'k');
    expect(await codeOf(world.store.putPart({ ...part(1), body: sourceOf(body) }))).toContain(said);
    expect(await world.chunkCount()).toBe(0);
  },
);

test('the answer that the blob exists already leaves its chunks alone', async () => {
  const twice = answering(async (evaluate) => {
    await evaluate();
    return evaluate();
  });
  const world = await openObjectWorld({ intercept: twice });
  const body = randomBytes(2 * CHUNK_BYTES);
  expect(await codeOf(world.put('k', body, { conditions: { ifNoneMatch: '*' } }))).toBe('ServiceUnavailable');
  expect((await world.get('k')).equals(body)).toBe(true);
});

test('an unknown outcome keeps the data, because the commit may have happened', async () => {
  const intercept = answering(async (evaluate) => {
    await evaluate();
    return { kind: 'unknown' };
  });
  const world = await openObjectWorld({ intercept });
  const body = randomBytes(CHUNK_BYTES);
  expect(await codeOf(world.put('k', body))).toBe('ServiceUnavailable');
  expect((await world.get('k')).equals(body)).toBe(true);
});

test("a chunk without room is InsufficientStorage, and the body's chunks are dropped", async () => {
  const full = async () => {
    throw new AppError('InsufficientStorage');
  };
  const world = await openObjectWorld({
    interceptChunks: (chunks) => ({
      put: (id, bytes) => (id.index < 2 ? chunks.put(id, bytes) : full()),
      get: (id) => chunks.get(id),
      have: (ids) => chunks.have(ids),
      drop: (ids, fence) => chunks.drop(ids, fence),
      list: (options) => chunks.list(options),
      usage: () => chunks.usage(),
      recount: () => chunks.recount(),
    }),
  });
  expect(await codeOf(world.put('large', randomBytes(20 * CHUNK_BYTES)))).toBe('InsufficientStorage');
  expect(await world.chunkCount()).toBe(0);
  expect(world.heldBytes()).toBe(0);
});

test('a blob id that is too old for its shard is refused, and the chunks are dropped', async () => {
  const world = await openObjectWorld();
  const body = randomBytes(2 * CHUNK_BYTES);
  async function* slow() {
    yield Buffer.from(body.subarray(0, CHUNK_BYTES));
    world.metadata.clock.advance(LIMITS.blobIdAgeMaxMs + 1000);
    yield Buffer.from(body.subarray(CHUNK_BYTES));
  }
  expect(await codeOf(world.put('k', body, { said: { stream: slow() } }))).toBe('RequestTimeout');
  await expect(world.find('k')).rejects.toThrow('no-such-key');
  expect(await world.chunkCount()).toBe(0);
});

test('many trickling bodies hold only what they have sent, and do not delay a fast one', async () => {
  const world = await openObjectWorld({ bodyBufferBytes: 16 * 1024 * 1024 });
  const slowCount = 50;
  const sent = 10_000;
  const held = Promise.withResolvers<void>();
  let waiting = 0;
  const allWait = Promise.withResolvers<void>();
  async function* trickle(body: Buffer) {
    for (let at = 0; at < sent; at += 100) yield Buffer.from(body.subarray(at, at + 100));
    if (++waiting === slowCount) allWait.resolve();
    await held.promise;
    yield Buffer.from(body.subarray(sent));
  }
  const bodies = Array.from({ length: slowCount }, () => randomBytes(3 * CHUNK_BYTES));
  const puts = bodies.map((body, at) => world.put(`slow-${at}`, body, { said: { stream: trickle(body) } }));
  await allWait.promise;
  expect(world.heldBytes()).toBe(slowCount * sent);
  const fast = randomBytes(20 * CHUNK_BYTES);
  await world.put('fast', fast);
  expect(world.heldBytes()).toBe(slowCount * sent);
  expect(world.heldBytesMax()).toBeLessThan(8 * 1024 * 1024);
  held.resolve();
  await Promise.all(puts);
  for (const [at, body] of bodies.entries()) expect((await world.get(`slow-${at}`)).equals(body)).toBe(true);
  expect(world.heldBytes()).toBe(0);
});

test('complete bodies do not wait for memory, even if they hold all of it', async () => {
  const world = await openObjectWorld({ bodyBufferBytes: 2 * CHUNK_BYTES });
  const body = randomBytes(CHUNK_BYTES - 1000);
  await Promise.all(Array.from({ length: 16 }, (_, at) => world.put(`k${at}`, body)));
  const long = randomBytes(2 * CHUNK_BYTES + 1000);
  await Promise.all(Array.from({ length: 16 }, (_, at) => world.put(`long${at}`, long)));
  expect(world.heldBytes()).toBe(0);
});

test('parts are bodies under the upload’s key', async () => {
  const world = await openObjectWorld();
  const bucket = world.bucket();
  const { calls } = world;
  const signal = new AbortController().signal;
  const upload = await world.store.createUpload({
    calls,
    bucket,
    key: 'k' as never,
    owner: OWNER,
    initiator: OWNER,
    headers: HEADERS,
    checksum: { algorithm: 'CRC32', type: 'FULL_OBJECT' },
  });
  const body = randomBytes(CHUNK_BYTES + 10);
  const part = await world.store.putPart({
    calls,
    bucket,
    upload,
    partNumber: 1,
    signal,
    body: sourceOf(body),
  });
  const checksum = { algorithm: 'CRC32', value: toBase64(crcOf('CRC32', body)) };
  expect(part).toMatchObject({ etag: md5(body), sizeBytes: body.length, checksum });
  const completed = await world.metadata.execute('complete-upload', {
    bucketId: bucket.believed.bucketId,
    key: upload.key,
    uploadId: upload.uploadId,
    parts: [{ partNumber: 1, etag: part.etag }],
  });
  expect(completed).toMatchObject({ kind: 'committed' });
  expect((await world.get('k')).equals(body)).toBe(true);
  expect(world.store.headersOf((await world.find('k')).version)).toEqual(HEADERS);
  const late = world.store.putPart({ calls, bucket, upload, partNumber: 2, signal, body: sourceOf(body) });
  expect(await codeOf(late)).toBe('NoSuchUpload');
  expect(await world.chunkCount()).toBe(2);
});

test('inline bodies whose commits wait for a lock count in the memory for bodies, and leave room for other accounts', async () => {
  const lock = Promise.withResolvers<void>();
  let waiting = 0;
  const intercept = (metadata: MetadataPort): MetadataPort => ({
    ...metadata,
    shardCount: metadata.shardCount,
    query: (target, name, query) => metadata.query(target, name, query),
    async execute(target, name, command) {
      if (name === 'commit-version' && 'key' in command && command.key === 'locked') {
        waiting++;
        await lock.promise;
      }
      return metadata.execute(target, name, command);
    },
  });
  const limit = 64 * INLINE_BYTES_MAX;
  const world = await openObjectWorld({ intercept, bodyBufferBytes: limit });
  const callsOf = (account: string) => ({ ...world.calls, tenant: { account, address: '192.0.2.1' } });
  const body = randomBytes(INLINE_BYTES_MAX);
  const crowd = Array.from({ length: 100 }, () => world.put('locked', body, { calls: callsOf('alice') }));
  await settleAll();
  expect(waiting).toBeGreaterThan(30);
  // The last one came while there was room for a byte.
  expect((waiting - 1) * INLINE_BYTES_MAX).toBeLessThan((limit * LIMITS.addressShareWeight) / 5);
  expect(world.heldBytes()).toBeGreaterThan(waiting * INLINE_BYTES_MAX);
  const ofOthers = ['bob', 'carol'].map((account) => world.put('free', body, { calls: callsOf(account) }));
  await Promise.all(ofOthers);
  lock.resolve();
  await Promise.all(crowd);
  expect(world.heldBytes()).toBe(0);
});
