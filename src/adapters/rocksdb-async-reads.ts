// Reads on the binding's own threads. Its asynchronous read has a fault: an error of the store, damage above all, is
// not given to the callback but thrown into the process, where it would end the server, and the callback never runs.
// So such errors are caught there; as nothing says which read it was, every pending one is done again on this thread,
// where an error finds its reader. Not here: which reads are worth a thread (rocksdb-kv.ts).
import type { ReadOptions, RocksLevel } from '@nxtedition/rocksdb';
import { kUnref } from '@nxtedition/rocksdb/util.js';

type Values = (Uint8Array | undefined)[];

interface PendingRead {
  db: RocksLevel;
  /** Settles the read by a synchronous one; false when that failed. Once settled it says what it said. */
  readHere(): boolean;
}

/** Of all databases of this thread, until the binding has called back or is known never to. */
const pending = new Set<PendingRead>();
let isListening = false;

/** Rejects with the store's error, as RocksDB words it. */
export function readAsync(
  db: RocksLevel,
  keys: readonly Uint8Array[],
  options: ReadOptions,
): Promise<Values> {
  listenForLostReads();
  return new Promise((resolve, reject) => {
    let hasRead: boolean | undefined;
    const read: PendingRead = {
      db,
      readHere() {
        if (hasRead !== undefined) return hasRead;
        try {
          resolve(db._getManySync(keys, options));
          hasRead = true;
        } catch (error) {
          reject(error);
          hasRead = false;
        }
        return hasRead;
      },
    };
    pending.add(read);
    db._getManyAsync(keys, options, (error, values) => {
      pending.delete(read);
      if (error) reject(error);
      else resolve(values);
    });
  });
}

function listenForLostReads(): void {
  if (isListening) return;
  isListening = true;
  process.on('uncaughtException', (error) => {
    const isOfStore = (error as { code?: unknown }).code?.toString().startsWith('LEVEL_') === true;
    if (isOfStore && pending.size > 0) settleLostRead();
    else if (process.listenerCount('uncaughtException') === 1) endLikeNode(error);
  });
}

/** One of the pending reads will not be called back: most likely one that fails here as well. */
function settleLostRead(): void {
  const reads = [...pending];
  const failed = reads.filter((read) => !read.readHere());
  const lost = failed[0] ?? reads[0];
  if (lost === undefined) return;
  pending.delete(lost);
  // The binding still counts it among those that keep the database open.
  lost.db[kUnref]();
}

/** What happens to an exception that nobody listens for. */
function endLikeNode(error: Error): never {
  process.stderr.write(`${error.stack ?? error}\n`);
  process.exit(1);
}
