// What every KvPort promises (src/ports/kv.ts), run over each adapter.
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { fromUtf8, toHex, utf8 } from '../../src/base/bytes/bytes.ts';
import { cacheRows } from '../../src/metadata/engine/cached-rows.ts';
import { AlignedMemory } from '../../src/platform/extents/aligned-memory.ts';
import { openExtentFolder } from '../../src/platform/extents/extent-io.ts';
import { Extents } from '../../src/platform/extents/extents.ts';
import { livePlaces, SeparatedKv } from '../../src/platform/extents/separated-kv.ts';
import { createMemoryKv } from '../../src/platform/memory/memory-kv.ts';
import { openRocksdbKv } from '../../src/platform/rocksdb/rocksdb-kv.ts';
import { systemClock } from '../../src/platform/system-clock.ts';
import type { KvPort, KvPut, KvRow } from '../../src/ports/kv.ts';
import { LIMITS } from '../../src/types/limits.ts';
import { Chance } from '../simulation/chance.ts';
import { SimulatedDisk } from '../simulation/disk.ts';
import { type PumpedWorld, startPumpedWorld } from '../simulation/pumped.ts';

const folders: string[] = [];
const stores: KvPort[] = [];

async function openRocksdb(folder?: string): Promise<KvPort> {
  const path = folder ?? (await mkdtemp(join(tmpdir(), 'holdfast-kv-')));
  if (folder === undefined) folders.push(path);
  const kv = await openRocksdbKv({
    folder: path,
    columns: { rows: { reads: 'sync', content: 'rows' }, bodies: { reads: 'async', content: 'ciphertext' } },
  });
  stores.push(kv);
  return kv;
}

const SEPARATED = { column: 'bodies', placeColumn: 'rows', placePrefix: Uint8Array.of(0xfe) };

/** All values of `bodies` but empty ones in extents, in files so small that they are used again. */
async function openSeparated(): Promise<KvPort> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-kv-'));
  folders.push(folder);
  const kv = await openRocksdbKv({
    folder: join(folder, 'rows'),
    columns: { rows: { reads: 'sync', content: 'rows' }, bodies: { reads: 'async', content: 'ciphertext' } },
  });
  const extents = await Extents.open({
    io: await openExtentFolder(join(folder, 'extents')),
    memory: new AlignedMemory(8 * 1024 * 1024),
    readMemory: new AlignedMemory(1024 * 1024),
    fileBytes: 4 * 1024 * 1024,
    live: livePlaces(kv, SEPARATED),
  });
  const separated = new SeparatedKv(kv, {
    extents,
    columns: SEPARATED,
    options: { fromBytes: 1, clock: systemClock },
  });
  stores.push(separated);
  return separated;
}

const worlds: PumpedWorld[] = [];

function openSimulated(): KvPort {
  const world = startPumpedWorld();
  worlds.push(world);
  return new SimulatedDisk(['rows', 'bodies'], new Chance(1)).open(world.process);
}

