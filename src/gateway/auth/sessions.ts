// Session tokens (AWS STS "Temporary security credentials"): everything that a session is, sealed by a master key. The server
// keeps nothing of a session. It ends with its time, and with the access key, user, role or account that it hangs on.
import { createCipheriv, createDecipheriv, hash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { BoundedMap } from '../../base/bounded-map.ts';
import { packPlain, unpackPlain } from '../../base/record-codec.ts';
import type { RandomPort } from '../../ports/clock.ts';
import type { KeyringPort } from '../../ports/keyring.ts';
import { AppError } from '../../types/errors.ts';
import type { AccountId } from '../../types/names.ts';
import type { Tag } from '../../types/tags.ts';
import type { WrappedKek } from '../../types/version.ts';

export interface Session {
  /** Whose rights it has: the root's or a user's (GetSessionToken), or a role's (AssumeRole). */
  readonly kind: 'root' | 'user' | 'role';
  readonly accountId: AccountId;
  /** Its own access key: ASIA.... */
  readonly accessKey: string;
  readonly secretKey: string;
  /** The user's or role's id; `root`. */
  readonly id: string;
  /** The access key of long term that began it, or began the session that did. */
  readonly issuer: string;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
  /** RoleSessionName. */
  readonly name?: string;
  /** When MFA was given; absent: without. */
  readonly mfaAtMs?: number;
  /** Limit it besides the role's policies. */
  readonly policies?: readonly { name: string; text: string }[];
  readonly tags?: readonly Tag[];
  /** Keys of those tags that go on to sessions that this one begins. */
  readonly transitiveTagKeys?: readonly string[];
  readonly sourceIdentity?: string;
}

export interface Sessions {
  /** The session's token. Throws PackedPolicyTooLarge. */
  seal(session: Session): string;
  /** Throws InvalidToken for a token that is not ours. Whether it has expired, and whose it is now, is not looked at. */
  open(token: string): Session;
}

interface Opened {
  readonly session: Session;
  readonly sizeBytes: number;
}

const FORM = 1;
const NONCE = Buffer.alloc(12);
const TAG_BYTES = 16;
const KEY_BYTES = 32;
/** It travels in a header with each request. */
const TOKEN_CHARACTERS_MAX = 8192;
const SESSION_BYTES_MAX = 64 * 1024;
const OPENED_MAX = 4000;
/** Of all that are open, unpacked. */
const OPENED_BYTES_MAX = 32 * 1024 * 1024;

export function createSessions({ keyring, random }: { keyring: KeyringPort; random: RandomPort }): Sessions {
  /** By the token's digest. */
  const opened = new BoundedMap<string, Opened>(OPENED_MAX, {
    weightMax: OPENED_BYTES_MAX,
    weightOf: ({ sizeBytes }) => sizeBytes,
  });
  return {
    seal(session) {
      const key = Buffer.from(random.bytes(KEY_BYTES));
      const wrapped = keyring.wrap(key);
      const packed = packPlain(session);
      if (packed.length > SESSION_BYTES_MAX) throw tooLarge(packed.length / SESSION_BYTES_MAX);
      // The key seals this one text, so the nonce need not differ.
      const cipher = createCipheriv('aes-256-gcm', key, NONCE);
      const plain = deflateRawSync(packed);
      const sealed = Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
      key.fill(0);
      const token = Buffer.from(packPlain({ form: FORM, wrapped, sealed })).toString('base64');
      if (token.length > TOKEN_CHARACTERS_MAX) throw tooLarge(token.length / TOKEN_CHARACTERS_MAX);
      return token;
    },
    open(token) {
      const digest = hash('sha256', token);
      const known = opened.get(digest);
      if (known !== undefined) return known.session;
      const found = unseal(token, keyring);
      opened.set(digest, found);
      return found.session;
    },
  };
}

function tooLarge(share: number): AppError {
  const percent = Math.ceil(share * 100);
  const message = `Packed size of session tags and session policy consumes ${percent}% of allotted space.`;
  return new AppError('PackedPolicyTooLarge', { message });
}

/** `sizeBytes`: of the session as it was packed. */
function unseal(token: string, keyring: KeyringPort): Opened {
  const bytes = Buffer.from(token, 'base64');
  // One spelling for each token: what is known of it is known by its text.
  if (token.length > TOKEN_CHARACTERS_MAX || bytes.toString('base64') !== token)
    throw new AppError('InvalidToken');
  try {
    const parts = unpackPlain(bytes) as {
      form: number;
      wrapped: WrappedKek;
      sealed: Buffer;
    };
    if (parts.form !== FORM || parts.wrapped.by !== 'master') throw new AppError('InvalidToken');
    if (!keyring.keyIds().includes(parts.wrapped.keyId)) throw new AppError('InvalidToken');
    const key = keyring.unwrap(parts.wrapped);
    const cipher = createDecipheriv('aes-256-gcm', key, NONCE);
    const at = parts.sealed.length - TAG_BYTES;
    cipher.setAuthTag(parts.sealed.subarray(at));
    const plain = Buffer.concat([cipher.update(parts.sealed.subarray(0, at)), cipher.final()]);
    key.fill(0);
    const packed = inflateRawSync(plain, { maxOutputLength: SESSION_BYTES_MAX });
    return { session: unpackPlain(packed) as Session, sizeBytes: packed.length };
  } catch {
    // Whatever is wrong with it: it is not a token of ours.
    throw new AppError('InvalidToken');
  }
}
