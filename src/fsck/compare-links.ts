// Every link of a shard's own versions, parts and manifests against those that hold it. Uses come in the order of keys,
// links in the order of blobs: a window of links is held in memory and ticked off by a pass over all uses. Memory is
// bounded by the window; the cost is one pass over the shard's versions per window.
import { asBuffer, concatBytes, toHex } from '../base/bytes/bytes.ts';
import type { BucketUsage, CheckedTable } from '../ports/metadata/checks.ts';
import type { BlobId, BucketId, LinkId } from '../types/names.ts';
import { compareClaims } from './compare-claims.ts';
import { comparePieceUses } from './compare-pieces.ts';
import { createBatch, type FsckRun } from './run.ts';

const LINK_BYTES = 32;
/** 16 MiB of links: beyond that many in one shard its versions are walked again. */
const WINDOW_LINKS = 500_000;
const BATCH = 1000;
/** Of a query that walks all versions, and before that looks them up without a rest. */
const UNMET_BATCH = 5000;

/**
 * Who holds links. In this order: what holds a link may hand it on to what is walked later (Complete: from a part to a
 * page or a version), and only a rename hands it back, from a key to one that was walked before. Links that were not met
 * and are there still are therefore few, and looked for in all of it at one moment.
 */
const OWNERS: readonly CheckedTable[] = ['parts', 'manifestPages', 'objects'];

/** Compares them, reports all that is wrong with their owners, and gives what the versions add up to. */
export async function compareLinks(
  run: FsckRun,
  shard: number,
  windowLinks = WINDOW_LINKS,
): Promise<BucketUsage[]> {
  const usage = new Map<BucketId, BucketUsage>();
  const links = readLinks(run, shard, windowLinks);
  let isFirst = true;
  for await (const window of links) {
    for (const table of OWNERS) {
      for await (const { facts, findings } of run.pages(shard, table)) {
        window.tick(facts.uses);
        if (!isFirst) continue;
        run.foundAll(findings);
        await comparePieceUses(run, facts.pieceUses);
        for (const some of facts.usage) addUsage(usage, some);
      }
    }
    isFirst = false;
    const isWhole = OWNERS.every((table) => !run.isUnreadable(shard, table));
    if (isWhole) await reportOrphans(run, shard, window.unticked());
  }
  return [...usage.values()];
}

/** Windows of the shard's own links, at least one. Claims of other shards are compared on the way. */
async function* readLinks(run: FsckRun, shard: number, windowLinks: number): AsyncGenerator<LinkWindow> {
  let pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  let hasYielded = false;
  for await (const { facts, findings } of run.pages(shard, 'links')) {
    run.foundAll(findings);
    await compareClaims(run, shard, facts.claims);
    pieces.push(facts.ownLinks);
    sizeBytes += facts.ownLinks.length;
    if (sizeBytes < windowLinks * LINK_BYTES) continue;
    yield new LinkWindow(concatBytes(...pieces));
    hasYielded = true;
    pieces = [];
    sizeBytes = 0;
  }
  if (!hasYielded || sizeBytes > 0) yield new LinkWindow(concatBytes(...pieces));
}

/** Those that are there and held by nobody: the others have ended since, or were renamed behind the back of the walk. */
async function reportOrphans(run: FsckRun, shard: number, names: Iterable<LinkName>): Promise<void> {
  const unmet = createBatch<LinkName>(async (some) => {
    const { links } = await run.ask(shard, 'find-strays', { links: some });
    for (const { blobId, linkId } of links) run.found('link-orphaned', { shard, blob: blobId, link: linkId });
  }, UNMET_BATCH);
  const unticked = createBatch<LinkName>(async (some) => {
    const { links } = await run.ask(shard, 'get-links', { links: some });
    for (const [at, name] of some.entries()) if (links[at] !== null) await unmet.add(name);
  }, BATCH);
  for (const name of names) await unticked.add(name);
  await unticked.end();
  await unmet.end();
}

function addUsage(sums: Map<BucketId, BucketUsage>, { bucketId, objectCount, sizeBytes }: BucketUsage): void {
  const sum = sums.get(bucketId) ?? { bucketId, objectCount: 0, sizeBytes: 0 };
  sum.objectCount += objectCount;
  sum.sizeBytes += sizeBytes;
  sums.set(bucketId, sum);
}

interface LinkName {
  blobId: BlobId;
  linkId: LinkId;
}

/** Links in their order, each ticked off when something holds it. */
class LinkWindow {
  readonly #links: Buffer;
  readonly #ticks: Uint8Array;

  constructor(links: Uint8Array) {
    this.#links = asBuffer(links);
    this.#ticks = new Uint8Array(links.length / LINK_BYTES);
  }

  tick(uses: Uint8Array): void {
    for (let at = 0; at < uses.length; at += LINK_BYTES) {
      const index = this.#find(uses, at);
      if (index !== undefined) this.#ticks[index] = 1;
    }
  }

  *unticked(): Generator<LinkName> {
    for (const [index, tick] of this.#ticks.entries()) {
      if (tick === 1) continue;
      const at = index * LINK_BYTES;
      const blobId = toHex(this.#links.subarray(at, at + 16)) as BlobId;
      yield { blobId, linkId: toHex(this.#links.subarray(at + 16, at + LINK_BYTES)) as LinkId };
    }
  }

  #find(uses: Uint8Array, at: number): number | undefined {
    let low = 0;
    let high = this.#ticks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const from = middle * LINK_BYTES;
      const order = this.#links.compare(uses, at, at + LINK_BYTES, from, from + LINK_BYTES);
      if (order === 0) return middle;
      if (order < 0) low = middle + 1;
      else high = middle;
    }
    return undefined;
  }
}
