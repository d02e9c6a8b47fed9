// What a member answers that no disk would: nobody goes by it.
import { afterEach, expect, test } from 'vitest';
import { connectTo, memoryNode, serveNode } from '../../../tests/support/disks/chunk-nodes.ts';
import { withoutOrders } from '../../../tests/support/disks/no-orders.ts';
import type { ServedDisk } from '../../ports/chunk-server.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import { makeBlobId } from '../../types/names.ts';

const DISK = 'd'.repeat(32);
const { signal } = new AbortController();
const order = { fence: { shard: 1, incarnation: 1, epoch: 1 }, mapVersion: 1 };
const idAt = (timeMs: number): ChunkId => ({
  blobId: makeBlobId({ timeMs, homeShard: 1, random: new Uint8Array(8) }),
  index: 0,
});
const [first, second, third] = [idAt(1), idAt(2), idAt(3)];
const row = (id: unknown) => ({ id, sizeBytes: 1, receivedAtMs: 1 });
const unavailable = { code: 'ServiceUnavailable' };

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A disk that answers everything with this. */
async function answering(answer: unknown) {
  const unused = () => Promise.reject(new Error('not of this test'));
  const say = async () => answer as never;
  const port = { put: unused, get: unused, have: unused, drop: unused, usage: unused, recount: unused };
  const disk: ServedDisk = {
    ...withoutOrders({ ...port, list: say }),
    inspect: say,
    listQuarantined: say,
    listOf: say,
  };
  const server = await serveNode(memoryNode([[DISK, disk]]));
  const client = connectTo();
  closers.push(
    () => server.stop(),
    () => client.close(),
  );
  return client.chunksOf({ id: DISK, nodeId: 'n', zone: 'z', capacityBytes: 1, address: server.address });
}

test.each([
  ['a size beyond all chunks', { kind: 'whole', sizeBytes: 2 ** 31, checksum: 1, receivedAtMs: 1 }],
  ['a size below none', { kind: 'whole', sizeBytes: -1, checksum: 1, receivedAtMs: 1 }],
  ['no checksum', { kind: 'whole', sizeBytes: 1, receivedAtMs: 1 }],
  ['half a word', { kind: 'missing' }],
  ['a number', 7],
])('of an inspection: %s', async (_name, answer) => {
  const disk = await answering([answer]);
  await expect(disk.inspect([first], order, { readBytes: false, signal })).rejects.toMatchObject(unavailable);
});

test('an unknown kind means that nothing is known', async () => {
  const disk = await answering([{ kind: 'frozen' }]);
  expect(await disk.inspect([first], order, { readBytes: false, signal })).toEqual([{ kind: 'unread' }]);
});

const notIds = [
  { ...second, blobId: '../disks' },
  { ...second, index: -1 },
  { ...second, index: 2 ** 32 },
  7,
];

test.each<[string, unknown[][]]>([
  ['what is no id', notIds.map((id) => [id])],
  ['what does not lie behind what was asked for', [[first], [third, second]]],
])('of a list: %s', async (_name, pages) => {
  for (const ids of pages) {
    const aside = await answering(ids);
    await expect(aside.listQuarantined({ homes: [1], after: first, limit: 10 })).rejects.toMatchObject(
      unavailable,
    );
    const listed = await answering(ids.map(row));
    await expect(listed.list({ after: first, limit: 10 })).rejects.toMatchObject(unavailable);
    const some = await answering({ chunks: ids.map(row) });
    await expect(some.listOf({ homes: [1], after: first, limit: 10 })).rejects.toMatchObject(unavailable);
  }
});

test('of a list: more than was requested, and a walk without end', async () => {
  const listed = await answering([second, third].map(row));
  await expect(listed.list({ after: first, limit: 1 })).rejects.toMatchObject(unavailable);
  for (const next of [first, { blobId: 'x' }]) {
    const some = await answering({ chunks: [], next });
    await expect(some.listOf({ homes: [1], after: first, limit: 10 })).rejects.toMatchObject(unavailable);
  }
  const good = await answering({ chunks: [row(second)], next: third });
  expect(await good.listOf({ homes: [1], after: first, limit: 10 })).toEqual({
    chunks: [row(second)],
    next: third,
  });
});
