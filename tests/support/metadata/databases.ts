// The databases of a server that is off, opened beneath it: to damage them, or to see what it left in them.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CHUNK_COLUMNS, METADATA_COLUMNS } from '../../../src/admin/open-databases.ts';
import { CHUNK_PLACES } from '../../../src/chunks/disk/keyspace.ts';
import { TABLES } from '../../../src/metadata/schema/keyspace.ts';
import { EXTENTS_FOLDER, openSeparatedKv } from '../../../src/platform/extents/open-separated.ts';
import { openRocksdbKv } from '../../../src/platform/rocksdb/rocksdb-kv.ts';
import type { KvPort, KvPut, KvRow } from '../../../src/ports/kv.ts';

export type DatabaseName = 'chunks' | 'metadata';

const SHARD_BYTES = 2;
/** From here on chunks lie in extents, where the server has made some. */
const SEPARATE_FROM_BYTES = 64 * 1024;
const ROWS_MAX = 100_000;

async function withDatabase<T>(
  where: { dataDir: string; database: DatabaseName },
  work: (kv: KvPort) => Promise<T>,
): Promise<T> {
  const { dataDir, database } = where;
  const folder = join(dataDir, database);
  const kv =
    database === 'metadata'
      ? await openRocksdbKv({ folder, columns: METADATA_COLUMNS })
      : await openSeparatedKv({
          folder,
          columns: CHUNK_COLUMNS,
          separated: CHUNK_PLACES,
          separateFromBytes: existsSync(join(folder, EXTENTS_FOLDER)) ? SEPARATE_FROM_BYTES : 0,
        });
  try {
    return await work(kv);
  } finally {
    await kv.close();
  }
}

function allRows(kv: KvPort, column: string): Promise<KvRow[]> {
  return kv.range({ column, gte: new Uint8Array(), lt: Buffer.alloc(64, 0xff), limit: ROWS_MAX });
}

/** Replaces rows of one column by what `change` makes of all of them. */
export async function rewriteRows(
  where: { dataDir: string; database: DatabaseName; column: string },
  change: (rows: KvRow[]) => Omit<KvPut, 'column'>[],
): Promise<void> {
  const { column } = where;
  await withDatabase(where, async (kv) => {
    const puts = change(await allRows(kv, column));
    await kv.commit(puts.map((put) => ({ column, ...put })));
  });
}

/** How many rows each table of the metadata holds, all shards together; tables without rows are left out. */
export async function countRows(dataDir: string): Promise<Record<string, number>> {
  const names = new Map(Object.entries(TABLES).map(([name, { id }]) => [id as number, name]));
  const counts: Record<string, number> = {};
  await withDatabase({ dataDir, database: 'metadata' }, async (kv) => {
    for (const { key } of [...(await allRows(kv, 'rows')), ...(await allRows(kv, 'bodies'))]) {
      const name = names.get(key[SHARD_BYTES] ?? -1);
      if (name !== undefined) counts[name] = (counts[name] ?? 0) + 1;
    }
  });
  return counts;
}
