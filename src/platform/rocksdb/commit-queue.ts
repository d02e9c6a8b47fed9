// Gathers commits on the calling thread and hands them to the committer thread in groups, each of which becomes one
// write, synced when one of its commits asks for it. It knows no keys and no RocksDB; reads are in rocksdb-kv.ts.
import { Worker } from 'node:worker_threads';
import { assert, must } from '../../base/assert.ts';
import { Corruption } from '../../base/corruption.ts';
import { DriveHangs } from '../../base/drive-hangs.ts';
import type { KvBounds, KvCommitOptions, KvPut } from '../../ports/kv.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { type HangWatch, watchForHang } from '../disk/hang-watch.ts';
import { type CommitFrame, type CommitRows, checkRows, encodeFrame } from './commit-frame.ts';
import type { ClearTask, CommitterReply, CommitterStart } from './rocksdb-committer.ts';

/** One group is written while the next one lies ready: the disk never waits for this thread. */
const GROUPS_IN_FLIGHT_MAX = 2;
/** How long those that nobody waits for stay behind for one that somebody does. */
const PATIENCE_MS = 20;
const FRAMES_KEPT_MAX = GROUPS_IN_FLIGHT_MAX + 1;

interface Commit extends CommitRows {
  /** It is no commit, but clears a range: alone, in its turn. */
  clears?: KvBounds;
  sizeBytes: number;
  isPatient: boolean;
  resolve(): void;
  reject(error: Error): void;
}

export interface CommitQueue {
  /** As KvPort.commit. */
  commit(rows: readonly KvPut[], options?: KvCommitOptions): Promise<void>;
  /** As KvPort.clear. */
  clear(range: KvBounds): Promise<void>;
  readonly failed: Promise<Error>;
  /**
   * Resolves when the groups so far are written and the thread has ended: where a drive hangs, once it answers. With an error:
   * that is how it answered.
   */
  stop(): Promise<Error | undefined>;
}

/** One write, for metrics. */
export interface CommitGroup {
  commitCount: number;
  sizeBytes: number;
  /** From its posting to the committer thread until it was written, and synced if it had to be. */
  durationMs: number;
  isSynced: boolean;
}

export interface CommitQueueOptions {
  handle: bigint;
  columns: readonly { name: string; nativeName: string; isPrefixFree: boolean }[];
  /** Given the buffers of large values after they are written. */
  onReleased?: (buffer: ArrayBuffer) => void;
  /** Called for every group that is written. */
  onGroup?: (group: CommitGroup) => void;
  /** When a write that is not answered has failed. Without it one is waited for as long as it takes. */
  hangs?: HangWatch;
  /** Whether writes wait for merges of tables. */
  isStalled?: () => boolean;
}

/** A group on its way to the disk. */
interface PostedGroup {
  commits: Commit[];
  sizeBytes: number;
  postedAtMs: number;
}

/** V8's memory for new objects of the committer, MiB: its groups are bytes outside of it. */
const YOUNG_MIB = 24;

/** Starts the committer thread. `program`: what it runs. */
export async function startCommitQueue(
  options: CommitQueueOptions,
  program = new URL('./rocksdb-committer.ts', import.meta.url),
): Promise<CommitQueue> {
  const start: CommitterStart = {
    handle: options.handle,
    columns: options.columns.map(({ nativeName, isPrefixFree }) => ({ nativeName, isPrefixFree })),
  };
  const worker = new Worker(program, {
    workerData: start,
    name: 'committer',
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MIB },
  });
  const queue = new GroupingQueue(worker, options);
  await queue.ready;
  return queue;
}

