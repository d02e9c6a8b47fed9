import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { endWritesDuring, SimulatedExtents } from '../../../tests/support/disks/simulated-extents.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { utf8 } from '../../base/bytes/bytes.ts';
import { createMemoryKv } from '../memory/memory-kv.ts';
import { BLOCK_BYTES, recordBytes, roundUp } from './extent-record.ts';
import { Extents } from './extents.ts';
import { livePlaces, SeparatedKv } from './separated-kv.ts';

const COLUMNS = { column: 'data', placeColumn: 'index', placePrefix: Uint8Array.of(9) };
const EVERYTHING = { gte: Uint8Array.of(1), lt: Uint8Array.of(255), limit: 100 };
const memory = {
  take: async (sizeBytes: number) => ({ bytes: Buffer.alloc(roundUp(sizeBytes)), release() {} }),
};

async function openStore(fromBytes = 100) {
  const io = new SimulatedExtents(() => 0);
  const kv = createMemoryKv(['data', 'index']);
  const extents = await Extents.open({
    io,
    memory,
    fileBytes: 16 * BLOCK_BYTES,
    live: livePlaces(kv, COLUMNS),
  });
  const options = { fromBytes, clock: createManualClock(0) };
  const store = new SeparatedKv(kv, { extents, columns: COLUMNS, options });
  const during = <T>(work: Promise<T>) => endWritesDuring(io, work);
  return { io, kv, extents, store, during };
}

const put = (key: string, value: Uint8Array | null) => ({ column: 'data', key: utf8(key), value });

test('a large value in the database is moved into an extent, once, and all others stay', async () => {
  const { kv, extents, store, during } = await openStore();
  const [old, young, small] = [randomBytes(5000), randomBytes(6000), randomBytes(99)];
  await kv.commit([put('old', Buffer.from(old)), put('small', Buffer.from(small))]);
  await during(store.commit([put('young', Buffer.from(young))]));
  const separate = (key: string) => during(store.separate(utf8(key)));
  expect(await separate('old')).toBe(true);
  expect(extents.usage().liveBytes).toBe(recordBytes(5000) + recordBytes(6000));
  for (const key of ['old', 'young', 'small', 'none']) expect(await separate(key)).toBe(false);
  expect(extents.usage().liveBytes).toBe(recordBytes(5000) + recordBytes(6000));
  expect((await kv.range({ column: 'data', ...EVERYTHING })).map(({ key }) => Buffer.from(key))).toEqual([
    Buffer.from('small'),
  ]);
  const rows = await store.range({ column: 'data', ...EVERYTHING });
  expect(rows.map(({ value }) => Buffer.from(value))).toEqual([old, small, young]);
});

test('where no value goes into an extent, none is moved there', async () => {
  const { kv, extents, store, during } = await openStore(Number.POSITIVE_INFINITY);
  await kv.commit([put('old', randomBytes(5000))]);
  expect(await during(store.separate(utf8('old')))).toBe(false);
  expect(extents.usage()).toMatchObject({ liveBytes: 0, deadBytes: 0 });
});

test('a read that began before a value was moved finds it', async () => {
  const { kv, store, during } = await openStore();
  const old = randomBytes(5000);
  await kv.commit([put('old', Buffer.from(old))]);
  const moving = store.separate(utf8('old'));
  const reads = Array.from({ length: 20 }, async (_, turns) => {
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    return store.getMany('data', [utf8('old')]);
  });
  expect(await during(moving)).toBe(true);
  for (const [value] of await Promise.all(reads)) expect(value && Buffer.from(value)).toEqual(old);
});

test('whatever is written while values are moved, what was written last is there, and nothing else holds room', async () => {
  const KEYS = ['a', 'b', 'c'];
  const key = fc.constantFrom(...KEYS);
  const step = fc.oneof(
    fc.record({ do: fc.constant('commit' as const), key, length: fc.constantFrom(0, 50, 5000, 9000) }),
    fc.record({ do: fc.constant('separate' as const), key }),
    fc.record({ do: fc.constant('write' as const) }),
    fc.record({ do: fc.constant('wait' as const), turns: fc.integer({ min: 1, max: 30 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const { io, kv, extents, store, during } = await openStore();
      const model = new Map(KEYS.map((name) => [name, randomBytes(5000) as Buffer | undefined]));
      await kv.commit([...model].map(([name, value]) => put(name, Buffer.from(value ?? []))));
      const work: Promise<unknown>[] = [];
      for (const one of steps) {
        if (one.do === 'write') io.step();
        else if (one.do === 'wait') for (let turn = 0; turn < one.turns; turn++) await Promise.resolve();
        else if (one.do === 'separate') work.push(store.separate(utf8(one.key)));
        else {
          const value = one.length === 0 ? undefined : randomBytes(one.length);
          model.set(one.key, value);
          work.push(store.commit([put(one.key, value ? Buffer.from(value) : null)]));
        }
      }
      await during(Promise.all(work));
      for (const name of KEYS) await during(store.separate(utf8(name)));
      const values = await store.getMany('data', KEYS.map(utf8));
      expect(values.map((value) => value && Buffer.from(value))).toEqual(KEYS.map((name) => model.get(name)));
      const large = [...model.values()].filter((value) => value !== undefined && value.length >= 100);
      const roomBytes = large.reduce((sum, value) => sum + recordBytes(value?.length ?? 0), 0);
      expect(extents.usage().liveBytes).toBe(roomBytes);
    }),
    { numRuns: 150 },
  );
});