afterEach(async () => {
  for (const kv of stores.splice(0)) await kv.close();
  for (const world of worlds.splice(0)) await world.stop();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

const put = (key: string, value: string | null, column = 'rows'): KvPut => ({
  column,
  key: utf8(key),
  value: value === null ? null : utf8(value),
});
const shown = (rows: KvRow[]) => rows.map(({ key, value }) => `${fromUtf8(key)}=${fromUtf8(value)}`);
const all = { gte: utf8('a'), lt: utf8('z'), limit: 1000 };
async function read(kv: KvPort, column: string, ...keys: string[]) {
  return (await kv.getMany(column, keys.map(utf8))).map((value) => value && fromUtf8(value));
}

describe.each([
  ['memory', async () => createMemoryKv(['rows', 'bodies'])],
  ['rocksdb', () => openRocksdb()],
  ['simulated', async () => openSimulated()],
  ['rocksdb with values in extents', openSeparated],
  ['rocksdb with rows kept in memory', async () => cacheRows(await openRocksdb(), 'rows')],
])('%s', (_name, open) => {
  test('reads see a resolved commit, over all columns', async () => {
    const kv = await open();
    await kv.commit([put('a', '1'), put('b', '2'), put('a', 'body', 'bodies')]);
    expect(await read(kv, 'rows', 'b', 'c', 'a')).toEqual(['2', undefined, '1']);
    expect(await read(kv, 'bodies', 'a', 'b')).toEqual(['body', undefined]);
    await kv.commit([put('a', null), put('b', '')]);
    expect(await read(kv, 'rows', 'a', 'b')).toEqual([undefined, '']);
  });

  test('a range of keys alone leaves out the values', async () => {
    const kv = await open();
    await kv.commit([put('a', 'body', 'bodies'), put('b', 'other', 'bodies')]);
    expect(shown(await kv.range({ column: 'bodies', ...all, keysOnly: true }))).toEqual(['a=', 'b=']);
  });

  test('commits apply and resolve in the order of the calls', async () => {
    const kv = await open();
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: 50 }, async (_, i) => {
        await kv.commit([put('k', String(i)), put('l', i % 2 === 0 ? 'even' : null)]);
        order.push(i);
      }),
    );
    expect(order).toEqual(Array.from({ length: 50 }, (_, i) => i));
    expect(await read(kv, 'rows', 'k', 'l')).toEqual(['49', undefined]);
  });

  test('a range is cleared in its turn, whatever is in it, and the rest stays', async () => {
    const kv = await open();
    await kv.commit([...'abcd'].flatMap((key) => [put(key, '1'), put(key, '1', 'bodies')]));
    const done: string[] = [];
    const earlier = kv
      .commit([put('b', '2'), put('bb', '2')], { sync: false })
      .then(() => done.push('earlier'));
    const clearing = kv
      .clear({ column: 'rows', gte: utf8('b'), lt: utf8('d') })
      .then(() => done.push('cleared'));
    const later = kv.commit([put('c', '3')], { sync: false }).then(() => done.push('later'));
    await Promise.all([earlier, clearing, later]);
    expect(done).toEqual(['earlier', 'cleared', 'later']);
    expect(shown(await kv.range({ column: 'rows', ...all }))).toEqual(['a=1', 'c=3', 'd=1']);
    expect(await read(kv, 'rows', 'b', 'bb')).toEqual([undefined, undefined]);
    expect(shown(await kv.range({ column: 'bodies', ...all }))).toHaveLength(4);
    await kv.clear({ column: 'rows', gte: utf8('a'), lt: utf8('a') });
    await kv.clear({ column: 'rows', gte: utf8('x'), lt: utf8('z') });
    await kv.commit([]);
    expect(await read(kv, 'rows', 'a', 'd')).toEqual(['1', '1']);
    await expect(kv.clear({ column: 'no-such-column', gte: utf8('a'), lt: utf8('b') })).rejects.toThrow(
      'column',
    );
    await kv.close();
    await expect(kv.clear({ column: 'rows', gte: utf8('a'), lt: utf8('b') })).rejects.toThrow('closed');
  });

  test('within a batch the later row wins', async () => {
    const kv = await open();
    await kv.commit([put('k', '1'), put('k', null), put('k', '2'), put('l', '1'), put('l', null)]);
    expect(await read(kv, 'rows', 'k', 'l')).toEqual(['2', undefined]);
  });

  test('an empty batch resolves once all earlier ones have', async () => {
    const kv = await open();
    const done: string[] = [];
    const first = kv.commit([put('a', '1')]).then(() => done.push('rows'));
    await kv.commit([]).then(() => done.push('empty'));
    await first;
    expect(done).toEqual(['rows', 'empty']);
  });

  test('a commit without sync is readable when it resolves, and applied in its turn', async () => {
    const kv = await open();
    await kv.commit([put('a', '1'), put('a', 'body', 'bodies')], { sync: false });
    expect(await read(kv, 'rows', 'a')).toEqual(['1']);
    expect(await read(kv, 'bodies', 'a')).toEqual(['body']);
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: 30 }, async (_, i) => {
        await kv.commit([put('k', String(i))], { sync: i % 3 === 0 });
        order.push(i);
      }),
    );
    expect(order).toEqual(Array.from({ length: 30 }, (_, i) => i));
    expect(await read(kv, 'rows', 'k')).toEqual(['29']);
    await kv.commit([], { sync: false });
    await kv.commit([put('a', null)], { sync: false });
    await kv.commit([]);
    expect(await read(kv, 'rows', 'a')).toEqual([undefined]);
  });

  test('a commit that nobody waits for is applied in its turn, by itself if need be, and before the store closes', async () => {
    const kv = await open();
    await kv.commit([put('a', '1')], { sync: false, isPatient: true });
    expect(await read(kv, 'rows', 'a')).toEqual(['1']);
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: 30 }, async (_, i) => {
        await kv.commit([put('k', String(i))], { sync: i % 3 === 0, isPatient: i % 3 > 0 });
        order.push(i);
      }),
    );
    expect(order).toEqual(Array.from({ length: 30 }, (_, i) => i));
    const last = kv.commit([put('k', 'last')], { sync: false, isPatient: true });
    await kv.close();
    await last;
  });

  test('ranges: bounds, order, limit, bytes', async () => {
    const kv = await open();
    await kv.commit(['b', 'a', 'd', 'c', 'é'].map((key) => put(key, key.toUpperCase())));
    await kv.commit([put('b', 'body', 'bodies')]);
    expect(shown(await kv.range({ column: 'rows', ...all }))).toEqual(['a=A', 'b=B', 'c=C', 'd=D']);
    expect(shown(await kv.range({ column: 'bodies', ...all }))).toEqual(['b=body']);
    const middle = { column: 'rows', gte: utf8('b'), lt: utf8('d'), limit: 10 };
    expect(shown(await kv.range(middle))).toEqual(['b=B', 'c=C']);
    expect(shown(await kv.range({ ...middle, reverse: true }))).toEqual(['c=C', 'b=B']);
    expect(shown(await kv.range({ column: 'rows', ...all, limit: 2 }))).toEqual(['a=A', 'b=B']);
    expect(shown(await kv.range({ column: 'rows', ...all, limit: 0 }))).toEqual([]);
    expect(shown(await kv.range({ column: 'rows', ...all, reverse: true, limit: 1 }))).toEqual(['d=D']);
    expect(shown(await kv.range({ column: 'rows', ...all, bytesMax: 3 }))).toEqual(['a=A', 'b=B']);
    expect(shown(await kv.range({ column: 'rows', ...all, bytesMax: 1 }))).toEqual(['a=A']);
    expect(await kv.range({ column: 'rows', gte: utf8('d'), lt: utf8('b'), limit: 9 })).toEqual([]);
  });

  test('keys order by unsigned bytes', async () => {
    const kv = await open();
    const keys = [[0], [0, 0], [0x7f], [0x80], [0x80, 0xff], [0xff], [0xff, 0xff]].map((k) =>
      Uint8Array.from(k),
    );
    await kv.commit([...keys].reverse().map((key) => ({ column: 'rows', key, value: new Uint8Array() })));
    const rows = await kv.range({
      column: 'rows',
      gte: new Uint8Array(),
      lt: Uint8Array.of(255, 255, 255),
      limit: 9,
    });
    expect(rows.map(({ key }) => [...key])).toEqual(keys.map((key) => [...key]));
  });

  test('long pages and many keys', async () => {
    const kv = await open();
    const keys = Array.from({ length: 2500 }, (_, i) => `k${String(i).padStart(5, '0')}`);
    await kv.commit(keys.map((key) => put(key, key)));
    expect(await read(kv, 'rows', ...keys)).toEqual(keys);
    expect(await kv.range({ column: 'rows', ...all, limit: 2400 })).toHaveLength(2400);
    const cursor = kv.cursor({ column: 'rows', gte: utf8('k'), lt: utf8('l') });
    expect(await cursor.next(1001)).toHaveLength(1001);
    expect(await cursor.next(2000)).toHaveLength(1499);
    cursor.close();
  });

  test('a cursor is a consistent view that can be re-positioned', async () => {
    const kv = await open();
    await kv.commit(['b', 'd', 'f', 'h'].map((key) => put(key, '1')));
    const cursor = kv.cursor({ column: 'rows', gte: utf8('b'), lt: utf8('h'), isNow: true });
    await kv.commit([put('c', '2'), put('d', '2'), put('f', null)]);
    expect(shown(await cursor.next(1))).toEqual(['b=1']);
    expect(shown(await cursor.next(10))).toEqual(['d=1', 'f=1']);
    expect(await cursor.next(10)).toEqual([]);
    cursor.seek(utf8('c'));
    expect(shown(await cursor.next(1))).toEqual(['d=1']);
    cursor.seek(utf8('a'));
    expect(shown(await cursor.next(2))).toEqual(['b=1', 'd=1']);
    cursor.seek(utf8('h'));
    expect(await cursor.next(2)).toEqual([]);
    cursor.seek(utf8('f'));
    expect(shown(await cursor.next(2))).toEqual(['f=1']);
    cursor.close();
    await expect(cursor.next(1)).rejects.toThrow('closed');
  });

  test('a cursor over large values is as consistent, wherever they lie, and may leave them out', async () => {
    const kv = await open();
    const [one, other] = [utf8('1'.repeat(5000)), utf8('2'.repeat(6000))];
    const large = (key: string, value: Uint8Array | null) => ({
      column: 'bodies',
      key: utf8(key),
      value: value && Uint8Array.from(value),
    });
    await kv.commit(['b', 'd', 'f', 'h'].map((key) => large(key, one)));
    const bounds = { column: 'bodies', gte: utf8('b'), lt: utf8('i') };
    const cursor = kv.cursor(bounds);
    const keys = kv.cursor({ ...bounds, keysOnly: true });
    expect(shown(await cursor.next(1))[0]).toBe(`b=${fromUtf8(one)}`);
    expect(shown(await keys.next(1))).toEqual(['b=']);
    await kv.commit([large('c', other), large('d', other), large('f', null), put('h', '', 'bodies')]);
    // More than a file of extents takes: rooms of what is gone would be used again.
    for (let round = 0; round < 6; round++) {
      await kv.commit([large('x', new Uint8Array(1024 * 1024))]);
      await kv.commit([large('x', null)]);
    }
    const rest = ['d', 'f', 'h'].map((key) => `${key}=${fromUtf8(one)}`);
    expect(shown(await cursor.next(10))).toEqual(rest);
    expect(shown(await keys.next(10))).toEqual(['d=', 'f=', 'h=']);
    cursor.seek(utf8('e'));
    expect(shown(await cursor.next(1))).toEqual(rest.slice(1, 2));
    cursor.close();
    keys.close();
    expect(shown(await kv.range({ ...bounds, limit: 9, keysOnly: true }))).toEqual(['b=', 'c=', 'd=', 'h=']);
  });

  test('a cursor in reverse', async () => {
    const kv = await open();
    await kv.commit(['b', 'd', 'f', 'h'].map((key) => put(key, '1')));
    const cursor = kv.cursor({ column: 'rows', gte: utf8('d'), lt: utf8('h'), reverse: true });
    expect(shown(await cursor.next(1))).toEqual(['f=1']);
    cursor.seek(utf8('e'));
    expect(shown(await cursor.next(5))).toEqual(['d=1']);
    cursor.seek(utf8('zz'));
    expect(shown(await cursor.next(5))).toEqual(['f=1', 'd=1']);
    cursor.seek(utf8('h'));
    expect(shown(await cursor.next(1))).toEqual(['f=1']);
    cursor.seek(utf8('c'));
    expect(await cursor.next(1)).toEqual([]);
    cursor.close();
  });

  test('replies belong to the caller', async () => {
    const kv = await open();
    await kv.commit([put('a', '1')]);
    for (let round = 0; round < 2; round++) {
      const [value] = await kv.getMany('rows', [utf8('a')]);
      expect(value).toEqual(Buffer.from('1'));
      value?.fill(0);
      const [row] = await kv.range({ column: 'rows', ...all });
      expect(shown(row === undefined ? [] : [row])).toEqual(['a=1']);
      row?.value.fill(0);
      row?.key.fill(0);
    }
  });

  test('large values keep their bytes, whether or not they own their buffers', async () => {
    const kv = await open();
    const whole = new Uint8Array(new ArrayBuffer(1024 * 1024)).fill(3);
    const slice = randomBytes(300_000).subarray(1000, 200_000);
    const expected = Buffer.from(slice);
    const shared = new Uint8Array(100_000).fill(9);
    await Promise.all([
      kv.commit([
        { column: 'bodies', key: utf8('whole'), value: whole },
        { column: 'bodies', key: utf8('slice'), value: slice },
      ]),
      kv.commit([
        { column: 'bodies', key: utf8('one'), value: shared },
        { column: 'bodies', key: utf8('two'), value: shared },
        put('small', 'x', 'bodies'),
      ]),
    ]);
    const [first, second, third, fourth, small] = await kv.getMany('bodies', [
      ...['whole', 'slice', 'one', 'two', 'small'].map(utf8),
    ]);
    expect(first?.length).toBe(1024 * 1024);
    expect(first?.every((byte) => byte === 3)).toBe(true);
    expect(expected.equals(second ?? Buffer.of())).toBe(true);
    expect(third?.every((byte) => byte === 9) && third.length === 100_000).toBe(true);
    expect(fourth?.every((byte) => byte === 9) && fourth.length === 100_000).toBe(true);
    expect(small).toEqual(Buffer.from('x'));
    // What was read can be written again, whatever memory it is in.
    if (first !== undefined) await kv.commit([{ column: 'bodies', key: utf8('again'), value: first }]);
    expect((await kv.getMany('bodies', [utf8('again')]))[0]?.length).toBe(1024 * 1024);
  });

  test('a row that cannot be stored is refused, and the store continues', async () => {
    const kv = await open();
    const longest = new Uint8Array(LIMITS.kvKeyBytesMax).fill(1);
    const value = utf8('v');
    await kv.commit([{ column: 'rows', key: longest, value }]);
    const refused = [
      { column: 'rows', key: Buffer.concat([longest, value]), value },
      { column: 'rows', key: new Uint8Array(), value },
      { column: 'no-such-column', key: value, value },
    ];
    for (const row of refused)
      await expect(kv.commit([put('beside', '1'), row])).rejects.toThrow(/key|column/);
    await kv.commit([put('a', '1')]);
    expect(await read(kv, 'rows', 'a', 'beside')).toEqual(['1', undefined]);
    expect(await kv.getMany('rows', [longest])).toEqual([Buffer.from('v')]);
  });

  test('a closed store refuses commits', async () => {
    const kv = await open();
    const last = kv.commit([put('a', '1')]);
    await kv.close();
    await last;
    await expect(kv.commit([put('a', '2')])).rejects.toThrow('closed');
    await kv.close();
  });

  test('usage reports bytes', async () => {
    const kv = await open();
    await kv.commit([put('a', 'x'.repeat(10_000))]);
    expect(kv.usage().liveBytes).toBeGreaterThan(9_000);
    expect(kv.usage().pendingReclaimBytes).toBeGreaterThanOrEqual(0);
  });

  test('without deletions there is nothing to compact', async () => {
    const kv = await open();
    await kv.commit([put('a', '1')]);
    expect(await kv.turnOver(new AbortController().signal)).toBe(false);
  });
});

