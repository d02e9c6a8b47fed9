// R23, A16: after a shard was recovered from one replica, each other shard reports the link claims that it holds on the
// shard's blobs, and the shard reports those that it holds on theirs. Runs where the shard is led, until all have reported.
// Progress is kept in memory: what fails is continued, and what is under way when the process ends is sent again.

import type { AskedClaim, ClaimVerdict, HeldClaim } from '../../ports/metadata/blobs.ts';
import type { CommandOf } from '../../ports/metadata/port.ts';
import type { Worker } from '../../ports/worker.ts';
import { type BlobId, homeShardOf } from '../../types/names.ts';
import { finishLeft } from '../workers/late-items.ts';
import { type AskingWorkDeps, createOtherShards, ofOwn } from '../workers/other-shards.ts';
import { createShardWorker, doneValue } from '../workers/shard-worker.ts';

const PAGE = 250;
const IDLE_MS = 5000;
/** Shards that report their link claims at once. */
const HOLDERS_MAX = 8;

/** Of a shard whose history is not confirmed. */
interface Progress {
  incarnation: number;
  /** Behind which claim each of the other shards goes on; absent: it has not begun. */
  reached: Map<number, BlobId>;
  /** What the shard itself holds. */
  own: { after?: BlobId; isThrough: boolean; behind: Map<number, BlobId | undefined> };
}

/** When the shard whose work it is does not answer, that says nothing of the other one. */
function of<T>({ shard, own }: { shard: number; own: number }, work: Promise<T>): Promise<T> {
  return shard === own ? ofOwn(work) : work;
}

