// The keys below the master key (design "Data model"): a random key-encryption key per object, wrapped by the keyring or by
// the customer's key; under it the data key of each blob, and the object's headers. Plain keys stay in memory during a
// request; those of objects without a customer's key also while they are among the last used.
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { must } from '../base/assert.ts';
import { BoundedMap } from '../base/bounded-map.ts';
import { asBuffer, EMPTY_BYTES, equalBytes } from '../base/bytes/bytes.ts';
import { KEY_BYTES, NONCE_BYTES, openBytes, sealBytes } from '../base/crypto/aead.ts';
import { packPlain, unpackPlain } from '../base/record-codec.ts';
import type { RandomPort } from '../ports/clock.ts';
import type { KeyringPort } from '../ports/keyring.ts';
import { AppError } from '../types/errors.ts';
import { LIMITS } from '../types/limits.ts';
import type { BlobId } from '../types/names.ts';
import type { BlobUse, ObjectHeaders, VersionRecord, WrappedKek } from '../types/version.ts';
import {
  type CustomerKey,
  judgeKey,
  type KeyFit,
  unwrapByCustomer,
  wrapByCustomer,
} from './customer-keys.ts';

export interface ObjectKeys {
  /** A new key-encryption key, plain and wrapped by the master key or by the customer's. */
  newKek(customerKey?: CustomerKey): { kek: Uint8Array; wrapped: WrappedKek };
  /** Whether openKek will open it with this customer key, or with none. */
  judgeKey(wrapped: WrappedKek | undefined, customerKey: CustomerKey | undefined): KeyFit;
  /** Throws AppError InternalError when it does not open; judge the customer's key first. */
  openKek(wrapped: WrappedKek | undefined, customerKey?: CustomerKey): Uint8Array;
  /**
   * The same key for a copy, wrapped by the active master key or by a customer's. All new versions use it: a rotation
   * relies on it that only requests from before it write anything under an older key (metadata/master-keys/rotate-keys.ts).
   */
  renewKek(
    wrapped: WrappedKek,
    keys?: { from?: CustomerKey | undefined; to?: CustomerKey | undefined },
  ): WrappedKek;
  /** A new data key for one blob, never used for a second one (R24). */
  newDataKey(kek: Uint8Array, blobId: BlobId): { dataKey: Uint8Array; wrapped: Uint8Array };
  /**
   * The data key of a small append (metadata/blobs/grow-blob.ts), derived instead of drawn and wrapped, which takes a fifth
   * of the time. HKDF-Expand (RFC 5869, 2.3) of the object's key and the piece's id: the key is uniformly random, so
   * nothing is extracted (3.3), and an id is never used again (R24).
   */
  pieceKey(kek: Uint8Array, pieceId: BlobId): Uint8Array;
  /**
   * With an empty wrapped key: for a growing blob the key above those of its pieces (BlobUse), else the key of one piece.
   * Throws AppError InternalError when it does not open.
   */
  openDataKey(kek: Uint8Array, use: SealedUse): Uint8Array;
  /** A use of a blob with its data key moved from key `from` to key `to`. Errors of openDataKey. */
  rewrapUse(use: BlobUse, keks: { from: Uint8Array; to: Uint8Array }): BlobUse;
  sealHeaders(kek: Uint8Array, headers: ObjectHeaders): Uint8Array;
  /** Throws AppError InternalError when they do not open. */
  openHeaders(
    version: Pick<VersionRecord, 'kek' | 'sealedHeaders'>,
    customerKey?: CustomerKey,
  ): ObjectHeaders;
}

/** Distinguishes sealed headers from wrapped data keys under the same key. */
const HEADERS_CONTEXT = 'holdfast object headers';
const HEADERS_FORMAT = 1;
/** HKDF-Expand numbers its blocks; one block has the size of a key. */
const FIRST_BLOCK = Uint8Array.of(1);

type SealedUse = Pick<BlobUse, 'blobId' | 'wrappedDataKey'> & Partial<Pick<BlobUse, 'storage'>>;

interface OpenedDataKey {
  blobId: string;
  wrapped: Uint8Array;
  dataKey: Uint8Array;
}
/** Longer ones are opened each time: with as many as there are keys these have some MiB. */
const KEPT_HEADERS_BYTES_MAX = 512;

interface OpenedHeaders {
  sealed: Uint8Array;
  headers: ObjectHeaders;
}
const NO_DATA_KEY: OpenedDataKey = { blobId: '', wrapped: EMPTY_BYTES, dataKey: EMPTY_BYTES };

/** User metadata as pairs: MessagePack readers change some names of maps ("__proto__"). */
type PackedHeaders = Omit<ObjectHeaders, 'userMetadata'> & { userMetadata: [name: string, value: string][] };

