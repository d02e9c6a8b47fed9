// What one command has read: overlay first, state second (R7). Filled in rounds before `decide`, which then only looks
// things up. Exact because the command's locks keep others from appending to what it reads.
import { assert, must } from '../../base/assert.ts';
import { compareBytes, concatBytes, latin1Key } from '../../base/bytes/bytes.ts';
import type { KvPort, KvRow } from '../../ports/kv.ts';
import type { RangeAddress, Reads, Row, RowAddress, View } from '../../ports/state-machine.ts';
import type { Overlay } from './overlay.ts';
import { keyOfRow, rowKey } from './row-keys.ts';

/** So many bytes of rows cost as much as a row more. */
const BYTES_OF_ROW = 1024;

export class CommandView implements View {
  readonly #shard: number;
  readonly #kv: KvPort;
  readonly #overlay: Overlay;
  readonly #rows = new Map<string, Uint8Array | undefined>();
  readonly #ranges = new Map<string, readonly Row[]>();
  #rangeRowCount = 0;
  #valueBytes = 0;
  #named: { address: RowAddress; name: string } | undefined;

  constructor(shard: number, deps: { kv: KvPort; overlay: Overlay }) {
    this.#shard = shard;
    this.#kv = deps.kv;
    this.#overlay = deps.overlay;
  }

  /**
   * What a look at all of it costs, in rows: those that have been asked for by their address, those that ranges have given, and
   * their bytes.
   */
  get weight(): number {
    return this.#rows.size + this.#rangeRowCount + Math.floor(this.#valueBytes / BYTES_OF_ROW);
  }

  /** Of the values of all rows. */
  get valueBytes(): number {
    return this.#valueBytes;
  }

  has(address: RowAddress | RangeAddress): boolean {
    return 'gte' in address ? this.#ranges.has(rangeName(address)) : this.#rows.has(this.#nameOf(address));
  }

  row(address: RowAddress): Uint8Array | undefined {
    const name = this.#nameOf(address);
    const value = this.#rows.get(name);
    assert(value !== undefined || this.#rows.has(name), 'a row is named before it is read');
    return value;
  }

  /** Whether a row is there and what it says are asked one after the other, of the same address. */
  #nameOf(address: RowAddress): string {
    if (this.#named?.address !== address) this.#named = { address, name: rowName(address) };
    return this.#named.name;
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
      if (pending !== undefined) this.#keep(name, pending.value ?? undefined);
      else {
        // Named once: the engine and the command both ask for the bucket's row.
        this.#rows.set(name, undefined);
        names.push(name);
        keys.push(key);
      }
    }
    if (names.length === 0) return undefined;
    return this.#kv.getMany(column, keys).then((values) => {
      for (let i = 0; i < names.length; i++) this.#keep(names[i] as string, values[i]);
    });
  }

  #keep(name: string, value: Uint8Array | undefined): void {
    this.#rows.set(name, value);
    this.#valueBytes += value?.length ?? 0;
  }

  async #fetchRange(address: RangeAddress): Promise<void> {
    const { table, limit, reverse = false, bytesMax, keysOnly = false } = address;
    const bounds = {
      column: table.column,
      gte: rowKey(this.#shard, table, address.gte),
      lt: rowKey(this.#shard, table, address.lt),
    };
    // The overlay before the state: an entry that leaves it meanwhile is then seen in both, never in neither.
    const pending = this.#overlay.between(bounds);
    const wanted = { bounds, pending, reverse, limit, keysOnly };
    const merged =
      bytesMax === undefined ? await this.#readAll(wanted) : await this.#readPages({ ...wanted, bytesMax });
    const rows = merged.map(({ key, value }) => ({ key: keyOfRow(key), value }));
    this.#ranges.set(rangeName(address), rows);
    this.#rangeRowCount += rows.length;
    for (const { value } of rows) this.#valueBytes += value.length;
  }

  async #readAll({ bounds, pending, reverse, limit, keysOnly }: WantedRange): Promise<readonly KvRow[]> {
    let deletedCount = 0;
    for (const { value } of pending) if (value === null) deletedCount++;
    const stored = await this.#kv.range({ ...bounds, reverse, keysOnly, limit: limit + deletedCount });
    return pending.length === 0 ? stored : mergeRows(pending, stored, { reverse, limit });
  }

  /** Page by page: one of large rows that are all replaced or deleted shows nothing, and is not the end. */
  async #readPages(wanted: WantedRange & { bytesMax: number }): Promise<readonly KvRow[]> {
    const { bounds, pending, reverse, limit, keysOnly, bytesMax } = wanted;
    const found: KvRow[] = [];
    let leftBytes = bytesMax;
    for (let { gte, lt } = bounds; ; ) {
      const asked = { column: bounds.column, gte, lt, reverse, limit, keysOnly, bytesMax };
      const page = await this.#kv.range(asked);
      const isRest = page.length < limit && bytesOf(page) < bytesMax;
      const last = isRest ? undefined : must(page.at(-1), 'a row').key;
      const newer = pending.filter(({ key }) => isWithin(key, { gte, lt, last, reverse }));
      for (const row of mergeRows(newer, page, { reverse, limit: limit - found.length })) {
        found.push(row);
        leftBytes -= keyOfRow(row.key).length + row.value.length;
        if (leftBytes <= 0 || found.length === limit) return found;
      }
      if (last === undefined) return found;
      if (reverse) lt = last;
      else gte = concatBytes(last, Uint8Array.of(0));
    }
  }
}

interface WantedRange {
  bounds: { column: 'rows' | 'bodies'; gte: Uint8Array; lt: Uint8Array };
  pending: ReturnType<Overlay['between']>;
  reverse: boolean;
  limit: number;
  keysOnly: boolean;
}

function bytesOf(rows: readonly KvRow[]): number {
  return rows.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
}

/** Of the part of a range that a page covers: up to its last key in its direction, or all that is left where it has none. */
function isWithin(
  key: Uint8Array,
  page: { gte: Uint8Array; lt: Uint8Array; last: Uint8Array | undefined; reverse: boolean },
): boolean {
  const { gte, lt, last, reverse } = page;
  if (compareBytes(key, gte) < 0 || compareBytes(key, lt) >= 0) return false;
  if (last === undefined) return true;
  return reverse ? compareBytes(key, last) >= 0 : compareBytes(key, last) <= 0;
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

function rangeName({ table, gte, lt, limit, reverse, keysOnly, bytesMax = 0 }: RangeAddress): string {
  const ends = `${latin1Key(gte)}|${latin1Key(lt)}|${gte.length}`;
  return `${tableName(table)}${ends}|${limit}|${bytesMax}${reverse ? 'r' : ''}${keysOnly ? 'k' : ''}`;
}

function tableName({ id, column }: RowAddress['table']): string {
  return String.fromCharCode(column === 'rows' ? id : 0x100 + id);
}
