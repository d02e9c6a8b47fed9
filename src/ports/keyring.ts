// Master keys. Only key material that protects other keys passes here; bodies never do.
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
  /** Adds a master key and makes it the active one, durably, before it returns. */
  addKey(): Promise<string>;
  /** Removes a master key that no record refers to any more; the active one is refused. */
  removeKey(keyId: string): Promise<void>;
}
