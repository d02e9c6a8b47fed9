// What every disk that takes orders promises (src/ports/disk-orders.ts), in this process and behind HTTP.
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CHUNK_COLUMNS, dataKey } from '../../src/chunks/disk/keyspace.ts';
import { createMemoryKv } from '../../src/platform/memory/memory-kv.ts';
import { openRocksdbKv } from '../../src/platform/rocksdb/rocksdb-kv.ts';
import type { ChunkId } from '../../src/ports/chunks.ts';
import type { Order } from '../../src/ports/disk-orders.ts';
import type { KvPort } from '../../src/ports/kv.ts';
import { ChunkUnread, OldFence, OwnedHere, StaleMap } from '../../src/types/chunk-refusals.ts';
import { createPeerAuthority } from '../support/coordination/peer-certificates.ts';
import { TEST_SECRET } from '../support/disks/chunk-nodes.ts';
import {
  nameOf,
  newId,
  type OrderedDisk,
  OrderedDisks,
  putChunk,
  rot,
} from '../support/disks/ordered-disks.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function openRocksdb(): Promise<KvPort> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-orders-'));
  closers.push(() => rm(folder, { recursive: true }));
  const kv = await openRocksdbKv({
    folder,
    columns: { data: { reads: 'async', content: 'ciphertext' }, index: { reads: 'sync', content: 'rows' } },
  });
  closers.push(() => kv.close());
  return kv;
}

const openMemory = async () => createMemoryKv(CHUNK_COLUMNS);
const authority = await createPeerAuthority();
const { signal } = new AbortController();
const reading = { readBytes: true, signal };
const looking = { readBytes: false, signal };
const homes = [7];
const order = (change: { epoch?: number; mapVersion?: number; shard?: number } = {}): Order => ({
  fence: { shard: change.shard ?? 7, incarnation: 1, epoch: change.epoch ?? 3 },
  mapVersion: change.mapVersion ?? 1,
});
const missing = { kind: 'missing', isQuarantined: false };
const aside = { kind: 'missing', isQuarantined: true };

