// Locks by name, shared or exclusive, held from a command's evaluation to its append (R7). A command asks for all of
// its locks at once and joins every queue in the same moment, so it waits only for commands that came before it: no
// deadlock, and nobody is overtaken. It knows nothing of what the names mean.
import { must } from '../../base/assert.ts';
import type { LockRequest } from '../../ports/state-machine.ts';

interface Waiter {
  /** Names that are not held yet. */
  missingCount: number;
  proceed(): void;
}

interface Lock {
  sharedCount: number;
  isExclusive: boolean;
  queue: { mode: LockRequest['mode']; waiter: Waiter }[];
}

/** Requests by name, each once, an exclusive one winning over a shared one: what `acquire` and `release` take. */
export function mergeLocks(requests: readonly LockRequest[]): readonly LockRequest[] {
  if (requests.length < 2) return requests;
  const byName = new Map<string, LockRequest>();
  for (const request of requests) {
    if (request.mode === 'exclusive' || !byName.has(request.name)) byName.set(request.name, request);
  }
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

export class LockTable {
  readonly #locks = new Map<string, Lock>();

  /** Names that are held or waited for. */
  get size(): number {
    return this.#locks.size;
  }

  /** undefined when all were free; else resolves when all are held. Takes merged requests. */
  acquire(requests: readonly LockRequest[]): Promise<void> | undefined {
    let waiter: Waiter | undefined;
    let waiting: Promise<void> | undefined;
    for (const { name, mode } of requests) {
      let lock = this.#locks.get(name);
      if (lock === undefined) {
        lock = { sharedCount: 0, isExclusive: false, queue: [] };
        this.#locks.set(name, lock);
      }
      if (lock.queue.length === 0 && isFree(lock, mode)) {
        hold(lock, mode);
        continue;
      }
      if (waiter === undefined) {
        const { promise, resolve } = Promise.withResolvers<void>();
        waiter = { missingCount: 0, proceed: resolve };
        waiting = promise;
      }
      waiter.missingCount++;
      lock.queue.push({ mode, waiter });
    }
    return waiting;
  }

  /** Takes those that are free now, waits for none, and gives them. */
  takeFree(requests: readonly LockRequest[]): readonly LockRequest[] {
    const free = requests.filter(({ name, mode }) => {
      const lock = this.#locks.get(name);
      return lock === undefined || (lock.queue.length === 0 && isFree(lock, mode));
    });
    this.acquire(free);
    return free;
  }

  release(requests: readonly LockRequest[]): void {
    for (const { name, mode } of requests) {
      const lock = must(this.#locks.get(name), 'a lock that is released is held');
      if (mode === 'exclusive') lock.isExclusive = false;
      else lock.sharedCount--;
      this.#grant(lock);
      if (lock.sharedCount === 0 && !lock.isExclusive) this.#locks.delete(name);
    }
  }

  #grant(lock: Lock): void {
    for (let next = lock.queue[0]; next !== undefined && isFree(lock, next.mode); next = lock.queue[0]) {
      lock.queue.shift();
      hold(lock, next.mode);
      if (--next.waiter.missingCount === 0) next.waiter.proceed();
    }
  }
}

function isFree(lock: Lock, mode: LockRequest['mode']): boolean {
  return !lock.isExclusive && (mode === 'shared' || lock.sharedCount === 0);
}

function hold(lock: Lock, mode: LockRequest['mode']): void {
  if (mode === 'exclusive') lock.isExclusive = true;
  else lock.sharedCount++;
}
