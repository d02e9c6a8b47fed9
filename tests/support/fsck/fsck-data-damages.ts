// Damage between versions and their bytes, for src/fsck/fsck.test.ts: links, claims, blobs, bodies, chunks.
import { must } from '../../../src/base/assert.ts';
import { dataKey, encodeIndexRow, indexKey } from '../../../src/chunks/disk/keyspace.ts';
import { repairQueueRow, repairRow } from '../../../src/metadata/blobs/repair-entries.ts';
import {
  blobRow,
  bodyRow,
  endedLinkRow,
  foreignRow,
  linkRow,
  manifestPageRow,
  PRESENT,
  pendingClaimRow,
  TABLES,
} from '../../../src/metadata/schema/keyspace.ts';
import { pieceRow } from '../../../src/metadata/versions/piece-rows.ts';
import { packRanges } from '../../../src/types/compacted-from.ts';
import type { BlobId } from '../../../src/types/names.ts';
import { encodePiece } from '../../../src/types/records/piece-record.ts';
import { type BlobRecord, blobCodec, linkCodec, repairCodec } from '../../../src/types/records/rows.ts';
import { wholeRange } from '../../../src/types/repair-entries.ts';
import { type BlobUse, growingUse } from '../../../src/types/version.ts';
import { CHUNK_BYTES } from '../objects/object-world.ts';
import type { Damage, FsckWorld } from './fsck-world.ts';

const HOUR = 3600_000;
/** The chunk store's totals are wrong as well where chunks are planted or taken. */
const COUNTER = { 'counter-wrong': 1 } as const;

const ownLink = (shard: number) => linkCodec.encode({ state: 'own', shard });

async function blobOf(world: FsckWorld, use: BlobUse, shard: number): Promise<BlobRecord> {
  const { blobs } = await world.metadata.query('get-blobs', { blobIds: [use.blobId] }, shard);
  return must(blobs[0], 'a blob');
}

/** The blob that small appends went into. */
async function seenGrown(world: FsckWorld) {
  const { version, place } = await world.seen('grown');
  return { grown: must(growingUse(version.manifest), 'small appends').blobId, place };
}

