// Takes in a body that must be whole before it means anything: a document. It is counted with the bodies of all
// requests, and gives way like them; nothing of it is stored.
import { PieceQueue } from '../lib/piece-queue.ts';
import type { AppError } from '../model/errors.ts';
import { LIMITS } from '../model/limits.ts';
import type { Tenant } from '../model/tenant.ts';
import type { DataPath } from './data-path.ts';
import type { BodySource } from './object-store.ts';

/**
 * What `use` makes of its pieces. While it does so, LIMITS.documentMemoryFactor times the document is counted. Rejects as
 * the stream and `use` do, or with SlowDown.
 */
export async function collectBody<T>(
  { budget }: Pick<DataPath, 'budget'>,
  { body, tenant }: { body: Pick<BodySource, 'stream'> & { sizeBytes: number }; tenant: Tenant },
  use: (pieces: Buffer[]) => Promise<T>,
): Promise<T> {
  const { stream, sizeBytes } = body;
  let failure: AppError | undefined;
  /** Ends the wait for the next piece. */
  let interrupt = (_error: AppError) => {};
  const onEvicted = (error: AppError) => {
    failure = error;
    interrupt(error);
  };
  const lease = budget.open({ tenant, needBytes: LIMITS.documentMemoryFactor * sizeBytes, onEvicted });
  const source = stream[Symbol.asyncIterator]();
  // A promise of its own for each piece: one that lives as long as the body would keep something of each of them.
  const nextPiece = () =>
    new Promise<IteratorResult<Buffer>>((resolve, reject) => {
      interrupt = reject;
      source.next().then(resolve, reject);
    });
  const pieces = new PieceQueue();
  try {
    for (let heldBytes = 0; ; ) {
      // What has come whole only waits to hear of its end.
      if (heldBytes < sizeBytes) await lease.admit();
      if (failure !== undefined) throw failure;
      lease.idle();
      const next = await nextPiece();
      lease.busy();
      if (next.done === true) {
        const moreBytes = (LIMITS.documentMemoryFactor - 1) * heldBytes;
        if (moreBytes > 0) await lease.admit(moreBytes);
        lease.hold(moreBytes);
        return await use(pieces.takeAll());
      }
      pieces.add(next.value);
      heldBytes += next.value.length;
      lease.hold(next.value.length);
    }
  } finally {
    // Not awaited: a source that waits for its client may take its time to end.
    source.return?.().catch(() => {});
    lease.close();
  }
}
