// Extents against a model: what was durable and is named stays readable, through cuts of power at every write, reuse of files and
// damage; what is not named gives its room back.
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { endWritesDuring, SimulatedExtents } from '../../../tests/support/disks/simulated-extents.ts';
import { createManualClock, createSeededRandom } from '../../../tests/support/run/simulated.ts';
import { must } from '../../base/assert.ts';
import { fromUtf8, utf8 } from '../../base/bytes/bytes.ts';
import { Corruption } from '../../base/corruption.ts';
import { freeMemory } from '../../base/free-memory.ts';
import type { KvPort } from '../../ports/kv.ts';
import { AppError } from '../../types/errors.ts';
import { createMemoryKv } from '../memory/memory-kv.ts';
import { AlignedMemory } from './aligned-memory.ts';
import { openExtentFolder } from './extent-io.ts';
import { BLOCK_BYTES, type RecordPlace, recordBytes } from './extent-record.ts';
import { Extents, recordsOf } from './extents.ts';
import { regainPlaces } from './regain-places.ts';
import { livePlaces, SeparatedKv } from './separated-kv.ts';

const KiB = 1024;
const FILE_BYTES = 64 * KiB;
const memory = new AlignedMemory(1024 * KiB);

function openExtents(io: SimulatedExtents, live: Iterable<RecordPlace> = []): Promise<Extents> {
  return Extents.open({ io, memory: new AlignedMemory(256 * KiB), fileBytes: FILE_BYTES, live });
}

function picker(seed: number): (count: number) => number {
  const random = createSeededRandom(seed);
  return (count) => random.bytes(3).reduce((sum, byte) => sum * 256 + byte, 0) % count;
}

