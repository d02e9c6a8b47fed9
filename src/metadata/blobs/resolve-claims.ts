// R30, for the blobs' home: asks the claiming shards what became of claims that nobody has confirmed. One that is held
// is confirmed; one that is not, and that no commit can use any more, is dropped; the others are asked about later.

import type { ClaimVerdict, PendingClaim } from '../../ports/metadata/blobs.ts';
import type { ResultOf } from '../../ports/metadata/port.ts';
import type { Worker } from '../../ports/worker.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { idTimeMs } from '../../types/names.ts';
import { createLateItems } from '../workers/late-items.ts';
import { type AskingWorkDeps, createOtherShards, ofOwn } from '../workers/other-shards.ts';
import { createQueueCursors, createShardWorker, doneValue } from '../workers/shard-worker.ts';
import { linkText } from './links.ts';

const BATCH = 250;
const IDLE_MS = 60_000;
const LOOK_WHOLE_EVERY_MS = 24 * 60 * 60_000;
/** A claim is made within a day of its link id: looks need not go back further than the oldest open one and this. */
const LOOK_BACK_MS = LIMITS.linkIdAgeMaxMs + 60 * 60_000;

export function createClaimResolver(deps: AskingWorkDeps): Worker {
  const { metadata, shards, log } = deps;
  const cursors = createQueueCursors();
  const others = createOtherShards(deps.clock);
  const late = createLateItems<ClaimVerdict>(linkText);

  const lookedWholeAtMs = new Map<number, number>();

  /** Once a day all of it: claims of any age come back where a shard goes on from an earlier state (assert-claims.ts). */
  function hasLooked(
    shard: number,
    { timeMs, oldestOpenMs }: { timeMs: number; oldestOpenMs: number },
  ): void {
    const sinceMs = timeMs - (lookedWholeAtMs.get(shard) ?? Number.NEGATIVE_INFINITY);
    if (sinceMs < LOOK_WHOLE_EVERY_MS) {
      cursors.advance(shard, Math.max(0, Math.min(oldestOpenMs, timeMs - LOOK_BACK_MS)));
      return;
    }
    cursors.forget(shard);
    lookedWholeAtMs.set(shard, timeMs);
  }

  /** What the claiming shard says; nothing of claims that it may still commit. */
  async function ask(shard: number, claims: readonly PendingClaim[]): Promise<ClaimVerdict[]> {
    // The time first, the look-up second: what is not held at a committed time past its age never will be.
    const tick = await metadata.execute({ shard }, 'tick', {});
    if (tick.kind !== 'done') throw new AppError('ServiceUnavailable');
    const names = claims.map(({ blobId, linkId }) => ({ blobId, linkId }));
    const { held } = doneValue(await metadata.query({ shard }, 'resolve-claims', { claims: names }));
    return claims.flatMap(({ blobId, linkId, nonce }, at): ClaimVerdict[] => {
      // The claim was pending before the question: the verdict is about it, and says so (apply-claim-verdicts.ts).
      const asked = { blobId, linkId, ...(nonce !== undefined && { nonce }) };
      if (held[at]) return [{ ...asked, verdict: 'confirmed' }];
      const isTooLate = tick.timeMs - idTimeMs(linkId) > LIMITS.linkIdAgeMaxMs;
      return isTooLate ? [{ ...asked, verdict: 'dropped' }] : [];
    });
  }

  /** Resolves a page of claims; returns those that stay open, or whose outcome is unknown. */
  async function sendVerdicts(
    shard: number,
    page: readonly PendingClaim[],
    signal: AbortSignal,
  ): Promise<PendingClaim[]> {
    const open = new Map(page.map((claim) => [linkText(claim), claim]));
    await others.askEach(
      Map.groupBy(page, (claim) => claim.shard),
      async (claimingShard, asked) => {
        try {
          const claims = await ask(claimingShard, asked);
          if (claims.length === 0) return;
          const command = { claims, leavesBusy: true } as const;
          const settled = metadata.execute({ shard }, 'settle-claims', command).then(doneValue);
          const left = new Map((await ofOwn(settled)).left?.map((claim) => [linkText(claim), claim]));
          // Their nonce says what they are about, however late they come.
          late.begin(shard, [...left.values()], (claim) =>
            metadata.execute({ shard }, 'settle-claims', { claims: [claim] }),
          );
          // One without a nonce has got one by this, and is asked about once more.
          for (const claim of claims) {
            if (claim.nonce !== undefined && !left.has(linkText(claim))) open.delete(linkText(claim));
          }
        } catch (error) {
          const fields = { err: error, shard, claimingShard, count: asked.length };
          if (!signal.aborted) log.warn(fields, 'claims-not-resolved');
          throw error;
        }
      },
    );
    return [...open.values()];
  }

  return createShardWorker({
    name: 'resolve-claims',
    shards,
    idleMs: IDLE_MS,
    async unit(shard, signal) {
      let oldestOpenMs = Number.POSITIVE_INFINITY;
      let after: ResultOf<'list-pending-claims'>['next'];
      do {
        signal.throwIfAborted();
        const query = {
          ...cursors.from(shard),
          ...(after && { after }),
          olderThanMs: LIMITS.claimResolveAfterMs,
          limit: BATCH,
        };
        const reply = await metadata.query({ shard }, 'list-pending-claims', query);
        const { claims, next } = doneValue(reply);
        for (const { linkId } of await sendVerdicts(shard, claims, signal)) {
          oldestOpenMs = Math.min(oldestOpenMs, idTimeMs(linkId));
        }
        after = next;
        if (after === undefined && reply.kind === 'done')
          hasLooked(shard, { timeMs: reply.timeMs, oldestOpenMs });
      } while (after !== undefined);
      return false;
    },
  });
}
