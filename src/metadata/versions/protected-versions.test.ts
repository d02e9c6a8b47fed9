// Versions that may not go (extensions 2.1; service 3, 4.2): neither moved nor replaced, by whatever would do so. The
// shard says why and writes nothing; the data lives on, and once the version may go the same command is done.
import { beforeEach, describe, expect, test } from 'vitest';
import { beginMove, driveJob } from '../../../tests/support/metadata/drive-job.ts';
import {
  BUCKET,
  beginUpload,
  copyOf,
  etagOf,
  kek,
  type MetadataShards,
  type NewData,
  OWNER,
  openMetadata,
  putPart,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { createProtectedVersions } from '../../../tests/support/metadata/protected-versions.ts';
import type { CommandOf } from '../../ports/metadata/port.ts';
import type { ObjectKey, VersionId } from '../../types/names.ts';
import { packOriginals } from '../../types/originals.ts';
import { dataLinkId } from '../../types/version.ts';
import { createMetadataMachine } from '../state-machine.ts';

const stored = createProtectedVersions();
const KEPT = etagOf('kept');
const a = 'a' as ObjectKey;
const b = 'b' as ObjectKey;

let world: MetadataShards;
beforeEach(async () => {
  stored.letGo();
  world = await openMetadata({ machine: createMetadataMachine(stored.rules) });
});

const setVersioning = (versioning: 'enabled' | 'suspended') =>
  world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'versioning',
    document: { status: versioning },
  });

/** Every row and every body of the shard: what a command has changed, whatever it is. */
async function everything(): Promise<string[]> {
  const all: string[] = [];
  for (const column of ['rows', 'bodies']) {
    const range = { column, gte: Uint8Array.of(0), lt: new Uint8Array(64).fill(255), limit: 1e6 };
    for (const { key, value } of await world.kv.range(range))
      all.push(`${column} ${Buffer.from(key).toString('hex')} ${Buffer.from(value).toString('hex')}`);
  }
  return all;
}

const blobsOf = (...data: NewData[]) => data.flatMap(({ uses }) => uses.map(({ blobId }) => blobId));

/** Puts an object whose version has to stay from now on. */
async function putProtected(key: string): Promise<NewData> {
  const data = world.newData();
  await world.put(key, { data, etag: KEPT });
  stored.keep(KEPT);
  return data;
}

async function idsOf(key: ObjectKey): Promise<VersionId[]> {
  const { versions } = await world.query('list-versions', { bucketId: BUCKET, prefix: key, max: 10 });
  return versions.map(({ versionId }) => versionId);
}

async function currentOf(key: ObjectKey) {
  const found = await world.query('get-version', { bucketId: BUCKET, key, includeBody: false });
  if (found.kind !== 'found') throw new Error(found.kind);
  return found.version;
}

describe('MOVE of one key, extensions 2.1: a retained version neither moves nor is replaced', () => {
  const move = (more: Partial<CommandOf<'move-key'>> = {}) =>
    world.execute('move-key', { bucketId: BUCKET, move: { from: a, to: b }, overwrites: true, ...more });

  async function expectBlocked(versionId: VersionId): Promise<void> {
    const token = { token: 'once', digest: 'd' };
    const before = await everything();
    for (const more of [{}, { token }]) {
      expect(await move(more)).toMatchObject({ result: { kind: 'blocked', versionId } });
    }
    expect(await everything()).toEqual(before);
    // The refusal is not what the token stands for.
    stored.letGo();
    const moved = await move({ token });
    expect(moved).toMatchObject({ kind: 'moved-key', result: expect.any(Array) });
    stored.keep(KEPT);
    expect(await move({ token })).toEqual(moved);
  }

  test.each(['unversioned', 'suspended'] as const)('%s: the only version of the source', async (state) => {
    await world.createBucket(state);
    const data = await putProtected(a);
    await expectBlocked('null' as VersionId);
    await world.markUnlinked();
    expect(await world.stateOf(...blobsOf(data))).toEqual(['live']);
  });

  test.each([0, 1, 2])('enabled: number %i of the versions of the source', async (at) => {
    await world.createBucket('enabled');
    for (let count = 0; count < 3; count++) {
      if (count === 2 - at) await putProtected(a);
      else await world.put(a);
    }
    const ids = await idsOf(a);
    await expectBlocked(ids[at] as VersionId);
    expect(await idsOf(b)).toEqual(ids);
  });

  test('enabled: a version of the source below its delete marker', async () => {
    await world.createBucket('enabled');
    await putProtected(a);
    await world.remove(a);
    const [, versionId] = await idsOf(a);
    await expectBlocked(versionId as VersionId);
  });

  test.each(['unversioned', 'suspended'] as const)(
    '%s: with Overwrite, the version that would be replaced',
    async (state) => {
      await world.createBucket(state);
      const source = world.newData();
      await world.put(a, { data: source });
      const replaced = await putProtected(b);
      await expectBlocked('null' as VersionId);
      await world.markUnlinked();
      expect(await world.stateOf(...blobsOf(source, replaced))).toEqual(['live', 'condemned']);
    },
  );

  test('suspended: with Overwrite, the null version below others that an older source version would replace', async () => {
    await world.createBucket();
    await world.put(a);
    await putProtected(b);
    await setVersioning('enabled');
    await world.put(b);
    await setVersioning('suspended');
    await expectBlocked('null' as VersionId);
    expect(await world.versions()).toEqual(['b null*', 'b v2']);
  });

  test('enabled: a retained version at the destination that stays below the moved ones does not matter', async () => {
    await world.createBucket('enabled');
    await world.put(a);
    await putProtected(b);
    expect(await move()).toMatchObject({ result: [expect.any(String)] });
    expect(await world.versions()).toEqual(['b v2*', 'b v1']);
  });
});

