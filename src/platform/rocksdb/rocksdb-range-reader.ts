// The entry of the thread that reads ranges in which many rows were deleted (range-reader.ts): it makes the cursors there that
// the calling thread would wait for. The database belongs to the thread that started it: never close it here.
import { parentPort, workerData } from 'node:worker_threads';
import { RocksLevel } from '@nxtedition/rocksdb';
import { must } from '../../base/assert.ts';
import { Corruption } from '../../base/corruption.ts';
import { RocksCursor, type ScanBounds } from './rocksdb-cursor.ts';
import { type PackedRows, packRows } from './row-packing.ts';

export interface RangeReaderStart {
  handle: bigint;
}

export interface RemoteBounds extends ScanBounds {
  nativeName: string;
  bytesMax?: number;
  keysOnly?: boolean;
}

/** What is done with a cursor, in this order. */
export interface RangeTask {
  kind: 'task';
  cursorId: number;
  opens?: RemoteBounds;
  seeks?: Uint8Array;
  /** Rows that are read; 0: nothing is, and nothing answered. */
  count: number;
  closes: boolean;
}

export type RangeReaderMessage = RangeTask | { kind: 'stop' };

/** Answers come in the order of the reads of each cursor. */
export type RangeReaderReply =
  | { kind: 'read'; cursorId: number; rows: PackedRows; durationMs: number }
  | { kind: 'failed'; cursorId: number; message: string; isCorruption: boolean }
  | { kind: 'stopped' };

const port = must(parentPort, 'runs as a worker thread');
const db = new RocksLevel((workerData as RangeReaderStart).handle);
await db.open();
const cursors = new Map<number, RocksCursor>();

port.on('message', (message: RangeReaderMessage) => {
  if (message.kind === 'stop') void stop();
  else void run(message);
});

async function run({ cursorId, opens, seeks, count, closes }: RangeTask): Promise<void> {
  const begunMs = performance.now();
  try {
    if (opens !== undefined) {
      const { nativeName, ...bounds } = opens;
      const column = must(db.columns[nativeName], `column ${nativeName}`);
      const options = { ...bounds, column, isSync: true };
      cursors.set(cursorId, new RocksCursor(db, options, () => cursors.delete(cursorId)));
    }
    const cursor = must(cursors.get(cursorId), 'a cursor that is open');
    if (seeks !== undefined) cursor.seek(seeks);
    if (count > 0) {
      const rows = packRows(await cursor.next(count));
      post({ kind: 'read', cursorId, rows, durationMs: performance.now() - begunMs }, rows.moved);
    }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    post({ kind: 'failed', cursorId, message, isCorruption: error instanceof Corruption }, []);
  }
  if (closes) cursors.get(cursorId)?.close();
}

async function stop(): Promise<void> {
  await Promise.all([...cursors.values()].map((cursor) => cursor.closed()));
  post({ kind: 'stopped' }, []);
}

function post(reply: RangeReaderReply, moved: ArrayBuffer[]): void {
  port.postMessage(reply, moved);
}
