// Committed rows of one shard at one moment. The store has no snapshots, but a cursor is a consistent view of its column
// (L3): one cursor over all of the shard's tables answers everything that is asked. For comparisons; look-ups by it cost
// more than the store's own, and it holds up the store's cleaning while it is open.
import { assert } from '../../base/assert.ts';
import { compareBytes, EMPTY_BYTES, equalBytes } from '../../base/bytes/bytes.ts';
import type { KvPort, KvRow } from '../../ports/kv.ts';
import type { Row, RowCursor, StateView, TableRef } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import { counterKey, decodeVector } from './counters.ts';
import { keyOfRow, rowKey } from './row-keys.ts';

const FIRST_TABLE: TableRef = { id: 0, column: 'rows' };
const BEHIND_TABLES: TableRef = { id: 0xff, column: 'rows' };
/** Read at first: a range may end long before its limit, and what lies behind it is another table's. */
const FIRST_ROWS = 8;

export function openStateView(shard: number, kv: KvPort, from: TableRef = FIRST_TABLE): StateView {
  const shardBounds = {
    gte: rowKey(shard, from, EMPTY_BYTES),
    lt: rowKey(shard, BEHIND_TABLES, EMPTY_BYTES),
  };
  const cursor = kv.cursor({
    column: 'rows',
    ...shardBounds,
    isNow: true,
    bytesMax: LIMITS.syncReadBytesMax,
  });

  const isIn = ({ id, column }: TableRef) => column === 'rows' && id >= from.id;

  async function valueAt(key: Uint8Array): Promise<Uint8Array | undefined> {
    cursor.seek(key);
    const [row] = await cursor.next(1);
    return row !== undefined && equalBytes(row.key, key) ? row.value : undefined;
  }

  /** From where the cursor stands, up to `lt`; no page behind the one with which they reach `bytesMax`. */
  async function take(lt: Uint8Array, limit: number, bytesMax = Number.POSITIVE_INFINITY): Promise<Row[]> {
    const rows: KvRow[] = [];
    let leftBytes = bytesMax;
    for (let count = FIRST_ROWS; rows.length < limit && leftBytes > 0; count *= 4) {
      const read = await cursor.next(Math.min(count, limit - rows.length));
      if (read.length === 0) break;
      for (const row of read) {
        const isInside = compareBytes(row.key, lt) < 0;
        if (isInside) rows.push(row);
        leftBytes = isInside ? leftBytes - row.key.length - row.value.length : 0;
      }
    }
    return rows.map(({ key, value }) => ({ key: keyOfRow(key), value }));
  }

  async function vectors(names: readonly string[]): Promise<number[][]> {
    const values: number[][] = [];
    for (const name of names) values.push(decodeVector(await valueAt(counterKey(shard, name))));
    return values;
  }

  return {
    async rows(addresses) {
      const values: (Uint8Array | undefined)[] = [];
      for (const { table, key } of addresses) {
        assert(isIn(table), 'a view is of one column');
        values.push(await valueAt(rowKey(shard, table, key)));
      }
      return values;
    },
    async range({ table, gte, lt, limit, reverse = false, bytesMax }) {
      assert(isIn(table) && !reverse, 'a view is of one column and goes forwards');
      cursor.seek(rowKey(shard, table, gte));
      return take(rowKey(shard, table, lt), limit, bytesMax);
    },
    cursor({ table, gte, lt, reverse = false, bytesMax }): RowCursor {
      assert(isIn(table) && !reverse, 'a view is of one column and goes forwards');
      const least = rowKey(shard, table, gte);
      const end = rowKey(shard, table, lt);
      // The view is shared: another reader may have moved the cursor.
      cursor.seek(least);
      return {
        seek(key) {
          const wanted = rowKey(shard, table, key);
          cursor.seek(compareBytes(wanted, least) < 0 ? least : wanted);
        },
        next: (count) => take(end, count, bytesMax),
        close() {},
      };
    },
    async counters(names) {
      return (await vectors(names)).map(([value = 0]) => value);
    },
    vectors,
    close: () => cursor.close(),
  };
}
