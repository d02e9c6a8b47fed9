import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  BUCKET,
  beginUpload,
  copyOf,
  dataOf,
  etagOf,
  type MetadataShards,
  openMetadata,
  putPart,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { expectFreeLoop } from '../../../tests/support/run/loop-watch.ts';
import { createFairTurns } from '../../base/async/fair-turns.ts';
import { nextTurn } from '../../base/async/next-turn.ts';
import { finishAtOnce } from '../../base/async/steps.ts';
import { toBase64, toHex } from '../../base/bytes/bytes.ts';
import { crcOf } from '../../base/crypto/crc.ts';
import type { CommandOf } from '../../ports/metadata/port.ts';
import type { CompletePart } from '../../ports/metadata/uploads.ts';
import { multipartETag } from '../../types/etag.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BlobId, ObjectKey, UploadId } from '../../types/names.ts';
import { unpackOriginals } from '../../types/originals.ts';
import { manifestPageCodec, type PartRecord, partCodec } from '../../types/records/rows.ts';
import { linksOf, type VersionRecord } from '../../types/version.ts';
import { rowKey } from '../engine/row-keys.ts';
import { linkRow, partRow } from '../schema/keyspace.ts';
import { joinParts, SPARE_LINKS_MAX } from './join-parts.ts';

let world: MetadataShards;
let uploadId: UploadId;
beforeEach(async () => {
  world = await openMetadata();
  await world.createBucket();
  uploadId = await beginUpload(world, 'a');
});

const key = 'a' as ObjectKey;
const MiB = 1024 * 1024;
const big = () => world.newData({ sizeBytes: 5 * MiB });
const listed = (...numbers: number[]): CompletePart[] =>
  numbers.map((partNumber) => ({ partNumber, etag: etagOf(`part ${partNumber}`) }));
const blobOf = (data: { uses: { blobId: string }[] }) => data.uses[0]?.blobId as BlobId;

function complete(parts: CompletePart[], more: Partial<CommandOf<'complete-upload'>> = {}) {
  return world.execute('complete-upload', { bucketId: BUCKET, key, uploadId, parts, ...more });
}

/** What the worker does for parts that were not listed. */
async function releaseParts(): Promise<void> {
  const { ended } = await world.query('list-ended-uploads', { limit: 10 });
  for (const upload of ended) await world.execute('release-parts', upload);
}

async function current(): Promise<VersionRecord> {
  const found = await world.query('get-version', { bucketId: BUCKET, key, includeBody: false });
  if (found.kind !== 'found') throw new Error(found.kind);
  return found.version;
}

test('parts become one object; unlisted parts are removed', async () => {
  const data = [big(), world.newData(), big(), world.newData({ sizeBytes: 3 })];
  for (const [at, part] of data.entries())
    await putPart(world, { key, uploadId }, { partNumber: at + 1, data: part });
  const etag = multipartETag(listed(1, 3, 4).map((part) => part.etag));
  expect(await complete(listed(1, 3, 4))).toMatchObject({ kind: 'committed', etag, repeated: false });
  const version = await current();
  expect(version).toMatchObject({ etag, sizeBytes: 10 * MiB + 3, kek: { keyId: 'k1' } });
  expect(unpackOriginals(version.originals)).toEqual([{ sizeBytes: 10 * MiB + 3, md5: etag.slice(0, 32) }]);
  expect(version.manifest).toMatchObject({
    kind: 'direct',
    parts: [{ partNumber: 1 }, { partNumber: 3 }, {}],
  });
  await releaseParts();
  await world.markUnlinked();
  expect(await world.stateOf(...data.map(blobOf))).toEqual(['live', 'condemned', 'live', 'live']);
  expect(await world.query('get-upload', { bucketId: BUCKET, key, uploadId })).toEqual({
    upload: null,
    wasCompleted: true,
  });
  await world.remove('a');
  await world.markUnlinked();
  expect(await world.stateOf(...data.map(blobOf))).toEqual(Array(4).fill('condemned'));
});

