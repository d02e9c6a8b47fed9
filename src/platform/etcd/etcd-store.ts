// The store of coordination in etcd, by the bare calls of etcd3: its retries, leases, locks and watchers are not used
// (L5-L8). One client for each server, so that what is tried, where and how often, is decided here: changes once, at
// one server, reads at each in turn; the server that failed last is not the first choice of the next call.
import { noop } from 'cockatiel';
import { Etcd3, EtcdLeaseInvalidError, type IKeyValue, type IOptions } from 'etcd3';
import { assert, must } from '../../base/assert.ts';
import type { CoordinationStore, KeyPut, StoredKey } from '../../coordination/store.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { LIMITS } from '../../types/limits.ts';

export interface EtcdAddress {
  /** As `http://127.0.0.1:2379`, or all of them https; one for each server of etcd's cluster. */
  endpoints: readonly string[];
  /** PEM, for https. */
  tls?: { ca: Buffer; cert?: Buffer; key?: Buffer };
  /** Of etcd's own users, where they are switched on. */
  user?: { name: string; password: string };
}

export interface EtcdStore extends CoordinationStore {
  /** Calls that are under way reject. */
  close(): void;
}

type GrpcOptions = NonNullable<IOptions['grpcOptions']>;
type CallOptions = NonNullable<Parameters<Etcd3['kv']['range']>[1]>;

/** A hanging server must leave time for the next one. */
const TRY_MIN_MS = 500;
const NO_LEASE = '0';

const GRPC_OPTIONS: GrpcOptions = {
  // L6, on the level below.
  'grpc.enable_retries': 0,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
  // A channel that is made anew after an error must not take over the back-off of the one before.
  'grpc.use_local_subchannel_pool': 1,
  // A watch whose connection is dead ends; etcd does not allow to ask more often than every 5 s.
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5000,
  'grpc.max_receive_message_length': 64 * 1024 * 1024,
  'grpc.enable_http_proxy': 0,
};

/** Connects when it is first asked. */
export function createEtcdStore(address: EtcdAddress, { clock }: { clock: ClockPort }): EtcdStore {
  const clients = address.endpoints.map((endpoint) => new Etcd3(clientOptions(address, endpoint)));
  assert(clients.length > 0, 'no endpoint of etcd');
  let preferred = 0;

  async function tryOnce<T>(
    call: (client: Etcd3, options: CallOptions) => Promise<T>,
    ms: number,
  ): Promise<T> {
    const at = preferred;
    try {
      return await call(must(clients[at], 'a client'), { deadline: Date.now() + ms });
    } catch (error) {
      if (preferred === at) preferred = (at + 1) % clients.length;
      throw error;
    }
  }

  /** Every server once, a lone one twice: its connection may have broken while nobody looked. */
  async function tryEach<T>(call: (client: Etcd3, options: CallOptions) => Promise<T>): Promise<T> {
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

  const once = <T>(call: (client: Etcd3, options: CallOptions) => Promise<T>) =>
    tryOnce(call, LIMITS.coordinatorCallMaxMs);

  return {
    async get(key) {
      const { kvs, header } = await tryEach(({ kv }, options) => kv.range({ key: utf8(key) }, options));
      return { row: kvs[0] && storedKey(kvs[0]), revision: Number(header.revision) };
    },
    async list(prefix) {
      const { kvs, header } = await tryEach(({ kv }, options) => kv.range(rangeOf(prefix), options));
      return { rows: kvs.map(storedKey), revision: Number(header.revision) };
    },
    put: (change) => once((client, options) => putOnce(client, change, options)),
    watch: (options) => once((client) => watchOnce(client, { ...options, clock })),
    async grantLease(ttlMs) {
      const request = { TTL: Math.ceil(ttlMs / 1000) };
      return (await once(({ leaseClient }, options) => leaseClient.leaseGrant(request, options))).ID;
    },
    keepLease: (leaseId) => once((client, options) => keepOnce(client, leaseId, options)),
    async revokeLease(leaseId) {
      try {
        await once(({ leaseClient }, options) => leaseClient.leaseRevoke({ ID: leaseId }, options));
      } catch (error) {
        if (!(error instanceof EtcdLeaseInvalidError)) throw error;
      }
    },
    close() {
      for (const client of clients) client.close();
    },
  };
}

function clientOptions({ tls, user }: EtcdAddress, endpoint: string): IOptions {
  return {
    hosts: endpoint,
    grpcOptions: GRPC_OPTIONS,
    // L6: no retries; nor a circuit breaker, which would refuse calls for 5 s after three errors.
    faultHandling: { global: noop, host: () => noop },
    ...(tls && {
      credentials: {
        rootCertificate: tls.ca,
        ...(tls.key && { privateKey: tls.key }),
        ...(tls.cert && { certChain: tls.cert }),
      },
    }),
    ...(user && {
      auth: {
        username: user.name,
        password: user.password,
        callOptions: () => ({ deadline: Date.now() + LIMITS.coordinatorCallMaxMs }),
      },
    }),
  };
}

const utf8 = (text: string) => Buffer.from(text, 'utf8');

/** The first and, exclusive, the last key of those with a prefix. Prefixes are ASCII, so the last byte can grow. */
function rangeOf(prefix: string): { key: Buffer; range_end: Buffer } {
  const end = utf8(prefix);
  const last = end.length - 1;
  end[last] = must(end[last], 'a prefix') + 1;
  return { key: utf8(prefix), range_end: end };
}

function storedKey(row: IKeyValue): StoredKey {
  return {
    key: row.key.toString('utf8'),
    value: row.value.toString('utf8'),
    createRevision: Number(row.create_revision),
    modRevision: Number(row.mod_revision),
    leaseId: row.lease === NO_LEASE ? undefined : row.lease,
  };
}

async function putOnce(client: Etcd3, change: KeyPut, options: CallOptions) {
  const key = utf8(change.key);
  const { succeeded, header } = await client.kv.txn(
    {
      // A key that is not there has revision 0.
      compare:
        change.expected === undefined
          ? []
          : [{ key, target: 'Mod', result: 'Equal', mod_revision: change.expected }],
      success: [
        { request_put: { key, value: utf8(change.value), ...(change.leaseId && { lease: change.leaseId }) } },
      ],
    },
    options,
  );
  return succeeded ? { kind: 'done' as const, revision: Number(header.revision) } : { kind: 'lost' as const };
}

async function keepOnce(client: Etcd3, leaseId: string, options: CallOptions): Promise<boolean> {
  const stream = await client.leaseClient.leaseKeepAlive(options);
  try {
    return await new Promise((resolve, reject) => {
      stream.on('data', ({ TTL }) => resolve(TTL !== '0'));
      stream.on('error', reject);
      stream.on('end', () => reject(new Error('etcd ended the renewal of a lease without an answer')));
      stream.write({ ID: leaseId });
    });
  } finally {
    stop(stream);
  }
}

/** Ended first: etcd3 takes the cancel of a stream that can be written for a failure, and drops all connections. */
function stop(stream: { end(): void; cancel(): void }): void {
  stream.end();
  stream.cancel();
}

async function watchOnce(
  client: Etcd3,
  options: Parameters<CoordinationStore['watch']>[0] & { clock: ClockPort },
): Promise<void> {
  const { prefix, fromRevision, onChange, signal, clock } = options;
  const stream = await client.watchClient.watch();
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
        const row = type === 'Put' ? storedKey(kv) : undefined;
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
    stream.write({ create_request: { ...rangeOf(prefix), start_revision: fromRevision } });
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
