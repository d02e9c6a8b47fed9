// service 4.2, compose: links of its own on the data of others, in one entry; what is deleted before or after, in any
// order, frees nothing that is linked.
import { beforeEach, describe, expect, test } from 'vitest';
import {
  BUCKET,
  etagOf,
  kek,
  type MetadataShards,
  type NewData,
  OWNER,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BlobId, ObjectKey } from '../../types/names.ts';
import { packOriginals, unpackOriginals } from '../../types/originals.ts';
import { type BlobUse, linksOf, type ManifestBody, type VersionRecord } from '../../types/version.ts';

let world: MetadataShards;
beforeEach(async () => {
  world = await openMetadata();
});

type Command = CommandOf<'compose-version'>;

async function current(key = 'whole'): Promise<VersionRecord> {
  const asked = { bucketId: BUCKET, key: key as ObjectKey, includeBody: false };
  const found = await world.query('get-version', asked);
  if (found.kind !== 'found') throw new Error(found.kind);
  return found.version;
}

/** The bytes of these blobs, one after another; one that is named twice is used twice. */
function compose(
  key: string,
  parts: readonly NewData[],
  more: Partial<Command> = {},
): Promise<OutcomeOf<'compose-version'>> {
  const linkId = world.newLinkId();
  const uses: BlobUse[] = [];
  const body: ManifestBody = { uses, segments: [] };
  for (const part of parts) {
    for (const source of part.uses) {
      let use = uses.findIndex(({ blobId }) => blobId === source.blobId);
      if (use === -1) use = uses.push({ ...source, linkId }) - 1;
      body.segments.push({ use, offsetBytes: 0, sizeBytes: source.sizeBytes });
    }
  }
  return world.execute('compose-version', {
    bucketId: BUCKET,
    key: key as ObjectKey,
    version: {
      sizeBytes: parts.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      etag: `${etagOf(key)}-${parts.length}`,
      owner: OWNER,
      kek,
      originals: packOriginals(...parts.map(({ sizeBytes }, at) => ({ sizeBytes, md5: etagOf(`${at}`) }))),
    },
    body,
    data: { births: [], links: uses.map(({ blobId }) => ({ blobId, linkId })) },
    ...more,
  });
}

const blobsOf = (...data: NewData[]) => data.flatMap(({ uses }) => uses.map(({ blobId }) => blobId));

async function putSome(count: number): Promise<NewData[]> {
  const all: NewData[] = [];
  for (let at = 0; at < count; at++) {
    const data = world.newData({ sizeBytes: 10 + at });
    await world.put(`part ${at}`, { data });
    all.push(data);
  }
  return all;
}

async function removeAll(keys: readonly string[]): Promise<void> {
  for (const key of keys) await world.remove(key);
  await world.markUnlinked();
}

describe.each(['unversioned', 'enabled', 'suspended'] as const)('in a bucket that is %s', (versioning) => {
  beforeEach(() => world.createBucket(versioning));

  test('the version has the data of its components, in order', async () => {
    const parts = await putSome(2);
    expect(await compose('whole', parts)).toMatchObject({ kind: 'committed', sizeBytes: 21, versioning });
    const version = await current();
    expect(version).toMatchObject({ sizeBytes: 21, appendCount: 0, etag: `${etagOf('whole')}-2` });
    expect(unpackOriginals(version.originals)).toEqual([
      { sizeBytes: 10, md5: etagOf('0') },
      { sizeBytes: 11, md5: etagOf('1') },
    ]);
    expect(linksOf(version.manifest).map(({ blobId }) => blobId)).toEqual(blobsOf(...parts));
  });

  test('a target that is a component is replaced, or kept, and its data is linked all the time', async () => {
    const [first, second] = (await putSome(2)) as [NewData, NewData];
    await compose('part 0', [first, second, first]);
    await world.markUnlinked();
    expect(await world.stateOf(...blobsOf(first, second))).toEqual(['live', 'live']);
    expect((await current('part 0')).sizeBytes).toBe(31);
    const stored = (await world.versions()).filter((text) => text.startsWith('part 0'));
    expect(stored).toHaveLength(versioning === 'enabled' ? 2 : 1);
  });
});

