// Compose, append, folding and MOVE (service 4.2), cut short before each of their commits in turn. Where the client asks
// again, as it may under its token, all is as if nothing had been cut: contents, versions and usage at once, links and data
// when the background jobs have freed what was left behind (R24 to R33). Where it does not, all is as it was before, or as it
// was to be; and fsck finds nothing.
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { driveMove } from '../../src/metadata/moves/drive-move.ts';
import type { BucketTarget, CopyFrom } from '../../src/objects/object-store.ts';
import { LIMITS } from '../../src/types/limits.ts';
import type { ObjectKey, VersionId } from '../../src/types/names.ts';
import { growingUse } from '../../src/types/version.ts';
import type { FsckWorld } from '../support/fsck/fsck-world.ts';
import { bringToRest, cutShort } from '../support/metadata/crash-points.ts';
import { DRIVER, moveCalls } from '../support/metadata/drive-job.ts';
import { OWNER } from '../support/metadata/metadata-shards.ts';
import { append, segmentsOf } from '../support/objects/appends.ts';
import { CHUNK_BYTES, INLINE_BYTES_MAX, readAll } from '../support/objects/object-world.ts';
import { inSlices } from '../support/run/in-slices.ts';

const SHARDS = [0, 1, 2];
const chunks = (count: number, letter: string) => Buffer.alloc(count * CHUNK_BYTES - 5, letter);
const small = (letter: string, sizeBytes = 100) => Buffer.alloc(sizeBytes, letter);
const token = { token: 'once', digest: 'd' };
const tokenOf = () => token;

interface Operation {
  setUp(world: FsckWorld): Promise<unknown>;
  /** As a client does it, and again after it was cut short. */
  run(world: FsckWorld): Promise<unknown>;
  /** What it is about has happened: else nothing would have been cut. */
  expectDone(world: FsckWorld): Promise<void>;
  /** It does two things, and may have done the first of them. */
  isTwofold?: true;
}

async function compose(
  world: FsckWorld,
  { bucket = world.bucket(), to, parts }: { bucket?: BucketTarget; to: string; parts: readonly string[] },
): Promise<unknown> {
  const components: CopyFrom[] = [];
  for (const part of parts)
    components.push({ bucket, key: part as ObjectKey, found: await world.find(part, { bucket }) });
  const { calls, store } = world;
  return store.composeObject({ calls, components, bucket, key: to as ObjectKey, owner: OWNER, token });
}

/** Drives the prefix's MOVE as a gateway does that has others to serve: in small steps. */
async function movePrefix(world: FsckWorld, { from, to }: { from: string; to: string }): Promise<void> {
  const { bucketId } = world.bucket().believed;
  const { metadata } = world;
  const begun = await metadata.execute('begin-move', { bucketId, from, to, overwrites: false, token });
  if (begun.kind !== 'begun' && begun.kind !== 'began-before') throw new Error(begun.kind);
  const { jobId } = begun.kind === 'begun' ? begun.job : begun;
  const calls = {
    ...moveCalls(metadata, { jobId }),
    others: { areWaiting: () => true, rest: async () => {} },
  };
  const found = await calls.findJob();
  if (found === undefined) throw new Error('the job is kept as long as its token');
  for await (const _ of driveMove(calls, found.job));
}

/** One key in an entry for its latest version, and one for each of the others. */
async function moveInSteps(world: FsckWorld, { from, to }: { from: string; to: string }): Promise<void> {
  const { bucketId } = world.bucket().believed;
  const { metadata } = world;
  const move = { from: from as ObjectKey, to };
  const asked = { bucketId, move, overwrites: true, token, driver: DRIVER };
  const begun = await metadata.execute('begin-key-move', asked);
  if (begun.kind !== 'begun' && begun.kind !== 'began-before') throw new Error(begun.kind);
  const { jobId } = begun.kind === 'begun' ? begun.job : begun;
  const calls = moveCalls(metadata, { jobId });
  const stepKey: typeof calls.stepKey = (command) => calls.stepKey({ ...command, versionsMax: 1 });
  const found = await calls.findJob();
  if (found === undefined) throw new Error('the job is kept as long as its token');
  for await (const _ of driveMove({ ...calls, stepKey }, found.job));
}

/** The world's first bucket, from here on. */
async function keepVersions(
  { metadata, ...world }: FsckWorld,
  status: 'enabled' | 'suspended' = 'enabled',
): Promise<void> {
  const { believed } = world.bucket();
  const { bucketId } = believed;
  await metadata.execute('set-bucket-config', {
    bucketId,
    kind: 'versioning',
    document: { status },
  });
  const { bucket } = await metadata.query('get-bucket', { bucketId });
  believed.cfgVersion = bucket?.cfgVersion ?? 0;
}

