// What one command has read: overlay first, state second (R7). Filled in rounds before `decide`, which then only looks
// things up. Exact because the command's locks keep others from appending to what it reads.
import { assert, must } from '../lib/assert.ts';
import { compareBytes, latin1Key } from '../lib/bytes.ts';
import type { KvPort, KvRow } from '../ports/kv.ts';
import type { RangeAddress, Reads, Row, RowAddress, View } from '../ports/state-machine.ts';
import type { Overlay } from './overlay.ts';
import { keyOfRow, rowKey } from './row-keys.ts';

export class CommandView implements View {
  readonly #shard: number;
  readonly #kv: KvPort;
  readonly #overlay: Overlay;
  readonly #rows = new Map<string, Uint8Array | undefined>();
  readonly #ranges = new Map<string, readonly Row[]>();

  constructor(shard: number, deps: { kv: KvPort; overlay: Overlay }) {
    this.#shard = shard;
    this.#kv = deps.kv;
    this.#overlay = deps.overlay;
  }

  has(address: RowAddress | RangeAddress): boolean {
    return 'gte' in address ? this.#ranges.has(rangeName(address)) : this.#rows.has(rowName(address));
  }

  row(address: RowAddress): Uint8Array | undefined {
    const name = rowName(address);
    const value = this.#rows.get(name);
    assert(value !== undefined || this.#rows.has(name), 'a row is named before it is read');
    return value;
  }

  range(address: RangeAddress): readonly Row[] {
    return must(this.#ranges.get(rangeName(address)), 'a range is named before it is read');
  }

  /** undefined when the overlay had everything. Rows that were read before are not read again. */
  fetch(reads: Reads): Promise<unknown> | undefined {
    const pending: Promise<unknown>[] = [];
    if (reads.rows !== undefined) {
      const fromRows = this.#fetchRows('rows', reads.rows);
      const fromBodies = this.#fetchRows('bodies', reads.rows);
      if (fromRows !== undefined) pending.push(fromRows);
      if (fromBodies !== undefined) pending.push(fromBodies);
    }
    for (const range of reads.ranges ?? []) pending.push(this.#fetchRange(range));
    return pending.length < 2 ? pending[0] : Promise.all(pending);
  }

  #fetchRows(column: 'rows' | 'bodies', addresses: readonly RowAddress[]): Promise<void> | undefined {
    const names: string[] = [];
    const keys: Uint8Array[] = [];
    for (const address of addresses) {
      if (address.table.column !== column) continue;
      const name = rowName(address);
      if (this.#rows.has(name)) continue;
      const key = rowKey(this.#shard, address.table, address.key);
      const pending = this.#overlay.get(column, key);
      if (pending !== undefined) this.#rows.set(name, pending.value ?? undefined);
      else {
        names.push(name);
        keys.push(key);
      }
    }
    if (names.length === 0) return undefined;
    return this.#kv.getMany(column, keys).then((values) => {
      for (let i = 0; i < names.length; i++) this.#rows.set(names[i] as string, values[i]);
    });
  }

  async #fetchRange(address: RangeAddress): Promise<void> {
    const { table, limit, reverse = false } = address;
    const bounds = {
      column: table.column,
      gte: rowKey(this.#shard, table, address.gte),
      lt: rowKey(this.#shard, table, address.lt),
    };
    // The overlay before the state: an entry that leaves it meanwhile is then seen in both, never in neither.
    const pending = this.#overlay.between(bounds);
    let deletedCount = 0;
    for (const { value } of pending) if (value === null) deletedCount++;
    const stored = await this.#kv.range({ ...bounds, reverse, limit: limit + deletedCount });
    const merged = pending.length === 0 ? stored : mergeRows(pending, stored, { reverse, limit });
    const rows = merged.map(({ key, value }) => ({ key: keyOfRow(key), value }));
    this.#ranges.set(rangeName(address), rows);
  }
}

/** `pending` is ascending and wins over `stored`, which is in the order asked for. */
function mergeRows(
  pending: { key: Uint8Array; value: Uint8Array | null }[],
  stored: readonly KvRow[],
  options: { reverse: boolean; limit: number },
): KvRow[] {
  const sign = options.reverse ? -1 : 1;
  const newer = options.reverse ? pending.reverse() : pending;
  const merged: KvRow[] = [];
  let storedIndex = 0;
  let newerIndex = 0;
  while (merged.length < options.limit) {
    const older = stored[storedIndex];
    const row = newer[newerIndex];
    if (row === undefined && older === undefined) break;
    const order = row === undefined ? 1 : older === undefined ? -1 : sign * compareBytes(row.key, older.key);
    if (order >= 0) storedIndex++;
    if (order <= 0) newerIndex++;
    if (order <= 0 && row !== undefined) {
      if (row.value !== null) merged.push({ key: row.key, value: row.value });
    } else if (older !== undefined) merged.push(older);
  }
  return merged;
}

function rowName({ table, key }: RowAddress): string {
  return tableName(table) + latin1Key(key);
}

function rangeName({ table, gte, lt, limit, reverse }: RangeAddress): string {
  return `${tableName(table)}${latin1Key(gte)}|${latin1Key(lt)}|${gte.length}|${limit}${reverse ? 'r' : ''}`;
}

function tableName({ id, column }: RowAddress['table']): string {
  return String.fromCharCode(column === 'rows' ? id : 0x100 + id);
}
