// Takes in a body that must be whole before it means anything: a document. It is counted with the bodies of all
// requests, and gives way like them; nothing of it is stored.
import { PieceQueue } from '../base/async/piece-queue.ts';
import { LIMITS } from '../types/limits.ts';
import type { Tenant } from '../types/tenant.ts';
import type { DataPath } from './data-path.ts';
import type { BodySource } from './object-store.ts';
import { PieceSource } from './piece-source.ts';

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
  const source = new PieceSource(stream);
  const needBytes = LIMITS.documentMemoryFactor * sizeBytes;
  const lease = budget.open({ tenant, needBytes, onEvicted: (error) => source.fail(error) });
  const pieces = new PieceQueue();
  try {
    for (let heldBytes = 0; ; ) {
      // What has come whole only waits to hear of its end.
      if (heldBytes < sizeBytes) await lease.admit();
      lease.idle();
      const next = await source.next();
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
    source.close();
    lease.close();
  }
}