/** Lets all that can go on go on. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

interface Named {
  key: Uint8Array;
  body: Buffer;
  place: RecordPlace;
}

async function expectAll(extents: Extents, named: Iterable<Named>): Promise<void> {
  for (const { key, body, place } of named) expect((await extents.read(key, place))?.equals(body)).toBe(true);
}

test('what was durable and is named is read back, after any cut of power and any reuse of files', async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const pick = picker(seed);
    const io = new SimulatedExtents(pick);
    let extents = await openExtents(io);
    const named = new Map<number, Named>();
    let count = 0;
    for (let life = 0; life < 4; life++) {
      for (let step = 0; step < 40; step++) {
        const kind = pick(4);
        if (kind <= 1) {
          const key = utf8(`key ${++count}`);
          const body = randomBytes(1 + pick(20_000));
          const id = count;
          // One that never resolves is one that nobody names.
          void extents.append({ key, body }).then((place) => named.set(id, { key, body, place }));
        } else if (kind === 2) {
          io.step();
        } else {
          const [id, one] = [...named][pick(Math.max(1, named.size))] ?? [];
          if (id !== undefined && one !== undefined) {
            named.delete(id);
            extents.release([one.place]);
          }
        }
        await settle();
      }
      await expectAll(extents, named.values());
      io.losePower();
      extents = await openExtents(
        io,
        [...named.values()].map(({ place }) => place),
      );
      await expectAll(extents, named.values());
      const live = [...named.values()].reduce((sum, { body }) => sum + recordBytes(body.length), 0);
      expect(extents.usage().liveBytes, `seed ${seed}`).toBe(live);
    }
    // Rows can be made anew from the heads alone.
    const found = new Set<string>();
    for (const fileId of extents.fileIds())
      for await (const { head, offset } of extents.records(fileId))
        found.add(`${fileId} ${offset} ${head.sequence}`);
    for (const { place } of named.values())
      expect(found.has(`${place.fileId} ${place.offset} ${place.sequence}`), `seed ${seed}`).toBe(true);
  }
});

test('a damaged head is told, a place that has another record reads as nothing, and later heads are found', async () => {
  const io = new SimulatedExtents(() => 0);
  const extents = await openExtents(io);
  const appended = ['one', 'two', 'three'].map((key) =>
    extents.append({ key: utf8(key), body: randomBytes(5000) }),
  );
  await settle();
  while (io.step()) await settle();
  const [one, two, three] = await Promise.all(appended);
  if (one === undefined || two === undefined || three === undefined) throw new Error('three were appended');
  expect(await extents.read(utf8('one'), two)).toBeUndefined();
  const part = { offsetBytes: 10, sizeBytes: 4990 };
  expect(await extents.readPart(utf8('one'), two, part)).toBeUndefined();
  const whole = await extents.read(utf8('two'), two);
  expect(await extents.readPart(utf8('two'), two, part)).toEqual(whole?.subarray(10));
  expect(await extents.readPart(utf8('two'), two, { ...part, sizeBytes: 4991 })).toBeUndefined();
  io.flipBit(two.fileId, two.offset + 20);
  await expect(extents.read(utf8('two'), two)).rejects.toBeInstanceOf(Corruption);
  expect(await extents.readPart(utf8('two'), two, part)).toBeUndefined();
  const offsets: number[] = [];
  for await (const { offset } of extents.records(one.fileId)) offsets.push(offset);
  expect(offsets).toEqual([one.offset, three.offset]);
});

const COLUMNS = { column: 'data', placeColumn: 'index', placePrefix: Uint8Array.of(9) };

async function openSeparated(watched = (kv: KvPort): KvPort => kv) {
  const io = new SimulatedExtents(() => 0);
  const kv = watched(createMemoryKv(['data', 'index']));
  const extents = await Extents.open({ io, memory, fileBytes: FILE_BYTES, live: livePlaces(kv, COLUMNS) });
  const clock = createManualClock(0);
  const released: ArrayBuffer[] = [];
  const store = new SeparatedKv(kv, {
    extents,
    columns: COLUMNS,
    options: { fromBytes: BLOCK_BYTES, clock, onReleased: (buffer) => released.push(buffer) },
  });
  const turn = async () => {
    await settle();
    clock.advance(1);
  };
  const during = <T>(work: Promise<T>) => endWritesDuring(io, work, turn);
  return { io, kv, clock, extents, store, during, released };
}

test('sparse files are copied forward: nearly all room of deleted values comes back, and the others stay', async () => {
  const { clock, extents, store, during } = await openSeparated();
  const bodies = new Map(Array.from({ length: 200 }, (_, at) => [`key ${at}`, randomBytes(4096 + 10 * at)]));
  for (const [key, body] of bodies)
    await during(store.commit([{ column: 'data', key: utf8(key), value: Uint8Array.from(body) }]));
  const held = () => extents.usage().liveBytes + extents.usage().deadBytes;
  const before = held();
  for (const [at, key] of [...bodies.keys()].entries()) {
    if (at % 2 === 0) continue;
    await during(store.commit([{ column: 'data', key: utf8(key), value: null }]));
    bodies.delete(key);
  }
  expect(held()).toBeGreaterThan(0.95 * before);
  expect(await during(store.turnOver(new AbortController().signal))).toBe(true);
  expect(held()).toBeLessThan(0.8 * before);
  // Those that are half live are left for a while.
  clock.advance(120_000);
  expect(await during(store.turnOver(new AbortController().signal))).toBe(true);
  expect(held()).toBeLessThan(0.55 * before);
  for (const [key, body] of bodies) {
    const [value] = await store.getMany('data', [utf8(key)]);
    expect(value && crc32(value)).toBe(crc32(body));
  }
  expect(await store.range({ column: 'data', gte: utf8('k'), lt: utf8('l'), limit: 1000 })).toHaveLength(100);
});

test('a file that is mostly live is not copied forward while more of it is deleted, unless much of all is dead', async () => {
  const { clock, extents, store, during } = await openSeparated();
  const put = (key: string) =>
    during(store.commit([{ column: 'data', key: utf8(key), value: randomBytes(8000) }]));
  const remove = (key: string) => during(store.commit([{ column: 'data', key: utf8(key), value: null }]));
  const turnOver = () => during(store.turnOver(new AbortController().signal));
  // Five to a file.
  for (let at = 0; at < 40; at++) await put(`key ${at}`);
  for (const at of [0, 1]) await remove(`key ${at}`);
  expect(await turnOver()).toBe(false);
  clock.advance(60_000);
  await remove('key 5');
  clock.advance(60_000);
  expect(await turnOver()).toBe(true);
  // The second file has one that went a minute ago.
  expect(extents.usage().deadBytes).toBe(recordBytes(8000));
  await remove('key 6');
  expect(await turnOver()).toBe(false);
  // Less than half of each of these; more than a quarter of all.
  for (let at = 10; at < 35; at++) if (at % 5 < 2) await remove(`key ${at}`);
  expect(await turnOver()).toBe(true);
  expect(extents.usage().deadBytes).toBeLessThan(0.25 * 40 * recordBytes(8000));
});

test('the database is not made to give back little of its own beside much that extents hold', async () => {
  let [turnCount, pendingReclaimBytes] = [0, 1000];
  const { store, during } = await openSeparated((kv) => ({
    ...kv,
    usage: () => ({ ...kv.usage(), pendingReclaimBytes }),
    turnOver: async () => ++turnCount > 0,
  }));
  const put = (key: string) =>
    during(store.commit([{ column: 'data', key: utf8(key), value: randomBytes(8000) }]));
  const turnOver = () => during(store.turnOver(new AbortController().signal));
  for (const key of ['one', 'two']) await put(key);
  expect(await turnOver()).toBe(true);
  expect(turnCount).toBe(1);
  await during(store.commit([{ column: 'data', key: utf8('one'), value: null }]));
  await turnOver();
  expect(turnCount).toBe(1);
  pendingReclaimBytes = 16 * 1024 * KiB;
  await put('one');
  await turnOver();
  expect(turnCount).toBe(2);
});

test('room of values whose deletion is not synced yet is not used before it is', async () => {
  const { extents, store, during } = await openSeparated();
  const put = (key: string, sync: boolean) =>
    during(store.commit([{ column: 'data', key: utf8(key), value: randomBytes(40_000) }], { sync }));
  for (const key of ['one', 'two', 'three']) await put(key, true);
  const live = extents.usage().liveBytes;
  await during(store.commit([{ column: 'data', key: utf8('one'), value: null }], { sync: false }));
  expect(extents.usage().liveBytes).toBe(live);
  await during(store.commit([], { sync: true }));
  expect(extents.usage().liveBytes).toBeLessThan(live);
});

test('one damaged record keeps its file, and no other', async () => {
  const { io, extents, store, during } = await openSeparated();
  const keys = Array.from({ length: 60 }, (_, at) => `key ${at}`);
  for (const key of keys)
    await during(store.commit([{ column: 'data', key: utf8(key), value: randomBytes(6000) }]));
  // The body of the first record of the first file.
  io.flipBit(1, BLOCK_BYTES + 5);
  for (const key of keys.filter((_, at) => at % 5 !== 0))
    await during(store.commit([{ column: 'data', key: utf8(key), value: null }]));
  await during(store.turnOver(new AbortController().signal));
  expect(extents.usage().liveBytes).toBe(12 * recordBytes(6000));
  expect(extents.usage().deadBytes).toBeLessThan(2 * FILE_BYTES);
  const values = await store.getMany('data', [utf8('key 0'), utf8('key 5')]);
  expect(values.map((value) => value?.length)).toEqual([6000, 6000]);
});

test('emptied files are kept for use as far as much is written, four at most, and go when nothing is', async () => {
  const { io, extents, store, during } = await openSeparated();
  const keys = Array.from({ length: 60 }, (_, at) => ({ column: 'data', key: utf8(`key ${at}`) }));
  const putAll = async () => {
    for (const row of keys) await during(store.commit([{ ...row, value: randomBytes(30_000) }]));
  };
  const dropAll = async () => {
    for (const row of keys) await during(store.commit([{ ...row, value: null }]));
  };
  await putAll();
  const filledIds = extents.fileIds();
  expect(filledIds.length).toBeGreaterThan(6);
  store.giveBack();
  await dropAll();
  expect(extents.fileIds()).toHaveLength(5);
  const kept = extents.fileIds();
  await putAll();
  for (const id of kept) expect(extents.fileIds()).toContain(id);
  await dropAll();
  // It was written, and then nothing is.
  for (let turn = 0; turn < 2; turn++) store.giveBack();
  await settle();
  expect(extents.usage()).toMatchObject({ liveBytes: 0, deadBytes: 0 });
  expect(await io.list()).toEqual([]);
});

/** Appends bodies of these sizes, and ends all writes. */
async function appendAll(io: SimulatedExtents, extents: Extents, sizes: readonly number[]): Promise<Named[]> {
  const appended = sizes.map(async (length, at) => {
    const [key, body] = [utf8(`key ${at}`), randomBytes(length)];
    return { key, body, place: await extents.append({ key, body }) };
  });
  await settle();
  while (io.step()) await settle();
  return Promise.all(appended);
}

