// Reads a body that must be complete before it is used: a document. Its memory is counted with that of all bodies, and it
// can be evicted like them; nothing of it is stored. What else takes much memory for a short while is counted there, too.
import { BufferQueue } from '../base/async/buffer-queue.ts';
import type { Patience } from '../base/async/patience.ts';
import { LIMITS } from '../types/limits.ts';
import type { Tenant } from '../types/tenant.ts';
import { BufferSource } from './buffer-source.ts';
import type { DataPath } from './data-path.ts';
import type { BodySource } from './object-store.ts';

/**
 * The result of `use` for its buffers. During `use`, LIMITS.documentMemoryFactor times the size is counted. Rejects as the
 * stream and `use` do, or with SlowDown.
 */
export async function collectBody<T>(
  { budget }: Pick<DataPath, 'budget'>,
  {
    body,
    tenant,
  }: { body: Pick<BodySource, 'stream'> & { sizeBytes: number; patience?: Patience }; tenant: Tenant },
  use: (buffers: Buffer[]) => Promise<T>,
): Promise<T> {
  const { stream, sizeBytes, patience } = body;
  const source = new BufferSource(stream);
  const needBytes = LIMITS.documentMemoryFactor * sizeBytes;
  const lease = budget.open({ tenant, needBytes, patience, onEvicted: (error) => source.fail(error) });
  const buffers = new BufferQueue();
  try {
    for (let heldBytes = 0; ; ) {
      // All bytes have arrived: do not wait for memory only to read the end.
      if (heldBytes < sizeBytes) await lease.admit();
      lease.idle();
      const arrived = patience?.begin('client');
      const next = await source.next();
      arrived?.();
      lease.busy();
      if (next.done === true) {
        const moreBytes = (LIMITS.documentMemoryFactor - 1) * heldBytes;
        if (moreBytes > 0) await lease.admit(moreBytes);
        lease.hold(moreBytes);
        return await use(buffers.takeAll());
      }
      buffers.add(next.value);
      heldBytes += next.value.length;
      lease.hold(next.value.length);
    }
  } finally {
    source.close();
    lease.close();
  }
}

/** The result of `work`, during which so much memory is counted. Rejects as it does, or with SlowDown. */
export async function withMemory<T>(
  { budget }: Pick<DataPath, 'budget'>,
  {
    sizeBytes,
    tenant,
    patience,
    isWithin,
  }: { sizeBytes: number; tenant: Tenant; patience?: Patience; isWithin: boolean },
  work: () => Promise<T>,
): Promise<T> {
  // It never waits for its client, so it is never evicted.
  const needs = { tenant, needBytes: sizeBytes, needsNoPlace: true, isWithin, patience };
  const lease = budget.open({ ...needs, onEvicted: () => {} });
  try {
    await lease.admit(sizeBytes);
    lease.hold(sizeBytes);
    return await work();
  } finally {
    lease.close();
  }
}
