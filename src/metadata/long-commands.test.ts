// What commands cost that look at many rows: a refusal reads no more than it needs, and those that must read much wait for
// their turns.
import { expect, test, vi } from 'vitest';
import { beginMove, DRIVER } from '../../tests/support/metadata/drive-job.ts';
import {
  BUCKET,
  BUCKET_NAME,
  beginUpload,
  dataOf,
  etagOf,
  OWNER,
  openMetadata,
  putPart,
} from '../../tests/support/metadata/metadata-shards.ts';
import { createFairTurns, type FairTurns } from '../base/async/fair-turns.ts';
import { nextTurn } from '../base/async/next-turn.ts';
import type { Steps } from '../base/async/steps.ts';
import { createMemoryKv } from '../platform/memory/memory-kv.ts';
import type { RequestOrigin } from '../types/events.ts';
import { LIMITS } from '../types/limits.ts';
import type { AccountId, ObjectKey } from '../types/names.ts';
import { linkCodec, partCodec } from '../types/records/rows.ts';
import { CommandView } from './engine/command-view.ts';
import { SHARD_COLUMNS } from './engine/shards.ts';

const MiB = 1024 * 1024;
const key = (name: string) => name as ObjectKey;
const bucket = { bucketId: BUCKET, name: BUCKET_NAME, cfgVersion: 1 };
const deletion = (count: number) => ({
  bucketId: BUCKET,
  owner: '000000000001' as never,
  items: Array.from({ length: count }, (_, at) => ({ key: key(`missing ${at}`) })),
});

/** A world that counts the rows which are read from its store, and the turns that are taken. */
async function openCounted() {
  const kv = createMemoryKv(SHARD_COLUMNS);
  const counts = { rows: 0, bytesMax: 0, gotBytesMax: 0 };
  const { getMany, range } = kv;
  kv.getMany = async (column, keys) => {
    counts.rows += keys.length;
    const values = await getMany.call(kv, column, keys);
    const bytes = values.reduce((sum, value) => sum + (value?.length ?? 0), 0);
    counts.gotBytesMax = Math.max(counts.gotBytesMax, bytes);
    return values;
  };
  kv.range = async (bounds) => {
    const rows = await range.call(kv, bounds);
    counts.rows += rows.length;
    counts.bytesMax = Math.max(
      counts.bytesMax,
      rows.reduce((bytes, { value }) => bytes + value.length, 0),
    );
    return rows;
  };
  const taken: string[] = [];
  const hooks: { onTurn?: () => void; onJoin?: () => Promise<void> | undefined } = {};
  /** Before computations of many steps. */
  const readBefore: number[] = [];
  const fair = createFairTurns();
  const turns: FairTurns = {
    async take({ owner }) {
      taken.push(String(owner));
      hooks.onTurn?.();
    },
    finish(turn, steps) {
      readBefore.push(counts.rows);
      return fair.finish(
        turn,
        toldSteps(steps, () => hooks.onTurn?.()),
      );
    },
    join: () => hooks.onJoin?.(),
    begin: fair.begin,
  };
  const world = await openMetadata({ kv, turns });
  await world.createBucket();
  const count = async (work: () => Promise<unknown>) => {
    counts.rows = 0;
    await work();
    return counts.rows;
  };
  return { world, turns, taken, readBefore, count, counts, hooks };
}

function* toldSteps<T>(steps: Steps<T>, onStep: () => void): Steps<T> {
  for (;;) {
    onStep();
    const step = steps.next();
    if (step.done === true) return step.value;
    yield;
  }
}

type Counted = Awaited<ReturnType<typeof openCounted>>['world'];

/** An upload of so many parts, and its Complete. */
async function beginComplete(world: Counted, name: string, count: number) {
  const uploadId = await beginUpload(world, name);
  for (let partNumber = 1; partNumber <= count; partNumber++)
    await putPart(
      world,
      { key: key(name), uploadId },
      { partNumber, data: world.newData({ sizeBytes: 5 * MiB }) },
    );
  const all = Array.from({ length: count }, (_, at) => ({
    partNumber: at + 1,
    etag: etagOf(`part ${at + 1}`),
  }));
  const complete = (parts: { partNumber: number; etag: string }[]) =>
    world.shards.execute({ shard: 0, bucket }, 'complete-upload', {
      bucketId: BUCKET,
      key: key(name),
      uploadId,
      parts,
    });
  return { all, complete };
}

