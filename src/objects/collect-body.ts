// Takes in a body that must be whole before it means anything: a document. It is counted with the bodies of all
// requests, and gives way like them; nothing of it is stored.
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
  const evicted = Promise.withResolvers<never>();
  evicted.promise.catch(() => {});
  const onEvicted = (error: AppError) => evicted.reject(error);
  const lease = budget.open({ tenant, needBytes: LIMITS.documentMemoryFactor * sizeBytes, onEvicted });
  const source = stream[Symbol.asyncIterator]();
  const pieces: Buffer[] = [];
  try {
    for (let heldBytes = 0; ; ) {
      // What has come whole only waits to hear of its end.
      if (heldBytes < sizeBytes) await lease.admit();
      lease.idle();
      const next = await Promise.race([source.next(), evicted.promise]);
      lease.busy();
      if (next.done === true) {
        const moreBytes = (LIMITS.documentMemoryFactor - 1) * heldBytes;
        if (moreBytes > 0) await lease.admit(moreBytes);
        lease.hold(moreBytes);
        return await use(pieces);
      }
      pieces.push(next.value);
      heldBytes += next.value.length;
      lease.hold(next.value.length);
    }
  } finally {
    // Not awaited: a source that waits for its client may take its time to end.
    source.return?.().catch(() => {});
    lease.close();
  }
}
