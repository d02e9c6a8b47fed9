// Locks of jobs that one process at a time should run (R44), as a queue under `job/<name>/`: each waiter puts a key
// under a lease of its own, and the one that was created first holds the lock. etcd3's Lock is not used (L7).
import { assert } from '../base/assert.ts';
import type { JobLock, JobLocksPort } from '../ports/coordination.ts';
import type { CoordinationContext } from './coordination-context.ts';
import { createRetryDelay, followKeys } from './follow-keys.ts';
import { type HeldLease, holdLease } from './held-lease.ts';
import { holderRecord } from './records.ts';
import type { StoredKey } from './store.ts';

const JOB_NAME = /^[a-z0-9-]+$/;

interface Place {
  lease: HeldLease;
  key: string;
  /** Prefix of the keys of all waiters of one lock. */
  prefix: string;
}

export function createJobLocks(context: CoordinationContext): JobLocksPort {
  const { store, clock, log, jobLeaseMs } = context;

  const prefixOf = (name: string) => {
    assert(JOB_NAME.test(name), `no name of a job: ${name}`);
    return `${context.prefix}job/${name}/`;
  };

  return {
    async acquire(name, signal) {
      const prefix = prefixOf(name);
      const retry = createRetryDelay();
      while (!signal.aborted) {
        let lease: HeldLease;
        try {
          lease = await holdLease({ store, clock, ttlMs: jobLeaseMs });
        } catch (error) {
          log.debug({ job: name, err: error }, 'job-lease-not-granted');
          await clock.sleep(retry.nextMs(), signal);
          continue;
        }
        retry.reset();
        const place = { lease, prefix, key: prefix + lease.leaseId };
        const token = await waitTurn(context, { ...place, signal });
        if (token !== undefined && !signal.aborted) return guard(context, { ...place, token });
        await lease.release();
      }
      throw signal.reason;
    },
    async holder(name) {
      const first = firstOf((await store.list(prefixOf(name))).rows);
      return (
        first && {
          holder: holderRecord.decode(first.key, first.value).holder,
          token: first.createRevision,
        }
      );
    },
  };
}

function firstOf(rows: Iterable<StoredKey>): StoredKey | undefined {
  let first: StoredKey | undefined;
  for (const row of rows) {
    if (first === undefined || row.createRevision < first.createRevision) first = row;
  }
  return first;
}

/** Takes a place in the queue and waits to be its head. undefined: the place was lost, or `signal` aborted. */
async function waitTurn(
  context: CoordinationContext,
  { lease, key, prefix, signal }: Place & { signal: AbortSignal },
): Promise<number | undefined> {
  const { store, clock, log } = context;
  const ending = new AbortController();
  const ended = AbortSignal.any([signal, lease.lost, ending.signal]);
  if (!(await queueUp(context, { lease, key, ended }))) return undefined;
  const queue = new Map<string, StoredKey>();
  let token: number | undefined;
  const look = () => {
    const first = firstOf(queue.values());
    if (first?.key === key) token = first.createRevision;
    // Removed by hand, or the store was set back: this waiter needs a new place.
    if (first?.key === key || !queue.has(key)) ending.abort();
  };
  await followKeys({
    store,
    clock,
    log,
    prefix,
    onState(rows) {
      queue.clear();
      for (const row of rows) queue.set(row.key, row);
      look();
    },
    onChange(change) {
      if (change.row === undefined) queue.delete(change.key);
      else queue.set(change.key, change.row);
      look();
    },
    signal: ended,
  });
  // A head whose lease may have ended does not hold the lock.
  return lease.lost.aborted ? undefined : token;
}

/** True once the key exists. A repeated put that fails its compare means that an earlier one succeeded. */
async function queueUp(
  { store, clock, log, holder }: CoordinationContext,
  { lease, key, ended }: { lease: HeldLease; key: string; ended: AbortSignal },
): Promise<boolean> {
  const value = holderRecord.encode({ holder });
  const retry = createRetryDelay();
  while (!ended.aborted) {
    try {
      await store.put({ key, value, expected: 0, leaseId: lease.leaseId });
      return true;
    } catch (error) {
      log.debug({ key, err: error }, 'job-not-queued');
      await clock.sleep(retry.nextMs(), ended);
    }
  }
  return false;
}

/** The lock of the queue's head. It is lost with its lease, and when its key is gone. */
function guard(
  { store, clock, log }: CoordinationContext,
  { lease, key, token }: Place & { token: number },
): JobLock {
  const released = new AbortController();
  const gone = new AbortController();
  const check = (row: StoredKey | undefined) => {
    if (row?.createRevision !== token) gone.abort(new Error('the lock was taken away'));
  };
  void followKeys({
    store,
    clock,
    log,
    prefix: key,
    onState: (rows) => check(rows.find((row) => row.key === key)),
    onChange: (change) => {
      if (change.key === key) check(change.row);
    },
    signal: AbortSignal.any([released.signal, gone.signal, lease.lost]),
  });
  return {
    token,
    lost: AbortSignal.any([gone.signal, lease.lost]),
    release() {
      released.abort();
      return lease.release();
    },
  };
}