export function createObjectKeys(deps: { keyring: KeyringPort; random: RandomPort }): ObjectKeys {
  const { keyring, random } = deps;

  function wrapDataKey(kek: Uint8Array, blobId: BlobId, dataKey: Uint8Array): Uint8Array {
    const nonce = random.bytes(NONCE_BYTES);
    return sealBytes({ key: keyObject(kek), nonce, context: dataKeyContext(blobId), plaintext: dataKey });
  }

  /**
   * A request opens the same key more than once, and so do readers of successive ranges. A process that can read this
   * memory has the master keys, too.
   */
  const opened = new BoundedMap<string, Uint8Array>(LIMITS.openedKeysMax);
  /** The last opened data key for each object key: a whole object has only one, unless it is composed. */
  const lastDataKeys = new WeakMap<Uint8Array, OpenedDataKey>();
  /** The last opened headers for each object key: HEAD and GET of one object are many. */
  const lastHeaders = new WeakMap<Uint8Array, OpenedHeaders>();

  function openKek(wrapped: WrappedKek | undefined, customerKey?: CustomerKey): Uint8Array {
    const present = must(wrapped, 'a version with data has a key');
    if (present.by === 'customer') {
      const opened = customerKey && unwrapByCustomer(present, customerKey);
      return opened ?? fail('a key of a customer does not open what it fits');
    }
    const name = `${present.keyId} ${asBuffer(present.wrapped).toString('latin1')}`;
    let kek = opened.get(name);
    if (kek === undefined) {
      kek = keyring.unwrap(present);
      opened.set(name, kek);
      lastDataKeys.set(kek, NO_DATA_KEY);
    }
    return kek;
  }

  function unwrapDataKey(kek: Uint8Array, blobId: BlobId, wrapped: Uint8Array): Uint8Array {
    const last = lastDataKeys.get(kek);
    if (last?.blobId === blobId && equalBytes(last.wrapped, wrapped)) return last.dataKey;
    const dataKey = openBytes({ key: keyObject(kek), context: dataKeyContext(blobId), sealed: wrapped });
    if (dataKey === undefined) return fail(`the data key of blob ${blobId} does not open`);
    // Keys below a customer's key are not cached.
    if (last !== undefined) lastDataKeys.set(kek, { blobId, wrapped: Uint8Array.from(wrapped), dataKey });
    return dataKey;
  }

  function wrapKek(kek: Uint8Array, customerKey: CustomerKey | undefined): WrappedKek {
    return customerKey === undefined ? keyring.wrap(kek) : wrapByCustomer(kek, { customerKey, random });
  }

  function openDataKey(kek: Uint8Array, use: SealedUse): Uint8Array {
    const { blobId, wrappedDataKey, storage } = use;
    if (wrappedDataKey.length === 0) return storage === 'pieces' ? kek : pieceKey(kek, blobId);
    return unwrapDataKey(kek, blobId, wrappedDataKey);
  }

  return {
    newKek(customerKey) {
      const kek = random.bytes(KEY_BYTES);
      return { kek, wrapped: wrapKek(kek, customerKey) };
    },
    judgeKey: (wrapped, customerKey) => judgeKey(must(wrapped, 'a version with data has a key'), customerKey),
    openKek,
    renewKek(wrapped, { from, to } = {}) {
      const isCurrent = to === undefined && wrapped.by === 'master' && wrapped.keyId === keyring.activeKeyId;
      return isCurrent ? wrapped : wrapKek(openKek(wrapped, from), to);
    },
    newDataKey(kek, blobId) {
      const dataKey = random.bytes(KEY_BYTES);
      return { dataKey, wrapped: wrapDataKey(kek, blobId, dataKey) };
    },
    openDataKey,
    pieceKey,
    rewrapUse: (use, { from, to }) => ({
      ...use,
      wrappedDataKey: wrapDataKey(to, use.blobId, openDataKey(from, use)),
    }),
    sealHeaders(kek, headers) {
      const plaintext = Buffer.concat([Uint8Array.of(HEADERS_FORMAT), packHeaders(headers)]);
      const key = keyObject(kek);
      return sealBytes({ key, nonce: random.bytes(NONCE_BYTES), context: HEADERS_CONTEXT, plaintext });
    },
    openHeaders({ kek, sealedHeaders }, customerKey) {
      if (sealedHeaders === undefined) return { userMetadata: {} };
      const opened = openKek(kek, customerKey);
      const last = lastHeaders.get(opened);
      if (last !== undefined && equalBytes(last.sealed, sealedHeaders)) return last.headers;
      const sealed = { key: keyObject(opened), context: HEADERS_CONTEXT, sealed: sealedHeaders };
      const plaintext = openBytes(sealed);
      if (plaintext?.[0] !== HEADERS_FORMAT) return fail('sealed headers do not open');
      const headers = unpackHeaders(plaintext.subarray(1));
      // As with data keys, nothing below a customer's key is kept.
      if (lastDataKeys.has(opened) && sealedHeaders.length <= KEPT_HEADERS_BYTES_MAX)
        lastHeaders.set(opened, { sealed: Uint8Array.from(sealedHeaders), headers: Object.freeze(headers) });
      return headers;
    },
  };
}

function packHeaders({ userMetadata, ...headers }: ObjectHeaders): Uint8Array {
  const packed: PackedHeaders = { ...headers, userMetadata: Object.entries(userMetadata) };
  return packPlain(packed);
}

function unpackHeaders(bytes: Uint8Array): ObjectHeaders {
  const { userMetadata: pairs, ...headers } = unpackPlain(bytes) as PackedHeaders;
  const userMetadata: Record<string, string> = Object.create(null);
  for (const [name, value] of pairs) userMetadata[name] = value;
  return { ...headers, userMetadata };
}

/** Making one takes as long as using it (base/crypto/aead.ts), and a request uses its key more than once. */
const keyObjects = new WeakMap<Uint8Array, KeyObject>();

function keyObject(kek: Uint8Array): KeyObject {
  let object = keyObjects.get(kek);
  if (object === undefined) {
    object = createSecretKey(kek);
    keyObjects.set(kek, object);
  }
  return object;
}

function pieceKey(kek: Uint8Array, pieceId: BlobId): Uint8Array {
  const hmac = createHmac('sha256', keyObject(kek));
  return hmac.update(`holdfast piece ${pieceId}`).update(FIRST_BLOCK).digest();
}

/** A wrapped data key fits its blob only: swapped rows are noticed. */
function dataKeyContext(blobId: BlobId): string {
  return `holdfast data key ${blobId}`;
}

function fail(what: string): never {
  throw new AppError('InternalError', { cause: new Error(what) });
}
