// The store of coordination in etcd. One client for each server, so that what is tried, where and how often, is decided here:
// changes once, at one server, reads at each in turn; the server that failed last is not the first choice of the next call.
import type { ServiceError } from '@grpc/grpc-js';
import { assert, must } from '../../base/assert.ts';
import type { CoordinationStore, KeyPut, StoredKey } from '../../coordination/store.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { LIMITS } from '../../types/limits.ts';
import { createEtcdClient, type EtcdAccess, type EtcdClient } from './etcd-client.ts';
import {
  EVENT_PUT,
  type KeyRange,
  type KeyValue,
  LEASE_GRANT,
  LEASE_KEEP_ALIVE,
  LEASE_REVOKE,
  RANGE,
  TARGET_MOD,
  TXN,
  WATCH,
} from './etcd-messages.ts';

export interface EtcdAddress extends EtcdAccess {
  /** As `http://127.0.0.1:2379`, or all of them https; one for each server of etcd's cluster. */
  endpoints: readonly string[];
}

export interface EtcdStore extends CoordinationStore {
  /** Calls that are under way reject. */
  close(): void;
}

/** A hanging server must leave time for the next one. */
const TRY_MIN_MS = 500;
const NO_LEASE = 0n;
const LEASE_GONE = 'etcdserver: requested lease not found';

/** Connects when it is first asked. */
export function createEtcdStore(address: EtcdAddress, { clock }: { clock: ClockPort }): EtcdStore {
  const clients = address.endpoints.map((endpoint) => createEtcdClient(endpoint, address));
  assert(clients.length > 0, 'no endpoint of etcd');
  let preferred = 0;

  async function tryOnce<T>(
    call: (client: EtcdClient, deadlineMs: number) => Promise<T>,
    ms: number,
  ): Promise<T> {
    const at = preferred;
    try {
      return await call(must(clients[at], 'a client'), Date.now() + ms);
    } catch (error) {
      if (preferred === at) preferred = (at + 1) % clients.length;
      throw error;
    }
  }

  /** Every server once, a lone one twice: its connection may have broken while nobody looked. */
  async function tryEach<T>(call: (client: EtcdClient, deadlineMs: number) => Promise<T>): Promise<T> {
    const endsAtMs = clock.monotonicMs() + LIMITS.coordinatorCallMaxMs;
    const shareMs = Math.max(TRY_MIN_MS, LIMITS.coordinatorCallMaxMs / clients.length);
    for (let left = Math.max(2, clients.length); ; left--) {
      const leftMs = endsAtMs - clock.monotonicMs();
      try {
        return await tryOnce(call, Math.min(shareMs, leftMs));
      } catch (error) {
        if (left === 1 || clock.monotonicMs() >= endsAtMs) throw error;
      }
    }
  }

  const once = <T>(call: (client: EtcdClient, deadlineMs: number) => Promise<T>) =>
    tryOnce(call, LIMITS.coordinatorCallMaxMs);

  return {
    async get(key) {
      const asked = { key: utf8(key) };
      const { kvs, header } = await tryEach((client, deadlineMs) => client.call(RANGE, asked, deadlineMs));
      return { row: kvs[0] && storedKey(kvs[0]), revision: Number(header.revision) };
    },
    async list(prefix) {
      const asked = rangeOf(prefix);
      const { kvs, header } = await tryEach((client, deadlineMs) => client.call(RANGE, asked, deadlineMs));
      return { rows: kvs.map(storedKey), revision: Number(header.revision) };
    },
    put: (change) => once((client, deadlineMs) => putOnce(client, change, deadlineMs)),
    watch: (options) => once((client) => watchOnce(client, { ...options, clock })),
    async grantLease(ttlMs) {
      const asked = { TTL: BigInt(Math.ceil(ttlMs / 1000)) };
      const { ID, error } = await once((client, deadlineMs) => client.call(LEASE_GRANT, asked, deadlineMs));
      if (error !== '') throw new Error(error);
      return String(ID);
    },
    keepLease: (leaseId) => once((client, deadlineMs) => keepOnce(client, leaseId, deadlineMs)),
    async revokeLease(leaseId) {
      try {
        const asked = { ID: BigInt(leaseId) };
        await once((client, deadlineMs) => client.call(LEASE_REVOKE, asked, deadlineMs));
      } catch (error) {
        if (!(error as ServiceError).message.includes(LEASE_GONE)) throw error;
      }
    },
    close() {
      for (const client of clients) client.close();
    },
  };
}