test('a Complete with a wrong list reads no part behind the first wrong one, however many there are', async () => {
  const { world, count } = await openCounted();
  const upload = await beginComplete(world, 'a', 300);
  const { all } = upload;
  const complete = async (parts: typeof all) => {
    const reply = await upload.complete(parts);
    return reply.kind === 'done' ? reply.value : reply;
  };
  const [first, second] = all;
  const wrong = { partNumber: 7, etag: etagOf('another') };
  expect(
    await count(async () => expect(await complete([wrong])).toMatchObject({ kind: 'invalid-part' })),
  ).toBeLessThan(10);
  const unordered = [second, first] as typeof all;
  expect(await count(() => complete(unordered))).toBeLessThan(10);
  const lastWrong = [...all.slice(0, 70), wrong].toSorted((a, b) => a.partNumber - b.partNumber);
  lastWrong.splice(6, 1);
  expect(
    await count(async () => expect(await complete(lastWrong)).toMatchObject({ partNumber: 7 })),
  ).toBeLessThan(80);
  expect(await complete(all)).toMatchObject({ kind: 'committed' });
});

test('a Complete looks at each part once as it reads them, and once to decide, however many rounds it reads in', async () => {
  const { world } = await openCounted();
  const { all, complete } = await beginComplete(world, 'a', 900);
  const looks = vi.spyOn(CommandView.prototype, 'has');
  expect(await complete(all)).toMatchObject({ value: { kind: 'committed' } });
  // Whether it is there, and its row: of each part twice.
  expect(looks.mock.calls.length).toBeLessThan(4 * all.length);
  looks.mockRestore();
});

test('a list of parts reads a bounded number of bytes at a time, however much is stored of each part', async () => {
  const { world, counts } = await openCounted();
  const uploadId = await beginUpload(world, 'a');
  for (let partNumber = 1; partNumber <= 12; partNumber++) {
    const data = world.newData({ sizeBytes: 5 * MiB });
    for (const use of data.uses) Object.assign(use, { wrappedDataKey: new Uint8Array(60_000) });
    await putPart(world, { key: key('a'), uploadId }, { partNumber, data });
  }
  counts.bytesMax = 0;
  const query = { bucketId: BUCKET, key: key('a'), uploadId, after: 0, max: 11 };
  const listed = await world.query('list-parts', query);
  if (listed.kind !== 'parts') throw new Error(listed.kind);
  expect(listed.parts.map(({ partNumber }) => partNumber)).toEqual(
    Array.from({ length: 11 }, (_, at) => at + 1),
  );
  expect(listed.isTruncated).toBe(true);
  expect(counts.bytesMax).toBeLessThan(400_000);
});

test('a Complete of parts of many pieces reads and decodes a bounded number of bytes at a time', async () => {
  const { world, counts, hooks } = await openCounted();
  const uploadId = await beginUpload(world, 'a');
  const parts: { partNumber: number; etag: string }[] = [];
  // First light ones, by which it might ask for many together.
  for (let partNumber = 1; partNumber <= 340; partNumber++) {
    const data = world.newData({ sizeBytes: 5 * MiB });
    if (partNumber > 200)
      for (const use of data.uses) Object.assign(use, { wrappedDataKey: new Uint8Array(65_000) });
    await putPart(world, { key: key('a'), uploadId }, { partNumber, data });
    parts.push({ partNumber, etag: etagOf(`part ${partNumber}`) });
  }
  counts.gotBytesMax = 0;
  let decodedBytesMax = 0;
  const decoded = vi.spyOn(partCodec, 'decode');
  hooks.onTurn = () => {
    const bytes = decoded.mock.calls.reduce((sum, [row]) => sum + row.length, 0);
    decodedBytesMax = Math.max(decodedBytesMax, bytes);
    decoded.mockClear();
  };
  const command = { bucketId: BUCKET, key: key('a'), uploadId, parts };
  const reply = await world.shards.execute({ shard: 0, bucket }, 'complete-upload', command);
  hooks.onTurn();
  expect(reply).toMatchObject({ value: { kind: 'too-many-segments' } });
  expect(decodedBytesMax).toBeLessThan(400_000);
  expect(counts.gotBytesMax).toBeLessThan(LIMITS.uploadPartsBytesMax + 1 * MiB);
  decoded.mockRestore();
});

