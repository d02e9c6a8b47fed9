// Cursors whose seeks another thread does: the binding makes and positions an iterator on the calling thread, which would wait
// for all deleted rows in its way. The thread begins with the first of them. Where such ranges are is not known here
// (deleted-rows.ts).
import { Worker } from 'node:worker_threads';
import { Corruption } from '../../base/corruption.ts';
import type { KvCursor, KvRow } from '../../ports/kv.ts';
import { AppError } from '../../types/errors.ts';
import type {
  RangeReaderMessage,
  RangeReaderReply,
  RangeReaderStart,
  RangeTask,
  RemoteBounds,
} from './rocksdb-range-reader.ts';
import { unpackRows } from './row-packing.ts';

/** V8's memory for new objects of the thread, MiB: rows are bytes outside of it. */
const YOUNG_MIB = 8;
/** Reads that the thread has at once; the others wait for their turn here. */
const READS_AT_ONCE = 2;
/** Ranges whose keys begin with the same bytes share a turn: shard, table, and a bucket where the table has one. */
const GROUP_BYTES = 11;

interface Waiting {
  resolve(rows: KvRow[]): void;
  reject(error: Error): void;
  onTook(durationMs: number): void;
}

export class RangeReader {
  readonly #handle: bigint;
  #thread: ReaderThread | undefined;
  #lastCursorId = 0;

  /** `handle`: of a database that stays open until this is stopped. */
  constructor(handle: bigint) {
    this.#handle = handle;
  }

  /** It opens with its first read. `onTook`: how long each of its reads has kept the thread, at the most. */
  cursor(bounds: RemoteBounds, onTook: (durationMs: number) => void, onClosed: () => void): RemoteCursor {
    this.#lastCursorId++;
    return new RemoteCursor({
      bounds,
      cursorId: this.#lastCursorId,
      thread: () => this.#openThread(),
      onTook,
      onClosed,
    });
  }

  /** Ends the thread, once no cursor of it is read any more. */
  async stop(): Promise<void> {
    await this.#thread?.stop();
  }

  #openThread(): ReaderThread {
    if (this.#thread === undefined || this.#thread.hasEnded) this.#thread = new ReaderThread(this.#handle);
    return this.#thread;
  }
}

class ReaderThread {
  hasEnded = false;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting[]>();
  /** What waits for its turn, by groups of ranges; whose turn it is comes first. */
  readonly #lines = new Map<string, RangeTask[]>();
  #readsThere = 0;
  readonly #stopped = Promise.withResolvers<void>();

  constructor(handle: bigint) {
    this.#worker = new Worker(new URL('./rocksdb-range-reader.ts', import.meta.url), {
      workerData: { handle } satisfies RangeReaderStart,
      name: 'range-reader',
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MIB },
    });
    this.#worker.on('message', (reply: RangeReaderReply) => this.#onReply(reply));
    this.#worker.on('error', (error) => this.#end(error));
    this.#worker.on('exit', () => this.#end());
  }

  read(group: string, task: RangeTask, onTook: (durationMs: number) => void): Promise<KvRow[]> {
    if (this.hasEnded) return Promise.reject(endedThread());
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(task.cursorId) ?? [];
      waiting.push({ resolve, reject, onTook });
      this.#waiting.set(task.cursorId, waiting);
      this.#add(group, task);
    });
  }

  /** Behind the reads that it still waits for. */
  closeCursor(group: string, cursorId: number): void {
    this.#add(group, { kind: 'task', cursorId, count: 0, closes: true });
  }

  #add(group: string, task: RangeTask): void {
    const line = this.#lines.get(group);
    if (line === undefined) this.#lines.set(group, [task]);
    else line.push(task);
    this.#sendSome();
  }

  /** One task of each group in turn: who asks for much keeps nobody else waiting. */
  #sendSome(): void {
    for (const [group, line] of this.#lines) {
      if (this.#readsThere >= READS_AT_ONCE) return;
      const task = line.shift();
      this.#lines.delete(group);
      if (line.length > 0) this.#lines.set(group, line);
      if (task === undefined) continue;
      if (task.count > 0) this.#readsThere++;
      this.#post(task);
    }
  }

  #post(message: RangeReaderMessage): void {
    this.#worker.postMessage(message);
  }

  async stop(): Promise<void> {
    if (!this.hasEnded) {
      this.#post({ kind: 'stop' });
      await this.#stopped.promise;
    }
    await this.#worker.terminate();
  }

  #onReply(reply: RangeReaderReply): void {
    if (reply.kind === 'stopped') this.#stopped.resolve();
    if (reply.kind !== 'read' && reply.kind !== 'failed') return;
    const waiting = this.#waiting.get(reply.cursorId);
    const next = waiting?.shift();
    if (waiting?.length === 0) this.#waiting.delete(reply.cursorId);
    // A cursor that was never opened cannot be closed either, which nobody waits for.
    if (next === undefined) return;
    this.#readsThere--;
    this.#sendSome();
    if (reply.kind === 'read') {
      next.onTook(reply.durationMs);
      next.resolve(unpackRows(reply.rows));
    } else next.reject(reply.isCorruption ? new Corruption(reply.message) : new Error(reply.message));
  }

  #end(cause?: unknown): void {
    this.hasEnded = true;
    this.#stopped.resolve();
    const error = endedThread(cause);
    for (const { reject } of [...this.#waiting.values()].flat()) reject(error);
    this.#waiting.clear();
    this.#lines.clear();
  }
}

/** Who asks again is served by the next thread. */
function endedThread(cause?: unknown): AppError {
  return new AppError('ServiceUnavailable', {
    cause: new Error('the thread that reads ranges has ended', { cause }),
  });
}

interface CursorOptions {
  bounds: RemoteBounds;
  cursorId: number;
  thread: () => ReaderThread;
  onTook: (durationMs: number) => void;
  onClosed: () => void;
}

export class RemoteCursor implements KvCursor {
  readonly #options: CursorOptions;
  readonly #group: string;
  /** Where it is open. */
  #thread: ReaderThread | undefined;
  #seeks: Uint8Array | undefined;
  #reading: Promise<unknown> | undefined;
  #isClosed = false;

  constructor(options: CursorOptions) {
    this.#options = options;
    this.#group = Buffer.from(options.bounds.gte.subarray(0, GROUP_BYTES)).toString('latin1');
  }

  seek(key: Uint8Array): void {
    this.#seeks = key;
  }

  async next(count: number): Promise<KvRow[]> {
    if (this.#isClosed) throw new Error('the cursor is closed');
    if (count <= 0) return [];
    const { bounds, cursorId, thread, onTook } = this.#options;
    const opens = this.#thread === undefined ? { opens: bounds } : {};
    const seeks = this.#seeks === undefined ? {} : { seeks: this.#seeks };
    this.#seeks = undefined;
    this.#thread ??= thread();
    const reading = this.#thread.read(
      this.#group,
      { kind: 'task', cursorId, ...opens, ...seeks, count, closes: false },
      onTook,
    );
    this.#reading = reading;
    try {
      return await reading;
    } finally {
      if (this.#reading === reading) this.#reading = undefined;
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { cursorId, onClosed } = this.#options;
    if (this.#thread !== undefined && !this.#thread.hasEnded) this.#thread.closeCursor(this.#group, cursorId);
    onClosed();
  }

  /** Resolves when nothing of it is read any more. */
  async closed(): Promise<void> {
    const reading = this.#reading;
    this.close();
    await reading?.catch(() => undefined);
  }
}
