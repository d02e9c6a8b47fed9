// How much data there is: what blobs take that are live, whatever has links to them.
import { TABLE_END } from '../../../src/base/table-rows.ts';
import { rowKey } from '../../../src/metadata/engine/row-keys.ts';
import { TABLES } from '../../../src/metadata/schema/keyspace.ts';
import { blobCodec } from '../../../src/types/records/rows.ts';
import type { MetadataShards } from '../metadata/metadata-shards.ts';

/** Of one shard. Run the jobs before, if what has lost its last link is not to count. */
export async function dataAtRest(
  { kv }: MetadataShards,
  shard = 0,
): Promise<{ sizeBytes: number; blobCount: number }> {
  const table = TABLES.blobs;
  const rows = await kv.range({
    column: table.column,
    gte: rowKey(shard, table, new Uint8Array(0)),
    lt: rowKey(shard, table, TABLE_END),
    limit: 1_000_000,
  });
  const live = rows
    .map(({ value }) => blobCodec.decode(value))
    .filter(({ kind, condemnedAtMs }) => kind === 'data' && condemnedAtMs === undefined);
  return { sizeBytes: live.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0), blobCount: live.length };
}
