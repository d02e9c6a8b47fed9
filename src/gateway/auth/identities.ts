// The owner of an access key, and its secret, in the clear only while a signature needs it. A cache in front of the system
// shard: a cached identity is used until the feed reports a change, and while the feed is current; unknown keys are always
// read through (R46).
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { assert } from '../../base/assert.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import { asBuffer, equalBytes } from '../../base/bytes/bytes.ts';
import type { IdentityFeed } from '../../ports/identity-feed.ts';
import type { KeyringPort } from '../../ports/keyring.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../../ports/metadata/port.ts';
import type { AccountId } from '../../types/names.ts';
import type { AccountRecord } from '../../types/records/rows.ts';
import { requireDone } from '../../types/require-done.ts';
import type { WrappedKek } from '../../types/version.ts';
import type { CredentialScope } from './sigv4-fields.ts';

export interface Identity {
  readonly accessKey: string;
  readonly account: AccountRecord;
  /** The key that signs in this scope. A KeyObject, because Node takes five times as long with bytes (15 us a call). */
  signingKey(scope: CredentialScope): KeyObject;
  /** The secret key itself, by which SigV2 signs. */
  readonly secret: KeyObject;
}

type Keys = Pick<Identity, 'signingKey' | 'secret'>;

export interface Identities {
  /** Undefined: no such key. Throws ServiceUnavailable when it must be asked and nobody answers. */
  find(accessKey: string): Promise<Identity | undefined>;
  /** For Owner elements and expected owners. */
  account(accountId: AccountId): Promise<AccountRecord | null>;
}

const ENTRIES_MAX = 10_000;
/** A client signs for one region and service, and at midnight for two days. */
const SIGNING_KEYS_MAX = 4;

interface CachedIdentity extends Identity {
  readonly sealedSecret: WrappedKek;
}

export function createIdentities(deps: {
  metadata: MetadataPort;
  keyring: KeyringPort;
  feed: IdentityFeed;
}): Identities {
  const { metadata, keyring, feed } = deps;
  const identities = new BoundedMap<string, CachedIdentity>(ENTRIES_MAX);
  const accounts = new BoundedMap<AccountId, AccountRecord>(ENTRIES_MAX);
  /** A read during reported changes may be outdated, and is not cached. */
  let tellings = 0;

  feed.listen((changes) => {
    tellings++;
    if (changes === 'all') {
      identities.clear();
      accounts.clear();
      return;
    }
    const changed = new Set(changes.map(({ accountId }) => accountId));
    identities.deleteWhere(({ account }) => changed.has(account.accountId));
    for (const accountId of changed) accounts.delete(accountId);
  });

  return {
    async find(accessKey) {
      const cached = identities.get(accessKey);
      if (cached !== undefined && feed.isCurrent()) return cached;
      const tellingsBefore = tellings;
      const found = requireDone(
        await metadata.query({ shard: SYSTEM_SHARD }, 'get-access-key', { accessKey }),
      );
      // Keys of users: what they may do, policies say, and authorize.ts judges by accounts.
      if (found.kind === 'unknown' || found.principal !== undefined) {
        identities.delete(accessKey);
        return undefined;
      }
      const { sealedSecret } = found.accessKey;
      // The same secret keeps its signing keys.
      const keys: Keys =
        cached !== undefined && equalBytes(cached.sealedSecret.wrapped, sealedSecret.wrapped)
          ? { signingKey: cached.signingKey, secret: cached.secret }
          : makeKeys(keyring.unwrap(sealedSecret));
      const identity = { accessKey, account: found.account, ...keys, sealedSecret };
      if (tellings === tellingsBefore) identities.set(accessKey, identity);
      return identity;
    },
    async account(accountId) {
      const cached = accounts.get(accountId);
      if (cached !== undefined && feed.isCurrent()) return cached;
      const tellingsBefore = tellings;
      const { account } = requireDone(
        await metadata.query({ shard: SYSTEM_SHARD }, 'get-account', { accountId }),
      );
      if (account === null) accounts.delete(accountId);
      else if (tellings === tellingsBefore) accounts.set(accountId, account);
      return account;
    },
  };
}

/** Takes the secret over: what is left of it in the clear is wiped, and only KeyObjects stay. */
function makeKeys(secret: Uint8Array): Keys {
  assert(secret.length > 0, 'a secret key is not empty');
  const initialBytes = Buffer.concat([Buffer.from('AWS4'), asBuffer(secret)]);
  const initialKey = createSecretKey(initialBytes);
  const secretKey = createSecretKey(secret);
  initialBytes.fill(0);
  secret.fill(0);
  return { signingKey: makeSigner(initialKey), secret: secretKey };
}

function makeSigner(initialKey: KeyObject): Identity['signingKey'] {
  const signingKeys = new BoundedMap<string, KeyObject>(SIGNING_KEYS_MAX);
  return (scope) => {
    let key = signingKeys.get(scope.text);
    if (key === undefined) {
      key = createSecretKey(
        [scope.date, scope.region, scope.service, 'aws4_request'].reduce<Buffer | KeyObject>(
          hmac,
          initialKey,
        ) as Buffer,
      );
      signingKeys.set(scope.text, key);
    }
    return key;
  };
}

function hmac(key: Buffer | KeyObject, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
