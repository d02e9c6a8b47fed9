// The databases of a server that is off, opened beneath it: to damage them, or to see what it left in them.
import { join } from 'node:path';
import { CHUNK_COLUMNS, METADATA_COLUMNS } from '../../../src/admin/open-databases.ts';
import { TABLES } from '../../../src/metadata/schema/keyspace.ts';
import { openRocksdbKv } from '../../../src/platform/rocksdb/rocksdb-kv.ts';
import type { KvPort, KvPut, KvRow } from '../../../src/ports/kv.ts';

const DATABASES = { chunks: CHUNK_COLUMNS, metadata: METADATA_COLUMNS } as const;

export type DatabaseName = keyof typeof DATABASES;

const SHARD_BYTES = 2;
const ROWS_MAX = 100_000;

async function withDatabase<T>(
  where: { dataDir: string; database: DatabaseName },
  work: (kv: KvPort) => Promise<T>,
): Promise<T> {
  const { dataDir, database } = where;
  const kv = await openRocksdbKv({ folder: join(dataDir, database), columns: DATABASES[database] });
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
