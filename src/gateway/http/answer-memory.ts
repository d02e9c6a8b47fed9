// Memory of answers that take much of it while they are made: pages of lists.
import type { ObjectStore } from '../../objects/object-store.ts';
import type { Exchange } from './exchange.ts';

export interface AnswerMemory {
  readonly objects: Pick<ObjectStore, 'withMemory'>;
  /** Throws SlowDown where the tenant has left its answers. */
  requireTaken(exchange: Exchange): void;
}

/**
 * The result of `make`, during which so much counts in the memory for bodies, by tenant. Rejects as it does, or with SlowDown.
 */
export function withAnswerMemory<T>(
  deps: AnswerMemory,
  { exchange, sizeBytes }: { exchange: Exchange; sizeBytes: number },
  make: () => Promise<T>,
): Promise<T> {
  const { tenant, patience } = exchange;
  return deps.objects.withMemory({ sizeBytes, tenant, patience }, async () => {
    // It has waited with others, which were all let in before the first of them had its answer.
    deps.requireTaken(exchange);
    return make();
  });
}