test('R24: a repeated part whose blob is in the object gets that error, not NoSuchUpload', async () => {
  const data = big();
  await putPart(world, { key, uploadId }, { partNumber: 1, data });
  await complete(listed(1));
  expect(await putPart(world, { key, uploadId }, { partNumber: 1, data })).toEqual({ kind: 'exists' });
});

test('parts with too many segments are refused, nothing is lost, and the upload can be aborted', async () => {
  const blobIds: BlobId[] = [];
  for (let partNumber = 1; partNumber <= 4; partNumber++) {
    // As large as very many uses are.
    const { uses } = world.newData({ sizeBytes: 5 * MiB });
    const wrappedDataKey = new Uint8Array(LIMITS.uploadPartsBytesMax / 3);
    const large = uses.map((use) => ({ ...use, wrappedDataKey }));
    const data = dataOf(large, { births: large.map((use) => ({ use })), links: [] });
    await putPart(world, { key, uploadId }, { partNumber, data });
    blobIds.push(...uses.map(({ blobId }) => blobId));
  }
  expect(await complete(listed(1, 2, 3, 4))).toEqual({ kind: 'too-many-segments' });
  expect(await world.query('get-upload', { bucketId: BUCKET, key, uploadId })).not.toMatchObject({
    upload: null,
  });
  expect(await world.stateOf(...blobIds)).toEqual(Array(4).fill('live'));
  const aborted = await world.execute('abort-upload', { bucketId: BUCKET, key, uploadId });
  expect(aborted).toEqual({ kind: 'aborted' });
});

test('a repeated part replaces the one before, whose link ends', async () => {
  const [first, second] = [big(), big()];
  await putPart(world, { key, uploadId }, { partNumber: 1, data: first });
  await putPart(world, { key, uploadId }, { partNumber: 1, data: second, etag: etagOf('again') });
  await world.markUnlinked();
  expect(await world.stateOf(blobOf(first), blobOf(second))).toEqual(['condemned', 'live']);
  expect(await complete(listed(1))).toEqual({ kind: 'invalid-part', partNumber: 1 });
  expect(await complete([{ partNumber: 1, etag: etagOf('again') }])).toMatchObject({ kind: 'committed' });
});

describe('refusals leave the upload open', () => {
  beforeEach(async () => {
    for (const partNumber of [1, 2, 3]) await putPart(world, { key, uploadId }, { partNumber, data: big() });
    await putPart(world, { key, uploadId }, { partNumber: 4 });
  });

  test.each([
    ['order', listed(2, 1), { kind: 'invalid-part-order' }],
    ['twice', listed(1, 1), { kind: 'invalid-part-order' }],
    ['unknown part', listed(1, 7), { kind: 'invalid-part', partNumber: 7 }],
    ['wrong ETag', [{ partNumber: 1, etag: etagOf('x') }], { kind: 'invalid-part', partNumber: 1 }],
    ['no parts', [], { kind: 'invalid-part', partNumber: 1 }],
  ])('%s', async (_name, parts, outcome) => {
    expect(await complete(parts as CompletePart[])).toEqual(outcome);
    expect(await complete(listed(1, 2))).toMatchObject({ kind: 'committed' });
  });

  test('a small part that is not the last', async () => {
    await putPart(world, { key, uploadId }, { partNumber: 5 });
    const tooSmall = { kind: 'part-too-small', partNumber: 4, sizeBytes: 10, etag: etagOf('part 4') };
    expect(await complete(listed(1, 4, 5))).toEqual(tooSmall);
    expect(await complete(listed(1, 4))).toMatchObject({ kind: 'committed' });
  });

  test('sizes', async () => {
    expect(await complete(listed(1, 2), { expected: { sizeBytes: 5 * MiB } })).toEqual({
      kind: 'size-mismatch',
    });
    const huge = world.newData({ sizeBytes: LIMITS.objectBytesMax });
    await putPart(world, { key, uploadId }, { partNumber: 5, data: huge });
    expect(await complete(listed(1, 5))).toEqual({ kind: 'too-large' });
    expect(await complete(listed(1, 2), { expected: { sizeBytes: 10 * MiB } })).toMatchObject({
      kind: 'committed',
    });
  });

  test('conditions apply as for PUT', async () => {
    expect(await complete(listed(1), { conditions: { ifMatch: '*' } })).toEqual({ kind: 'no-such-key' });
    await world.put('a');
    expect(await complete(listed(1), { conditions: { ifNoneMatch: '*' } })).toMatchObject({
      kind: 'precondition-failed',
    });
    expect(await complete(listed(1), { conditions: { ifMatch: [etagOf('a')] } })).toMatchObject({
      kind: 'committed',
    });
  });

  test('another key or bucket is not this upload', async () => {
    const other = { bucketId: BUCKET, key: 'b' as ObjectKey, uploadId, parts: listed(1) };
    expect(await world.execute('complete-upload', other)).toEqual({ kind: 'no-such-upload' });
    const unknown = { bucketId: BUCKET, key, uploadId: 'zz' as UploadId, parts: listed(1) };
    expect(await world.execute('complete-upload', unknown)).toEqual({ kind: 'no-such-upload' });
  });
});