export function createClaimAssertion(deps: AskingWorkDeps): Worker {
  const { metadata, shards, log } = deps;
  const others = createOtherShards(deps.clock);
  const progress = new Map<number, Progress>();

  /**
   * Asks `holder` again, after its home has noted the claims, which of the pending ones it still holds. One that it no
   * longer holds is dropped by R30 alone, which knows when no commit of that shard can use it: here the shard might be one
   * that has lost the end of its history meanwhile.
   */
  async function askAgain(
    { holder, own }: { holder: number; own: number },
    pending: readonly AskedClaim[],
  ): Promise<ClaimVerdict[]> {
    if (pending.length === 0) return [];
    const names = pending.map(({ blobId, linkId }) => ({ blobId, linkId }));
    const resolved = metadata.query({ shard: holder }, 'resolve-claims', { claims: names }).then(doneValue);
    const { held } = await of({ shard: holder, own }, resolved);
    return pending.flatMap((claim, at): ClaimVerdict[] =>
      held[at] === true ? [{ ...claim, verdict: 'confirmed' }] : [],
    );
  }

  /** Sends `claims`, which `holder` has just reported, to `home`. `own`: the shard whose work this is. */
  async function assertPage(
    { home, holder, own }: { home: number; holder: number; own: number },
    claims: HeldClaim[],
  ): Promise<void> {
    if (claims.length === 0) return;
    const command = { shard: holder, claims };
    const asserted = metadata.execute({ shard: home }, 'assert-links', command).then(doneValue);
    const { gone, pending = [] } = await of({ shard: home, own }, asserted);
    if (gone.length > 0) log.error({ home, holder, blobIds: gone }, 'held-blobs-are-gone');
    const confirmed = await askAgain({ holder, own }, pending);
    if (confirmed.length === 0) return;
    const settle = (command: CommandOf<'settle-claims'>) =>
      of({ shard: home, own }, metadata.execute({ shard: home }, 'settle-claims', command).then(doneValue));
    const { left = [] } = await settle({ claims: confirmed, leavesBusy: true });
    await finishLeft(left, (claim) => settle({ claims: [claim] }));
  }

  async function listPage(holder: number, from: { homeShard?: number; after?: BlobId | undefined }) {
    const { homeShard, after } = from;
    const query = { limit: PAGE, ...(homeShard !== undefined && { homeShard }), ...(after && { after }) };
    return doneValue(await metadata.query({ shard: holder }, 'list-claims', query));
  }

  /**
   * Sends a page of what `shard` may have released in the history that was given up, and holds again. True: all homes have
   * all of it.
   */
  async function assertOwn(shard: number, { own }: Progress, signal: AbortSignal): Promise<boolean> {
    const { after, isThrough, behind } = own;
    if (isThrough) {
      await askEach({ shard, signal }, behind, async (homeShard, from) => {
        const { claims, next } = await ofOwn(listPage(shard, { homeShard, after: from }));
        await assertPage({ home: homeShard, holder: shard, own: shard }, claims);
        if (next === undefined) behind.delete(homeShard);
        else behind.set(homeShard, next);
      });
      return behind.size === 0;
    }
    const { claims, next } = await listPage(shard, { after });
    const byHome = Map.groupBy(claims, ({ blobId }) => homeShardOf(blobId));
    for (const home of behind.keys()) byHome.delete(home);
    const asserted = new Set<number>();
    await askEach({ shard, signal }, byHome, async (home, its) => {
      await assertPage({ home, holder: shard, own: shard }, its);
      asserted.add(home);
    });
    // These get the rest at their own pace: the others do not wait for them.
    for (const home of byHome.keys()) if (!asserted.has(home)) behind.set(home, after);
    own.isThrough = next === undefined;
    if (next !== undefined) own.after = next;
    return own.isThrough && behind.size === 0;
  }

  function hasMore({ own: { isThrough, behind } }: Progress): boolean {
    return !isThrough || behind.size === 0 || [...behind.keys()].some((home) => !others.isAway(home));
  }

  /** Collects a page of what `holder` holds of `home`. True: it was the last one. */
  async function collectFrom(
    holder: number,
    home: number,
    { reached, incarnation }: Progress,
  ): Promise<boolean> {
    const after = reached.get(holder);
    // First: what is listed behind this entry is all that there will ever be of earlier claims.
    const command = { homeShard: home, incarnation };
    if (after === undefined) doneValue(await metadata.execute({ shard: holder }, 'learn-history', command));
    const { claims, next } = await listPage(holder, { homeShard: home, after });
    await assertPage({ home, holder, own: home }, claims);
    if (next !== undefined) reached.set(holder, next);
    return next === undefined;
  }

  /** Names this history: a late message may arrive in a later one, to which that holder has reported nothing yet. */
  async function note(shard: number, holder: number, { incarnation }: Progress): Promise<void> {
    const command = { shard: holder, incarnation };
    await ofOwn(metadata.execute({ shard }, 'note-asserted', command).then(doneValue));
    log.info({ shard, holder }, 'claims-asserted');
  }

  function askEach<Part>(
    { shard, signal }: { shard: number; signal: AbortSignal },
    parts: ReadonlyMap<number, Part>,
    ask: (other: number, part: Part) => Promise<void>,
  ): Promise<void> {
    return others.askEach(parts, async (other, part) => {
      try {
        await ask(other, part);
      } catch (error) {
        if (!signal.aborted) log.warn({ err: error, shard, other }, 'claims-not-asserted');
        throw error;
      }
    });
  }

  function progressOf(shard: number, incarnation: number): Progress {
    const known = progress.get(shard);
    if (known?.incarnation === incarnation) return known;
    const own = { isThrough: false, behind: new Map<number, BlobId | undefined>() };
    const begun = { incarnation, reached: new Map<number, BlobId>(), own };
    progress.set(shard, begun);
    return begun;
  }

  return createShardWorker({
    name: 'assert-claims',
    shards,
    idleMs: IDLE_MS,
    async unit(shard, signal) {
      const { history } = doneValue(await metadata.query({ shard }, 'get-history', {}));
      if (history === null || history.confirmedAtMs !== undefined) {
        progress.delete(shard);
        return false;
      }
      const come = progressOf(shard, history.incarnation);
      const all = Array.from({ length: metadata.shardCount }, (_, other) => other);
      const left = all.filter((other) => !history.assertedBy.includes(other));
      const asked = left.filter((other) => other !== shard && !others.isAway(other)).slice(0, HOLDERS_MAX);
      let assertedCount = 0;
      await askEach({ shard, signal }, new Map(asked.map((holder) => [holder, holder])), async (holder) => {
        if (await collectFrom(holder, shard, come)) await note(shard, holder, come);
        assertedCount++;
      });
      signal.throwIfAborted();
      if (left.includes(shard) && hasMore(come)) {
        if (await assertOwn(shard, come, signal)) await note(shard, shard, come);
        assertedCount++;
      }
      return assertedCount > 0;
    },
  });
}
