// Commands of a metadata thread that are ready at once, as those of many gateways are: each is short, and together they keep the
// event loop no longer than an input of a client may.
import { expect, test } from 'vitest';
import { createFairTurns } from '../../src/base/async/fair-turns.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import type { CommandName } from '../../src/ports/metadata/port.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { makeLinkId, type ObjectKey } from '../../src/types/names.ts';
import { packOriginals } from '../../src/types/originals.ts';
import { beginMove, DRIVER, driveJob } from '../support/metadata/drive-job.ts';
import {
  BUCKET,
  BUCKET_NAME,
  beginUpload,
  dataOf,
  etagOf,
  kek,
  type MetadataShards,
  OWNER,
  openMetadata,
} from '../support/metadata/metadata-shards.ts';
import { expectFreeLoop } from '../support/run/loop-watch.ts';

const each = <T>(count: number, make: (at: number) => T) =>
  Array.from({ length: count }, (_, at) => make(at));

async function open(): Promise<MetadataShards> {
  const world = await openMetadata({ turns: createFairTurns({ clock: systemClock }) });
  await world.createBucket();
  return world;
}

function execute(world: MetadataShards, name: CommandName, command: object) {
  const bucket = { bucketId: BUCKET, name: BUCKET_NAME, cfgVersion: 1 };
  return world.shards.execute({ shard: 0, bucket }, name, { bucketId: BUCKET, ...command } as never);
}

function deletion(world: MetadataShards, keys: readonly string[]) {
  return execute(world, 'delete-versions', { owner: OWNER, items: keys.map((key) => ({ key })) });
}

async function expectDone(replies: readonly Promise<{ kind: string }>[]) {
  for (const { kind } of await Promise.all(replies)) expect(kind).toBe('done');
}

/** The data of a piece, under so many links. */
async function piecesOf(world: MetadataShards, count: number) {
  const stored = world.newData();
  await world.put('stored', { data: stored });
  const [use] = stored.uses;
  if (use === undefined) throw new Error('an object has a piece');
  // As random ones, but made at once.
  const id = Buffer.from(makeLinkId({ timeMs: world.clock.wallMs(), random: Buffer.alloc(10) }), 'hex');
  let made = 0;
  return () => {
    const uses = each(count, () => {
      id.writeUInt32BE(++made, id.length - 4);
      return { ...use, linkId: id.toString('hex') as typeof use.linkId };
    });
    const links = uses.map(({ blobId, linkId }) => ({ blobId, linkId }));
    return dataOf(uses, { births: [], links });
  };
}

test.each([
  [750, 20],
  [100, 150],
])('%i deletions of %i keys each', async (count, keyCount) => {
  const world = await open();
  await expectFreeLoop('their reads', async () => {
    await expectDone(
      each(count, (j) =>
        deletion(
          world,
          each(keyCount, (at) => `${j}/${at}`),
        ),
      ),
    );
  });
});

test('400 parts of 60 pieces each', async () => {
  const world = await open();
  const pieces = await piecesOf(world, 60);
  const key = 'upload';
  const uploadId = await beginUpload(world, key);
  const commands = each(400, (at) => {
    const { grant, uses, sizeBytes, manifest } = pieces();
    if (manifest.kind !== 'direct') throw new Error(manifest.kind);
    const part = { partNumber: at + 1, sizeBytes, etag: etagOf('p'), uses, segments: manifest.segments };
    return { key, uploadId, part, data: grant };
  });
  await expectFreeLoop('what they write', async () => {
    await expectDone(commands.map((command) => execute(world, 'commit-part', command)));
  });
});

test(`a composition of ${LIMITS.composeSegmentsMax} pieces`, async () => {
  const world = await open();
  const stored = each(LIMITS.composeSegmentsMax, () => world.newData());
  for (let at = 0; at < stored.length; at += 500)
    await Promise.all(stored.slice(at, at + 500).map((data) => world.put('stored', { data })));
  const sizeBytes = stored.reduce((sum, data) => sum + data.sizeBytes, 0);
  const etag = etagOf('whole');
  const version = { sizeBytes, etag, owner: OWNER, kek, originals: packOriginals({ sizeBytes, md5: etag }) };
  await expectFreeLoop('what it writes', async () => {
    const linkId = world.newLinkId();
    const uses = stored.flatMap((data) => data.uses.map((use) => ({ ...use, linkId })));
    const { grant, manifest } = dataOf(uses, {
      births: [],
      links: uses.map(({ blobId }) => ({ blobId, linkId })),
    });
    if (manifest.kind !== 'direct') throw new Error(manifest.kind);
    const { segments } = manifest;
    const command = { key: 'whole', version, body: { uses, segments }, data: grant };
    const reply = await execute(world, 'compose-version', command);
    expect(reply).toMatchObject({ value: { kind: 'committed' } });
  });
});

/** So many at a time, as many clients. */
async function putAll(count: number, put: (at: number) => Promise<unknown>) {
  for (let at = 0; at < count; at += 250)
    await Promise.all(each(Math.min(250, count - at), (j) => put(at + j)));
}

test.each([
  [LIMITS.moveVersionsMax, 1],
  [3 * LIMITS.moveVersionsMax, 1],
  [1000, 900],
])('a rename of %i versions of a key of %i bytes', async (count, keyBytes) => {
  const world = await open();
  const document = { status: 'enabled' } as const;
  await world.execute('set-bucket-config', { bucketId: BUCKET, kind: 'versioning', document });
  let [from, to] = ['a', 'b'].map((name) => name.repeat(keyBytes) as ObjectKey) as [ObjectKey, ObjectKey];
  await world.put(to);
  await putAll(count, () => world.put(from));
  await expectFreeLoop('each of its entries', async () => {
    // Who may give no lists has all versions looked at before, as in buckets whose versions may be protected.
    const command = { bucketId: BUCKET, move: { from, to }, overwrites: true, isPrivateOnly: true as const };
    const moved = await world.execute('move-key', command);
    if (moved.kind !== 'moved-key') throw new Error(moved.kind);
    if (!Array.isArray(moved.result)) {
      const begun = await world.execute('begin-key-move', { ...command, driver: DRIVER });
      if (begun.kind !== 'begun') throw new Error(begun.kind);
      expect((await driveJob(world, begun.job)).ended).toMatchObject({ endedAtMs: expect.any(Number) });
    }
    [from, to] = [to, from];
  });
});

test('a rename of a prefix that replaces objects of many pieces', async () => {
  const world = await open();
  const putPieces = (key: string) => {
    const data = each(60, () => world.newData());
    const births = data.flatMap(({ grant }) => grant.births);
    const uses = data.flatMap((one) => one.uses);
    return world.put(key, { data: dataOf(uses, { births, links: [] }) });
  };
  // One more than it is tried: each replaces the next one's.
  const prefixes = each(7, (at) => `${at}/`);
  for (const prefix of prefixes) await putAll(200, (at) => putPieces(`${prefix}${at}`));
  let [from = '', ...others] = prefixes;
  await expectFreeLoop('each of its steps', async () => {
    const [to = '', ...rest] = others;
    const job = await beginMove(world, { from, to, overwrites: true });
    expect((await driveJob(world, job)).ended).toMatchObject({ movedCount: 200, errorCount: 0 });
    [from, others] = [to, rest];
  });
});
