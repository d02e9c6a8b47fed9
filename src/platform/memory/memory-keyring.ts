// Master keys in memory: the keyring itself, for tests and simulation as it is, and under file-keyring.ts.
import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { assert, must } from '../../base/assert.ts';
import { KEY_BYTES, NONCE_BYTES, openBytes, sealBytes } from '../../base/crypto/aead.ts';
import type { RandomPort } from '../../ports/clock.ts';
import type { ChangeableKeyring } from '../../ports/keyring.ts';
import { AppError } from '../../types/errors.ts';
import { systemRandom } from '../system-clock.ts';

/** Which keys there are: what a keyring keeps. */
export interface MasterKeys {
  activeKeyId: string;
  /** By id, in the order of their making. */
  keys: ReadonlyMap<string, Uint8Array>;
}

export interface KeyringOptions {
  /** Default: one new key. */
  initial?: MasterKeys;
  /** Makes a change durable; the keyring changes only when it resolves. Default: nothing to do. */
  save?(keys: MasterKeys): Promise<void>;
  /** Of nonces. Default: the system's. */
  random?: RandomPort;
}

/** A keyring that has what another thread tells it, which makes all changes. */
export interface FollowingKeyring extends ChangeableKeyring {
  follow(keys: MasterKeys): void;
}

export function createKeyring(options: KeyringOptions = {}): FollowingKeyring {
  const { initial = newMasterKeys(), save, random = systemRandom } = options;
  let current = initial;
  // One change after the other: each is made to what the one before has saved.
  let lastChange: Promise<unknown> = Promise.resolve();

  function change(next: () => MasterKeys): Promise<void> {
    const done = lastChange.then(async () => {
      const keys = next();
      await save?.(keys);
      current = keys;
    });
    lastChange = done.catch(() => {});
    return done;
  }

  const keyObjects = new WeakMap<Uint8Array, KeyObject>();
  function keyOf(keyId: string): KeyObject | undefined {
    const key = current.keys.get(keyId);
    let object = key && keyObjects.get(key);
    if (key !== undefined && object === undefined) {
      object = createSecretKey(key);
      keyObjects.set(key, object);
    }
    return object;
  }

  return {
    wrap(kek) {
      const keyId = current.activeKeyId;
      const key = must(keyOf(keyId), 'the active key is on the ring');
      const nonce = random.bytes(NONCE_BYTES);
      return {
        by: 'master',
        keyId,
        wrapped: sealBytes({ key, nonce, context: contextOf(keyId), plaintext: kek }),
      };
    },
    unwrap({ by, keyId, wrapped }) {
      const key = by === 'master' ? keyOf(keyId) : undefined;
      const kek = key && openBytes({ key, context: contextOf(keyId), sealed: wrapped });
      if (kek === undefined)
        throw new AppError('InternalError', { cause: new Error(`a key wrapped by ${keyId} does not open`) });
      return kek;
    },
    get activeKeyId() {
      return current.activeKeyId;
    },
    keyIds: () => [...current.keys.keys()],
    follow(keys) {
      current = keys;
    },
    async addKey() {
      const { keyId, key } = newKey();
      await change(() => ({ activeKeyId: keyId, keys: new Map(current.keys).set(keyId, key) }));
      return keyId;
    },
    removeKey: (keyId) =>
      change(() => {
        assert(keyId !== current.activeKeyId, 'the active master key stays');
        const keys = new Map(current.keys);
        keys.delete(keyId);
        return { ...current, keys };
      }),
  };
}

/** As they are told to another thread. */
export interface MasterKeyList {
  readonly activeKeyId: string;
  readonly keys: readonly (readonly [keyId: string, key: Uint8Array])[];
}

export function newMasterKeys(): MasterKeys {
  const { keyId, key } = newKey();
  return { activeKeyId: keyId, keys: new Map([[keyId, key]]) };
}

function newKey(): { keyId: string; key: Uint8Array } {
  return { keyId: randomBytes(8).toString('hex'), key: randomBytes(KEY_BYTES) };
}

/** A wrapped key names its master key, and cannot be passed off as wrapped by another. */
function contextOf(keyId: string): string {
  return `holdfast master key ${keyId}`;
}