async function putVersions(world: FsckWorld, key: string, bodies: readonly Buffer[]): Promise<void> {
  await keepVersions(world);
  for (const body of bodies) await world.put(key, body);
}

const sizeOf = async (world: FsckWorld, key: string, bucket = world.bucket()) =>
  (await world.find(key, { bucket })).version.sizeBytes;

const PIECES = LIMITS.compactPiecesMin;
/** Of a blob of its own. */
const PIECE_BYTES = INLINE_BYTES_MAX + 1;

/** Keys of more than one small step. */
const MANY = LIMITS.moveKeysBesideOthersMax + 10;
/** Once it is moved. */
const TOO_LONG = `a/${'k'.repeat(LIMITS.keyBytesMax - 3)}`;

const OPERATIONS: Record<string, Operation> = {
  'compose over what is there': {
    async setUp(world) {
      await world.put('chunked', chunks(3, 'c'));
      await world.put('inline', small('i'));
      await world.put('whole', chunks(1, 'w'));
    },
    run: (world) => compose(world, { to: 'whole', parts: ['chunked', 'inline', 'whole', 'chunked'] }),
    expectDone: async (world) => expect(await sizeOf(world, 'whole')).toBe(7 * CHUNK_BYTES - 15 + 100),
  },
  'compose of data of other shards': {
    async setUp(world) {
      const bucket = world.bucket(1);
      await world.put('chunked', chunks(2, 'c'));
      await world.put('inline', small('i'));
      await world.copy('chunked', 'copied', { bucket });
      await world.copy('inline', 'small', { bucket });
      await world.put('own', chunks(1, 'o'), { bucket });
    },
    run: (world) =>
      compose(world, { bucket: world.bucket(1), to: 'whole', parts: ['own', 'copied', 'small', 'copied'] }),
    expectDone: async (world) =>
      expect(await sizeOf(world, 'whole', world.bucket(1))).toBe(5 * CHUNK_BYTES - 15 + 100),
  },
  'compose where versions are kept': {
    setUp: (world) => putVersions(world, 'whole', [chunks(1, 'a'), small('b')]),
    run: (world) => compose(world, { to: 'whole', parts: ['whole', 'whole'] }),
    expectDone: async (world) => expect(await sizeOf(world, 'whole')).toBe(200),
  },
  'append of a small piece': {
    setUp: (world) => world.put('log', small('a')),
    run: (world) => append(world, 'log', small('b'), { tokenOf }),
    expectDone: async (world) => expect(await sizeOf(world, 'log')).toBe(200),
  },
  'append of a small piece to a blob of pieces': {
    async setUp(world) {
      await world.put('log', small('a'));
      await append(world, 'log', small('b'));
    },
    run: (world) => append(world, 'log', small('c'), { tokenOf }),
    expectDone: async (world) => expect(await segmentsOf(world, 'log')).toHaveLength(2),
  },
  'append of chunks': {
    setUp: (world) => world.put('log', chunks(2, 'a')),
    run: (world) => append(world, 'log', chunks(2, 'b'), { tokenOf }),
    expectDone: async (world) => expect(await sizeOf(world, 'log')).toBe(4 * CHUNK_BYTES - 10),
  },
  'append to a copy of data of another shard': {
    async setUp(world) {
      await world.put('chunked', chunks(2, 'c'));
      await world.copy('chunked', 'log', { bucket: world.bucket(1) });
    },
    run: (world) => append(world, 'log', chunks(1, 'b'), { bucket: world.bucket(1), tokenOf }),
    expectDone: async (world) =>
      expect(await sizeOf(world, 'log', world.bucket(1))).toBe(3 * CHUNK_BYTES - 10),
  },
  'append where versions are kept': {
    setUp: (world) => putVersions(world, 'log', [chunks(1, 'a'), chunks(2, 'b')]),
    run: (world) => append(world, 'log', small('c'), { tokenOf }),
    expectDone: async (world) => expect(await sizeOf(world, 'log')).toBe(2 * CHUNK_BYTES - 5 + 100),
  },
  'append, and the folding behind it': {
    isTwofold: true,
    async setUp(world) {
      await world.put('log', small('0', PIECE_BYTES));
      for (let count = 2; count < PIECES; count++) await append(world, 'log', small('1', PIECE_BYTES));
    },
    async run(world) {
      await append(world, 'log', small('2', PIECE_BYTES), { tokenOf });
      // Where the append was answered and not folded any more, its readers see to it.
      await world.get('log');
      await world.store.compactionIdle();
    },
    async expectDone(world) {
      expect(await sizeOf(world, 'log')).toBe(PIECES * PIECE_BYTES);
      expect(await segmentsOf(world, 'log')).toHaveLength(1);
    },
  },
  'folding of pieces, behind a read': {
    async setUp(world) {
      await world.put('log', small('0', PIECE_BYTES));
      for (let count = 1; count < LIMITS.compactReadPiecesMin; count++)
        await append(world, 'log', small('1', PIECE_BYTES));
    },
    async run(world) {
      await world.get('log');
      await world.store.compactionIdle();
    },
    async expectDone(world) {
      expect(await sizeOf(world, 'log')).toBe(LIMITS.compactReadPiecesMin * PIECE_BYTES);
      expect(await segmentsOf(world, 'log')).toHaveLength(1);
    },
  },
  'folding of a blob of pieces, behind a read': {
    async setUp(world) {
      await world.put('log', small('0'));
      for (let count = 0; count < LIMITS.compactReadPiecesMin; count++)
        await append(world, 'log', small('1'));
    },
    async run(world) {
      await world.get('log');
      await world.store.compactionIdle();
    },
    async expectDone(world) {
      expect(await sizeOf(world, 'log')).toBe((LIMITS.compactReadPiecesMin + 1) * 100);
      const { manifest } = (await world.find('log')).version;
      expect(growingUse(manifest)).toBeUndefined();
    },
  },
  'MOVE of a key in several entries, over another one': {
    async setUp(world) {
      await putVersions(world, 'from', [chunks(1, 'a'), small('b'), chunks(2, 'c'), small('d')]);
      await putVersions(world, 'to', [chunks(1, 'e'), small('f')]);
    },
    run: (world) => moveInSteps(world, { from: 'from', to: 'to' }),
    async expectDone(world) {
      const { bucketId } = world.bucket().believed;
      const page = { bucketId, prefix: '', max: 10 };
      const { versions } = await world.metadata.query('list-versions', page);
      expect(versions.map(({ key }) => key)).toEqual(Array.from({ length: 6 }, () => 'to'));
    },
  },
  'MOVE of a key with its versions, over another one': {
    async setUp(world) {
      await world.put('from', chunks(1, 'a'));
      await world.put('to', chunks(2, 'b'));
      await putVersions(world, 'from', [small('c'), chunks(1, 'd')]);
      await putVersions(world, 'to', [small('e')]);
      // A bucket that writes null versions replaces the one that is there.
      await keepVersions(world, 'suspended');
    },
    run(world) {
      const { bucketId } = world.bucket().believed;
      const move = { from: 'from' as ObjectKey, to: 'to' };
      return world.metadata.execute('move-key', { bucketId, move, overwrites: true, token });
    },
    expectDone: async (world) => expect(await sizeOf(world, 'to')).toBe(CHUNK_BYTES - 5),
  },
  'MOVE of a prefix into itself, some keys of which cannot move': {
    async setUp(world) {
      await keepVersions(world);
      await inSlices(MANY, (at) => world.put(`a/${at}`, small('k')));
      for (const key of ['a/1', 'a/b/2', 'a/b/b/3']) await world.put(key, chunks(1, 'c'));
      await world.copy('a/1', 'copied', { bucket: world.bucket(1) });
      await world.remove('a/7');
      await world.put(TOO_LONG, small('l'));
    },
    run: (world) => movePrefix(world, { from: 'a/', to: 'a/b/' }),
    async expectDone(world) {
      expect(await sizeOf(world, 'a/b/b/b/3')).toBe(CHUNK_BYTES - 5);
      const { bucketId } = world.bucket().believed;
      const { jobs } = await world.metadata.query('list-jobs', { limit: 10 });
      const moved = jobs.filter((job) => job.kind === 'move-prefix' && job.bucketId === bucketId);
      // Once, whoever drove it; several steps, or there would be little to cut.
      const movedCount = MANY + 4;
      expect(moved).toMatchObject([{ movedCount, errorCount: 1, endedAtMs: expect.any(Number) }]);
      expect(moved[0]?.kind === 'move-prefix' && moved[0].stepCount).toBeGreaterThan(2);
    },
  },
};

