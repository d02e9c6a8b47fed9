// What is said to etcd and heard from it: of its contract (etcdserverpb and mvccpb, version 3) the calls and fields that
// etcd-store.ts uses. What is not listed has the value that etcd takes for absent.
import { messageCodec } from '../../base/protobuf.ts';

interface Header {
  revision: bigint;
}
const HEADER = messageCodec<Header>({ revision: { number: 3, type: 'int64' } });

/** A key and its value, as etcd keeps them. `lease` 0: none. */
export interface KeyValue {
  key: Buffer;
  create_revision: bigint;
  mod_revision: bigint;
  value: Buffer;
  lease: bigint;
}
const KEY_VALUE = messageCodec<KeyValue>({
  key: { number: 1, type: 'bytes' },
  create_revision: { number: 2, type: 'int64' },
  mod_revision: { number: 3, type: 'int64' },
  value: { number: 5, type: 'bytes' },
  lease: { number: 6, type: 'int64' },
});

/** Keys from `key` to before `range_end`; `key` alone without it. */
export interface KeyRange {
  key: Buffer;
  range_end?: Buffer;
}
export interface RangeResponse {
  header: Header;
  kvs: KeyValue[];
}

interface Put {
  key: Buffer;
  value: Buffer;
  lease: bigint;
}
const PUT = messageCodec<Put>({
  key: { number: 1, type: 'bytes' },
  value: { number: 2, type: 'bytes' },
  lease: { number: 3, type: 'int64' },
});

interface Compare {
  /** {@link TARGET_MOD}. That the two are to be equal is 0, and absent. */
  target: number;
  key: Buffer;
  mod_revision: bigint;
}
const COMPARE = messageCodec<Compare>({
  target: { number: 2, type: 'uint32' },
  key: { number: 3, type: 'bytes' },
  mod_revision: { number: 6, type: 'int64' },
});
/** What is compared: the revision of the last change. */
export const TARGET_MOD = 2;

interface Operation {
  request_put: Put;
}
const OPERATION = messageCodec<Operation>({ request_put: { number: 2, type: PUT } });

export interface Transaction {
  compare: Compare[];
  success: Operation[];
}
export interface TransactionResponse {
  header: Header;
  succeeded: boolean;
}

export interface WatchRequest {
  create_request: KeyRange & { start_revision: bigint };
}
const WATCH_CREATE = messageCodec<Required<WatchRequest['create_request']>>({
  key: { number: 1, type: 'bytes' },
  range_end: { number: 2, type: 'bytes' },
  start_revision: { number: 3, type: 'int64' },
});

interface Event {
  /** 0: written; 1: removed. */
  type: number;
  kv: KeyValue;
}
const EVENT = messageCodec<Event>({
  type: { number: 1, type: 'uint32' },
  kv: { number: 2, type: KEY_VALUE },
});
export const EVENT_PUT = 0;

export interface WatchResponse {
  header: Header;
  canceled: boolean;
  cancel_reason: string;
  events: Event[];
}

interface Lease {
  ID: bigint;
}
export interface KeptLease {
  /** In seconds; 0: it is gone. */
  TTL: bigint;
}
interface User {
  name: string;
  password: string;
}

const LEASE = messageCodec<Lease>({ ID: { number: 1, type: 'int64' } });

/** A call of etcd: its path, what it takes, and what it answers. */
function method<Request extends object, Response extends object>(
  path: string,
  request: { encode(message: Request): Buffer },
  response: { decode(bytes: Buffer): Response },
) {
  return {
    path: `/etcdserverpb.${path}`,
    encode: (message: Request) => request.encode(message),
    decode: (bytes: Buffer) => response.decode(bytes),
  };
}
export type Method<Request extends object, Response extends object> = ReturnType<
  typeof method<Request, Response>
>;

export const RANGE: Method<KeyRange, RangeResponse> = method(
  'KV/Range',
  messageCodec<KeyRange>({ key: { number: 1, type: 'bytes' }, range_end: { number: 2, type: 'bytes' } }),
  messageCodec<RangeResponse>({
    header: { number: 1, type: HEADER },
    kvs: { number: 2, type: KEY_VALUE, isRepeated: true },
  }),
);

export const TXN: Method<Transaction, TransactionResponse> = method(
  'KV/Txn',
  messageCodec<Transaction>({
    compare: { number: 1, type: COMPARE, isRepeated: true },
    success: { number: 2, type: OPERATION, isRepeated: true },
  }),
  messageCodec<TransactionResponse>({
    header: { number: 1, type: HEADER },
    succeeded: { number: 2, type: 'bool' },
  }),
);

export const WATCH: Method<WatchRequest, WatchResponse> = method(
  'Watch/Watch',
  messageCodec<WatchRequest>({ create_request: { number: 1, type: WATCH_CREATE } }),
  messageCodec<WatchResponse>({
    header: { number: 1, type: HEADER },
    canceled: { number: 4, type: 'bool' },
    cancel_reason: { number: 6, type: 'string' },
    events: { number: 11, type: EVENT, isRepeated: true },
  }),
);

export const LEASE_GRANT: Method<{ TTL: bigint }, Lease & { error: string }> = method(
  'Lease/LeaseGrant',
  messageCodec<{ TTL: bigint }>({ TTL: { number: 1, type: 'int64' } }),
  messageCodec<Lease & { error: string }>({
    ID: { number: 2, type: 'int64' },
    error: { number: 4, type: 'string' },
  }),
);
export const LEASE_REVOKE: Method<Lease, object> = method(
  'Lease/LeaseRevoke',
  LEASE,
  messageCodec<object>({}),
);
export const LEASE_KEEP_ALIVE: Method<Lease, KeptLease> = method(
  'Lease/LeaseKeepAlive',
  LEASE,
  messageCodec<KeptLease>({ TTL: { number: 3, type: 'int64' } }),
);

export const AUTHENTICATE: Method<User, { token: string }> = method(
  'Auth/Authenticate',
  messageCodec<User>({ name: { number: 1, type: 'string' }, password: { number: 2, type: 'string' } }),
  messageCodec<{ token: string }>({ token: { number: 2, type: 'string' } }),
);
