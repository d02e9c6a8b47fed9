// Extents against a model: what was durable and is named stays readable, through cuts of power at every write, reuse of files and
// damage; what is not named gives its room back.
import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { SimulatedExtents } from '../../../tests/support/disks/simulated-extents.ts';
import { createManualClock, createSeededRandom } from '../../../tests/support/run/simulated.ts';
import { utf8 } from '../../base/bytes/bytes.ts';
import { Corruption } from '../../base/corruption.ts';
import { createMemoryKv } from '../memory/memory-kv.ts';
import { AlignedMemory } from './aligned-memory.ts';
import { BLOCK_BYTES, type RecordPlace, recordBytes } from './extent-record.ts';
import { Extents } from './extents.ts';
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
  io.flipBit(two.fileId, two.offset + 20);
  await expect(extents.read(utf8('two'), two)).rejects.toBeInstanceOf(Corruption);
  const offsets: number[] = [];
  for await (const { offset } of extents.records(one.fileId)) offsets.push(offset);
  expect(offsets).toEqual([one.offset, three.offset]);
});

const COLUMNS = { column: 'data', placeColumn: 'index', placePrefix: Uint8Array.of(9) };

async function openSeparated() {
  const io = new SimulatedExtents(() => 0);
  const kv = createMemoryKv(['data', 'index']);
  const extents = await Extents.open({ io, memory, fileBytes: FILE_BYTES, live: livePlaces(kv, COLUMNS) });
  const clock = createManualClock(0);
  const store = new SeparatedKv(kv, {
    extents,
    columns: COLUMNS,
    options: { fromBytes: BLOCK_BYTES, clock },
  });
  /** Ends writes until the work has ended. */
  async function during<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    const ended = work.finally(() => {
      isOver = true;
    });
    ended.catch(() => {});
    while (!isOver) {
      await settle();
      if (!io.step()) await new Promise((resolve) => setImmediate(resolve));
      clock.advance(1);
    }
    return ended;
  }
  return { io, kv, extents, store, during };
}

test('sparse files are copied forward: nearly all room of deleted values comes back, and the others stay', async () => {
  const { extents, store, during } = await openSeparated();
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
  expect(held()).toBeLessThan(0.55 * before);
  for (const [key, body] of bodies) {
    const [value] = await store.getMany('data', [utf8(key)]);
    expect(value && crc32(value)).toBe(crc32(body));
  }
  expect(await store.range({ column: 'data', gte: utf8('k'), lt: utf8('l'), limit: 1000 })).toHaveLength(100);
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
