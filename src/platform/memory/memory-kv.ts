// The key-value port in memory: for tests, transcripts and simulation. Nothing survives the process; what "re-opening"
// means is a new shard over the same store. A test may hold commits back, or let the store fail as a disk does. Synced or
// not is one to it: nothing is durable, and all is applied in order.
import { assert, must } from '../../base/assert.ts';
import { compareBytes, EMPTY_BYTES } from '../../base/bytes/bytes.ts';
import { SortedRows } from '../../base/sorted-rows.ts';
import type { KvBounds, KvCursor, KvPort, KvPut, KvRange, KvRow } from '../../ports/kv.ts';
import { LIMITS } from '../../types/limits.ts';

export interface MemoryKv extends KvPort {
  /** From now on commits wait, unseen, until `releaseCommits`. */
  holdCommits(): void;
  releaseCommits(): void;
  /** As a crash: what waits is lost, its promises never settle. */
  loseCommits(): void;
  /** As a failed sync: waiting and later commits reject, `failed` resolves. Reads go on. */
  fail(error: Error): void;
}

interface Commit {
  change: readonly KvPut[] | KvBounds;
  resolve(): void;
  reject(error: Error): void;
}

export function createMemoryKv(columnNames: readonly string[]): MemoryKv {
  const columns = new Map(columnNames.map((name) => [name, new SortedRows<Uint8Array>()]));
  const column = (name: string) => must(columns.get(name), `unknown column ${name}`);
  const failed = Promise.withResolvers<Error>();
  let failure: Error | undefined;
  let waiting: Commit[] = [];
  let isHeld = false;
  let isScheduled = false;

  /** Applied after the call returns, as a disk would, but in order and each as a whole. */
  function schedule(): void {
    if (isScheduled || isHeld) return;
    isScheduled = true;
    queueMicrotask(() => {
      isScheduled = false;
      if (isHeld) return;
      const commits = waiting;
      waiting = [];
      for (const { change } of commits) {
        if ('gte' in change) clear(change);
        else for (const row of change) apply(row);
      }
      for (const { resolve } of commits) resolve();
    });
  }

  function apply({ column: name, key, value }: KvPut): void {
    if (value === null) column(name).delete(key);
    else column(name).set(key, value);
  }

  function clear({ column: name, gte, lt }: KvBounds): void {
    for (const { key } of [...column(name).between(gte, lt)]) column(name).delete(key);
  }

  async function take(change: Commit['change']): Promise<void> {
    if (failure !== undefined) throw failure;
    return new Promise((resolve, reject) => {
      waiting.push({ change, resolve, reject });
      schedule();
    });
  }

  return {
    failed: failed.promise,
    async getMany(name, keys) {
      return keys.map((key) => copied(column(name).get(key)?.value));
    },
    async range({ limit, bytesMax, keysOnly = false, ...bounds }) {
      const found = pageOf(scan(column(bounds.column), bounds), { limit, bytesMax });
      return found.map(keysOnly ? ({ key }) => copiedRow({ key, value: EMPTY_BYTES }) : copiedRow);
    },
    cursor: (bounds) => createCursor(scan(column(bounds.column), bounds), bounds),
    async commit(rows) {
      for (const { column: name, key } of rows) {
        column(name);
        assert(key.length > 0 && key.length <= LIMITS.kvKeyBytesMax, 'a key is of the allowed length');
      }
      return take(rows);
    },
    async clear(range) {
      column(range.column);
      return take(range);
    },
    usage: () => ({ liveBytes: [...columns.values()].reduce(totalBytes, 0), pendingReclaimBytes: 0 }),
    turnOver: async () => false,
    async close() {
      failure ??= new Error('the store is closed');
    },
    holdCommits() {
      isHeld = true;
    },
    releaseCommits() {
      isHeld = false;
      schedule();
    },
    loseCommits() {
      waiting = [];
      isHeld = false;
    },
    fail(error) {
      if (failure !== undefined) return;
      failure = error;
      for (const { reject } of waiting) reject(error);
      waiting = [];
      failed.resolve(error);
    },
  };
}

function scan(
  rows: SortedRows<Uint8Array>,
  bounds: Pick<KvRange, 'gte' | 'lt' | 'reverse'>,
): readonly Readonly<KvRow>[] {
  const found = Array.from(rows.between(bounds.gte, bounds.lt), ({ key, value }) => ({ key, value }));
  return bounds.reverse ? found.reverse() : found;
}

/** The first of the rows, up to the one that reaches `bytesMax`. */
function pageOf(
  rows: readonly Readonly<KvRow>[],
  { limit, bytesMax = Number.POSITIVE_INFINITY }: { limit: number; bytesMax?: number | undefined },
): readonly Readonly<KvRow>[] {
  let sizeBytes = 0;
  let count = 0;
  while (count < Math.min(limit, rows.length) && sizeBytes < bytesMax) {
    const { key, value } = must(rows[count++], 'a row');
    sizeBytes += key.length + value.length;
  }
  return rows.slice(0, count);
}

function createCursor(
  rows: readonly Readonly<KvRow>[],
  { reverse: isReverse = false, bytesMax, keysOnly = false }: Parameters<KvPort['cursor']>[0],
): KvCursor {
  let position = 0;
  let isClosed = false;
  return {
    seek(key) {
      const index = rows.findIndex((row) =>
        isReverse ? compareBytes(row.key, key) <= 0 : compareBytes(row.key, key) >= 0,
      );
      position = index < 0 ? rows.length : index;
    },
    async next(count) {
      if (isClosed) throw new Error('the cursor is closed');
      const page = pageOf(rows.slice(position, position + count), { limit: count, bytesMax });
      position += page.length;
      return page.map(keysOnly ? ({ key }) => copiedRow({ key, value: EMPTY_BYTES }) : copiedRow);
    },
    close() {
      isClosed = true;
    },
  };
}

function totalBytes(sum: number, rows: SortedRows<Uint8Array>): number {
  for (const { key, value } of rows.between(new Uint8Array(), Uint8Array.of(0xff, 0xff)))
    sum += key.length + value.length;
  return sum;
}

function copiedRow({ key, value }: Readonly<KvRow>): KvRow {
  return { key: Buffer.from(key), value: Buffer.from(value) };
}

function copied(bytes: Uint8Array | undefined): Uint8Array | undefined {
  return bytes && Buffer.from(bytes);
}