/** All versions with what they hold, and usage. Ids that were not `known` before differ from run to run. */
async function stateOf(world: FsckWorld, known: ReadonlySet<string>): Promise<unknown> {
  const state: unknown[] = [];
  for (const shard of SHARDS) {
    const bucket = world.bucket(shard);
    const { bucketId } = bucket.believed;
    const query = { bucketId, prefix: '', max: 1000 };
    const { versions } = await world.metadata.query('list-versions', query, shard);
    for (const { key, versionId, isLatest, summary } of versions) {
      const { isDeleteMarker, etag, sizeBytes } = summary;
      const id = known.has(versionId) ? versionId : 'new';
      const content = isDeleteMarker ? 'marker' : await digestOf(world, { bucket, key, versionId });
      state.push([shard, key, id, isLatest, etag, sizeBytes, content]);
    }
    const { objectCount, sizeBytes } = await world.metadata.query('count-usage', { bucketId }, shard);
    state.push([shard, objectCount, sizeBytes]);
  }
  return state;
}

async function digestOf(
  world: FsckWorld,
  { bucket, key, versionId }: { bucket: BucketTarget; key: ObjectKey; versionId: VersionId },
): Promise<string> {
  const found = await world.find(key, { bucket, versionId });
  const opened = await world.store.openObject({
    calls: world.calls,
    bucket,
    key,
    found,
    range: { offsetBytes: 0, sizeBytes: found.version.sizeBytes },
    signal: new AbortController().signal,
  });
  const bytes = opened.kind === 'bytes' ? opened.bytes : await readAll(opened.stream);
  return createHash('md5').update(bytes).digest('hex');
}

