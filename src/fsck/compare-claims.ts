// Data of one shard that lives in another (R27 to R30): the home's claim and the claiming shard's foreign row, both ways.
// The two are read one after the other, so what does not agree is looked at again where it began: work on its way has
// moved on by then, or stands in the outbox.

import type { ClaimFact, ForeignFact } from '../ports/metadata/checks.ts';
import type { FindingKind } from '../types/findings.ts';
import type { BlobId, LinkId } from '../types/names.ts';
import type { BlobRecord, OutboxRecord } from '../types/records/rows.ts';
import { isLaidWithin } from '../types/version.ts';
import type { FsckRun } from './run.ts';

const OUTBOX_ROWS = 250;

interface LinkName {
  blobId: BlobId;
  linkId: LinkId;
}

const nameOf = ({ blobId, linkId }: LinkName): LinkName => ({ blobId, linkId });

/** Claims on blobs of `home`: a confirmed one is held by its shard, or given back by a message on its way (R29). */
export async function compareClaims(run: FsckRun, home: number, claims: readonly ClaimFact[]): Promise<void> {
  // A pending claim may never be used: it is in its queue, which is compared, until it is resolved (R30).
  const confirmed = claims.filter(({ state }) => state === 'confirmed');
  for (const [shard, ofShard] of Map.groupBy(confirmed, (claim) => claim.shard)) {
    const { held } = await run.ask(shard, 'resolve-claims', { claims: ofShard.map(nameOf) });
    let orphans = ofShard.filter((_, at) => held[at] !== true);
    if (orphans.length === 0) continue;
    const released = await findInOutbox(run, shard, ({ record }) =>
      record.kind === 'release-link' ? `${record.blobId} ${record.linkId}` : undefined,
    );
    orphans = orphans.filter(({ blobId, linkId }) => !released.has(`${blobId} ${linkId}`));
    const { links } = await run.ask(home, 'get-links', { links: orphans.map(nameOf) });
    for (const [at, { blobId, linkId }] of orphans.entries()) {
      if (links[at] === null) continue;
      run.found('claim-orphaned', {
        shard: home,
        blob: blobId,
        link: linkId,
        note: `claimed by shard ${shard}`,
      });
    }
  }
}

/** Foreign rows of `shard`: the home has the claim that they stand on, and the data. */
export async function compareForeign(
  run: FsckRun,
  shard: number,
  rows: readonly ForeignFact[],
): Promise<void> {
  for (const [home, ofHome] of Map.groupBy(rows, ({ homeShard }) => homeShard)) {
    const links = ofHome.map(nameOf);
    const claims = (await run.ask(home, 'get-links', { links })).links;
    const { blobs } = await run.ask(home, 'get-blobs', { blobIds: ofHome.map(({ blobId }) => blobId) });
    const suspects = ofHome.flatMap((row, at): { row: ForeignFact; problem: FindingKind }[] => {
      const claim = claims[at];
      const isClaimed = claim !== null && claim?.state !== 'own' && claim?.shard === shard;
      const problem = isClaimed ? blobProblem(row, blobs[at] ?? null) : 'claim-missing';
      return problem === undefined ? [] : [{ row, problem }];
    });
    if (suspects.length === 0) continue;
    const query = { claims: suspects.map(({ row }) => nameOf(row)) };
    const { held } = await run.ask(shard, 'resolve-claims', query);
    for (const [at, { row, problem }] of suspects.entries()) {
      const { blobId, linkId } = row;
      if (held[at]) run.found(problem, { shard, blob: blobId, link: linkId, note: `home is shard ${home}` });
    }
  }
}

function blobProblem({ layout }: ForeignFact, blob: BlobRecord | null): FindingKind | undefined {
  if (blob === null) return 'blob-missing';
  if (blob.condemnedAtMs !== undefined) return 'blob-condemned';
  return blob.kind === layout.kind && isLaidWithin(layout, blob) ? undefined : 'layout-differs';
}

/** What `textOf` makes of a shard's messages. */
export async function findInOutbox(
  run: FsckRun,
  shard: number,
  textOf: (item: { record: OutboxRecord }) => string | undefined,
): Promise<Set<string>> {
  const texts = new Set<string>();
  for (let after = {}; ; ) {
    const { items } = await run.ask(shard, 'list-outbox', { ...after, limit: OUTBOX_ROWS });
    for (const item of items) {
      const text = textOf(item);
      if (text !== undefined) texts.add(text);
    }
    const last = items.at(-1);
    if (last === undefined || items.length < OUTBOX_ROWS) return texts;
    after = { after: last.id };
  }
}
