// Master keys. Only key material that protects other keys passes here; bodies never do.
import type { HeldMasterKeys, MasterKeysRecord } from '../types/records/master-keys-record.ts';
import type { WrappedKek } from '../types/version.ts';

export interface KeyringPort {
  /** Wraps 32 bytes with the active master key. */
  wrap(kek: Uint8Array): WrappedKek;
  /**
   * Bytes that are the caller's own, to wipe if it likes. Throws AppError InternalError (logged) when the key is unknown
   * or the bytes are not ours.
   */
  unwrap(wrapped: WrappedKek): Uint8Array;
  readonly activeKeyId: string;
  keyIds(): readonly string[];
}

/** Of a single node. */
export interface ChangeableKeyring extends KeyringPort {
  /** Adds a master key and makes it the active one, durably, before it returns. */
  addKey(): Promise<string>;
  /** Removes a master key that no record refers to any more; the active one is refused. */
  removeKey(keyId: string): Promise<void>;
}

/** Of a gateway of a cluster: its file says which keys it has, the record of the system shard which one wraps. */
export interface ClusterKeyring extends KeyringPort {
  /** What it says of itself with its questions for changes (`identity-changes`). */
  held(): HeldMasterKeys;
  /** From now on it wraps by this record's active key. */
  learn(record: MasterKeysRecord): void;
  /** Keys of the file that were neither used nor removed yet, in the order of their making. */
  newKeyIds(): readonly string[];
  /** The record that it has learned last. */
  record(): MasterKeysRecord | undefined;
}
