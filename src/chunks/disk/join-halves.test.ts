import { expect, test } from 'vitest';
import { createMemoryKv } from '../../platform/memory/memory-kv.ts';
import { systemClock } from '../../platform/system-clock.ts';
import type { ChunkId } from '../../ports/chunks.ts';
import type { BlobId } from '../../types/names.ts';
import { openChunkStore } from './chunk-store.ts';
import { joinHalves } from './join-halves.ts';
import { dataKey, indexKey } from './keyspace.ts';

const nothing = { debug() {}, info() {}, warn() {}, error() {} };
const reserve = {
  hold: async () => ({ release() {} }),
  measure: async () => ({ freeBytes: 1, totalBytes: 2 }),
};
const idOf = (index: number): ChunkId => ({ blobId: '018cc251f40000022c62a0004966a408' as BlobId, index });

test('drops chunks without bytes, restores missing rows, and counts the chunks anew', async () => {
  const kv = createMemoryKv(['data', 'index']);
  const open = () => openChunkStore({ kv, reserve, clock: systemClock, log: nothing });
  const store = await open();
  for (const index of [0, 1, 2]) await store.put(idOf(index), new Uint8Array(1000 + index).fill(index));
  await kv.commit([
    { column: 'data', key: dataKey(idOf(0)), value: null },
    { column: 'index', key: indexKey(idOf(1)), value: null },
  ]);
  expect(await joinHalves(kv, systemClock)).toEqual({ lostCount: 1, regainedCount: 1 });
  const again = await open();
  expect(await again.get(idOf(0))).toEqual({ kind: 'missing' });
  for (const index of [1, 2]) expect(await again.get(idOf(index))).toMatchObject({ kind: 'found' });
  const { counted, kept } = await again.recount();
  expect(kept).toEqual({ chunkCount: 2, liveBytes: 2003 });
  expect(counted).toEqual(kept);
});