test('the links of a part of a thousand pieces are admitted some at a time', async () => {
  const { world, hooks, taken } = await openCounted();
  const uploadId = await beginUpload(world, 'a');
  const stored = world.newData();
  await world.put('stored', { data: stored });
  const [use] = stored.uses;
  if (use === undefined) throw new Error('an object has a piece');
  const uses = Array.from({ length: 1000 }, () => ({ ...use, linkId: world.newLinkId() }));
  const links = uses.map(({ blobId, linkId }) => ({ blobId, linkId }));
  const encoded = vi.spyOn(linkCodec, 'encode');
  let encodedMost = 0;
  let encodedCount = 0;
  hooks.onTurn = () => {
    const count = encoded.mock.calls.length;
    encodedMost = Math.max(encodedMost, count);
    encodedCount += count;
    encoded.mockClear();
  };
  const data = dataOf(uses, { births: [], links });
  const segments = uses.map(({ sizeBytes }, at) => ({ use: at, offsetBytes: 0, sizeBytes }));
  const part = { partNumber: 1, sizeBytes: data.sizeBytes, etag: etagOf('part'), uses, segments };
  const command = { bucketId: BUCKET, key: key('a'), uploadId, part, data: data.grant };
  const reply = await world.shards.execute({ shard: 0, bucket }, 'commit-part', command);
  hooks.onTurn();
  expect(reply).toMatchObject({ value: { kind: 'committed' } });
  expect([encodedCount, encodedMost, new Set(taken)]).toEqual([1000, 100, new Set([OWNER])]);
  encoded.mockRestore();
});

test('of one owner two commands that read many rows by and by are under way at once', async () => {
  const { world, readBefore, count } = await openCounted();
  const names = ['a', 'b', 'c', 'd', 'e'];
  const uploads = await Promise.all(names.map((name) => beginComplete(world, name, 500)));
  await count(async () => {
    const completed = uploads.map(({ all, complete }) => complete(all));
    expect(await Promise.all(completed)).toMatchObject(names.map(() => ({ value: { kind: 'committed' } })));
  });
  expect(readBefore).toHaveLength(names.length);
  // The others have read none of their parts yet.
  expect(readBefore[0]).toBeLessThan(2 * 500 + 100);
});

test('a Complete of few parts waits for few of its kind before it reads them, and for none of the large ones', async () => {
  const { world, turns, count } = await openCounted();
  const few = await Promise.all(['a', 'b', 'c', 'd'].map((name) => beginComplete(world, name, 8)));
  const many = await beginComplete(world, 'many', 300);
  const hold = (owners: string[], work: string) =>
    Promise.all(owners.map((owner) => turns.begin({ owner, work })));
  const larges = await hold(['1', '1', '2', '2', '3', '3', '4', '4'], 'commands');
  const smalls = await hold([OWNER, OWNER], 'small commands');
  const completing = [many, ...few].map(({ all, complete }) => complete(all));
  const settle = async () => {
    for (let turn = 0; turn < 100; turn++) await nextTurn();
  };
  expect(await count(settle)).toBeLessThan(8 * few.length);
  for (const end of smalls) end();
  expect(await Promise.all(completing.slice(1))).toMatchObject(
    few.map(() => ({ value: { kind: 'committed' } })),
  );
  expect(await count(settle)).toBe(0);
  for (const end of larges) end();
  expect(await completing[0]).toMatchObject({ value: { kind: 'committed' } });
});

test('a MOVE onto a protected object reads none of the older versions', async () => {
  const { world, count } = await openCounted();
  await world.execute('set-bucket-config', {
    bucketId: BUCKET,
    kind: 'versioning',
    document: { status: 'enabled' },
  });
  for (let version = 0; version < 50; version++) await world.put('a');
  await world.put('b');
  const move = { from: key('a'), to: key('b') };
  const moved = () => world.execute('move-key', { bucketId: BUCKET, move, overwrites: false });
  expect(
    await count(async () => expect(await moved()).toMatchObject({ result: { kind: 'exists' } })),
  ).toBeLessThan(10);
});

