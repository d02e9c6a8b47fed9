import { beforeEach, expect, test } from 'vitest';
import { repairRow } from '../../src/metadata/blobs/repair-entries.ts';
import { rowKey } from '../../src/metadata/engine/row-keys.ts';
import { blobRow } from '../../src/metadata/schema/keyspace.ts';
import { type BlobId, makeBlobId } from '../../src/types/names.ts';
import { blobCodec } from '../../src/types/records/rows.ts';
import { LiveBlobs } from './live-blobs.ts';
import { ShardHistory } from './shard-history.ts';

const SHARD = 1;
const DAY_MS = 24 * 60 * 60_000;
const NOW_MS = 100 * DAY_MS;

let history: ShardHistory;
let blobs: LiveBlobs;
let nodes: number;
let losses: number;
beforeEach(() => {
  history = new ShardHistory(SHARD);
  nodes = 2;
  losses = 0;
  blobs = new LiveBlobs({ nodesOf: () => nodes, lostOf: () => losses });
});

const createdAt = (timeMs: number) =>
  makeBlobId({ timeMs, homeShard: SHARD, random: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) });

function write(blobId: BlobId, row: 'lives' | 'condemned' | 'gone'): void {
  const { table, key } = blobRow(blobId);
  const layout = { sizeBytes: 150, storage: 'chunks' as const, chunkSizeBytes: 100, kind: 'data' as const };
  const blob = { ...layout, ...(row === 'condemned' && { condemnedAtMs: NOW_MS }) };
  append({ table, key }, row === 'gone' ? null : blobCodec.encode(blob));
}

function append({ table, key }: ReturnType<typeof blobRow>, value: Uint8Array | null): void {
  const seq = history.lastSeq + 1;
  const rows = [{ column: table.column, key: rowKey(SHARD, table, key), value }];
  const entry = { seq, epoch: 1, timeMs: NOW_MS, requestId: undefined, digest: String(seq), rows };
  history.apply('node', entry, { atMs: 0, trueWallMs: undefined });
  blobs.follow(history);
}

test('chunks of live blobs, until they are marked for deletion', () => {
  const blobId = createdAt(NOW_MS);
  write(blobId, 'lives');
  expect(blobs.chunks()).toEqual([
    { blobId, index: 0 },
    { blobId, index: 1 },
  ]);
  write(blobId, 'condemned');
  expect(blobs.chunks()).toEqual([]);
  write(blobId, 'gone');
  expect(blobs.erasedCount).toBe(1);
  expect(() => write(blobId, 'lives')).toThrow('I10');
});

test('a new blob with an id that is too old, or ahead (R25)', () => {
  write(createdAt(NOW_MS - DAY_MS), 'lives');
  expect(() => write(createdAt(NOW_MS - DAY_MS - 1), 'lives')).toThrow('I9');
  expect(() => write(createdAt(NOW_MS + 60 * 60_000 + 1), 'lives')).toThrow('I9');
});

test('on too few nodes, at its creation and at rest; each loss may have taken one', () => {
  nodes = 1;
  expect(() => write(createdAt(NOW_MS), 'lives')).toThrow('I11: 1 nodes');
  losses = 1;
  write(createdAt(NOW_MS - 1), 'lives');
  nodes = 0;
  expect(() => blobs.check()).toThrow('I11: 0 nodes');
});

test('missing copies by blob', () => {
  const [one, other] = [createdAt(NOW_MS), createdAt(NOW_MS - 1)];
  append(repairRow(one), Uint8Array.of(1));
  expect([blobs.isIncomplete(one), blobs.isIncomplete(other), blobs.repairCount, blobs.repairsEver]).toEqual([
    true,
    false,
    1,
    1,
  ]);
  append(repairRow(one), null);
  expect([blobs.isIncomplete(one), blobs.repairCount, blobs.repairsEver]).toEqual([false, 0, 1]);
});