describe('repeating', () => {
  let answer: Awaited<ReturnType<typeof complete>>;
  beforeEach(async () => {
    await putPart(world, { key, uploadId }, { partNumber: 1, data: big() });
    answer = await complete(listed(1), { conditions: { ifNoneMatch: '*' } });
  });

  test('29: gives the same answer, even if the object was overwritten or removed', async () => {
    expect(answer).toMatchObject({ kind: 'committed', repeated: false });
    world.clock.advance(6 * 24 * 3600_000);
    await world.put('a');
    await world.remove('a');
    expect(await complete(listed(1), { conditions: { ifNoneMatch: '*' } })).toEqual({
      ...answer,
      repeated: true,
    });
    expect(await world.versions()).toEqual([]);
  });

  test('with another list is another request', async () => {
    expect(await complete([{ partNumber: 1, etag: etagOf('x') }])).toEqual({ kind: 'no-such-upload' });
  });

  test('is possible for seven days', async () => {
    const forget = () => world.execute('forget-completed-uploads', { uploadIds: [uploadId] });
    world.clock.advance(LIMITS.completedUploadKeptMs - 1000);
    await forget();
    expect(await complete(listed(1))).toMatchObject({ repeated: true });
    world.clock.advance(1000);
    await forget();
    expect(await complete(listed(1))).toEqual({ kind: 'no-such-upload' });
  });
});

test('in an enabled bucket the previous version stays', async () => {
  await world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'versioning',
    document: { status: 'enabled' },
  });
  await world.put('a');
  await putPart(world, { key, uploadId }, { partNumber: 1 });
  const outcome = await complete(listed(1));
  expect(outcome).toMatchObject({ kind: 'committed', versioning: 'enabled' });
  expect(await world.versions()).toEqual(['a v2*', 'a v1']);
  expect(await complete(listed(1))).toEqual({ ...outcome, repeated: true });
});

