// Committed state of one shard, as queries see it: never the overlay, never a wait for a writer (R10). Puts the shard's
// prefix on and takes it off. What is seen at one moment is state-view.ts.
import type { KvPort } from '../../ports/kv.ts';
import type { RowAddress, StateReader } from '../../ports/state-machine.ts';
import { readCounters, readVectors } from './counters.ts';
import { keyOfRow, rowKey } from './row-keys.ts';
import { openStateView } from './state-view.ts';

export function createStateReader(shard: number, kv: KvPort): StateReader {
  return {
    rows: (addresses) => readRows(shard, kv, addresses),
    async range({ table, gte, lt, limit, reverse = false, bytesMax, keysOnly = false }) {
      const bounds = { gte: rowKey(shard, table, gte), lt: rowKey(shard, table, lt), ...bytesOf(bytesMax) };
      const rows = await kv.range({ column: table.column, ...bounds, limit, reverse, keysOnly });
      return rows.map(({ key, value }) => ({ key: keyOfRow(key), value }));
    },
    cursor({ table, gte, lt, reverse = false, bytesMax }) {
      const bounds = { gte: rowKey(shard, table, gte), lt: rowKey(shard, table, lt), ...bytesOf(bytesMax) };
      const cursor = kv.cursor({ column: table.column, ...bounds, reverse });
      return {
        seek: (key) => cursor.seek(rowKey(shard, table, key)),
        next: async (count) =>
          (await cursor.next(count)).map(({ key, value }) => ({ key: keyOfRow(key), value })),
        close: () => cursor.close(),
      };
    },
    counters: (names) => readCounters(shard, kv, names),
    vectors: (names) => readVectors(shard, kv, names),
    view: (from) => openStateView(shard, kv, from),
  };
}

function bytesOf(bytesMax: number | undefined): { bytesMax?: number } {
  return bytesMax === undefined ? {} : { bytesMax };
}

async function readRows(
  shard: number,
  kv: KvPort,
  addresses: readonly RowAddress[],
): Promise<(Uint8Array | undefined)[]> {
  const keyOf = ({ table, key }: RowAddress) => rowKey(shard, table, key);
  const [first] = addresses;
  if (first === undefined) return [];
  if (addresses.every(({ table }) => table.column === first.table.column))
    return kv.getMany(first.table.column, addresses.map(keyOf));
  const values: (Uint8Array | undefined)[] = new Array(addresses.length);
  await Promise.all(
    (['rows', 'bodies'] as const).map(async (column) => {
      const indices = addresses.flatMap(({ table }, index) => (table.column === column ? [index] : []));
      const found = await kv.getMany(
        column,
        indices.map((index) => keyOf(addresses[index] as RowAddress)),
      );
      indices.forEach((index, i) => {
        values[index] = found[i];
      });
    }),
  );
  return values;
}