describe('links (compose rule 4)', () => {
  beforeEach(() => world.createBucket());

  test.each([
    ['the components go first', ['part 0', 'part 1'], ['whole', 'nested']],
    ['the compositions go first', ['whole', 'nested'], ['part 0', 'part 1']],
    ['one of each', ['part 0', 'nested'], ['whole', 'part 1']],
  ])('%s: nothing goes before the last', async (_name, before, after) => {
    const parts = await putSome(2);
    await compose('whole', parts);
    await compose('nested', [...parts, ...parts]);
    const blobs = blobsOf(...parts);
    await removeAll(before);
    expect(await world.stateOf(...blobs)).toEqual(['live', 'live']);
    await removeAll(after);
    expect(await world.stateOf(...blobs)).toEqual(['condemned', 'condemned']);
  });

  test('data that is gone or marked for deletion is reported, and nothing is written', async () => {
    const [first, second] = (await putSome(2)) as [NewData, NewData];
    await removeAll(['part 1']);
    expect(await compose('whole', [first, second])).toEqual({ kind: 'gone', blobIds: blobsOf(second) });
    await expect(current()).rejects.toThrow('no-such-key');
  });

  test('compose rule 6: data that only compositions hold is counted by bucket, until the last of them is deleted', async () => {
    const parts = await putSome(3);
    await compose('whole', parts);
    await removeAll(['part 0']);
    const count = () => world.query('count-composed-only', { limit: 100 });
    expect(await count()).toEqual({
      buckets: [{ bucketId: BUCKET, sizeBytes: 10, blobCount: 1 }],
      claimed: [],
    });
    await removeAll(['part 1', 'part 2']);
    const all = { bucketId: BUCKET, sizeBytes: 10 + 11 + 12, blobCount: 3 };
    expect(await count()).toEqual({ buckets: [all], claimed: [] });
    let [sizeBytes, after, pages] = [0, undefined as BlobId | undefined, 0];
    do {
      const page = await world.query('count-composed-only', { limit: 1, ...(after && { after }) });
      sizeBytes += page.buckets[0]?.sizeBytes ?? 0;
      after = page.next;
      pages++;
    } while (after !== undefined);
    expect([sizeBytes, pages]).toEqual([33, 4]);
    await removeAll(['whole']);
    expect(await count()).toEqual({ buckets: [], claimed: [] });
  });
});

describe('conditions and tokens', () => {
  beforeEach(() => world.createBucket());

  test('conditions are those of the target', async () => {
    const parts = await putSome(1);
    const refused = { kind: 'precondition-failed', condition: 'If-None-Match' };
    expect(await compose('part 0', parts, { conditions: { ifNoneMatch: '*' } })).toEqual(refused);
    expect(await compose('whole', parts, { conditions: { ifMatch: '*' } })).toEqual({ kind: 'no-such-key' });
    expect(await compose('whole', parts, { conditions: { ifNoneMatch: '*' } })).toMatchObject({
      kind: 'committed',
    });
  });

  test('a token repeats the answer and not the command, whatever has become of it', async () => {
    const parts = await putSome(2);
    const token = { token: 't', digest: 'd' };
    const outcome = await compose('whole', parts, { token });
    await removeAll(['whole', 'part 0', 'part 1']);
    expect(await compose('whole', parts, { token })).toEqual({ kind: 'repeated', outcome });
    await expect(current()).rejects.toThrow('no-such-key');
    const other = { token: { token: 't', digest: 'other' } };
    expect(await compose('whole', parts, other)).toEqual({ kind: 'token-reused' });
  });
});

describe('many pieces', () => {
  beforeEach(() => world.createBucket());

  test(`up to ${LIMITS.manifestSegmentsInlineMax} are in the version, more in pages of their own`, async () => {
    const parts = await putSome(2);
    const times = (count: number) => Array.from({ length: count }, (_, at) => parts[at % 2] as NewData);
    await compose('whole', times(64));
    expect((await current()).manifest).toMatchObject({ kind: 'direct', parts: [] });
    await compose('paged', times(300));
    const { manifest, sizeBytes } = await current('paged');
    if (manifest.kind !== 'paged') throw new Error(manifest.kind);
    expect(manifest).toMatchObject({ partCount: 0, segmentCount: 300 });
    expect(manifest.pages).toEqual([
      { startBytes: 0, partStart: 0 },
      { startBytes: 128 * 21, partStart: 0 },
    ]);
    expect(sizeBytes).toBe(150 * 21);
    const { pages } = await world.query('get-manifest-pages', {
      manifestId: manifest.manifestId,
      from: 0,
      to: 1,
    });
    const links = pages.map((page) => page?.uses.map(({ linkId }) => linkId) ?? []);
    expect(links.map((some) => some.length)).toEqual([2, 2]);
    expect(new Set([links[0]?.[0], links[1]?.[0]]).size, 'a link of its own in each page').toBe(2);
  });

  test('the pages of a composition are erased one by one, and its data with the last', async () => {
    const parts = await putSome(2);
    await compose(
      'whole',
      Array.from({ length: 300 }, (_, at) => parts[at % 2] as NewData),
    );
    const { manifest } = await current();
    if (manifest.kind !== 'paged') throw new Error(manifest.kind);
    await removeAll(['part 0', 'part 1']);
    const composed = { bucketId: BUCKET, sizeBytes: 21, blobCount: 2 };
    expect((await world.query('count-composed-only', { limit: 100 })).buckets).toEqual([composed]);
    await removeAll(['whole']);
    const { manifestId } = manifest;
    expect(await world.execute('release-manifest-page', { manifestId, page: 0 })).toMatchObject({
      isLast: false,
    });
    await world.markUnlinked();
    expect(await world.stateOf(...blobsOf(...parts))).toEqual(['live', 'live']);
    await world.execute('release-manifest-page', { manifestId, page: 1 });
    await world.markUnlinked();
    expect(await world.stateOf(...blobsOf(...parts))).toEqual(['condemned', 'condemned']);
  });
});