describe('MOVE of a prefix, extensions 2.1: a key with a retained version is an entry, and the others move', () => {
  const from = 'p/';
  const to = 'q/';
  const drive = async () =>
    (await driveJob(world, await beginMove(world, { from, to, overwrites: true }))).ended;
  const errorOf = (name: string, versionId: unknown) => ({
    sourceKey: `p/${name}`,
    destinationKey: `q/${name}`,
    versionId,
    code: 'AccessDenied',
    message: expect.any(String),
  });

  test.each(['unversioned', 'suspended'] as const)(
    '%s: at the source, and at the destination',
    async (state) => {
      await world.createBucket(state);
      const all: NewData[] = [];
      for (const name of ['1', '2', '4', '5']) {
        const data = world.newData();
        all.push(data);
        await world.put(`p/${name}`, { data });
      }
      all.push(await putProtected('p/3'), await putProtected('q/4'));
      const usage = await world.query('count-usage', {});
      const errors = [errorOf('3', 'null'), errorOf('4', 'null')];
      expect(await drive()).toMatchObject({ movedCount: 3, errorCount: 2, errors });
      const names = ['p/3', 'p/4', 'q/1', 'q/2', 'q/4', 'q/5'];
      expect(await world.versions()).toEqual(names.map((name) => `${name} null*`));
      expect((await currentOf('q/4' as ObjectKey)).etag).toBe(KEPT);
      await world.markUnlinked();
      expect(await world.stateOf(...blobsOf(...all))).toEqual(all.map(() => 'live'));
      expect(await world.query('count-usage', {})).toEqual(usage);
      stored.letGo();
      expect(await drive()).toMatchObject({ movedCount: 2, errorCount: 0 });
    },
  );

  test('enabled: a retained older version keeps all versions of its key in place', async () => {
    await world.createBucket('enabled');
    for (const name of ['1', '2', '3']) await world.put(`p/${name}`);
    await putProtected('p/2');
    await world.put('p/2');
    await world.remove('p/2');
    const ids = await idsOf('p/2' as ObjectKey);
    expect(await drive()).toMatchObject({ movedCount: 2, errorCount: 1, errors: [errorOf('2', ids[2])] });
    expect(await idsOf('p/2' as ObjectKey)).toEqual(ids);
    expect(await idsOf(to as ObjectKey)).toHaveLength(2);
  });
});