describe('checksums', () => {
  const bytes = (fill: number) => Buffer.alloc(5 * MiB, fill);
  const base64 = (value: Uint8Array) => Buffer.from(value).toString('base64');
  const crc32c = (fill: number) => base64(crcOf('CRC32C', bytes(fill)));

  async function putTwo(algorithm: 'CRC32C' | 'SHA256' | 'CRC64NVME', values: [string, string]) {
    for (const [at, value] of values.entries()) {
      const part = { partNumber: at + 1, data: big(), checksum: { algorithm, value } };
      await putPart(world, { key, uploadId }, part);
    }
    return listed(1, 2).map((part, at) => ({ ...part, checksum: { algorithm, value: values[at] ?? '' } }));
  }

  test('30: composite, of every part, in the answer and on the object', async () => {
    uploadId = await beginUpload(world, 'a', { algorithm: 'CRC32C', type: 'COMPOSITE' });
    const values: [string, string] = [crc32c(1), crc32c(2)];
    const parts = await putTwo('CRC32C', values);
    const whole = crcOf('CRC32C', Buffer.concat(values.map((value) => Buffer.from(value, 'base64'))));
    const checksum = { algorithm: 'CRC32C', type: 'COMPOSITE', value: `${base64(whole)}-2` };
    const swapped = [{ ...parts[0], checksum: parts[1]?.checksum }, parts[1]] as CompletePart[];
    expect(await complete(swapped)).toEqual({ kind: 'bad-checksum', algorithm: 'CRC32C' });
    expect(await complete(listed(1, 2))).toEqual({ kind: 'checksum-missing', partNumber: 1 });
    const wrong = { algorithm: 'CRC32C' as const, type: 'COMPOSITE' as const, value: values[0] };
    expect(await complete(parts, { expected: { checksum: wrong } })).toMatchObject({ kind: 'bad-checksum' });
    const given = { ...wrong, value: base64(whole) };
    expect(await complete(parts, { expected: { checksum: given } })).toMatchObject({
      kind: 'committed',
      checksum,
    });
    expect(await current()).toMatchObject({ checksum, manifest: { parts: [{ checksum: values[0] }, {}] } });
  });

  test('composite of SHA-256', async () => {
    uploadId = await beginUpload(world, 'a', { algorithm: 'SHA256', type: 'COMPOSITE' });
    const digests = [1, 2].map((fill) => createHash('sha256').update(bytes(fill)).digest());
    const parts = await putTwo('SHA256', digests.map(base64) as [string, string]);
    const value = `${createHash('sha256').update(Buffer.concat(digests)).digest('base64')}-2`;
    expect(await complete(parts)).toMatchObject({
      checksum: { algorithm: 'SHA256', type: 'COMPOSITE', value },
    });
  });

  test('full object: combined from the parts; the list may leave it out', async () => {
    uploadId = await beginUpload(world, 'a', { algorithm: 'CRC64NVME', type: 'FULL_OBJECT' });
    await putTwo(
      'CRC64NVME',
      [1, 2].map((fill) => base64(crcOf('CRC64NVME', bytes(fill)))) as [string, string],
    );
    const value = base64(crcOf('CRC64NVME', Buffer.concat([bytes(1), bytes(2)])));
    const checksum = { algorithm: 'CRC64NVME', type: 'FULL_OBJECT', value };
    const wrong = { ...checksum, value: base64(Buffer.alloc(8)) } as never;
    expect(await complete(listed(1, 2), { expected: { checksum: wrong } })).toMatchObject({
      kind: 'bad-checksum',
    });
    expect(await complete(listed(1, 2))).toMatchObject({ kind: 'committed', checksum });
  });

  test('of an upload that declared none: verified and stored, or refused', async () => {
    await putTwo('CRC32C', [crc32c(1), crc32c(2)]);
    const whole = base64(crcOf('CRC32C', Buffer.concat([bytes(1), bytes(2)])));
    const checksum = { algorithm: 'CRC32C' as const, type: 'FULL_OBJECT' as const, value: whole };
    const sha = { algorithm: 'SHA256' as const, type: 'FULL_OBJECT' as const, value: 'x' };
    expect(await complete(listed(1, 2), { expected: { checksum: sha } })).toMatchObject({
      kind: 'bad-checksum',
    });
    expect(await complete(listed(1, 2), { expected: { checksum } })).toMatchObject({ checksum });
  });
});