test("a command on many rows takes turns of its bucket's owner, and one on few rows runs at once", async () => {
  const { world, taken } = await openCounted();
  await world.shards.execute({ shard: 0, bucket }, 'delete-versions', deletion(50));
  expect(taken).toEqual([]);
  await world.shards.execute({ shard: 0, bucket }, 'delete-versions', deletion(500));
  expect(taken.length).toBeGreaterThan(0);
  expect(new Set(taken)).toEqual(new Set([OWNER]));
});

test('where this turn of the loop has no room for more, a command of any size has no locks and reads nothing, or is not decided', async () => {
  const { world, counts, hooks } = await openCounted();
  await world.put('a');
  for (const waitsAt of [1, 2]) {
    const gate = Promise.withResolvers<void>();
    let joins = 0;
    hooks.onJoin = () => (++joins === waitsAt ? gate.promise : undefined);
    counts.rows = 0;
    const put = world.put('a');
    const settle = async () => {
      for (let turn = 0; turn < 10; turn++) await nextTurn();
      return [joins, counts.rows > 0];
    };
    expect(await settle()).toEqual([waitsAt, waitsAt === 2]);
    // Another one overtakes it where it waits for its beginning alone.
    const other = world.put('a').then(() => 'other');
    const first = await Promise.race([other, settle().then(() => 'nobody')]);
    expect(first).toBe(waitsAt === 1 ? 'other' : 'nobody');
    gate.resolve();
    expect(await put).toMatchObject({ kind: 'committed' });
    await other;
  }
});

test("a step of a prefix's MOVE takes turns of its bucket's owner, however few keys it has, and so does the look for its keys", async () => {
  const { world, taken } = await openCounted();
  for (const count of [1, 40]) {
    const [under, into] = [`a${count}/`, `b${count}/`];
    for (let at = 0; at < count; at++) await world.put(`${under}${at}`);
    const { bucketId, jobId, owner, from, to } = await beginMove(world, { from: under, to: into });
    taken.length = 0;
    const begin = { leg: 0 };
    const turn = { bucketId, owner: owner as AccountId };
    const { keys } = await world.query('find-moves', { ...turn, from, to, cursor: begin, keysMax: 1000 });
    expect([keys.length, new Set(taken)]).toEqual([count, new Set([OWNER])]);
    taken.length = 0;
    const step = { ...turn, jobId, driver: DRIVER, stepCount: 0, begin, from, to, keys };
    expect(await world.execute('step-move', step)).toMatchObject({ kind: 'stepped' });
    expect(taken.length).toBeGreaterThan(0);
    expect(new Set(taken)).toEqual(new Set([OWNER]));
  }
});

test('commands that hold large rows while they wait for turns hold so much of an account, and the rest are busy', async () => {
  const gate = Promise.withResolvers<void>();
  const turns: FairTurns = { ...createFairTurns(), take: () => gate.promise };
  const world = await openMetadata({ turns });
  await world.createBucket();
  const count = Math.ceil((1.5 * LIMITS.overlayBytesMax) / (256 * 1024));
  const names = Array.from({ length: count }, (_, at) => `k${at}`);
  const large = { version: { sealedHeaders: new Uint8Array(256 * 1024) } };
  for (const name of names) await world.put(name, large);
  const origin = { accountId: OWNER } as RequestOrigin;
  const kinds: string[] = [];
  const removals = names.map(async (name) => {
    const command = { ...deletion(0), items: [{ key: key(name) }] };
    const { kind } = await world.shards.execute({ shard: 0, bucket, origin }, 'delete-versions', command);
    kinds.push(kind);
  });
  await expect.poll(() => kinds.length / count).toBeGreaterThan(0.25);
  expect(new Set(kinds)).toEqual(new Set(['busy']));
  gate.resolve();
  await Promise.all(removals);
  expect(kinds.filter((kind) => kind === 'done').length / count).toBeGreaterThan(0.5);
});

test('a list of buckets takes turns of its account', async () => {
  const { world, taken } = await openCounted();
  await world.query('list-names', { owner: OWNER, max: 1000 });
  expect(taken).toEqual([OWNER]);
});