class GroupingQueue implements CommitQueue {
  readonly failed: Promise<Error>;
  readonly ready: Promise<void>;
  readonly #worker: Worker;
  readonly #columnIndex: ReadonlyMap<string, number>;
  readonly #onReleased: ((buffer: ArrayBuffer) => void) | undefined;
  readonly #onGroup: ((group: CommitGroup) => void) | undefined;
  readonly #groups: PostedGroup[] = [];
  readonly #frames: ArrayBuffer[] = [];
  #waiting: Commit[] = [];
  #waitingBytes = 0;
  /** Somebody waits for one of those that wait. */
  #isUrgent = false;
  #patience: NodeJS.Timeout | undefined;
  #isScheduled = false;
  #isStopping = false;
  #failure: Error | undefined;
  readonly #ready: { resolve(): void; reject(error: Error): void };
  readonly #resolveFailed: (error: Error) => void;
  #idle: (() => void) | undefined;
  /** Of a drive that hung: groups that it has not answered yet, and whether it did well then. */
  #lateCount = 0;
  readonly #late = Promise.withResolvers<Error | undefined>();
  /** Ends the watch. */
  readonly #ending = new AbortController();

  constructor(worker: Worker, options: CommitQueueOptions) {
    this.#worker = worker;
    this.#onReleased = options.onReleased;
    this.#onGroup = options.onGroup;
    this.#columnIndex = new Map(options.columns.map(({ name }, index) => [name, index]));
    const failed = Promise.withResolvers<Error>();
    this.failed = failed.promise;
    this.#resolveFailed = failed.resolve;
    const ready = Promise.withResolvers<void>();
    this.ready = ready.promise;
    this.#ready = ready;
    worker.on('message', (reply: CommitterReply) => this.#onReply(reply));
    worker.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))));
    worker.on('exit', () => {
      const error = new Error('the committer thread has ended');
      this.#fail(error);
      this.#late.resolve(error);
    });
    if (options.hangs !== undefined) void this.#watch(options.hangs, options.isStalled);
  }

  async #watch(hangs: HangWatch, isStalled = () => false): Promise<void> {
    const { signal } = this.#ending;
    const hang = await watchForHang(hangs, { underWay: () => this.#groups[0], isHeldUp: isStalled, signal });
    if (hang === undefined) return;
    this.#lateCount = this.#groups.length;
    this.#fail(hang);
  }

  async commit(rows: readonly KvPut[], options: KvCommitOptions = {}): Promise<void> {
    const { keep = false, sync = true, isBounded = false, isPatient = false } = options;
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#isStopping) throw new Error('the store is closed');
    const sizeBytes = checkRows(rows, this.#columnIndex);
    const hasRoom = this.#waitingBytes + sizeBytes <= LIMITS.commitQueueBytesMax;
    if (!hasRoom && !isBounded) throw new AppError('SlowDown');
    return this.#wait({ rows, keep, sync, sizeBytes, isPatient });
  }

  async clear(range: KvBounds): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#isStopping) throw new Error('the store is closed');
    assert(this.#columnIndex.has(range.column), `unknown column ${range.column}`);
    return this.#wait({ rows: [], clears: range, keep: true, sync: false, sizeBytes: 0, isPatient: false });
  }

  #wait(commit: Omit<Commit, 'resolve' | 'reject'>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...commit, resolve, reject });
      this.#waitingBytes += commit.sizeBytes;
      if (!commit.isPatient) this.#isUrgent = true;
      this.#schedule();
    });
  }

  async stop(): Promise<Error | undefined> {
    this.#isStopping = true;
    if (this.#failure === undefined && (this.#waiting.length > 0 || this.#groups.length > 0))
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
        this.#schedule();
      });
    this.#ending.abort();
    clearTimeout(this.#patience);
    // First: from a thread that is ended no answer comes any more.
    const late = this.#failure instanceof DriveHangs ? await this.#late.promise : undefined;
    this.#worker.removeAllListeners('exit');
    await this.#worker.terminate();
    return late;
  }

  /** Nobody waits for it any more but the end. */
  #onLateReply(reply: CommitterReply): void {
    this.#lateCount--;
    if (reply.kind === 'failed') this.#late.resolve(errorOf(reply));
    else if (this.#lateCount === 0) this.#late.resolve(undefined);
  }

  /** At the end of this turn of the event loop: commits of all requests that it serves share the group. */
  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0 || this.#groups.length >= GROUPS_IN_FLIGHT_MAX)
      return;
    if (!this.#isUrgent && !this.#isStopping) {
      this.#patience ??= setTimeout(() => {
        this.#patience = undefined;
        this.#isUrgent = this.#waiting.length > 0;
        this.#schedule();
      }, PATIENCE_MS);
      return;
    }
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      try {
        while (this.#waiting.length > 0 && this.#groups.length < GROUPS_IN_FLIGHT_MAX) this.#post();
      } catch (error) {
        this.#fail(error instanceof Error ? error : new Error(String(error)));
      }
    });
  }

  #post(): void {
    const group = this.#takeGroup();
    const clears = group.commits[0]?.clears;
    if (clears !== undefined) {
      const { column, gte, lt } = clears;
      const columnIndex = must(this.#columnIndex.get(column), `unknown column ${column}`);
      this.#groups.push(group);
      this.#worker.postMessage({ columnIndex, gte, lt } satisfies ClearTask);
      return;
    }
    const frame = encodeFrame(group.commits, this.#columnIndex, this.#frames.pop());
    this.#groups.push(group);
    this.#worker.postMessage(frame, [frame.buffer, ...frame.moved]);
  }

  #takeGroup(): PostedGroup {
    const { commitGroupBytesMax, commitGroupRowsMax } = LIMITS;
    let count = 0;
    let sizeBytes = 0;
    let rowCount = 0;
    while (count < this.#waiting.length && sizeBytes < commitGroupBytesMax) {
      const commit = must(this.#waiting[count], 'a waiting commit');
      rowCount += commit.rows.length;
      if (count > 0 && (commit.clears !== undefined || rowCount > commitGroupRowsMax)) break;
      sizeBytes += commit.sizeBytes;
      count++;
      if (commit.clears !== undefined) break;
    }
    this.#waitingBytes -= sizeBytes;
    const commits = this.#waiting.splice(0, count);
    if (this.#waiting.length === 0) this.#isUrgent = false;
    return { commits, sizeBytes, postedAtMs: performance.now() };
  }

  #onReply(reply: CommitterReply): void {
    if (this.#failure !== undefined) this.#onLateReply(reply);
    else if (reply.kind === 'ready') this.#ready.resolve();
    else if (reply.kind === 'failed') this.#fail(errorOf(reply));
    else {
      if (reply.kind === 'written') this.#takeBack(reply.frame);
      const { commits, sizeBytes, postedAtMs } = must(this.#groups.shift(), 'a group in flight');
      for (const commit of commits) commit.resolve();
      const durationMs = performance.now() - postedAtMs;
      const isSynced = reply.kind === 'written' && reply.frame.sync;
      this.#onGroup?.({ commitCount: commits.length, sizeBytes, durationMs, isSynced });
      this.#schedule();
      if (this.#waiting.length === 0 && this.#groups.length === 0) this.#idle?.();
    }
  }

  #takeBack({ buffer, moved }: CommitFrame): void {
    if (this.#frames.length < FRAMES_KEPT_MAX && buffer.byteLength <= LIMITS.commitGroupBytesMax)
      this.#frames.push(buffer);
    if (this.#onReleased !== undefined) for (const released of moved) this.#onReleased(released);
  }

  /** Final (R20): after a failed write nobody knows what is on the disk. */
  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#ending.abort();
    this.#ready.reject(error);
    const commits = [...this.#groups.flatMap((group) => group.commits), ...this.#waiting];
    for (const commit of commits) commit.reject(error);
    this.#groups.length = 0;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#resolveFailed(error);
    this.#idle?.();
  }
}

function errorOf({ message, isCorruption }: CommitterReply & { kind: 'failed' }): Error {
  return isCorruption ? new Corruption(message) : new Error(message);
}
