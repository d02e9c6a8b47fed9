// R23, A16: after a shard has gone on with what one replica had left, each other shard tells it which of its blobs it holds,
// and it tells the others what it holds of theirs. Runs where the shard is led, until all have told; what is under way
// when its process ends is told again.
import { homeShardOf } from '../../model/names.ts';
import type { CommandOf, MetadataPort } from '../../ports/metadata.ts';
import type { HeldClaim } from '../../ports/metadata-commands.ts';
import type { Logger } from '../../ports/telemetry.ts';
import type { Worker } from '../../ports/worker.ts';
import { createShardWorker, doneValue } from './shard-worker.ts';

const PAGE = 250;
const IDLE_MS = 5000;

type Settled = CommandOf<'settle-claims'>['claims'][number];

export function createClaimAssertion(deps: {
  metadata: MetadataPort;
  shards(): readonly number[];
  log: Logger;
}): Worker {
  const { metadata, shards, log } = deps;

  /** `claims` of blobs of `home`, as `holder` has just told them. */
  async function assertPage(home: number, holder: number, claims: HeldClaim[]): Promise<void> {
    if (claims.length === 0) return;
    const asserted = await metadata.execute({ shard: home }, 'assert-links', { shard: holder, claims });
    const { gone } = doneValue(asserted);
    if (gone.length > 0) log.error({ home, holder, blobIds: gone }, 'held-blobs-are-gone');
    const names = claims.map(({ blobId, linkId }) => ({ blobId, linkId }));
    const resolved = await metadata.query({ shard: holder }, 'resolve-claims', { claims: names });
    const { held } = doneValue(resolved);
    // It was held a moment ago: a claim that is not held any more was released, and is made by nobody again (R29).
    const settled = names.map(
      (name, at): Settled => ({ ...name, verdict: held[at] === true ? 'confirmed' : 'dropped' }),
    );
    doneValue(await metadata.execute({ shard: home }, 'settle-claims', { claims: settled }));
  }

  async function eachPage(
    holder: number,
    homeShard: number | undefined,
    take: (claims: HeldClaim[]) => Promise<void>,
  ): Promise<void> {
    for (let query = { limit: PAGE, ...(homeShard !== undefined && { homeShard }) }; ; ) {
      const { claims, next } = doneValue(await metadata.query({ shard: holder }, 'list-claims', query));
      await take(claims);
      if (next === undefined) return;
      query = { ...query, ...{ after: next } };
    }
  }

  /** What `shard` may have released in the history that is given up, and holds again. */
  const assertOwn = (shard: number) =>
    eachPage(shard, undefined, async (claims) => {
      for (const [home, ofHome] of Map.groupBy(claims, ({ blobId }) => homeShardOf(blobId)))
        await assertPage(home, shard, ofHome);
    });

  async function assertOf(holder: number, home: number, incarnation: number): Promise<void> {
    // First: what is listed behind this entry is all that there will ever be of earlier claims.
    const learned = await metadata.execute({ shard: holder }, 'learn-history', {
      homeShard: home,
      incarnation,
    });
    doneValue(learned);
    await eachPage(holder, home, (claims) => assertPage(home, holder, claims));
  }

  return createShardWorker({
    name: 'assert-claims',
    shards,
    idleMs: IDLE_MS,
    async unit(shard) {
      const { history } = doneValue(await metadata.query({ shard }, 'get-history', {}));
      if (history === null || history.confirmedAtMs !== undefined) return false;
      const all = Array.from({ length: metadata.shardCount }, (_, other) => other);
      const next = all.find((other) => !history.assertedBy.includes(other));
      if (next === undefined) return false;
      if (next === shard) await assertOwn(shard);
      else await assertOf(next, shard, history.incarnation);
      doneValue(await metadata.execute({ shard }, 'note-asserted', { shard: next }));
      log.info({ shard, holder: next }, 'claims-asserted');
      return true;
    },
  });
}