test('of a key that a batch has twice, the last row counts, and the room of the others is free', async () => {
  const { extents, store, during } = await openSeparated();
  const row = (key: string, length: number) => ({
    column: 'data',
    key: utf8(key),
    value: length === 0 ? null : randomBytes(length),
  });
  const batch = [row('gone', 5000), row('gone', 0), row('small', 6000), row('small', 9), row('large', 7000)];
  await during(store.commit([...batch, row('large', 8000)]));
  const values = await store.getMany('data', ['gone', 'small', 'large'].map(utf8));
  expect(values.map((value) => value?.length)).toEqual([undefined, 9, 8000]);
  expect(extents.usage().liveBytes).toBe(recordBytes(8000));
});

test('a value whose commit ends while another one looks up places is deleted by that', async () => {
  const [held, looked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const lookups: Uint8Array[][] = [];
  let isHeld = true;
  const { extents, store, during } = await openSeparated((kv) => ({
    ...kv,
    range: (range) => kv.range(range),
    getMany: async (column, keys) => {
      if (column === 'index' && isHeld) {
        lookups.push([...keys]);
        // Of the second commit.
        if (lookups.length === 2) await looked.promise;
      }
      return kv.getMany(column, keys);
    },
    commit: async (rows, options) => {
      await kv.commit(rows, options);
      if (isHeld) await held.promise;
    },
  }));
  const first = during(store.commit([{ column: 'data', key: utf8('one'), value: randomBytes(5000) }]));
  const second = store.commit(['one', 'two'].map((key) => ({ column: 'data', key: utf8(key), value: null })));
  await expect.poll(() => lookups.length, { timeout: 60_000 }).toBe(2);
  isHeld = false;
  held.resolve();
  await first;
  looked.resolve();
  await during(second);
  expect(await store.getMany('data', [utf8('one')])).toEqual([undefined]);
  expect(extents.usage().liveBytes).toBe(0);
});

test('the memory of a value is given back when its row is committed, and not where that is refused', async () => {
  let isBusy = true;
  const { extents, store, during, released } = await openSeparated((kv) => ({
    ...kv,
    commit: async (rows, options) => {
      if (isBusy) throw new AppError('SlowDown');
      return kv.commit(rows, options);
    },
  }));
  const value = Uint8Array.from(randomBytes(5000));
  const rows = [{ column: 'data', key: utf8('one'), value }];
  await expect(during(store.commit(rows))).rejects.toMatchObject({ code: 'SlowDown' });
  expect(released).toEqual([]);
  expect(extents.usage().liveBytes).toBe(0);
  isBusy = false;
  await during(store.commit(rows));
  expect(released).toEqual([value.buffer]);
});

test('behind a write that has failed no commit goes through, whatever it has', async () => {
  const { io, store } = await openSeparated();
  const failing = store.commit([{ column: 'data', key: utf8('one'), value: randomBytes(5000) }]);
  const small = store.commit([{ column: 'index', key: utf8('one'), value: utf8('of one') }]);
  const ended = Promise.allSettled([failing, small]);
  await settle();
  io.failWrite(new Error('no space is left'));
  expect((await ended).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await expect(store.clear({ column: 'index', gte: utf8('a'), lt: utf8('z') })).rejects.toThrow('no space');
  expect(await store.failed).toMatchObject({ message: 'no space is left' });
  expect(await store.getMany('index', [utf8('one')])).toEqual([undefined]);
});

test('a file that is missing is damage, and its id is not used again while rows name it', async () => {
  const io = new SimulatedExtents(() => 0);
  const [lost] = await appendAll(io, await openExtents(io), [5000]);
  if (lost === undefined) throw new Error('one was appended');
  await io.remove(lost.place.fileId);
  const extents = await openExtents(io, [lost.place]);
  const [other] = await appendAll(io, extents, [6000]);
  expect(other?.place.fileId).not.toBe(lost.place.fileId);
  await expect(extents.read(lost.key, lost.place)).rejects.toBeInstanceOf(Corruption);
  extents.release([lost.place]);
  await expectAll(extents, other === undefined ? [] : [other]);

  const folder = await mkdtemp(join(tmpdir(), 'holdfast-extents-'));
  try {
    const real = await openExtentFolder(folder);
    expect(await real.file(7).read([Buffer.alloc(BLOCK_BYTES)], 0)).toBe(0);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('a body that was read has memory of its own, which can be given back', async () => {
  const io = new SimulatedExtents(() => 0);
  const extents = await openExtents(io);
  const [record] = await appendAll(io, extents, [50_000]);
  const body = must(record && (await extents.read(record.key, record.place)), 'it is there');
  freeMemory(body);
  expect(body.length).toBe(0);
});

test('a checksum that the caller knows is not taken again', async () => {
  const { io, store, during, kv } = await openSeparated();
  const [known, unknown] = [randomBytes(5000), randomBytes(5000)];
  const rows = [
    { column: 'data', key: utf8('known'), value: known, crc32: 7 },
    { column: 'data', key: utf8('unknown'), value: unknown },
  ];
  await during(store.commit(rows));
  const places: RecordPlace[] = [];
  for await (const place of livePlaces(kv, COLUMNS)) if (place !== 'lost') places.push(place);
  expect(places.map(({ bodyCrc32 }) => bodyCrc32)).toEqual([7, crc32(unknown)]);
  // By it the body is judged where rows are made anew.
  const found: string[] = [];
  for await (const { head } of recordsOf(io.file(1))) found.push(fromUtf8(head.key));
  expect(found).toEqual(['unknown']);
});

test('a file is read into several buffers, up to its end', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-extents-'));
  try {
    const content = randomBytes(3 * BLOCK_BYTES);
    await writeFile(join(folder, '0000000001.extent'), content);
    const file = (await openExtentFolder(folder)).file(1);
    const [one, two, three] = [5000, BLOCK_BYTES, 10_000].map((length) => Buffer.alloc(length));
    if (one === undefined || two === undefined || three === undefined) throw new Error('three buffers');
    expect(await file.read([one, two, three], 100)).toBe(content.length - 100);
    expect(Buffer.concat([one, two, three]).subarray(0, content.length - 100)).toEqual(content.subarray(100));
    expect(await file.read([two], content.length)).toBe(0);
    await file.close();
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('after a start, what is dead behind the last live record of a file is known', async () => {
  const io = new SimulatedExtents(() => 0);
  const [first] = await appendAll(io, await openExtents(io), [5000, 6000, 7000]);
  if (first === undefined) throw new Error('three were appended');
  const extents = await openExtents(io, [first.place]);
  expect(extents.usage().deadBytes).toBe(recordBytes(6000) + recordBytes(7000));
  expect(extents.sparsest(0.25, new Set())).toBe(first.place.fileId);
});

test('a place of an earlier use of a file reads as nothing, though its head is there still', async () => {
  const picked = { at: 0 };
  const io = new SimulatedExtents((count) => Math.min(picked.at, count - 1));
  const extents = await openExtents(io);
  const [one, two, three] = await appendAll(io, extents, [5000, 25_000, 25_000]);
  if (one === undefined || two === undefined || three === undefined) throw new Error('three were appended');
  // Another file is begun, and the first one is free, and kept.
  extents.giveBack(1);
  await appendAll(io, extents, [30_000]);
  extents.release([one.place, two.place, three.place]);
  await appendAll(io, extents, [20_000]);
  const again = [14_000, 20_000].map((length) =>
    extents.append({ key: utf8('new'), body: randomBytes(length) }),
  );
  await settle();
  // The later one is written first: over the body of the second record, whose head is there still.
  picked.at = 1;
  io.step();
  expect(await extents.read(two.key, two.place)).toBeUndefined();
  while (io.step()) await settle();
  const places = await Promise.all(again);
  expect(places.map(({ fileId, offset }) => [fileId, offset])).toEqual([
    [two.place.fileId, 0],
    [two.place.fileId, recordBytes(14_000)],
  ]);
});

test('a store is closed when the files that it gave back are gone', async () => {
  const io = new SimulatedExtents(() => 0);
  const removing = Promise.withResolvers<void>();
  const remove = io.remove.bind(io);
  io.remove = (id) => removing.promise.then(() => remove(id));
  const extents = await openExtents(io);
  const [one] = await appendAll(io, extents, [5000]);
  if (one === undefined) throw new Error('one was appended');
  extents.release([one.place]);
  extents.tidy(0.25);
  extents.tidy(0.25);
  const closed = extents.close().then(async () => (await io.list()).length);
  await settle();
  removing.resolve();
  expect(await closed).toBe(0);
});

/** Rows of places whose key has one of these letters cannot be read, as where RocksDB has lost a block. */
function withoutRows(kv: KvPort, isLost: (name: string) => boolean): KvPort {
  const check = (column: string, key: Uint8Array) => {
    if (column === 'index' && isLost(Buffer.from(key.subarray(1)).toString())) throw new Corruption('lost');
  };
  return {
    ...kv,
    async getMany(column, keys) {
      for (const key of keys) check(column, key);
      return kv.getMany(column, keys);
    },
    async range(range) {
      const rows = await kv.range(range);
      for (const { key } of rows) check(range.column, key);
      return rows;
    },
  };
}

test('where rows of places cannot be read, the rest is read, written and deleted, and nothing is written over', async () => {
  let isLost = (_name: string) => false;
  const { io, kv, store, during } = await openSeparated((whole) =>
    withoutRows(whole, (name) => isLost(name)),
  );
  const body = (at: number) => Buffer.alloc(5000, at);
  const put = (to: SeparatedKv, at: number) =>
    during(to.commit([{ column: 'data', key: utf8(`key ${at}`), value: Uint8Array.from(body(at)) }]));
  for (let at = 0; at < 60; at++) await put(store, at);
  isLost = (name) => name.startsWith('key 2');
  const extents = await Extents.open({ io, memory, fileBytes: FILE_BYTES, live: livePlaces(kv, COLUMNS) });
  expect(extents.isHeld).toBe(true);
  const opened = new SeparatedKv(kv, {
    extents,
    columns: COLUMNS,
    options: { fromBytes: BLOCK_BYTES, clock: createManualClock(0) },
  });
  const read = async (at: number) => (await opened.getMany('data', [utf8(`key ${at}`)]))[0];
  expect(await read(5)).toEqual(body(5));
  await expect(read(25)).rejects.toBeInstanceOf(Corruption);
  // What is deleted and written around them uses no room of before.
  const gone = Array.from({ length: 20 }, (_, at) => 30 + at);
  await during(opened.commit(gone.map((at) => ({ column: 'data', key: utf8(`key ${at}`), value: null }))));
  const filesBefore = new Map((await io.list()).map(({ id, sizeBytes }) => [id, sizeBytes]));
  for (let at = 60; at < 80; at++) await put(opened, at);
  await during(opened.turnOver(new AbortController().signal));
  for (const [id, sizeBytes] of filesBefore) expect(io.sizeOf(id)).toBe(sizeBytes);
  // They may be written anew, deleted, and cleared.
  await put(opened, 21);
  await during(opened.commit([{ column: 'data', key: utf8('key 22'), value: null }]));
  await during(opened.clear({ column: 'data', gte: utf8('key 23'), lt: utf8('key 24') }));
  isLost = () => false;
  for (const at of [0, 20, 21, 24, 29, 59, 79]) expect(await read(at), `${at}`).toEqual(body(at));
  for (const at of [22, 23, 30]) expect(await read(at), `${at}`).toBeUndefined();
  // Readable again, as after salvage: the room of what is gone is known at the next start.
  const again = await Extents.open({ io, memory, fileBytes: FILE_BYTES, live: livePlaces(kv, COLUMNS) });
  expect(again.isHeld).toBe(false);
  expect(again.usage().liveBytes).toBe(58 * recordBytes(5000));
});

test('what an open cursor shows stays where it is, though it is deleted and its file is needed', async () => {
  const { extents, store, during } = await openSeparated();
  const row = (key: string, value: Uint8Array | null) => ({ column: 'data', key: utf8(key), value });
  const first = randomBytes(20_000);
  await during(store.commit([row('a', Uint8Array.from(first)), row('b', randomBytes(5000))]));
  const cursor = store.cursor({ column: 'data', gte: utf8('a'), lt: utf8('z') });
  expect(await during(cursor.next(1))).toEqual([{ key: utf8('a'), value: first }]);
  cursor.seek(utf8('a'));
  await during(store.commit([row('a', null)]));
  const liveBytes = extents.usage().liveBytes;
  expect(await during(cursor.next(1))).toEqual([{ key: utf8('a'), value: first }]);
  cursor.close();
  await settle();
  expect(extents.usage().liveBytes).toBe(liveBytes - recordBytes(20_000));
});

test('a cursor sees a value that moves between the database and extents, and whole commits', async () => {
  const { store, during } = await openSeparated();
  const row = (key: string, length: number) => ({
    column: 'data',
    key: utf8(key),
    value: randomBytes(length),
  });
  await during(store.commit([row('down', 5000), row('up', 10)]));
  const lengths: number[][] = [];
  for (let round = 0; round < 20; round++) {
    const committing = store.commit([
      row('down', round % 2 === 0 ? 10 : 5000),
      row('up', round % 2 === 0 ? 5000 : 10),
    ]);
    const cursor = store.cursor({ column: 'data', gte: utf8('a'), lt: utf8('z') });
    const later = store.commit([row('down', 20), row('up', 20)]);
    lengths.push((await during(cursor.next(9))).map(({ value }) => value.length));
    cursor.close();
    await during(Promise.all([committing, later]));
  }
  expect(lengths).toEqual(lengths.map((_, round) => (round % 2 === 0 ? [10, 5000] : [5000, 10])));
});

test('the head of a live record counts neither as data nor as dead', async () => {
  const { extents, store, during } = await openSeparated();
  for (let at = 0; at < 5; at++)
    await during(store.commit([{ column: 'data', key: utf8(`key ${at}`), value: randomBytes(5000) }]));
  const { liveBytes, pendingReclaimBytes } = store.usage();
  expect(liveBytes - 5 * 5000).toBeLessThan(1000);
  expect(pendingReclaimBytes).toBe(0);
  expect(extents.usage().overheadBytes).toBe(5 * (recordBytes(5000) - 5000));
});

test('a file that is full is told so once, however often it is read', async () => {
  const io = new SimulatedExtents(() => 0);
  const sealed: number[] = [];
  const file = io.file.bind(io);
  io.file = (id) => ({ ...file(id), seal: async () => void sealed.push(id) });
  const extents = await openExtents(io);
  const named = await appendAll(io, extents, [30_000, 30_000, 30_000]);
  for (let round = 0; round < 3; round++) await expectAll(extents, named);
  expect(sealed).toEqual(named.slice(0, 2).map(({ place }) => place.fileId));
});

test('a regain goes around blocks that the disk cannot read, and gives up a file that has many of them', async () => {
  const io = new SimulatedExtents(() => 0);
  const named = await appendAll(io, await openExtents(io), [5000, 6000, 7000]);
  const [one, two, three] = named;
  if (one === undefined || two === undefined || three === undefined) throw new Error('three were appended');
  const kv = createMemoryKv(['data', 'index']);
  const lost = new Set([two.place.offset]);
  const file = io.file.bind(io);
  io.file = (id) => ({
    ...file(id),
    read: async (into, offset) => {
      const end = offset + into.reduce((sum, { length }) => sum + length, 0);
      if ([...lost].some((at) => at >= offset && at < end)) throw new Corruption('lost');
      return file(id).read(into, offset);
    },
  });
  expect(await regainPlaces(kv, io, COLUMNS)).toEqual({ regainedCount: 2, lostFileCount: 0 });
  const extents = await Extents.open({ io, memory, fileBytes: FILE_BYTES, live: livePlaces(kv, COLUMNS) });
  await expectAll(extents, [one, three]);
  for (let at = 0; at < 100; at++) lost.add(at * BLOCK_BYTES);
  expect(await regainPlaces(createMemoryKv(['data', 'index']), io, COLUMNS)).toEqual({
    regainedCount: 0,
    lostFileCount: 1,
  });
});

test('where the drive leaves a write unanswered, all that waits is rejected, and it is closed when the drive answers', async () => {
  const io = new SimulatedExtents(() => 0);
  const kv = createMemoryKv(['data', 'index']);
  const extents = await Extents.open({ io, memory, fileBytes: FILE_BYTES, live: [] });
  const clock = createManualClock(0);
  const store = new SeparatedKv(kv, {
    extents,
    columns: COLUMNS,
    options: { fromBytes: BLOCK_BYTES, clock, hangs: { clock, afterMs: 2000 } },
  });
  const large = store.commit([{ column: 'data', key: utf8('one'), value: randomBytes(5000) }]);
  const small = store.commit([{ column: 'index', key: utf8('two'), value: utf8('of two') }]);
  const ended = Promise.allSettled([large, small, store.failed]);
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  while (!isOver) {
    clock.advance(100);
    await settle();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const [first, second, failed] = await ended;
  for (const one of [first, second])
    expect(one).toMatchObject({ status: 'rejected', reason: { name: 'DriveHangs' } });
  expect(failed).toMatchObject({ value: { name: 'DriveHangs' } });
  await expect(store.commit([])).rejects.toMatchObject({ name: 'DriveHangs' });
  const closing = store.close();
  await settle();
  while (io.step()) await settle();
  await closing;
});

test('no more writes are under way than are allowed, and those that wait go on', async () => {
  const io = new SimulatedExtents(() => 0);
  const [fileBytes, live] = [FILE_BYTES, []];
  const extents = await Extents.open({
    io,
    memory: new AlignedMemory(256 * KiB),
    fileBytes,
    writesMax: 1,
    live,
  });
  const appended = ['one', 'two', 'three'].map((key) =>
    extents.append({ key: utf8(key), body: randomBytes(40_000) }),
  );
  await settle();
  let stepCount = 0;
  while (io.step()) {
    expect(io.step()).toBe(false);
    stepCount++;
    await settle();
  }
  await Promise.all(appended);
  expect(stepCount).toBe(3);
});
