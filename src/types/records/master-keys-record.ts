// Which master keys a cluster uses, as a row of the system shard: its gateways have the keys, in files of their own.
import { defineRecord } from '../../base/record-codec.ts';

export interface MasterKeysRecord {
  /** 1 at first, one more with each change. */
  revision: number;
  /** By which all gateways wrap. */
  activeKeyId: string;
  /** Keys that stored keys may still be wrapped by, the oldest first; empty: no rotation is under way. */
  olderKeyIds: readonly string[];
  /** The last `REMOVED_KEYS_MAX` that gateways take out of their files. */
  removedKeyIds: readonly string[];
  /**
   * No stored key has needed the older ones since then, ms of wall time, as long as this is the `mark` of the gateways. Absent:
   * they are needed, or it is not known.
   */
  unused?: { sinceMs: number; mark: string };
  /** How far the pass that is under way has come, noted now and then. */
  shardsDone: number;
  /** Keys that this rotation has wrapped anew. */
  rewrappedCount: number;
}
export const masterKeysCodec = defineRecord<MasterKeysRecord>({ name: 'master-keys', version: 1 });

export const REMOVED_KEYS_MAX = 32;

/** What a gateway says of its master keys. */
export interface HeldMasterKeys {
  /** Those that it can unwrap with. */
  keyIds: readonly string[];
  /** It wraps by this one, and so do all requests that it has under way. */
  settledKeyId?: string;
}