describe('memory, as a failing disk', () => {
  test('a failure is final', async () => {
    const kv = createMemoryKv(['rows']);
    kv.holdCommits();
    const held = kv.commit([put('a', '1')]);
    kv.fail(new Error('disk on fire'));
    await expect(held).rejects.toThrow('disk on fire');
    expect((await kv.failed).message).toBe('disk on fire');
    await expect(kv.commit([put('b', '1')])).rejects.toThrow('disk on fire');
    expect(await read(kv, 'rows', 'a', 'b')).toEqual([undefined, undefined]);
  });
});

test('memory and rocksdb return the same for any scan', async () => {
  const rocksdb = await openRocksdb();
  // So many were deleted there that its cursors are another thread's.
  const withDeleted = await openRocksdb();
  const deletedKey = (at: number) => Uint8Array.of(0, 0, 0, 0xff, at >>> 8, at & 0xff);
  const deleted = Array.from({ length: 12_000 }, (_, at) => ({
    column: 'rows',
    key: deletedKey(at),
    value: null,
  }));
  await withDeleted.commit(deleted);
  const key = fc.uint8Array({ minLength: 1, maxLength: 3 }).map((bytes) => bytes.map((byte) => byte & 0x83));
  const scan = fc.record({
    gte: key,
    lt: key,
    reverse: fc.boolean(),
    limit: fc.integer({ min: 1, max: 6 }),
    seeks: fc.array(fc.record({ key, count: fc.integer({ min: 1, max: 4 }) }), { maxLength: 4 }),
  });
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(key, { maxLength: 20 }),
      scan,
      async (keys, { gte, lt, reverse, limit, seeks }) => {
        const memory = createMemoryKv(['rows']);
        const prefix = Buffer.alloc(4);
        prefix.writeUInt32BE(run++);
        const own = (bytes: Uint8Array) => Buffer.concat([prefix, bytes]);
        const scanned = await Promise.all(
          [memory, rocksdb, withDeleted].map(async (kv) => {
            await kv.commit(keys.map((bytes) => ({ column: 'rows', key: own(bytes), value: bytes.slice() })));
            const bounds = { column: 'rows', gte: own(gte), lt: own(lt), reverse };
            const pages = [await kv.range({ ...bounds, limit })];
            const cursor = kv.cursor(bounds);
            for (const { key, count } of seeks) {
              cursor.seek(own(key));
              pages.push(await cursor.next(count), await cursor.next(1));
            }
            cursor.close();
            return pages.map((page) => page.map(({ key }) => toHex(key)));
          }),
        );
        expect(scanned.slice(1)).toEqual([scanned[0], scanned[0]]);
      },
    ),
  );
});
