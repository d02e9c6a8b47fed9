import { beforeEach, expect, test } from 'vitest';
import { rowKey } from '../../src/metadata/engine/row-keys.ts';
import {
  blobRow,
  currentRow,
  foreignRow,
  linkRow,
  pendingClaimRow,
  versionRow,
} from '../../src/metadata/schema/keyspace.ts';
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
import { blobCodec, foreignCodec, linkCodec } from '../../src/types/records/rows.ts';
import { encodeVersion } from '../../src/types/records/version-record.ts';
import { LinkRows } from './link-rows.ts';
import { ShardHistory } from './shard-history.ts';

const [HOME, OTHER] = [0, 1];
const BLOB = makeBlobId({ timeMs: 1000, homeShard: HOME, random: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) });
const CLAIM = makeLinkId({ timeMs: 1000, random: new Uint8Array(10).fill(1) });
const LOCAL = makeLinkId({ timeMs: 1000, random: new Uint8Array(10).fill(2) });
const LAYOUT = { kind: 'data' as const, sizeBytes: 10, storage: 'inline' as const, chunkSizeBytes: 100 };

let histories: ShardHistory[];
let rows: LinkRows;
beforeEach(() => {
  histories = [new ShardHistory(HOME), new ShardHistory(OTHER)];
  rows = new LinkRows();
});

function commit(shard: number, ...puts: [address: RowAddress, value: Uint8Array | null][]): void {
  const history = histories[shard] as ShardHistory;
  const seq = history.lastSeq + 1;
  const written = puts.map(([{ table, key }, value]) => ({
    column: table.column,
    key: rowKey(shard, table, key),
    value,
  }));
  const entry = { seq, epoch: 1, timeMs: 1000, requestId: undefined, digest: String(seq), rows: written };
  history.apply('node', entry, { atMs: 0, trueWallMs: undefined });
  rows.follow(histories);
}

const blob = (condemnedAtMs?: number) =>
  blobCodec.encode({ ...LAYOUT, ...(condemnedAtMs !== undefined && { condemnedAtMs }) });
const link = (state: 'own' | 'pending' | 'confirmed', shard: number) => linkCodec.encode({ state, shard });
const foreign = foreignCodec.encode({ homeShard: HOME, linkId: CLAIM, layout: LAYOUT });
const versionAt = currentRow('00000000000000aa' as BucketId, 'k' as ObjectKey);
const version = encodeVersion({
  versionId: 'null' as VersionId,
  order: 1,
  isDeleteMarker: false,
  sizeBytes: 10,
  modifiedAtMs: 1000,
  etag: '0'.repeat(32),
  owner: '000000000001' as AccountId,
  originals: NO_ORIGINALS,
  manifest: {
    kind: 'direct',
    parts: [],
    segments: [{ use: 0, offsetBytes: 0, sizeBytes: 10 }],
    uses: [{ ...LAYOUT, blobId: BLOB, linkId: LOCAL, wrappedDataKey: Uint8Array.of(1) }],
  },
});

function copyAcross(): void {
  commit(HOME, [blobRow(BLOB), blob()], [linkRow(BLOB, CLAIM), link('confirmed', OTHER)]);
  commit(
    OTHER,
    [versionAt, version],
    [linkRow(BLOB, LOCAL), link('own', OTHER)],
    [foreignRow(BLOB), foreign],
  );
}

test('a copy that its home knows', () => {
  copyAcross();
  expect(rows.unrest()).toEqual([]);
});

test.each([
  ['the claim goes', () => commit(HOME, [linkRow(BLOB, CLAIM), null])],
  ['the claim is of another shard', () => commit(HOME, [linkRow(BLOB, CLAIM), link('confirmed', 2)])],
  ['the blob is condemned', () => commit(HOME, [blobRow(BLOB), blob(2000)])],
  ['the blob goes', () => commit(HOME, [blobRow(BLOB), null])],
  ['its own link goes', () => commit(OTHER, [linkRow(BLOB, LOCAL), null])],
  ['its claim is forgotten', () => commit(OTHER, [foreignRow(BLOB), null])],
])('I9: %s', (_, harm) => {
  copyAcross();
  expect(harm).toThrow('I9');
});

test('I10: a blob that is marked for deletion does not live again', () => {
  commit(HOME, [blobRow(BLOB), blob(2000)]);
  expect(() => commit(HOME, [blobRow(BLOB), blob()])).toThrow('I10');
});

test('I16: links without owners, claims under way, blobs without links', () => {
  copyAcross();
  commit(OTHER, [versionAt, null]);
  expect(rows.unrest()).toEqual([
    `shard 1: the own link ${LOCAL} on ${BLOB}, without owner`,
    `shard 1: a claim on ${BLOB} that nobody uses`,
  ]);
  commit(OTHER, [linkRow(BLOB, LOCAL), null], [foreignRow(BLOB), null]);
  expect(rows.unrest()).toEqual([`shard 0: the confirmed link ${CLAIM} on ${BLOB}, without owner`]);
  commit(HOME, [linkRow(BLOB, CLAIM), null]);
  expect(rows.unrest()).toEqual([`shard 0: no link on ${BLOB}`]);
  commit(HOME, [blobRow(BLOB), null], [pendingClaimRow(BLOB, CLAIM), Uint8Array.of(1)]);
  expect(rows.unrest()).toEqual(['shard 0: 1 rows in pendingClaims']);
});

test('I16: a stored version has links of its own', () => {
  copyAcross();
  const key = 'k' as ObjectKey;
  commit(OTHER, [versionRow('00000000000000aa' as BucketId, key, 1), version]);
  expect(rows.unrest()).toEqual([`shard 1: the link ${LOCAL} on ${BLOB} has 2 owners`]);
});
