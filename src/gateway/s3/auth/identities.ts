// Who an access key belongs to, and its secret in the clear for as short as signatures need it. A cache in front of the
// system shard: entries are read again when they are older than a second, unknown keys always (R46).
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { assert } from '../../../lib/assert.ts';
import { BoundedMap } from '../../../lib/bounded-map.ts';
import { asBuffer, equalBytes } from '../../../lib/bytes.ts';
import type { AccountId } from '../../../model/names.ts';
import type { AccountRecord } from '../../../model/records/rows.ts';
import { settleReply } from '../../../model/settle-reply.ts';
import type { WrappedKek } from '../../../model/version.ts';
import type { ClockPort } from '../../../ports/clock.ts';
import type { KeyringPort } from '../../../ports/keyring.ts';
import { type MetadataPort, SYSTEM_SHARD } from '../../../ports/metadata.ts';
import type { CredentialScope } from './signature-claim.ts';

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
  /** Undefined: no such key. */
  find(accessKey: string): Promise<Identity | undefined>;
  /** For Owner elements and expected owners. */
  account(accountId: AccountId): Promise<AccountRecord | null>;
  /** Everything is read again: an operator has changed something in this process. */
  forget(): void;
}

/** What is cached may lag behind a change made through another gateway by this much. */
const FRESH_MS = 1000;
const ENTRIES_MAX = 10_000;
/** A client signs for one region and service, and at midnight for two days. */
const SIGNING_KEYS_MAX = 4;

interface CachedIdentity extends Identity {
  readonly sealedSecret: WrappedKek;
  readonly readAtMs: number;
}

export function createIdentities(deps: {
  metadata: MetadataPort;
  keyring: KeyringPort;
  clock: ClockPort;
}): Identities {
  const { metadata, keyring, clock } = deps;
  const identities = new BoundedMap<string, CachedIdentity>(ENTRIES_MAX);
  const accounts = new BoundedMap<AccountId, { account: AccountRecord; readAtMs: number }>(ENTRIES_MAX);
  const isFresh = (entry: { readAtMs: number }) => clock.monotonicMs() - entry.readAtMs < FRESH_MS;

  return {
    async find(accessKey) {
      const cached = identities.get(accessKey);
      if (cached !== undefined && isFresh(cached)) return cached;
      const readAtMs = clock.monotonicMs();
      const found = settleReply(
        await metadata.query({ shard: SYSTEM_SHARD }, 'get-access-key', { accessKey }),
      );
      if (found.kind === 'unknown') {
        identities.delete(accessKey);
        return undefined;
      }
      const { sealedSecret } = found.accessKey;
      // The same secret keeps its signing keys.
      const keys: Keys =
        cached !== undefined && equalBytes(cached.sealedSecret.wrapped, sealedSecret.wrapped)
          ? { signingKey: cached.signingKey, secret: cached.secret }
          : makeKeys(keyring.unwrap(sealedSecret));
      const identity = { accessKey, account: found.account, ...keys, sealedSecret, readAtMs };
      identities.set(accessKey, identity);
      return identity;
    },
    async account(accountId) {
      const cached = accounts.get(accountId);
      if (cached !== undefined && isFresh(cached)) return cached.account;
      const readAtMs = clock.monotonicMs();
      const { account } = settleReply(
        await metadata.query({ shard: SYSTEM_SHARD }, 'get-account', { accountId }),
      );
      if (account !== null) accounts.set(accountId, { account, readAtMs });
      return account;
    },
    forget() {
      identities.clear();
      accounts.clear();
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
