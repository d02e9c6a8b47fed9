import { beforeEach, expect, test } from 'vitest';
import { rowKey } from '../../src/metadata/engine/row-keys.ts';
import { currentRow, versionRow } from '../../src/metadata/schema/keyspace.ts';
import type { RowAddress } from '../../src/ports/state-machine.ts';
import {
  type AccountId,
  type BucketId,
  makeBlobId,
  makeLinkId,
  type ObjectKey,
  type VersionId,
} from '../../src/types/names.ts';
import { NO_ORIGINALS } from '../../src/types/originals.ts';
import { encodeVersion } from '../../src/types/records/version-record.ts';
import { ShardHistory } from './shard-history.ts';
import { SupersededCompactions } from './superseded-compactions.ts';

const SHARD = 0;
const BUCKET = '00000000000000aa' as BucketId;
const [KEY, OTHER] = ['k', 'l'] as [ObjectKey, ObjectKey];
const linkId = makeLinkId({ timeMs: 1000, random: new Uint8Array(10).fill(1) });
const blobOf = (index: number) =>
  makeBlobId({ timeMs: 1000, homeShard: SHARD, random: new Uint8Array(8).fill(index) });
const [ONE, TWO, THREE, COMPACTED] = [blobOf(1), blobOf(2), blobOf(3), blobOf(4)];

let history: ShardHistory;
let compactions: SupersededCompactions;
beforeEach(() => {
  history = new ShardHistory(SHARD);
  compactions = new SupersededCompactions();
});

function commit(...puts: [address: RowAddress, value: Uint8Array][]) {
  const seq = history.lastSeq + 1;
  const rows = puts.map(([{ table, key }, value]) => ({
    column: table.column,
    key: rowKey(SHARD, table, key),
    value,
  }));
  const entry = { seq, epoch: 1, timeMs: 1000, requestId: undefined, digest: String(seq), rows };
  history.apply('node', entry, { atMs: 0, trueWallMs: undefined });
  return compactions.follow(history);
}

function version(order: number, blobs: readonly ReturnType<typeof blobOf>[]): Uint8Array {
  const layout = { kind: 'data' as const, sizeBytes: 10, storage: 'inline' as const, chunkSizeBytes: 100 };
  return encodeVersion({
    versionId: `v${order}` as VersionId,
    order,
    isDeleteMarker: false,
    sizeBytes: 30,
    modifiedAtMs: 1000,
    etag: '0'.repeat(32),
    owner: '000000000001' as AccountId,
    originals: NO_ORIGINALS,
    manifest: {
      kind: 'direct',
      parts: [],
      segments: blobs.map((_, use) => ({ use, offsetBytes: 0, sizeBytes: 10 })),
      uses: blobs.map((blobId) => ({ ...layout, blobId, linkId, wrappedDataKey: Uint8Array.of(1) })),
    },
  });
}

const latest = currentRow(BUCKET, KEY);
const older = (order: number, key = KEY) => versionRow(BUCKET, key, order);
const found = [{ shard: SHARD, key: KEY, pieces: [ONE, TWO] }];

test('pieces become one below a version that still has them', () => {
  commit([older(1), version(1, [ONE, TWO])], [latest, version(2, [ONE, TWO, THREE])]);
  expect(commit([older(1), version(1, [COMPACTED])])).toEqual(found);
});

test('between others, the one above counts, the one below does not', () => {
  commit([older(1), version(1, [ONE, TWO])], [older(2), version(2, [ONE, TWO])]);
  expect(commit([latest, version(3, [THREE])], [older(2), version(2, [COMPACTED])])).toEqual([]);
  expect(commit([older(1), version(1, [COMPACTED])])).toEqual([]);
});

test('compacted in the latest version, or in all at once', () => {
  commit([older(1), version(1, [ONE, TWO])], [latest, version(2, [ONE, TWO, THREE])]);
  expect(commit([older(1), version(1, [COMPACTED])], [latest, version(2, [COMPACTED, THREE])])).toEqual([]);
  expect(commit([latest, version(2, [ONE])])).toEqual([]);
});

test('other versions with the pieces are of other keys', () => {
  commit([older(1), version(1, [ONE, TWO])], [older(2, OTHER), version(2, [ONE, TWO])]);
  expect(commit([older(1), version(1, [COMPACTED])])).toEqual([]);
});
