// Reads on the threads of the binding. Its asynchronous read has a fault: when the store fails, by damage above all, it throws
// the error as an uncaught exception and never runs the callback. The server would end. So this file listens for uncaught
// exceptions and rejects the read that failed. It finds that read by Node's trigger id: each read begins within an
// AsyncResource of its own. The other reads go on waiting, because one of them may be of a drive that hangs.
// Not here: which reads are worth a thread (rocksdb-kv.ts).
import { AsyncResource, triggerAsyncId } from 'node:async_hooks';
import type { ReadOptions, RocksLevel } from '@nxtedition/rocksdb';
import { kUnref } from '@nxtedition/rocksdb/util.js';

type Values = (Uint8Array | undefined)[];

interface PendingRead {
  db: RocksLevel;
  reject(error: unknown): void;
}

/** The reads under way, of all databases of this thread, by the id of their resource. */
const pending = new Map<number, PendingRead>();
let isListening = false;

/** Rejects with the store's error, as RocksDB words it. */
export function readAsync(
  db: RocksLevel,
  keys: readonly Uint8Array[],
  options: ReadOptions,
): Promise<Values> {
  listenForLostReads();
  return new Promise((resolve, reject) => {
    const resource = new AsyncResource('HoldfastRead');
    const id = resource.asyncId();
    pending.set(id, { db, reject });
    resource.runInAsyncScope(() =>
      db._getManyAsync(keys, options, (error, values) => {
        pending.delete(id);
        if (error) reject(error);
        else resolve(values);
      }),
    );
  });
}

function listenForLostReads(): void {
  if (isListening) return;
  isListening = true;
  process.on('uncaughtException', (error) => {
    const read = pending.get(triggerAsyncId());
    if (read !== undefined) {
      pending.delete(triggerAsyncId());
      // The binding still counts it among those that keep the database open.
      read.db[kUnref]();
      read.reject(error);
    } else if (process.listenerCount('uncaughtException') === 1) endLikeNode(error);
  });
}

/** What happens to an exception that nobody listens for. */
function endLikeNode(error: Error): never {
  process.stderr.write(`${error.stack ?? error}\n`);
  process.exit(1);
}
