// The key-value port over a simulated disk (disk.ts), as one process sees it: its reads take time now and then, its commits
// are written and synced in groups, step by step, and a process that has ended gets no answer.
import { compareBytes, EMPTY_BYTES } from '../../src/base/bytes/bytes.ts';
import type { KvBounds, KvCommitOptions, KvCursor, KvPort, KvPut, KvRow } from '../../src/ports/kv.ts';
import { LIMITS } from '../../src/types/limits.ts';
import type { Chance } from './chance.ts';
import type { SimulatedProcess } from './clock.ts';
import type { Change, SimulatedDisk } from './disk.ts';
import { AT_REST } from './scheduler.ts';

interface Commit {
  change: Change;
  sync: boolean;
  resolve(): void;
  reject(error: Error): void;
}

/** The store as one process sees it. */
export class DiskSession implements KvPort {
  readonly failed: Promise<Error>;
  readonly #process: SimulatedProcess;
  readonly #disk: SimulatedDisk;
  readonly #chance: Chance;
  readonly #settleFailed: (error: Error) => void;
  #waiting: Commit[] = [];
  #isWriting = false;
  #nextSyncError: Error | undefined;
  #failure: Error | undefined;
  #hasEnded = false;
  #onIdle: (() => void) | undefined;

  constructor(process: SimulatedProcess, options: { disk: SimulatedDisk; chance: Chance }) {
    this.#process = process;
    this.#disk = options.disk;
    this.#chance = options.chance;
    const failed = Promise.withResolvers<Error>();
    this.failed = failed.promise;
    this.#settleFailed = failed.resolve;
  }

  /** What comes now is another process', or another disk's. */
  end(): void {
    this.#hasEnded = true;
  }

  failNextSync(error: Error): void {
    this.#nextSyncError = error;
    if (!this.#isWriting && this.#waiting.length === 0) this.commit([]).catch(() => undefined);
  }

  getMany(column: string, keys: readonly Uint8Array[]): Promise<(Uint8Array | undefined)[]> {
    return this.#read('reads rows', () =>
      keys.map((key) => {
        const value = this.#disk.column(column).get(key)?.value;
        if (value !== undefined) this.#disk.checkReadable(value);
        return value && Buffer.from(value);
      }),
    );
  }