const utf8 = (text: string) => Buffer.from(text, 'utf8');

/** The first and, exclusive, the last key of those with a prefix. Prefixes are ASCII, so the last byte can grow. */
function rangeOf(prefix: string): Required<KeyRange> {
  const end = utf8(prefix);
  const last = end.length - 1;
  end[last] = must(end[last], 'a prefix') + 1;
  return { key: utf8(prefix), range_end: end };
}

function storedKey(row: KeyValue): StoredKey {
  return {
    key: row.key.toString('utf8'),
    value: row.value.toString('utf8'),
    createRevision: Number(row.create_revision),
    modRevision: Number(row.mod_revision),
    leaseId: row.lease === NO_LEASE ? undefined : String(row.lease),
  };
}

async function putOnce(client: EtcdClient, change: KeyPut, deadlineMs: number) {
  const { value, expected, leaseId } = change;
  const key = utf8(change.key);
  const put = { key, value: utf8(value), lease: leaseId === undefined ? NO_LEASE : BigInt(leaseId) };
  const asked = {
    // A key that is not there has revision 0.
    compare: expected === undefined ? [] : [{ target: TARGET_MOD, key, mod_revision: BigInt(expected) }],
    success: [{ request_put: put }],
  };
  const { succeeded, header } = await client.call(TXN, asked, deadlineMs);
  return succeeded ? { kind: 'done' as const, revision: Number(header.revision) } : { kind: 'lost' as const };
}

async function keepOnce(client: EtcdClient, leaseId: string, deadlineMs: number): Promise<boolean> {
  const stream = await client.open(LEASE_KEEP_ALIVE, deadlineMs);
  try {
    return await new Promise((resolve, reject) => {
      stream.on('data', ({ TTL }) => resolve(TTL !== 0n));
      stream.on('error', reject);
      stream.on('end', () => reject(new Error('etcd ended the renewal of a lease without an answer')));
      stream.write({ ID: BigInt(leaseId) });
    });
  } finally {
    stop(stream);
  }
}

function stop(stream: { end(): void; cancel(): void }): void {
  stream.end();
  stream.cancel();
}

async function watchOnce(
  client: EtcdClient,
  options: Parameters<CoordinationStore['watch']>[0] & { clock: ClockPort },
): Promise<void> {
  const { prefix, fromRevision, onChange, signal, clock } = options;
  const stream = await client.open(WATCH);
  const begun = new AbortController();
  const ended = Promise.withResolvers<void>();
  // Stays until the end: a cancelled stream gives an error, too.
  stream.on('error', ended.reject);
  stream.on('end', () => ended.reject(new Error('etcd ended a watch')));
  stream.on('data', (answer) => {
    begun.abort();
    if (answer.canceled)
      ended.reject(new Error(`etcd cancelled a watch: ${answer.cancel_reason || 'compacted'}`));
    if (signal.aborted) return;
    try {
      for (const { type, kv } of answer.events) {
        const row = type === EVENT_PUT ? storedKey(kv) : undefined;
        onChange({ key: kv.key.toString('utf8'), row, revision: Number(answer.header.revision) });
      }
    } catch (error) {
      ended.reject(error);
    }
  });
  const onAbort = () => ended.resolve();
  signal.addEventListener('abort', onAbort);
  try {
    if (signal.aborted) return;
    stream.write({ create_request: { ...rangeOf(prefix), start_revision: BigInt(fromRevision) } });
    await Promise.race([ended.promise, clock.sleep(LIMITS.coordinatorCallMaxMs, begun.signal)]);
    if (!begun.signal.aborted && !signal.aborted) throw new Error('etcd did not begin a watch in time');
    await ended.promise;
  } finally {
    begun.abort();
    signal.removeEventListener('abort', onAbort);
    ended.promise.catch(() => undefined);
    stop(stream);
  }
}
