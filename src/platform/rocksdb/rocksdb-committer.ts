// The committer thread's entry: writes each group it is sent as one RocksDB batch, in order, synced when one of
// its commits asks for it, and clears ranges in between. After a failed write it writes nothing more (R20). The database
// belongs to the thread that started it: never close it here.
import { parentPort, workerData } from 'node:worker_threads';
import { RocksLevel } from '@nxtedition/rocksdb';
import { must } from '../../base/assert.ts';
import { type CommitFrame, decodeFrame } from './commit-frame.ts';
import { isCorruption } from './rocksdb-corruption.ts';
import { deleteBeside } from './rocksdb-space.ts';

export interface CommitterStart {
  handle: bigint;
  /** In the order of the frame's column indices. */
  columns: readonly { nativeName: string; isPrefixFree: boolean }[];
}

/** Deletes a range without reading it (L2). */
export interface ClearTask {
  columnIndex: number;
  gte: Uint8Array;
  lt: Uint8Array;
}

/** The buffers go back with the answer, so that they are used again. */
export type CommitterReply =
  | { kind: 'ready' }
  | { kind: 'written'; frame: CommitFrame }
  | { kind: 'cleared' }
  | { kind: 'failed'; message: string; isCorruption: boolean };

const port = must(parentPort, 'runs as a worker thread');
const start = workerData as CommitterStart;
const db = new RocksLevel(start.handle);
await db.open();
const columns = start.columns.map(({ nativeName, isPrefixFree }) => ({
  options: { column: must(db.columns[nativeName], `column ${nativeName}`) },
  isPrefixFree,
}));
const batch = db._chainedBatch();
let hasFailed = false;

port.on('message', (task: CommitFrame | ClearTask) => {
  if (hasFailed) return;
  if ('gte' in task) clear(task);
  else write(task);
});
post({ kind: 'ready' }, []);

function write(frame: CommitFrame): void {
  try {
    decodeFrame(frame, (columnIndex, key, value) => {
      const { options, isPrefixFree } = must(columns[columnIndex], 'column index');
      if (value !== null) return batch._put(key, value, options);
      batch._del(key, options);
      if (isPrefixFree) deleteBeside(key, (beside) => batch._del(beside, options));
    });
    batch._writeSync({ sync: frame.sync });
    batch._clear();
  } catch (error) {
    fail(error);
    return;
  }
  post({ kind: 'written', frame }, [frame.buffer, ...frame.moved]);
}

/** Not synced, and not part of a batch (L2): what a crash leaves is with what was written before it, or without. */
function clear({ columnIndex, gte, lt }: ClearTask): void {
  const { options } = must(columns[columnIndex], 'column index');
  db._clear({ ...options, gte: Buffer.from(gte), lt: Buffer.from(lt) }, (error) => {
    if (error) fail(error);
    else post({ kind: 'cleared' }, []);
  });
}

function fail(error: unknown): void {
  hasFailed = true;
  const message = error instanceof Error ? error.message : String(error);
  post({ kind: 'failed', message, isCorruption: isCorruption(error) }, []);
}

function post(reply: CommitterReply, moved: ArrayBuffer[]): void {
  port.postMessage(reply, moved);
}
