// Coordination in memory, for tests and the simulation: one store, to which each process is connected under its name,
// and a fate for each message on the way. Deterministic: time is the injected clock, order that of the calls, and
// chance is the caller's. Nothing survives the process.
import { assert } from '../../base/assert.ts';
import { type CoordinationOptions, createCoordination } from '../../coordination/coordination.ts';
import type { CoordinationStore, KeyChange } from '../../coordination/store.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { Coordination } from '../../ports/coordination.ts';
import { LIMITS } from '../../types/limits.ts';
import { MemoryStore, type StoreCopy } from './memory-store.ts';

/** A call of a process, its answer, or an event of a watch on its way to the process. */
export interface CoordinatorMessage {
  /** The process, by the name that it connected with. */
  by: string;
  kind: 'call' | 'answer' | 'event';
  of: 'get' | 'list' | 'put' | 'watch' | 'grant' | 'keep' | 'revoke';
  /** Key, prefix or lease id. */
  key: string;
}

/**
 * Milliseconds that it takes; one that takes longer than LIMITS.coordinatorCallMaxMs arrives when nobody waits any more.
 * `lost`: never arrives, and the caller gives up after that time. `refused`: the caller gets an error at once, as from a
 * closed port; a watch ends.
 */
export type MessageFate = number | 'lost' | 'refused';

export interface MemoryCoordinator {
  /** What one process sees. `by` is also its holder's name in locks. */
  connect(by: string): Coordination;
  /** Of the store. */
  revision(): number;
  /** Every process's watches end with an error, or those of one; as a restart of the coordinator does. */
  endWatches(by?: string): void;
  copy(): StoreCopy;
  /** Sets it back: revisions go down, later records are gone (R23). */
  restore(copy: StoreCopy): void;
  /** As an operator does by hand; a key without the prefix of the cluster: `job/scrub/1`. */
  remove(key: string): void;
  /** All keys with their values, for looking at. */
  rows(): ReadonlyMap<string, string>;
}

export interface MemoryCoordinatorOptions extends Omit<CoordinationOptions, 'holder'> {
  /** Asked once for each message when it sets out; default: all arrive at once. */
  fate?: (message: CoordinatorMessage) => MessageFate;
}

/** A coordinator without any data. */
export function createMemoryCoordinator(options: MemoryCoordinatorOptions): MemoryCoordinator {
  const store = new MemoryStore(options.clock);
  const prefix = options.prefix ?? 'holdfast';
  const fate = options.fate ?? (() => 0);
  return {
    connect: (by) =>
      createCoordination(connectionOf({ by, store, clock: options.clock, fate }), {
        ...options,
        prefix,
        holder: by,
      }),
    revision: () => store.revision,
    endWatches: (by) => store.endWatches(new Error('the coordinator ended the watch'), by),
    copy: () => store.copy(),
    restore: (copy) => store.restore(copy),
    remove: (key) => store.remove([`${prefix}/${key}`]),
    rows: () =>
      new Map(store.list(`${prefix}/`).rows.map(({ key, value }) => [key.slice(prefix.length + 1), value])),
  };
}

interface Connection {
  by: string;
  store: MemoryStore;
  clock: ClockPort;
  fate(message: CoordinatorMessage): MessageFate;
}

function connectionOf(connection: Connection): CoordinationStore {
  const { store } = connection;
  return {
    get: (key) => call(connection, { of: 'get', key }, () => store.get(key)),
    list: (prefix) => call(connection, { of: 'list', key: prefix }, () => store.list(prefix)),
    put: (change) => call(connection, { of: 'put', key: change.key }, () => store.put(change)),
    watch: (options) => watch(connection, options),
    grantLease: (ttlMs) => call(connection, { of: 'grant', key: '' }, () => store.grantLease(ttlMs)),
    keepLease: (leaseId) => call(connection, { of: 'keep', key: leaseId }, () => store.keepLease(leaseId)),
    revokeLease: (leaseId) =>
      call(connection, { of: 'revoke', key: leaseId }, () => store.revokeLease(leaseId)),
  };
}

type Named = Pick<CoordinatorMessage, 'of' | 'key'>;

/** One call and its answer, within the time that the real one has. What arrives late is done all the same. */
async function call<T>(connection: Connection, named: Named, work: () => T): Promise<T> {
  const { clock } = connection;
  const ended = new AbortController();
  const onTime = clock.sleep(LIMITS.coordinatorCallMaxMs, ended.signal).then((): never => {
    throw new Error(`the coordinator did not answer in time: ${named.of} ${named.key}`);
  });
  const there = async () => {
    await travel(connection, { ...named, kind: 'call' });
    const result = work();
    await travel(connection, { ...named, kind: 'answer' });
    return result;
  };
  const answered = there();
  // The result of the second one is ignored.
  onTime.catch(() => undefined);
  answered.catch(() => undefined);
  try {
    return await Promise.race([answered, onTime]);
  } finally {
    ended.abort();
  }
}

/** Resolves on arrival; never, when the message is lost. */
async function travel(
  { by, clock, fate }: Connection,
  message: Omit<CoordinatorMessage, 'by'>,
): Promise<void> {
  const what = fate({ by, ...message });
  if (what === 'refused') throw new Error(`the coordinator is away: ${message.of} ${message.key}`);
  if (what === 'lost') return new Promise<void>(() => {});
  assert(what >= 0, 'nothing arrives before it set out');
  if (what > 0) await clock.sleep(what);
}

async function watch(
  connection: Connection,
  { prefix, fromRevision, onChange, signal }: Parameters<CoordinationStore['watch']>[0],
): Promise<void> {
  const { by, store, clock, fate } = connection;
  const ended = Promise.withResolvers<void>();
  ended.promise.catch(() => undefined);
  const onAbort = () => ended.resolve();
  // One after the other, as on one connection; a lost one does not hold up those behind it.
  let arrivals = Promise.resolve();
  const arrive = (change: KeyChange) => {
    const what = fate({ by, kind: 'event', of: 'watch', key: change.key });
    if (what === 'lost') return;
    arrivals = arrivals.then(async () => {
      if (what === 'refused') return ended.reject(new Error('the connection of the watch broke'));
      if (what > 0) await clock.sleep(what);
      if (!signal.aborted) onChange(change);
    });
    arrivals.catch(ended.reject);
  };
  const watcher = { by, prefix, onChange: arrive, onEnd: ended.reject };
  let hasEnded = false;
  let stop: (() => void) | undefined;
  const begin = () => {
    // One that arrives when nobody waits any more would watch for ever.
    if (!hasEnded) stop = store.watch(watcher, fromRevision);
  };
  signal.addEventListener('abort', onAbort);
  try {
    await Promise.race([call(connection, { of: 'watch', key: prefix }, begin), ended.promise]);
    await ended.promise;
  } finally {
    hasEnded = true;
    signal.removeEventListener('abort', onAbort);
    stop?.();
  }
}
