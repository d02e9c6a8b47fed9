// Counters of a shard as absolute rows (protocol 1.2), without locks: every entry carries the new values of those it
// changes, taken from memory. Deltas are added in the order of entries; commands see what is appended, queries the
// committed rows. A counter is a vector of doubles in one row, most of them of one; zeros at its end are not stored.
import { must } from '../../base/assert.ts';
import { asBuffer, utf8 } from '../../base/bytes/bytes.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
import type { CounterDelta } from '../../ports/state-machine.ts';
import type { Overlay } from './overlay.ts';
import { ENGINE_TABLES, rowKey } from './row-keys.ts';

/** Values kept in memory; older ones are read again when they change. */
const KEPT_MAX = 10_000;

export class Counters {
  readonly #shard: number;
  readonly #kv: KvPort;
  readonly #overlay: Overlay;
  /** With everything that is appended. */
  readonly #values = new Map<string, number[]>();
  /**
   * Their names, a ring: the oldest is the next to go. To find it as the first key of the map would take longer and longer, as the
   * map remembers what was deleted before it.
   */
  readonly #order: string[] = [];
  #next = 0;
  readonly #loading = new Map<string, Promise<void>>();

  constructor(shard: number, deps: { kv: KvPort; overlay: Overlay }) {
    this.#shard = shard;
    this.#kv = deps.kv;
    this.#overlay = deps.overlay;
  }

  /** undefined when all are in memory. */
  load(names: readonly string[]): Promise<unknown> | undefined {
    const missing = names.filter((name) => !this.#values.has(name));
    if (missing.length === 0) return undefined;
    const unread = [...new Set(missing)].filter((name) => !this.#loading.has(name));
    const pending = missing.flatMap((name) => this.#loading.get(name) ?? []);
    if (unread.length > 0) pending.push(this.#load(unread));
    return Promise.all(pending);
  }

  /** With everything that is appended; undefined while it is not loaded. */
  value(name: string): readonly number[] | undefined {
    return this.#values.get(name);
  }

  /** The rows for an entry that is appended now. All counters must be loaded. */
  append(deltas: readonly CounterDelta[]): KvPut[] {
    return deltas.map(({ name, delta }) => {
      const values = must(this.#values.get(name), 'a counter is loaded before it changes');
      if (typeof delta === 'number') values[0] = (values[0] ?? 0) + delta;
      else for (let at = 0; at < delta.length; at++) values[at] = (values[at] ?? 0) + (delta[at] as number);
      return { column: 'rows', key: counterKey(this.#shard, name), value: encode(values) };
    });
  }

  /** One load at a time per counter: nothing can change it before the load has ended, so what it finds is exact. */
  #load(names: readonly string[]): Promise<void> {
    const loading = this.#read(names).finally(() => {
      for (const name of names) this.#loading.delete(name);
    });
    for (const name of names) this.#loading.set(name, loading);
    return loading;
  }

  async #read(names: readonly string[]): Promise<void> {
    const found = names.map((name) => {
      const key = counterKey(this.#shard, name);
      return { name, key, pending: this.#overlay.get('rows', key) };
    });
    const stored = found.filter(({ pending }) => pending === undefined);
    const rows =
      stored.length === 0
        ? []
        : await this.#kv.getMany(
            'rows',
            stored.map(({ key }) => key),
          );
    const byName = new Map(stored.map(({ name }, at) => [name, rows[at]]));
    for (const { name, pending } of found)
      this.#keep(name, decodeVector(pending === undefined ? byName.get(name) : pending.value));
  }

  #keep(name: string, values: number[]): void {
    const oldest = this.#order[this.#next];
    if (oldest !== undefined) this.#values.delete(oldest);
    this.#order[this.#next] = name;
    this.#next = (this.#next + 1) % KEPT_MAX;
    this.#values.set(name, values);
  }
}

/** Committed values. */
export async function readVectors(shard: number, kv: KvPort, names: readonly string[]): Promise<number[][]> {
  const keys = names.map((name) => counterKey(shard, name));
  return (await kv.getMany('rows', keys)).map(decodeVector);
}

/** The same of counters that are no vectors. */
export async function readCounters(shard: number, kv: KvPort, names: readonly string[]): Promise<number[]> {
  return (await readVectors(shard, kv, names)).map(([value = 0]) => value);
}

export function counterKey(shard: number, name: string): Uint8Array {
  return rowKey(shard, ENGINE_TABLES.counters, utf8(name));
}

const VALUE_BYTES = 8;

/** Doubles: exact up to 2^53, and a counter that goes below zero shows it. null: all are zero, and there is no row. */
function encode(values: readonly number[]): Uint8Array | null {
  let count = values.length;
  while (count > 0 && values[count - 1] === 0) count--;
  if (count === 0) return null;
  const bytes = Buffer.allocUnsafe(VALUE_BYTES * count);
  for (let at = 0; at < count; at++) bytes.writeDoubleBE(values[at] as number, VALUE_BYTES * at);
  return bytes;
}

export function decodeVector(row: Uint8Array | null | undefined): number[] {
  if (row === null || row === undefined) return [];
  const bytes = asBuffer(row);
  const values: number[] = [];
  for (let at = 0; at < bytes.length; at += VALUE_BYTES) values.push(bytes.readDoubleBE(at));
  return values;
}
