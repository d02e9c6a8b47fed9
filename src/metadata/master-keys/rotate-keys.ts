// Key rotation: brings every wrapped key under the active master key, then removes the older master keys.
// It only ever sees wrapped keys: bodies and headers are not sealed anew, because their own keys stay as they are.
// A rotation that a restart interrupted goes on by itself: more than one key on the ring means there is work.

import type { ClockPort } from '../../ports/clock.ts';
import type { KeyringPort } from '../../ports/keyring.ts';
import type { CommandOf, MetadataPort } from '../../ports/metadata/port.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { Worker } from '../../ports/worker.ts';
import { AppError } from '../../types/errors.ts';
import type { WrappedKek } from '../../types/version.ts';
import { finishLeft } from '../workers/late-items.ts';
import { doneValue } from '../workers/shard-worker.ts';

const PAGE_ROWS = 256;
const IDLE_MS = 60_000;
const WAIT_FOR_REQUESTS_MS = 1000;
/** The master key may go when this many passes in a row have found nothing under it. */
const CLEAN_PASSES = 2;

export interface RotationProgress {
  activeKeyId: string;
  /** Master keys that stored keys may still be wrapped by; empty when no rotation is under way. */
  olderKeyIds: readonly string[];
  /** Of the pass that is under way, and all of its shards. */
  shardsDone: number;
  shardCount: number;
  /** Keys wrapped anew since the rotation began (or since this process started). */
  rewrappedCount: number;
  /** True while requests hold up the removal, because they began before a key or a pass was done. */
  isWaitingForRequests: boolean;
}

export interface KeyRotation extends Worker {
  /** Makes a new master key and begins. Throws AppError OperationAborted while a rotation is under way. */
  begin(): Promise<void>;
  progress(): RotationProgress;
}

export function createKeyRotation(deps: {
  metadata: MetadataPort;
  keyring: KeyringPort;
  clock: ClockPort;
  log: Logger;
  /** Monotonic ms at which the oldest request in flight began; undefined when there is none. */
  oldestRequestMs(): number | undefined;
}): KeyRotation {
  const { metadata, keyring, clock, log } = deps;
  const olderKeyIds = () => keyring.keyIds().filter((keyId) => keyId !== keyring.activeKeyId);
  const haveEnded = (begunBeforeMs: number) =>
    (deps.oldestRequestMs() ?? Number.POSITIVE_INFINITY) > begunBeforeMs;

  let rotatedAtMs = clock.monotonicMs();
  let rewrappedCount = 0;
  let cleanPasses = 0;
  let lastPassEndedMs: number | undefined;
  // Nothing is in flight when a process begins.
  let pass = newPass({ canBeLast: true });

  function newPass({ canBeLast }: { canBeLast: boolean }) {
    return { shard: 0, after: undefined as Uint8Array | undefined, foundCount: 0, movesSeen: 0, canBeLast };
  }

  function forgetPasses(): void {
    cleanPasses = 0;
    lastPassEndedMs = undefined;
    pass = newPass({ canBeLast: haveEnded(rotatedAtMs) });
  }

  /** True when the page held nothing at all: the next one costs no more than a look. */
  async function rewrapPage(): Promise<boolean> {
    const envelope = { shard: pass.shard };
    const query = {
      notKeyId: keyring.activeKeyId,
      limit: PAGE_ROWS,
      ...(pass.after && { after: pass.after }),
    };
    const { items, next, scannedCount, moveCounts } = doneValue(
      await metadata.query(envelope, 'list-wrapped-keys', query),
    );
    if (items.length > 0) {
      const each = items.map(({ row, wrapped }) => ({
        row,
        expected: wrapped,
        replacement: rewrap(wrapped),
      }));
      const send = async (command: CommandOf<'rewrap-keys'>) => {
        const { count, left = [] } = doneValue(await metadata.execute(envelope, 'rewrap-keys', command));
        rewrappedCount += count;
        return left;
      };
      const left = await send({ items: each, leavesBusy: true });
      const leftOut = each.filter((_, at) => left.includes(at));
      await finishLeft(leftOut, (item) => send({ items: [item] }));
    }
    pass.foundCount += items.length;
    // A MOVE may have carried an old key past the scan, pass after pass: such a pass has not seen all.
    const [before, after] = moveCounts;
    if (pass.after === undefined) pass.movesSeen = before;
    if (after !== pass.movesSeen) pass.canBeLast = false;
    pass.after = next;
    if (next === undefined) pass.shard++;
    return scannedCount === 0;
  }

  function rewrap(wrapped: WrappedKek): WrappedKek {
    return keyring.wrap(keyring.unwrap(wrapped));
  }

  function endPass(): void {
    // Requests that began before the new key was made may still commit under the old one: a pass counts only when it
    // began after they had ended. And it takes two in a row, because a Complete carries a key from an upload's row to
    // a version's, which the pass may have gone by already.
    cleanPasses = pass.foundCount === 0 && pass.canBeLast ? cleanPasses + 1 : 0;
    lastPassEndedMs = cleanPasses >= CLEAN_PASSES ? clock.monotonicMs() : undefined;
    pass = newPass({ canBeLast: haveEnded(rotatedAtMs) });
  }

  async function removeOlderKeys(): Promise<void> {
    for (const keyId of olderKeyIds()) {
      await keyring.removeKey(keyId);
      log.info({ keyId, rewrappedCount }, 'master-key-removed');
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
      while (!signal.aborted && (await rewrapPage()) && pass.shard < metadata.shardCount);
      if (pass.shard < metadata.shardCount) return { state: 'busy' };
      const isHeldUp = pass.foundCount === 0 && !pass.canBeLast;
      endPass();
      return isHeldUp ? { state: 'idle', idleMs: WAIT_FOR_REQUESTS_MS } : { state: 'busy' };
    },
    async begin() {
      if (olderKeyIds().length > 0) {
        throw new AppError('OperationAborted', { message: 'A rotation of the master key is under way.' });
      }
      const keyId = await keyring.addKey();
      rotatedAtMs = clock.monotonicMs();
      rewrappedCount = 0;
      forgetPasses();
      log.info({ keyId }, 'master-key-added');
    },
    progress: () => ({
      activeKeyId: keyring.activeKeyId,
      olderKeyIds: olderKeyIds(),
      shardsDone: pass.shard,
      shardCount: metadata.shardCount,
      rewrappedCount,
      isWaitingForRequests: olderKeyIds().length > 0 && !haveEnded(lastPassEndedMs ?? rotatedAtMs),
    }),
  };
}
