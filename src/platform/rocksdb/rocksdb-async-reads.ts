// Reads on the binding's own threads. Its asynchronous read has a fault: an error of the store, damage above all, is
// not given to the callback but thrown into the process, where it would end the server, and the callback never runs.
// So such errors are caught there. Which read it was is told by what Node calls the trigger of the work that is ending:
// each read is begun within a resource of its own. No other read is touched: one of them may be of a drive that hangs.
// Not here: which reads are worth a thread (rocksdb-kv.ts).
import { AsyncResource, triggerAsyncId } from 'node:async_hooks';
import type { ReadOptions, RocksLevel } from '@nxtedition/rocksdb';
import { kUnref } from '@nxtedition/rocksdb/util.js';

type Values = (Uint8Array | undefined)[];

interface PendingRead {
  db: RocksLevel;
  reject(error: unknown): void;
}

/** Of all databases of this thread, by their resources, until the binding has called back or is known never to. */
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