describe('many segments', () => {
  async function putParts(count: number): Promise<BlobId[]> {
    const blobIds: BlobId[] = [];
    for (let partNumber = 1; partNumber <= count; partNumber++) {
      const data = big();
      blobIds.push(blobOf(data));
      await putPart(world, { key, uploadId }, { partNumber, data });
    }
    return blobIds;
  }
  const numbers = (count: number) => Array.from({ length: count }, (_, at) => at + 1);

  test('up to 64 are in the version, more in pages that are linked as one', async () => {
    const small = await putParts(64);
    await complete(listed(...numbers(64)));
    expect((await current()).manifest).toMatchObject({ kind: 'direct' });
    uploadId = await beginUpload(world, 'a');
    const blobIds = await putParts(300);
    await complete(listed(...numbers(300)));
    const { manifest, sizeBytes } = await current();
    if (manifest.kind !== 'paged') throw new Error(manifest.kind);
    expect(manifest).toMatchObject({ partCount: 300, segmentCount: 300 });
    expect(manifest.pages).toEqual([
      { startBytes: 0, partStart: 0 },
      { startBytes: 256 * 5 * MiB, partStart: 256 },
    ]);
    expect(sizeBytes).toBe(300 * 5 * MiB);
    const { manifestId } = manifest;
    const { pages } = await world.query('get-manifest-pages', { manifestId, from: 0, to: 2 });
    expect(pages.map((page) => page?.parts.length)).toEqual([256, 44, undefined]);
    await world.markUnlinked();
    expect(await world.stateOf(manifestId, ...blobIds, ...small)).toEqual([
      ...Array(301).fill('live'),
      ...Array(64).fill('condemned'),
    ]);
  });

  test('a copy is one link; the pages are erased with the last link, then the blobs', async () => {
    const blobIds = await putParts(70);
    await complete(listed(...numbers(70)));
    const { manifest, sizeBytes } = await current();
    const [link] = linksOf(manifest);
    if (manifest.kind !== 'paged' || link === undefined) throw new Error(manifest.kind);
    const linkId = world.newLinkId();
    const grant = { births: [], links: [{ blobId: link.blobId, linkId }] };
    await world.put('b', { data: { sizeBytes, grant, uses: [], manifest: { ...manifest, linkId } } });
    await world.remove('a');
    await world.markUnlinked();
    expect(await world.stateOf(link.blobId)).toEqual(['live']);
    await world.remove('b');
    await world.markUnlinked();
    expect(await world.stateOf(link.blobId, ...blobIds.slice(0, 1))).toEqual(['condemned', 'live']);
    await expect(world.execute('erase-blobs', { blobIds: [link.blobId] })).rejects.toThrow('pages');
    const release = { manifestId: link.blobId, page: 0 };
    expect(await world.execute('release-manifest-page', release)).toEqual({ kind: 'released', isLast: true });
    expect(await world.execute('release-manifest-page', release)).toEqual({ kind: 'released', isLast: true });
    await world.markUnlinked();
    expect(await world.stateOf(...blobIds)).toEqual(Array(70).fill('condemned'));
    await world.execute('erase-blobs', { blobIds: [link.blobId, ...blobIds] });
    expect(await world.stateOf(link.blobId, ...blobIds)).toEqual(Array(71).fill(undefined));
    expect(await world.query('list-condemned', { olderThanMs: 0, limit: 9 })).toMatchObject({
      totalCount: 0,
    });
  });

  test('of blobs in several parts a bounded number of links ends: each link is a use of a page, or ends', async () => {
    const source = dataOf(Array.from({ length: 100 }, () => world.newData().uses).flat(), {
      births: [],
      links: [],
    });
    const segments = source.uses.map(({ sizeBytes }, use) => ({ use, offsetBytes: 0, sizeBytes }));
    const parts = numbers(60).map((partNumber): PartRecord => {
      const uses = source.uses.map((use) => ({ ...use, linkId: world.newLinkId() }));
      return { partNumber, sizeBytes: 1000, modifiedAtMs: 1, etag: etagOf('part'), uses, segments };
    });
    const { body, spareLinks } = finishAtOnce(joinParts(parts));
    if (body.kind !== 'paged') throw new Error(body.kind);
    expect(spareLinks).toHaveLength(SPARE_LINKS_MAX);
    const pages = body.pages.map(({ bytes }) => manifestPageCodec.decode(bytes));
    const used = pages.flatMap(({ uses }) => uses.map(({ blobId, linkId }) => linkRow(blobId, linkId).key));
    const rows = [...used, ...spareLinks.map((link) => link.key)].map((rowOf) => toHex(rowOf));
    const given = parts.flatMap(({ uses }) => uses.map(({ blobId, linkId }) => linkRow(blobId, linkId).key));
    expect(rows.sort()).toEqual(given.map((rowOf) => toHex(rowOf)).sort());
    for (const page of pages) {
      const blobIds = page.segments.map(({ use }) => page.uses[use]?.blobId);
      const wanted = source.uses.map(({ blobId }) => blobId);
      expect(blobIds).toEqual([...wanted, ...wanted]);
    }
  });

  test('one blob in several parts keeps one link of a page', async () => {
    const source = big();
    await world.put('source', { data: source });
    const links = [world.newLinkId(), world.newLinkId(), world.newLinkId()];
    for (const [at, linkId] of links.entries()) {
      await putPart(world, { key, uploadId }, { partNumber: at + 1, data: copyOf(source, linkId) });
    }
    await complete(listed(1, 2, 3));
    const { manifest } = await current();
    expect(manifest).toMatchObject({
      uses: [{ linkId: links[0] }],
      segments: [{ use: 0 }, { use: 0 }, { use: 0 }],
    });
    await world.remove('source');
    await world.markUnlinked();
    expect(await world.stateOf(blobOf(source))).toEqual(['live']);
    await world.remove('a');
    await world.markUnlinked();
    expect(await world.stateOf(blobOf(source))).toEqual(['condemned']);
  });
});