async function idsOf(world: FsckWorld): Promise<Set<string>> {
  const ids = new Set<string>();
  for (const shard of SHARDS) {
    const { bucketId } = world.bucket(shard).believed;
    const query = { bucketId, prefix: '', max: 1000 };
    const { versions } = await world.metadata.query('list-versions', query, shard);
    for (const { versionId } of versions) ids.add(versionId);
  }
  return ids;
}

/** How many blobs there are and links to them, of which shards, which of them compositions have; and chunks. */
async function dataOf(world: FsckWorld): Promise<unknown> {
  const counts: unknown[] = [await world.chunkCount()];
  for (const shard of SHARDS) {
    for (const table of ['blobs', 'links', 'foreign', 'bodies', 'pieces', 'endedLinks', 'condemned'] as const)
      counts.push([shard, table, (await world.rows(table, shard)).length]);
    const { buckets } = await world.metadata.query('count-composed-only', { limit: 1000 }, shard);
    counts.push(buckets);
  }
  return counts;
}

test.each(Object.keys(OPERATIONS))('%s', { timeout: 120_000 }, async (name) => {
  const { setUp, run, expectDone, isTwofold } = OPERATIONS[name] as Operation;
  const [before, after] = [await outcomeOf({ setUp, run: async () => {} }), await outcomeOf({ setUp, run })];
  expect([after.state, after.data]).not.toEqual([before.state, before.data]);
  let cutCount = 0;
  for (let isWhole = false; !isWhole; cutCount++) {
    const what = `cut before commit ${cutCount}`;
    const cut = await cutShort({ setUp, run, left: cutCount });
    ({ isWhole } = cut);
    const world = await cut.restart();
    await run(world);
    await expectDone(world);
    expect(await stateOf(world, before.ids), what).toEqual(after.state);
    await bringToRest(world, what);
    expect(await stateOf(world, before.ids), what).toEqual(after.state);
    expect(await dataOf(world), what).toEqual(after.data);

    const left = await (await cutShort({ setUp, run, left: cutCount })).restart();
    await bringToRest(left, what);
    const [data, state] = [await dataOf(left), await stateOf(left, before.ids)];
    expect([before.state, after.state], what).toContainEqual(state);
    if (isTwofold) continue;
    expect(
      [before, after].map((outcome) => [outcome.state, outcome.data]),
      what,
    ).toContainEqual([state, data]);
  }
  expect(cutCount).toBeGreaterThan(1);
});

/** What an operation that nothing cuts short leads to. */
async function outcomeOf(operation: Pick<Operation, 'setUp' | 'run'>) {
  let ids = new Set<string>();
  const setUp = async (world: FsckWorld) => {
    await operation.setUp(world);
    ids = await idsOf(world);
  };
  const { run } = operation;
  const world = await (await cutShort({ setUp, run, left: Number.POSITIVE_INFINITY })).restart();
  await bringToRest(world, 'not cut');
  // First: who reads contents has small pieces folded.
  const data = await dataOf(world);
  return { ids, data, state: await stateOf(world, ids) };
}
