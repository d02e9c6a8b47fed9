// Session tokens (AWS STS "Temporary security credentials"): everything that a session is, sealed by a master key. The server
// keeps nothing of a session. It ends with its time, and with the access key, user, roles or accounts that it hangs on.
import { hash } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { BoundedMap } from '../../base/bounded-map.ts';
import { KEY_BYTES, NONCE_BYTES, openBytes, sealBytes } from '../../base/crypto/aead.ts';
import { packPlain, unpackPlain, unpackSent } from '../../base/record-codec.ts';
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
  /** Which key of that name it was, and whose. Absent in tokens of earlier releases. */
  readonly issuerKey?: IssuerKey;
  /** Roles by whose sessions it was begun, when role led to role. */
  readonly through?: readonly RoleOfSession[];
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
  /** RoleSessionName. */
  readonly name?: string;
  /** When MFA was given; absent: without. */
  readonly mfaAtMs?: number;
  /** It does not stand for MFA delete: by a device for which nobody has vouched, or of another account. */
  readonly isMfaUnvouched?: true;
  /** Limit it besides the role's policies. */
  readonly policies?: readonly { name: string; text: string }[];
  readonly tags?: readonly Tag[];
  /** Keys of those tags that go on to sessions that this one begins. */
  readonly transitiveTagKeys?: readonly string[];
  readonly sourceIdentity?: string;
}

/** A key that is made anew under the name of one that was deleted is another key. */
export interface IssuerKey {
  readonly accountId: AccountId;
  /** The user's id; `root`. */
  readonly principalId: string;
  readonly createdAtMs: number;
}

export interface RoleOfSession {
  readonly accountId: AccountId;
  readonly id: string;
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
  /** The master key that seals it. */
  readonly keyId: string;
}

const FORM = 1;
/** It is not in the token. */
const NONCE = Buffer.alloc(NONCE_BYTES);
const CONTEXT = '';
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
      const plaintext = deflateRawSync(packed);
      const sealed = sealBytes({ key, nonce: NONCE, context: CONTEXT, plaintext }).subarray(NONCE.length);
      key.fill(0);
      const token = Buffer.from(packPlain({ form: FORM, wrapped, sealed })).toString('base64');
      if (token.length > TOKEN_CHARACTERS_MAX) throw tooLarge(token.length / TOKEN_CHARACTERS_MAX);
      return token;
    },
    open(token) {
      const digest = hash('sha256', token);
      const known = opened.get(digest);
      // A rotation of master keys ends sessions, those that were used already, too.
      if (known !== undefined && keyring.keyIds().includes(known.keyId)) return known.session;
      const found = unseal(token, keyring);
      opened.set(digest, found);
      return found.session;
    },
  };
}

/** Throws PackedPolicyTooLarge for policies that no session can have, whatever else is in it. */
export function requireSmall(policies: readonly { text: string }[]): void {
  const sizeBytes = policies.reduce((sum, { text }) => sum + text.length, 0);
  if (sizeBytes > SESSION_BYTES_MAX) throw tooLarge(sizeBytes / SESSION_BYTES_MAX);
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
    const parts = unpackSent(bytes) as {
      form: number;
      wrapped: WrappedKek;
      sealed: Buffer;
    };
    if (parts.form !== FORM || parts.wrapped.by !== 'master') throw new AppError('InvalidToken');
    if (!keyring.keyIds().includes(parts.wrapped.keyId)) throw new AppError('InvalidToken');
    const key = keyring.unwrap(parts.wrapped);
    const sealed = Buffer.concat([NONCE, parts.sealed]);
    const plain = openBytes({ key, context: CONTEXT, sealed });
    key.fill(0);
    if (plain === undefined) throw new AppError('InvalidToken');
    const packed = inflateRawSync(plain, { maxOutputLength: SESSION_BYTES_MAX });
    const { keyId } = parts.wrapped;
    return { session: unpackPlain(packed) as Session, sizeBytes: packed.length, keyId };
  } catch {
    // Whatever is wrong with it: it is not a token of ours.
    throw new AppError('InvalidToken');
  }
}