  range(range: Parameters<KvPort['range']>[0]): Promise<KvRow[]> {
    const { limit, bytesMax = Number.POSITIVE_INFINITY, keysOnly = false } = range;
    return this.#read('reads a range', () => {
      const page = this.#pageOf(this.#scan(range), { count: limit, bytesMax });
      return keysOnly ? page.map(({ key }) => ({ key, value: EMPTY_BYTES })) : page;
    });
  }

  cursor(bounds: Parameters<KvPort['cursor']>[0]): KvCursor {
    const rows = this.#scan(bounds);
    const { reverse: isReverse = false, bytesMax = Number.POSITIVE_INFINITY, keysOnly = false } = bounds;
    let position = 0;
    let isClosed = false;
    return {
      seek(key) {
        const at = rows.findIndex((row) =>
          isReverse ? compareBytes(row.key, key) <= 0 : compareBytes(row.key, key) >= 0,
        );
        position = at < 0 ? rows.length : at;
      },
      next: (count) =>
        this.#read('reads on', () => {
          if (isClosed) throw new Error('the cursor is closed');
          const page = this.#pageOf(rows.slice(position, position + count), { count, bytesMax });
          position += page.length;
          return keysOnly ? page.map(({ key }) => ({ key, value: EMPTY_BYTES })) : page;
        }),
      close() {
        isClosed = true;
      },
    };
  }

  async commit(rows: readonly KvPut[], options: KvCommitOptions = {}): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    for (const { column, key } of rows) {
      this.#disk.column(column);
      if (key.length === 0 || key.length > LIMITS.kvKeyBytesMax)
        throw new Error('a key is of the allowed length');
    }
    // The caller may do with its bytes what it likes from now on.
    const own = rows.map(({ column, key, value }) => ({
      column,
      key: Buffer.from(key),
      value: value && Buffer.from(value),
    }));
    return this.#take(own, options.sync ?? true);
  }

  async clear({ column, gte, lt }: KvBounds): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    this.#disk.column(column);
    return this.#take({ column, gte: new Uint8Array(gte), lt: new Uint8Array(lt) }, false);
  }

  #take(change: Change, sync: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ change, sync, resolve, reject });
      this.#write();
    });
  }

  usage(): { liveBytes: number; pendingReclaimBytes: number } {
    return { liveBytes: this.#disk.liveBytes, pendingReclaimBytes: 0 };
  }

  async turnOver(): Promise<boolean> {
    return false;
  }

  async close(): Promise<void> {
    if (this.#failure === undefined && (this.#isWriting || this.#waiting.length > 0))
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    this.#failure ??= new Error('the store is closed');
  }

  /** One group at a time: written to the log, synced if it must be, readable, reported. Each a step of its own. */
  #write(): void {
    if (this.#isWriting || this.#hasEnded || this.#waiting.length === 0) return;
    this.#isWriting = true;
    this.#step(this.#chance.between(0, this.#disk.pace.now.writeMaxMs), 'writes to its log', () => {
      const commits = this.#waiting;
      this.#waiting = [];
      const records = commits.map(({ change }) => this.#disk.append(change));
      const isSynced = commits.some(({ sync }) => sync);
      const delayMs = isSynced ? this.#disk.syncMs() : 0;
      this.#step(delayMs, isSynced ? 'has synced' : 'has written', () => {
        const error = isSynced ? this.#nextSyncError : undefined;
        if (error !== undefined) return this.#fail(error, [...commits, ...this.#waiting]);
        for (const record of records) this.#disk.apply(record, isSynced);
        // Durable, and nobody knows yet: the process may end here.
        this.#step(0, 'tells what is written', () => this.#report(commits));
        return AT_REST;
      });
      return AT_REST;
    });
  }

  #report(commits: readonly Commit[]): void {
    for (const { resolve } of commits) resolve();
    this.#isWriting = false;
    this.#write();
    if (!this.#isWriting) this.#onIdle?.();
  }

  #fail(error: Error, commits: readonly Commit[]): void {
    this.#failure = error;
    for (const { reject } of commits) reject(error);
    this.#settleFailed(error);
  }

  #step(delayMs: number, name: string, run: () => unknown): void {
    this.#process.schedule(delayMs, name, () => (this.#hasEnded ? undefined : run()));
  }

  #read<T>(name: string, read: () => T): Promise<T> {
    if (this.#failure?.message === 'the store is closed') return Promise.reject(this.#failure);
    const { slowReadShare, slowReadMaxMs } = this.#disk.pace.now;
    if (this.#chance.happens(slowReadShare))
      return this.#process.later(this.#chance.between(0, slowReadMaxMs), name, read);
    return new Promise((resolve) => resolve(read()));
  }

  /** Copies of the first ones, up to the one that reaches `bytesMax`. */
  #pageOf(
    rows: readonly Readonly<KvRow>[],
    { count, bytesMax }: { count: number; bytesMax: number },
  ): KvRow[] {
    const page: KvRow[] = [];
    let sizeBytes = 0;
    for (const { key, value } of rows) {
      if (page.length >= count || sizeBytes >= bytesMax) break;
      this.#disk.checkReadable(value);
      sizeBytes += key.length + value.length;
      page.push({ key: Buffer.from(key), value: Buffer.from(value) });
    }
    return page;
  }

  #scan(bounds: { column: string; gte: Uint8Array; lt: Uint8Array; reverse?: boolean }): Readonly<KvRow>[] {
    const rows = Array.from(this.#disk.column(bounds.column).between(bounds.gte, bounds.lt), (row) => ({
      key: row.key,
      value: row.value,
    }));
    return bounds.reverse ? rows.reverse() : rows;
  }
}