export const DATA_DAMAGES: readonly Damage[] = [
  [
    'a link row gone',
    { 'link-missing': 1, 'blob-unlinked': 1 },
    async (world) => {
      const { use, place } = await world.seen('inline', 2);
      await world.plant(linkRow(use.blobId, use.linkId), null, 2);
      const { blobId: blob, linkId: link } = use;
      return [
        ['link-missing', { ...place, blob, link }],
        ['blob-unlinked', { shard: 2, blob }],
      ];
    },
  ],
  [
    'a link that nothing uses',
    { 'link-orphaned': 1 },
    async (world) => {
      const { use } = await world.seen('chunked', 2);
      const link = world.metadata.newLinkId();
      await world.plant(linkRow(use.blobId, link), ownLink(2), 2);
      return [['link-orphaned', { shard: 2, blob: use.blobId, link }]];
    },
  ],
  [
    'a blob row gone: its chunks may still be waited for',
    { 'blob-missing': 2 },
    async (world) => {
      const { use, place } = await world.seen('chunked', 2);
      await world.plant(blobRow(use.blobId), null, 2);
      return [['blob-missing', { ...place, blob: use.blobId }]];
    },
  ],
  [
    'data in use condemned',
    { 'blob-condemned': 2, 'queue-missing': 1 },
    async (world) => {
      const { use, place } = await world.seen('chunked', 2);
      const blob = await blobOf(world, use, 2);
      await world.plant(blobRow(use.blobId), blobCodec.encode({ ...blob, condemnedAtMs: 5 }), 2);
      return [['blob-condemned', { ...place, blob: use.blobId }]];
    },
  ],
  [
    'data of another size than its use says',
    { 'object-damaged': 1, 'layout-differs': 1, 'body-size': 1 },
    async (world) => {
      const { use, place } = await world.seen('inline', 2);
      const blob = await blobOf(world, use, 2);
      await world.plant(blobRow(use.blobId), blobCodec.encode({ ...blob, sizeBytes: 99 }), 2);
      const note = 'inline of 100 by 100, is inline of 99 by 100';
      return [['layout-differs', { ...place, blob: use.blobId, note }]];
    },
  ],
  [
    'a chunk gone',
    { 'object-damaged': 1, 'chunk-missing': 1, ...COUNTER },
    async (world) => {
      const { use, place } = await world.seen('chunked', 2);
      const id = { blobId: use.blobId, index: 1 };
      await world.plantChunk('index', indexKey(id), null);
      await world.plantChunk('data', dataKey(id), null);
      return [
        ['chunk-missing', { shard: 2, blob: use.blobId, chunk: 1 }],
        ['object-damaged', { ...place, blob: use.blobId }],
      ];
    },
  ],
  [
    'a chunk gone from its index alone',
    { 'object-damaged': 1, 'chunk-damaged': 1, ...COUNTER },
    async (world) => {
      const { use } = await world.seen('chunked', 2);
      await world.plantChunk('index', indexKey({ blobId: use.blobId, index: 2 }), null);
      return [['chunk-damaged', { shard: 2, blob: use.blobId, chunk: 2 }]];
    },
  ],
  [
    'a flipped bit in a chunk',
    { 'object-damaged': 1, 'chunk-damaged': 1 },
    async (world) => {
      const { use } = await world.seen('chunked', 1);
      const id = { blobId: use.blobId, index: 0 };
      const [bytes] = await world.chunkKv.getMany('data', [dataKey(id)]);
      const flipped = Uint8Array.from(must(bytes, 'a chunk'));
      flipped[1000] = must(flipped[1000], 'a byte') ^ 1;
      await world.plantChunk('data', dataKey(id), flipped);
      return [['chunk-damaged', { shard: 1, blob: use.blobId, chunk: 0 }]];
    },
  ],
  [
    'a chunk of another size',
    { 'object-damaged': 1, 'chunk-size': 1, 'chunk-damaged': 1, ...COUNTER },
    async (world) => {
      const { use } = await world.seen('chunked', 1);
      const id = { blobId: use.blobId, index: 0 };
      const row = encodeIndexRow({ sizeBytes: 7, crc32: 1, receivedAtMs: 1 });
      await world.plantChunk('index', indexKey(id), row);
      const note = `${CHUNK_BYTES + 32} bytes, is 7`;
      return [['chunk-size', { shard: 1, blob: use.blobId, chunk: 0, note }]];
    },
  ],
  [
    'a chunk behind the end of its blob',
    { 'chunk-orphaned': 1, ...COUNTER },
    async (world) => {
      const { use } = await world.seen('chunked', 1);
      const id = { blobId: use.blobId, index: 3 };
      await world.plantChunk('data', dataKey(id), Uint8Array.of(1));
      await world.plantChunk(
        'index',
        indexKey(id),
        encodeIndexRow({ sizeBytes: 1, crc32: 1, receivedAtMs: 1 }),
      );
      return [['chunk-orphaned', { shard: 1, blob: use.blobId, chunk: 3 }]];
    },
  ],
  [
    'an old chunk that nothing leads to',
    { 'chunk-orphaned': 1, ...COUNTER },
    async (world) => {
      const id = { blobId: world.newBlobId(28 * HOUR, 1), index: 0 };
      await world.plantChunk('data', dataKey(id), Uint8Array.of(1));
      await world.plantChunk(
        'index',
        indexKey(id),
        encodeIndexRow({ sizeBytes: 1, crc32: 1, receivedAtMs: 1 }),
      );
      return [['chunk-orphaned', { shard: 1, blob: id.blobId, chunk: 0 }]];
    },
  ],
  [
    'a body gone',
    { 'object-damaged': 1, 'body-missing': 1 },
    async (world) => {
      const { use } = await world.seen('inline', 1);
      await world.plant(bodyRow(use.blobId), null, 1);
      return [['body-missing', { shard: 1, blob: use.blobId }]];
    },
  ],
  [
    'a body that nothing leads to',
    { 'body-orphaned': 1 },
    async (world) => {
      const blob = world.newBlobId(0, 2);
      await world.plant(bodyRow(blob), Uint8Array.of(1), 2);
      return [['body-orphaned', { shard: 2, blob }]];
    },
  ],
  [
    'a piece of a blob that grew gone',
    { 'object-damaged': 2, 'body-missing': 1 },
    async (world) => {
      const { grown } = await seenGrown(world);
      await world.plant(pieceRow(grown, 1), null);
      return [['body-missing', { shard: 0, blob: grown }]];
    },
  ],
  [
    'a piece behind the last one',
    { 'body-orphaned': 1 },
    async (world) => {
      const { grown } = await seenGrown(world);
      await world.plant(pieceRow(grown, 4), Uint8Array.of(1));
      return [['body-orphaned', { shard: 0, blob: grown }]];
    },
  ],
  [
    'pieces that nothing leads to',
    { 'body-orphaned': 1 },
    async (world) => {
      const blob = world.newBlobId(0, 2);
      for (const index of [0, 1]) await world.plant(pieceRow(blob, index), Uint8Array.of(1), 2);
      return [['body-orphaned', { shard: 2, blob }]];
    },
  ],
  [
    'a piece of another size',
    { 'object-damaged': 2, 'body-size': 1 },
    async (world) => {
      const { grown } = await seenGrown(world);
      const piece = {
        pieceId: grown,
        sizeBytes: 3,
        wrappedDataKey: Uint8Array.of(1),
        sealed: new Uint8Array(19),
      };
      await world.plant(pieceRow(grown, 0), encodePiece(piece));
      return [['body-size', { shard: 0, blob: grown, note: 'pieces of 22 bytes, is 20' }]];
    },
  ],
  [
    'a blob that was folded from more than it has',
    { 'broken-row': 1 },
    async (world) => {
      const { use } = await world.seen('chunked', 2);
      const blob = await blobOf(world, use, 2);
      const ranges = [{ blobId: use.blobId, offsetBytes: 1, sizeBytes: use.sizeBytes }];
      await world.plant(
        blobRow(use.blobId),
        blobCodec.encode({ ...blob, foldedFrom: packRanges(ranges) }),
        2,
      );
      return [['broken-row', { shard: 2, blob: use.blobId, table: 'blobs' }]];
    },
  ],
  [
    'a piece that cannot be read, which a copy has as its last one',
    { 'broken-row': 2 },
    async (world) => {
      const { grown } = await seenGrown(world);
      await world.plant(pieceRow(grown, 2), Uint8Array.of(99));
      return [
        ['broken-row', { shard: 0, blob: grown, table: 'pieces' }],
        ['broken-row', { shard: 1, key: 'grown from 0', blob: grown }],
      ];
    },
  ],
  [
    'a blob that grew less than what an object has of it',
    { 'layout-differs': 2, 'body-orphaned': 1 },
    async (world) => {
      const { grown, place } = await seenGrown(world);
      const use = { blobId: grown } as BlobUse;
      const blob = await blobOf(world, use, 0);
      const less = { pieceCount: 1, lastPieceId: grown };
      await world.plant(
        blobRow(grown),
        blobCodec.encode({ ...blob, sizeBytes: 5, chunkSizeBytes: 5, grown: less }),
      );
      return [['layout-differs', { ...place, blob: grown, note: 'pieces of 22 in 4, is pieces of 5 in 1' }]];
    },
  ],
  [
    'a body cut short',
    { 'object-damaged': 1, 'body-size': 1 },
    async (world) => {
      const { use } = await world.seen('inline', 1);
      await world.plant(bodyRow(use.blobId), new Uint8Array(50), 1);
      return [['body-size', { shard: 1, blob: use.blobId, note: '116 bytes, is 50' }]];
    },
  ],
  [
    'a foreign row gone',
    { 'claim-missing': 2, 'claim-orphaned': 1 },
    async (world) => {
      const { use, place } = await world.seen('from 0', 1);
      await world.plant(foreignRow(use.blobId), null, 1);
      return [
        ['claim-missing', { ...place, blob: use.blobId }],
        ['claim-orphaned', { shard: 0, blob: use.blobId, note: 'claimed by shard 1' }],
      ];
    },
  ],
  [
    'a claim gone from its home',
    { 'claim-missing': 1 },
    async (world) => {
      const { use } = await world.seen('from 0', 1);
      const foreign = (await world.rows('links')).filter(
        ({ key, value }) =>
          Buffer.from(key).toString('hex', 0, 16) === use.blobId && linkCodec.decode(value).shard === 1,
      );
      for (const { key } of foreign) await world.plant({ table: TABLES.links, key }, null);
      return [['claim-missing', { shard: 1, blob: use.blobId, note: 'home is shard 0' }]];
    },
  ],
  [
    'a pending claim that nobody will settle',
    { 'queue-missing': 1 },
    async (world) => {
      const [row] = await world.rows('pendingClaims');
      await world.plant({ table: TABLES.pendingClaims, key: must(row, 'a row').key }, null);
      return [['queue-missing', { shard: 0 }]];
    },
  ],
  [
    'a settled claim still in the queue',
    { 'queue-orphaned': 1 },
    async (world) => {
      const { use } = await world.seen('inline');
      await world.plant(pendingClaimRow(use.blobId, use.linkId), PRESENT);
      return [['queue-orphaned', { shard: 0, blob: use.blobId, link: use.linkId, table: 'pendingClaims' }]];
    },
  ],
  [
    'a live link among the ended ones',
    { 'queue-orphaned': 1 },
    async (world) => {
      const { use } = await world.seen('inline');
      await world.plant(endedLinkRow(5, use.blobId, use.linkId), PRESENT);
      return [['queue-orphaned', { shard: 0, blob: use.blobId, link: use.linkId, table: 'endedLinks' }]];
    },
  ],
  [
    'a condemned blob that nobody will erase',
    { 'queue-missing': 1, ...COUNTER },
    async (world) => {
      const [row] = await world.rows('condemned');
      await world.plant({ table: TABLES.condemned, key: must(row, 'a row').key }, null);
      return [['queue-missing', { shard: 0 }]];
    },
  ],
  [
    'a debt that nobody will mend, and is not counted',
    { 'queue-missing': 1, 'counter-wrong': 2 },
    async (world) => {
      const { use } = await world.seen('inline');
      const debt = { copies: 2, ranges: wholeRange(1), mapVersion: 1, notedAtMs: 5, mark: '00' };
      await world.plant(repairRow(use.blobId), repairCodec.encode(debt));
      return [['queue-missing', { shard: 0, blob: use.blobId, table: 'debts' }]];
    },
  ],
  [
    'debts of a blob that is not there',
    { 'queue-orphaned': 2 },
    async (world) => {
      const blobId = '018cc251f400000000000000000000ff' as BlobId;
      await world.plant(repairQueueRow({ copies: 2, notedAtMs: 5, blobId }), PRESENT);
      const other = '018cc251f400000000000000000000fe' as BlobId;
      await world.plant(repairQueueRow({ copies: 3, notedAtMs: 5, blobId: other }), PRESENT);
      return [['queue-orphaned', { shard: 0, blob: blobId, table: 'debtQueue' }]];
    },
  ],
  [
    'a page of a manifest gone',
    { 'manifest-wrong': 2, 'link-orphaned': 1 },
    async (world) => {
      const { version, place } = await world.seen('paged');
      if (version.manifest.kind !== 'paged') throw new Error(version.manifest.kind);
      const { manifestId } = version.manifest;
      await world.plant(manifestPageRow(manifestId, 0), null);
      return [['manifest-wrong', { ...place, manifest: manifestId }]];
    },
  ],
];
