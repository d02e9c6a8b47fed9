// Keys of customers (SSE-C): how they wrap an object's key-encryption key, and how they are compared. A customer's key is
// never stored: only a salt and a fingerprint are (design "Data model").
import { hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto';
import { fromHex, toHex } from '../base/bytes/bytes.ts';
import { KEY_BYTES, NONCE_BYTES, openBytes, sealBytes } from '../base/crypto/aead.ts';
import type { RandomPort } from '../ports/clock.ts';
import type { WrappedKek } from '../types/version.ts';

/** 32 bytes. A KeyObject, because logs and JSON do not show its bytes. It lives as long as its request. */
export type CustomerKey = KeyObject;

/**
 * Whether a key fits an object: `missing` where one is needed, `needless` where the object was stored without one, `other`
 * where it is not the object's.
 */
export type KeyFit = 'fits' | 'missing' | 'needless' | 'other';

const SALT_BYTES = 32;
const FINGERPRINT_PURPOSE = 'holdfast customer key fingerprint';
const WRAPPING_PURPOSE = 'holdfast customer key wrapping';

export function judgeKey(wrapped: WrappedKek, customerKey: CustomerKey | undefined): KeyFit {
  if (wrapped.by === 'master') return customerKey === undefined ? 'fits' : 'needless';
  if (customerKey === undefined) return 'missing';
  const { salt, fingerprint } = readKeyId(wrapped);
  const given = derive(customerKey, salt, FINGERPRINT_PURPOSE);
  return timingSafeEqual(given, fingerprint) ? 'fits' : 'other';
}

/** Wraps 32 bytes under a salt of their own: two objects under one key have nothing visible in common. */
export function wrapByCustomer(
  kek: Uint8Array,
  { customerKey, random }: { customerKey: CustomerKey; random: RandomPort },
): WrappedKek {
  const salt = random.bytes(SALT_BYTES);
  const keyId = toHex(salt) + toHex(derive(customerKey, salt, FINGERPRINT_PURPOSE));
  const key = derive(customerKey, salt, WRAPPING_PURPOSE);
  const wrapped = sealBytes({ key, nonce: random.bytes(NONCE_BYTES), context: keyId, plaintext: kek });
  return { by: 'customer', keyId, wrapped };
}

/** undefined when the key is wrong, or the bytes were changed. */
export function unwrapByCustomer(
  { keyId, wrapped }: WrappedKek,
  customerKey: CustomerKey,
): Uint8Array | undefined {
  const { salt } = readKeyId({ keyId });
  const key = derive(customerKey, salt, WRAPPING_PURPOSE);
  return openBytes({ key, context: keyId, sealed: wrapped });
}

function readKeyId({ keyId }: Pick<WrappedKek, 'keyId'>): { salt: Uint8Array; fingerprint: Uint8Array } {
  const bytes = fromHex(keyId);
  return { salt: bytes.subarray(0, SALT_BYTES), fingerprint: bytes.subarray(SALT_BYTES) };
}

/** RFC 5869, both steps: a customer's key need not be uniformly random. */
function derive(customerKey: CustomerKey, salt: Uint8Array, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', customerKey, salt, purpose, KEY_BYTES));
}
