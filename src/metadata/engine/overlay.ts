// Rows of entries that are appended and not yet in the state (R7): evaluation reads them first. In memory only; when
// the process ends, they were never acknowledged. It knows keys as the store does, with their prefix.

import { createFairShare, type FairShare } from '../../base/async/fair-share.ts';
import { SortedRows } from '../../base/sorted-rows.ts';
import type { KvPut } from '../../ports/kv.ts';
import { LIMITS } from '../../types/limits.ts';
import { shareOfThread } from '../../types/thread-share.ts';

interface PendingRow {
  value: Uint8Array | null;
  /** The entry that wrote it. */
  seq: number;
}

/** Bytes held by all overlays of a thread, which share one bound. */
export interface OverlayBudget {
  /** LIMITS.overlayBytesMax, or of several threads each its share of it. */
  readonly bytesMax: number;
  usedBytes: number;
  /** Of entries whose commands are not answered yet, by the command's account. */
  readonly shares: FairShare;
  /** Of large rows that commands have read and hold until they are answered, by the command's account. */
  readonly readShares: FairShare;
}

/** Of one of so many `threads`, each of which has a share of LIMITS.overlayBytesMax; default this one alone. */
export function createOverlayBudget({ threads }: { threads?: number | undefined } = {}): OverlayBudget {
  const bytesMax = shareOfThread(LIMITS.overlayBytesMax, { threads });
  const share = () => createFairShare({ limit: bytesMax, weights: [LIMITS.accountShareWeight] });
  return { bytesMax, usedBytes: 0, shares: share(), readShares: share() };
}

const ROW_OVERHEAD_BYTES = 64;
/** So many are taken out together. */
const MANY_ROWS = 64;

export class Overlay {
  readonly #columns = { rows: new SortedRows<PendingRow>(), bodies: new SortedRows<PendingRow>() };
  readonly #budget: OverlayBudget;

  constructor(budget: OverlayBudget) {
    this.#budget = budget;
  }

  add(seq: number, rows: readonly KvPut[]): void {
    this.#budget.usedBytes += entryBytes(rows);
    for (const { column, key, value } of rows) this.#column(column).set(key, { value, seq });
  }

  /** After the entry's batch is in the state, in the order of entries. A later entry's rows stay. */
  remove(seq: number, rows: readonly KvPut[]): void {
    this.#budget.usedBytes -= entryBytes(rows);
    const isOfEntry = (row: PendingRow) => row.seq === seq;
    if (rows.length < MANY_ROWS)
      for (const { column, key } of rows) this.#column(column).delete(key, isOfEntry);
    else
      for (const name of ['rows', 'bodies'] as const) {
        const keys = rows.filter(({ column }) => column === name).map(({ key }) => key);
        this.#columns[name].deleteMany(keys, isOfEntry);
      }
  }

  /** `{ value: null }`: deleted by a pending entry. undefined: ask the state. */
  get(column: string, key: Uint8Array): { value: Uint8Array | null } | undefined {
    return this.#column(column).get(key)?.value;
  }

  /** Pending rows and deletions of a range, ascending. */
  between(bounds: {
    column: string;
    gte: Uint8Array;
    lt: Uint8Array;
  }): { key: Uint8Array; value: Uint8Array | null }[] {
    const pending = this.#column(bounds.column);
    if (pending.size === 0) return [];
    return Array.from(pending.between(bounds.gte, bounds.lt), (row) => ({
      key: row.key,
      value: row.value.value,
    }));
  }

  #column(name: string): SortedRows<PendingRow> {
    return this.#columns[name as 'rows' | 'bodies'];
  }
}

/** What an entry's rows count for. */
export function entryBytes(rows: readonly Pick<KvPut, 'key' | 'value'>[]): number {
  let sizeBytes = 0;
  for (const { key, value } of rows) sizeBytes += key.length + (value?.length ?? 0) + ROW_OVERHEAD_BYTES;
  return sizeBytes;
}