/** What writes the key `a`, once all is there that it needs: in a bucket that keeps no versions, a null version. */
const WRITES: Record<string, (data: NewData) => Promise<() => Promise<{ kind: string }>>> = {
  PUT: async (data) => () => world.put(a, { data, etag: etagOf('new') }),
  async copy(data) {
    await world.put('source', { data });
    return () => world.put(a, { data: copyOf(data, world.newLinkId()), etag: etagOf('new') });
  },
  async 'copy onto itself'() {
    const { versionId, order, manifest } = await currentOf(a);
    const expected = { versionId, order, dataLinkId: dataLinkId(manifest) };
    const version = { owner: OWNER, kek, sealedHeaders: Uint8Array.of(8) };
    const command = { bucketId: BUCKET, key: a, linkId: world.newLinkId(), expected, version };
    return () => world.execute('recommit-version', command);
  },
  async compose(data) {
    await world.put('component', { data });
    const linkId = world.newLinkId();
    const uses = data.uses.map((use) => ({ ...use, linkId }));
    const { sizeBytes } = data;
    const originals = packOriginals({ sizeBytes, md5: etagOf('component') });
    const command = {
      bucketId: BUCKET,
      key: a,
      token: { token: 'composed', digest: 'd' },
      version: { sizeBytes, etag: `${etagOf('whole')}-1`, owner: OWNER, kek, originals },
      body: {
        uses,
        segments: uses.map((use, at) => ({ use: at, offsetBytes: 0, sizeBytes: use.sizeBytes })),
      },
      data: { births: [], links: uses.map(({ blobId }) => ({ blobId, linkId })) },
    };
    return () => world.execute('compose-version', command);
  },
  async append({ sizeBytes, grant }) {
    const command = {
      bucketId: BUCKET,
      key: a,
      linkId: world.newLinkId(),
      kek: { found: kek, renewed: kek },
      piece: { sizeBytes, md5: etagOf('piece'), births: grant.births, crcs: {} },
      token: { token: 'appended', digest: 'd' },
    };
    return () => world.execute('append-version', command);
  },
  async 'completed upload'(data) {
    const uploadId = await beginUpload(world, a);
    await putPart(world, { key: a, uploadId }, { partNumber: 1, data });
    const parts = [{ partNumber: 1, etag: etagOf('part 1') }];
    return () => world.execute('complete-upload', { bucketId: BUCKET, key: a, uploadId, parts });
  },
};

describe.each(Object.keys(WRITES))('%s over a version that has to stay', (name) => {
  const prepare = WRITES[name] as (typeof WRITES)[string];

  /** Nothing at all is written, and what was refused is done once it may. */
  async function expectBlocked(): Promise<void> {
    const write = await prepare(world.newData());
    const before = await everything();
    expect(await write()).toEqual({ kind: 'blocked', blocker: { by: 'retention' } });
    expect(await everything()).toEqual(before);
    stored.letGo();
    expect(await write()).toMatchObject({ kind: 'committed', versionId: 'null' });
  }

  test('unversioned: it is not replaced', async () => {
    await world.createBucket();
    await putProtected(a);
    await expectBlocked();
  });

  test('suspended: the null version is not replaced', async () => {
    await world.createBucket('suspended');
    await putProtected(a);
    await expectBlocked();
  });

  test('suspended: nor where it lies below another one', async () => {
    await world.createBucket();
    await putProtected(a);
    await setVersioning('enabled');
    await world.put(a);
    await setVersioning('suspended');
    await expectBlocked();
  });

  test('enabled: it becomes an older one', async () => {
    await world.createBucket('enabled');
    await putProtected(a);
    const write = await prepare(world.newData());
    expect(await write()).toMatchObject({ kind: 'committed' });
    expect((await world.versions()).filter((line) => line.startsWith('a '))).toEqual(['a v2*', 'a v1']);
  });
});

describe('DELETE of a retained version', () => {
  const blocked = { kind: 'blocked', blocker: { by: 'retention' } };

  async function expectBlocked(versionId?: VersionId): Promise<void> {
    const before = await everything();
    expect(await world.remove(a, versionId)).toEqual(blocked);
    expect(await everything()).toEqual(before);
    stored.letGo();
    expect(await world.remove(a, versionId)).toMatchObject({ kind: 'deleted' });
  }

  test('unversioned: the object', async () => {
    await world.createBucket();
    await putProtected(a);
    await expectBlocked();
  });

  test('suspended: by a marker that would replace it', async () => {
    await world.createBucket('suspended');
    await putProtected(a);
    await expectBlocked();
  });

  test('enabled: by its id, and a marker hides it', async () => {
    await world.createBucket('enabled');
    await putProtected(a);
    const [versionId] = await idsOf(a);
    expect(await world.remove(a)).toMatchObject({ kind: 'deleted', madeMarker: true });
    await expectBlocked(versionId);
  });

  test('of several keys the others are deleted', async () => {
    await world.createBucket();
    await putProtected(a);
    await world.put(b);
    const items = [{ key: a }, { key: b }];
    const outcome = await world.execute('delete-versions', { bucketId: BUCKET, owner: OWNER, items });
    expect(outcome.items).toEqual([blocked, expect.objectContaining({ kind: 'deleted' })]);
    expect(await world.versions()).toEqual(['a null*']);
  });
});
