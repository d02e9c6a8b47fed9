// Key rotation of a single node: brings every wrapped key under the active master key, then removes the older master keys.
// A rotation that a restart interrupted goes on by itself: more than one key on the ring means there is work.

import type { ClockPort } from '../../ports/clock.ts';
import type { ChangeableKeyring } from '../../ports/keyring.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { Worker } from '../../ports/worker.ts';
import { AppError } from '../../types/errors.ts';
import { createRewrapPasses } from './rewrap-passes.ts';

const IDLE_MS = 60_000;
const WAIT_FOR_REQUESTS_MS = 1000;

export interface RotationProgress {
  activeKeyId: string;
  /** Master keys that stored keys may still be wrapped by; empty when no rotation is under way. */
  olderKeyIds: readonly string[];
  /** Of the pass that is under way, and all of its shards. */
  shardsDone: number;
  shardCount: number;
  /** Keys wrapped anew since the rotation began (or, of a single node, since this process started). */
  rewrappedCount: number;
  /** True while requests hold up the removal, because they began before a key or a pass was done. */
  isWaitingForRequests: boolean;
  /** Of a cluster: no stored key needs the older keys any more, and the operator may remove them. */
  isUnused?: boolean;
  /** Of a cluster: in the files of gateways, and not used yet; of the gateway that was asked last. */
  newKeyIds?: readonly string[];
  /** Of a cluster: gateways that lack one of all these keys, by their addresses, with what they lack. */
  lacking?: readonly { gateway: string; keyIds: readonly string[] }[];
}

/** What an operator asks of the master keys. */
export interface KeyRotation {
  /**
   * Begins: a single node makes a new master key, a cluster takes the one that all of its gateways have. Throws AppError
   * OperationAborted while a rotation is under way, or where a gateway lacks the key.
   */
  begin(): Promise<void>;
  progress(): RotationProgress | Promise<RotationProgress>;
  /** Ends the use of an older key. Throws AppError OperationAborted while stored keys may need it, NoSuchEntity where it is none. */
  remove(keyId: string): Promise<void>;
}

/** Of a single node, which removes older keys by itself. */
export interface ServerKeyRotation extends KeyRotation, Worker {
  progress(): RotationProgress;
}

export function createKeyRotation(deps: {
  metadata: MetadataPort;
  keyring: ChangeableKeyring;
  clock: ClockPort;
  log: Logger;
  /** Monotonic ms at which the oldest request in flight began; undefined when there is none. */
  oldestRequestMs(): number | undefined;
}): ServerKeyRotation {
  const { metadata, keyring, clock, log } = deps;
  const olderKeyIds = () => keyring.keyIds().filter((keyId) => keyId !== keyring.activeKeyId);
  const haveEnded = (begunBeforeMs: number) =>
    (deps.oldestRequestMs() ?? Number.POSITIVE_INFINITY) > begunBeforeMs;

  // Nothing is in flight when a process begins.
  let rotatedAtMs = clock.monotonicMs();
  let rewrappedBefore = 0;
  let lastPassEndedMs: number | undefined;
  const settledMark = () => (haveEnded(rotatedAtMs) ? '' : undefined);
  const passes = createRewrapPasses({ metadata, keyring, settledMark });

  function forgetPasses(): void {
    lastPassEndedMs = undefined;
    passes.forget();
  }

  async function removeOlderKeys(): Promise<void> {
    const { rewrappedCount } = passes;
    for (const keyId of olderKeyIds()) {
      await keyring.removeKey(keyId);
      log.info({ keyId, rewrappedCount: rewrappedCount - rewrappedBefore }, 'master-key-removed');
    }
    forgetPasses();
  }

  return {
    name: 'rotate-keys',
    async work(signal) {
      if (olderKeyIds().length === 0) return { state: 'idle', idleMs: IDLE_MS };
      if (lastPassEndedMs !== undefined) {
        // A reader may have fetched a version just before it was wrapped anew.
        if (!haveEnded(lastPassEndedMs)) return { state: 'idle', idleMs: WAIT_FOR_REQUESTS_MS };
        await removeOlderKeys();
        return { state: 'busy' };
      }
      const state = await passes.work(signal);
      if (state === 'clean') lastPassEndedMs = clock.monotonicMs();
      return state === 'held-up' ? { state: 'idle', idleMs: WAIT_FOR_REQUESTS_MS } : { state: 'busy' };
    },
    async begin() {
      if (olderKeyIds().length > 0) throw underWay();
      const keyId = await keyring.addKey();
      rotatedAtMs = clock.monotonicMs();
      rewrappedBefore = passes.rewrappedCount;
      forgetPasses();
      log.info({ keyId }, 'master-key-added');
    },
    async remove(keyId) {
      if (!olderKeyIds().includes(keyId)) throw noOlderKey(keyId);
      const message = 'Stored keys may need it. A single node removes it by itself when none does.';
      throw new AppError('OperationAborted', { message });
    },
    progress: () => ({
      activeKeyId: keyring.activeKeyId,
      olderKeyIds: olderKeyIds(),
      shardsDone: passes.shardsDone,
      shardCount: metadata.shardCount,
      rewrappedCount: passes.rewrappedCount - rewrappedBefore,
      isWaitingForRequests: olderKeyIds().length > 0 && !haveEnded(lastPassEndedMs ?? rotatedAtMs),
    }),
  };
}

function underWay(): AppError {
  return new AppError('OperationAborted', { message: 'A rotation of the master key is under way.' });
}

/** The refusal to remove what is no older key. */
export function noOlderKey(keyId: string): AppError {
  return new AppError('NoSuchEntity', { message: `${keyId} is not one of the older master keys.` });
}