/** Their rows alone. */
async function plantParts(count: number, part: Pick<PartRecord, 'sizeBytes' | 'checksum'>): Promise<void> {
  const { sizeBytes } = part;
  const segments = [{ use: 0, offsetBytes: 0, sizeBytes }];
  for (let partNumber = 1; partNumber <= count; partNumber++) {
    const { uses } = world.newData({ sizeBytes });
    const etag = etagOf(`part ${partNumber}`);
    const value = partCodec.encode({ ...part, partNumber, etag, uses, segments, modifiedAtMs: 0 });
    const { table, key } = partRow(uploadId, partNumber);
    void world.kv.commit([{ column: 'rows', key: rowKey(0, table, key), value }]);
    if (partNumber % 100 === 0) await nextTurn();
  }
}

test('10,000 parts and the checksum of all of them do not hold the thread', async () => {
  world = await openMetadata({ turns: createFairTurns() });
  await world.createBucket();
  const value = toBase64(crcOf('CRC64NVME', Buffer.from('part')));
  const checksum = { algorithm: 'CRC64NVME', value } as const;
  const numbers = Array.from({ length: LIMITS.partCountMax }, (_, at) => at + 1);
  await expectFreeLoop('a list of parts', async () => {
    uploadId = await beginUpload(world, key, { algorithm: 'CRC64NVME', type: 'FULL_OBJECT' });
    await plantParts(numbers.length, { sizeBytes: 2 ** 29 - 1, checksum });
    // What the store of tests does at once, others do on threads of their own.
    world.kv.holdCommits();
    const completing = complete(listed(...numbers));
    for (let turns = 0; turns < 300; turns++) await nextTurn();
    world.kv.releaseCommits();
    expect(await completing).toMatchObject({ kind: 'committed', repeated: false });
  });
});