describe.each<[string, () => Promise<ConstructorParameters<typeof OrderedDisks>[0]>]>([
  ['over memory', async () => ({ openKv: openMemory })],
  ['over HTTP with the secret', async () => ({ openKv: openMemory, credentials: TEST_SECRET })],
  [
    'over HTTP with certificates, to rocksdb',
    async () => ({ openKv: openRocksdb, credentials: await authority.issue() }),
  ],
])('%s', (_name, optionsOf) => {
  let world: OrderedDisks;
  let one: OrderedDisk;
  let other: OrderedDisk;

  beforeEach(async () => {
    world = new OrderedDisks(await optionsOf());
    closers.push(() => world.close());
    one = await world.open();
    other = await world.open(await openMemory());
  });

  const pullFrom = (
    from: OrderedDisk,
    { id, sizeBytes, checksum }: Awaited<ReturnType<typeof putChunk>>,
  ) => ({
    id,
    sizeBytes,
    checksum,
    from: { diskId: from.id, address: from.address },
  });

  test('describes each chunk, read or not, in the requested order', async () => {
    const first = await putChunk(one);
    const second = await putChunk(one, { sizeBytes: 40_000 });
    const ids = [second.id, newId(), first.id];
    const whole = ({ sizeBytes, checksum }: typeof first) => ({
      kind: 'whole',
      sizeBytes,
      checksum,
      receivedAtMs: expect.any(Number),
    });
    const expected = [whole(second), missing, whole(first)];
    expect(await one.disk.inspect(ids, order(), looking)).toEqual(expected);
    expect(await one.disk.inspect(ids, order(), reading)).toEqual(expected);
    expect(await one.disk.inspect([], order(), reading)).toEqual([]);
  });

  test('answers for more chunks than one request reads', async () => {
    const chunks = [];
    for (let index = 0; index < 150; index++) chunks.push(await putChunk(one, { sizeBytes: 100 + index }));
    const inspected = await one.disk.inspect(
      chunks.map(({ id }) => id),
      order(),
      reading,
    );
    expect(inspected).toMatchObject(chunks.map(({ checksum }) => ({ kind: 'whole', checksum })));
  });

  test('quarantines a copy that does not verify, and counts it as missing', async () => {
    const [good, bad] = [await putChunk(one), await putChunk(one)];
    await rot(one, bad);
    // Unread nobody knows.
    expect((await one.disk.inspect([bad.id], order(), looking))[0]?.kind).toBe('whole');
    expect(await one.disk.inspect([bad.id, good.id], order(), reading)).toMatchObject([
      aside,
      { kind: 'whole' },
    ]);
    const seen = async ({ disk }: OrderedDisk) => {
      expect(await disk.get(bad.id, { isProven: false, signal })).toEqual({ kind: 'missing' });
      expect(await disk.have([bad.id])).toEqual([null]);
      expect((await disk.list({ limit: 10 })).map(({ id }) => id)).toEqual([good.id]);
      expect((await disk.listOf({ homes, limit: 10 })).chunks.map(({ id }) => id)).toEqual([good.id]);
      expect(await disk.usage()).toMatchObject({ chunkCount: 1, liveBytes: good.sizeBytes });
      expect(await disk.inspect([bad.id], order(), looking)).toEqual([aside]);
      expect(await disk.inspect([bad.id], order(), reading)).toEqual([aside]);
      expect(await disk.listQuarantined({ homes, limit: 10 })).toEqual([bad.id]);
    };
    await seen(one);
    expect([one.damagedCount(), one.events.filter((event) => event === 'chunk-damaged')]).toEqual([
      1,
      ['chunk-damaged'],
    ]);
    await seen(await one.reopen());
  });

  test('an unreadable chunk is neither there nor gone, and affects no other', async () => {
    const [good, bad] = [await putChunk(one), await putChunk(one)];
    const getMany = one.kv.getMany.bind(one.kv);
    one.kv.getMany = async (column, keys) => {
      if (column === 'data' && keys.some((key) => Buffer.from(key).equals(dataKey(bad.id))))
        throw new Error('IO error: While pread: Too many open files');
      return getMany(column, keys);
    };
    expect(await one.disk.inspect([bad.id, good.id], order(), reading)).toMatchObject([
      { kind: 'unread' },
      { kind: 'whole' },
    ]);
    await expect(one.disk.get(bad.id, { isProven: false, signal })).rejects.toBeInstanceOf(ChunkUnread);
    expect(await one.disk.get(good.id, { isProven: false, signal })).toMatchObject({ kind: 'found' });
    await expect(other.disk.pull(pullFrom(one, bad), order(), signal)).rejects.toMatchObject({
      code: 'ServiceUnavailable',
    });
    // Nobody has taken it for damaged.
    expect([one.damagedCount(), await one.disk.listQuarantined({ homes, limit: 10 })]).toEqual([0, []]);
    one.kv.getMany = getMany;
    expect(await one.disk.inspect([bad.id], order(), reading)).toMatchObject([{ kind: 'whole' }]);
  });

  test('a reader that meets damage gets it reported once, and the copy is quarantined', async () => {
    const bad = await putChunk(one);
    await rot(one, bad);
    const reads = await Promise.all([1, 2].map(() => one.disk.get(bad.id, { isProven: true, signal })));
    expect(reads.map(({ kind }) => kind)).not.toContain('found');
    expect(await one.disk.get(bad.id, { isProven: true, signal })).toEqual({ kind: 'missing' });
    expect(one.damagedCount()).toBe(1);
    expect(await one.disk.listQuarantined({ homes, limit: 10 })).toEqual([bad.id]);
  });

  test('refuses orders of an old epoch, after a restart too (R21)', async () => {
    const chunk = await putChunk(one);
    await putChunk(other, chunk);
    await one.disk.inspect([], order({ epoch: 5 }), looking);
    const again = await one.reopen();
    for (const { disk } of [one, again]) {
      const old = order({ epoch: 4 });
      const all = [
        disk.inspect([chunk.id], old, looking),
        disk.pull(pullFrom(other, chunk), old, signal),
        disk.dropMisplaced([chunk.id], old),
        disk.dropQuarantined([chunk.id], old),
        disk.drop([chunk.id], old.fence),
      ];
      // Any of them may be refused first.
      await Promise.all(all.map((refused) => expect(refused).rejects.toBeInstanceOf(OldFence)));
    }
    // Of another shard nothing was said.
    await again.disk.inspect([], order({ shard: 8, epoch: 1 }), looking);
    expect((await again.disk.inspect([chunk.id], order({ epoch: 5 }), reading))[0]?.kind).toBe('whole');
  });

  test('stores the map of an order before it answers, and refuses older ones (R34, R38)', async () => {
    const chunk = await putChunk(one);
    await one.disk.inspect([], order({ mapVersion: 6 }), looking);
    expect(one.map.announced).toBe(6);
    const again = await one.reopen();
    for (const at of [one, again]) {
      await expect(putChunk(at, { mapVersion: 5 })).rejects.toBeInstanceOf(StaleMap);
      const refused = at.disk.inspect([chunk.id], order({ mapVersion: 5 }), looking);
      await expect(refused).rejects.toMatchObject({ name: 'StaleMap', version: 6 });
    }
    await putChunk(again, { mapVersion: 6 });
  });

  test("accepts orders of a chunk's home only", async () => {
    const chunk = await putChunk(one);
    const theirs = order({ shard: 8, epoch: 9 });
    for (const refused of [
      one.disk.inspect([chunk.id], theirs, looking),
      one.disk.pull(pullFrom(other, chunk), theirs, signal),
      one.disk.dropMisplaced([chunk.id], theirs),
      one.disk.dropQuarantined([chunk.id], theirs),
      one.disk.drop([chunk.id], theirs.fence),
      one.disk.drop([chunk.id, chunk.id], theirs.fence),
    ])
      await expect(refused).rejects.toThrow();
    expect((await one.disk.inspect([chunk.id], order(), reading))[0]?.kind).toBe('whole');
  });

  test('fetches a chunk from another disk, once', async () => {
    const chunk = await putChunk(other);
    expect(await one.disk.pull(pullFrom(other, chunk), order(), signal)).toBe('stored');
    expect(await one.disk.pull(pullFrom(other, chunk), order(), signal)).toBe('stored');
    expect(one.fetched).toEqual([chunk.id]);
    const read = await one.disk.get(chunk.id, { isProven: false, signal });
    expect(read.kind === 'found' && Buffer.from(chunk.bytes).equals(read.bytes)).toBe(true);
    expect(await one.disk.usage()).toMatchObject({ chunkCount: 1, liveBytes: chunk.sizeBytes });
    expect(await other.disk.usage()).toMatchObject({ chunkCount: 1 });
  });

  test('stores nothing if the other disk has no intact copy, or another than was ordered', async () => {
    const chunk = await putChunk(other);
    const absent = { ...pullFrom(other, chunk), id: newId() };
    const differs = { ...pullFrom(other, chunk), checksum: (chunk.checksum ^ 1) >>> 0 };
    const shorter = { ...pullFrom(other, chunk), sizeBytes: chunk.sizeBytes - 1 };
    for (const wanted of [absent, differs, shorter])
      expect(await one.disk.pull(wanted, order(), signal)).toBe('absent');
    await rot(other, chunk);
    expect(await one.disk.pull(pullFrom(other, chunk), order(), signal)).toBe('absent');
    expect(await one.disk.usage()).toMatchObject({ chunkCount: 0, liveBytes: 0 });
  });

  test('a fetched chunk is stored beside the quarantined copy, until that is dropped (R40)', async () => {
    const chunk = await putChunk(one);
    await putChunk(other, chunk);
    await rot(one, chunk);
    await one.disk.inspect([chunk.id], order(), reading);
    expect(await one.disk.pull(pullFrom(other, chunk), order(), signal)).toBe('stored');
    expect((await one.disk.inspect([chunk.id], order(), reading))[0]?.kind).toBe('whole');
    expect(await one.disk.listQuarantined({ homes, limit: 10 })).toEqual([chunk.id]);
    await one.disk.dropQuarantined([chunk.id, newId()], order());
    expect(await one.disk.listQuarantined({ homes, limit: 10 })).toEqual([]);
    expect((await one.disk.inspect([chunk.id], order(), reading))[0]?.kind).toBe('whole');
    const everything = { gte: Uint8Array.of(0), lt: Uint8Array.of(255, 255), limit: 10, keysOnly: true };
    expect(await one.kv.range({ column: 'data', ...everything })).toHaveLength(1);
  });

  test('a quarantined copy is replaced by an order to fetch it as well', async () => {
    const chunk = await putChunk(one);
    await putChunk(other, chunk);
    await rot(one, chunk);
    expect(await one.disk.pull(pullFrom(other, chunk), order(), signal)).toBe('stored');
    expect(await one.disk.listQuarantined({ homes, limit: 10 })).toEqual([chunk.id]);
    expect((await one.disk.inspect([chunk.id], order(), reading))[0]?.kind).toBe('whole');
  });

  test('dropping a chunk drops its quarantined copy, too', async () => {
    const chunk = await putChunk(one);
    await rot(one, chunk);
    await one.disk.inspect([chunk.id], order(), reading);
    await one.disk.drop([chunk.id], order().fence);
    expect(await one.disk.inspect([chunk.id], order(), looking)).toEqual([missing]);
    expect(await one.disk.listQuarantined({ homes, limit: 10 })).toEqual([]);
  });

  test('fetches nothing for a cancelled order', async () => {
    const chunk = await putChunk(other);
    const pulled = one.disk.pull(pullFrom(other, chunk), order(), AbortSignal.abort(new Error('no more')));
    await expect(pulled).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    await expect(
      one.disk.inspect([chunk.id], order(), { readBytes: true, signal: AbortSignal.abort() }),
    ).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    expect(one.fetched).toEqual([]);
  });

  test('a full disk fetches nothing and takes nothing, but everything else works (R20)', async () => {
    const [kept, bad] = [await putChunk(one), await putChunk(one)];
    const chunk = await putChunk(other);
    await rot(one, bad);
    const full = await one.reopen();
    full.space.freeBytes = 1e6 + 100;
    const refused = { code: 'InsufficientStorage' };
    await expect(full.disk.pull(pullFrom(other, chunk), order(), signal)).rejects.toMatchObject(refused);
    await expect(putChunk(full)).rejects.toMatchObject(refused);
    expect(full.fetched).toEqual([]);
    expect(await full.disk.inspect([bad.id], order(), reading)).toEqual([aside]);
    await full.disk.dropQuarantined([bad.id], order());
    await full.disk.dropMisplaced([kept.id], order());
    expect(await full.disk.usage()).toMatchObject({ chunkCount: 0, liveBytes: 0 });
  });

  test('drops misplaced copies, and nothing that may belong here (R38)', async () => {
    const [mine, stray] = [await putChunk(one), await putChunk(one)];
    one.map.owned.add(nameOf(mine.id));
    await expect(one.disk.dropMisplaced([stray.id, mine.id], order())).rejects.toBeInstanceOf(OwnedHere);
    expect(await one.disk.usage()).toMatchObject({ chunkCount: 2 });
    // Told of a map that it does not know yet, it cannot tell what it owns.
    await expect(one.disk.dropMisplaced([stray.id], order({ mapVersion: 2 }))).rejects.toMatchObject({
      name: 'StaleMap',
      version: 2,
    });
    one.map.version = 3;
    await expect(one.disk.dropMisplaced([stray.id], order({ mapVersion: 2 }))).rejects.toMatchObject({
      name: 'StaleMap',
      version: 3,
    });
    await one.disk.dropMisplaced([stray.id, newId()], order({ mapVersion: 3 }));
    await one.disk.dropMisplaced([stray.id], order({ mapVersion: 3 }));
    expect((await one.disk.list({ limit: 10 })).map(({ id }) => id)).toEqual([mine.id]);
    expect(await one.disk.usage()).toMatchObject({ chunkCount: 1, liveBytes: mine.sizeBytes });
  });

  test('lists the chunks of some homes, page by page', async () => {
    const put: ChunkId[] = [];
    for (const shard of [1, 2, 3, 1, 2, 3, 1, 2, 3])
      put.push((await putChunk(one, { id: newId(shard), sizeBytes: 10 })).id);
    const wanted = put.filter((_, at) => at % 3 !== 1).map(nameOf);
    const listed: string[] = [];
    let after: ChunkId | undefined;
    do {
      const page = await one.disk.listOf({ homes: [1, 3], limit: 2, ...(after && { after }) });
      expect(page.chunks.length).toBeLessThanOrEqual(2);
      for (const { id, sizeBytes } of page.chunks) listed.push(`${nameOf(id)} ${sizeBytes}`);
      after = page.next;
    } while (after !== undefined);
    expect(listed).toEqual(wanted.sort().map((name) => `${name} 10`));
    expect(await one.disk.listOf({ homes: [9], limit: 5 })).toEqual({ chunks: [] });
  });

  test('lists quarantined copies of some homes, page by page', async () => {
    const bad: Awaited<ReturnType<typeof putChunk>>[] = [];
    for (const shard of [1, 2, 1, 2, 1]) bad.push(await putChunk(one, { id: newId(shard) }));
    for (const chunk of bad) await rot(one, chunk);
    for (const chunk of bad) await one.disk.get(chunk.id, { isProven: false, signal });
    const wanted = [0, 2, 4]
      .map((at) => bad[at]?.id)
      .sort((a, b) => (nameOf(a as ChunkId) < nameOf(b as ChunkId) ? -1 : 1));
    const first = await one.disk.listQuarantined({ homes: [1, 5], limit: 2 });
    const after = first[1] as ChunkId;
    expect([...first, ...(await one.disk.listQuarantined({ homes: [1, 5], limit: 2, after }))]).toEqual(
      wanted,
    );
  });

  test('a drop during a fetch ends the fetch', async () => {
    const chunk = await putChunk(other, { bytes: randomBytes(100_000) });
    const pulling = one.disk.pull(pullFrom(other, chunk), order(), signal).catch(() => 'ended');
    await one.disk.drop([chunk.id], order({ epoch: 4 }).fence);
    await pulling;
    // Whichever came first, an order of the older epoch stores nothing behind the drop.
    const have = await one.disk.have([chunk.id]);
    expect(have).toEqual([null]);
  });
});
