// Data that only compositions keep alive: blobs whose links are all of compositions (service 4.2, compose rule 6), for
// accounting. Uses in other shards are known only there: the home says which shards to ask (find-compositions), and the
// caller combines the answers (metadata/blobs/read-composed.ts).
import { toHex } from '../../base/bytes/bytes.ts';
import { isLastPage } from '../../base/row-pages.ts';
import { behind, TABLE_END } from '../../base/table-rows.ts';
import type {
  BlobClaim,
  Charging,
  ClaimedBlob,
  ComposedOnly,
  CompositionHolder,
} from '../../ports/metadata/blobs.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, StateReader } from '../../ports/state-machine.ts';
import { coveredBytes, unpackRanges } from '../../types/compacted-from.ts';
import { LIMITS } from '../../types/limits.ts';
import { orphanedFrom } from '../../types/metered.ts';
import { type BlobId, type BucketId, homeShardOf, idTimeMs } from '../../types/names.ts';
import {
  type BlobRecord,
  blobCodec,
  chargedOf,
  isLiveBlob,
  type LinkRecord,
  linkCodec,
} from '../../types/records/rows.ts';
import { blobRow, foreignRow, linkRange, TABLES } from '../schema/keyspace.ts';

/** Links of one blob that are read at a time. */
const LINKS = 100;
/** Links that one query reads, but for those of its last blob: about 3 µs of the shard each. */
const QUERY_LINKS = 5000;
/** Of one blob: what so many compositions hold, and nothing else among them, is theirs. */
const BLOB_LINKS = 10_000;

/** What one query may still read, and what it has read of manifests: many blobs are in the pages of one. */
interface Look {
  state: StateReader;
  shard: number;
  linksLeft: number;
  /** What is charged as orphaned is asked for: then what is charged for data itself is no composition. */
  isCharging: boolean;
  manifests: Map<BlobId, Holders | undefined>;
}

/** Compositions that hold a blob: the bucket of one of this shard, and links of other shards, whatever these hold it by. */
interface Holders {
  bucketId?: BucketId;
  claims: BlobClaim[];
}

const newLook = (state: StateReader, shard: number, isCharging: boolean): Look => ({
  state,
  shard,
  isCharging,
  linksLeft: QUERY_LINKS,
  manifests: new Map(),
});

export const countComposedOnly: QuerySpec<QueryOf<'count-composed-only'>, ResultOf<'count-composed-only'>> = {
  async run({ after, limit, charging }, state, { shard }) {
    const gte = behind(after && blobRow(after).key);
    const asked = { limit, bytesMax: LIMITS.queryPageBytesMax };
    const rows = await state.range({ table: TABLES.blobs, gte, lt: TABLE_END, ...asked });
    const sums = new Map<BucketId, ComposedOnly>();
    const claimed: ClaimedBlob[] = [];
    const look = newLook(state, shard, charging !== undefined);
    let last: BlobId | undefined;
    let isWhole = isLastPage(rows, asked);
    for (const { key, value } of rows) {
      if (look.linksLeft <= 0) {
        isWhole = false;
        break;
      }
      const blob = blobCodec.decode(value);
      last = toHex(key) as BlobId;
      if (!isCounted(blob) || (charging !== undefined && !isOrphaned(last, charging))) continue;
      const holders = await compositionsOf(last, look);
      if (holders === undefined) continue;
      const sizeBytes = await countedBytes(blob, look);
      if (sizeBytes <= 0) continue;
      const { bucketId, claims } = holders;
      if (claims.length > 0) claimed.push({ blobId: last, sizeBytes, claims, ...(bucketId && { bucketId }) });
      else if (bucketId !== undefined) {
        const sum = sums.get(bucketId) ?? { bucketId, sizeBytes: 0, blobCount: 0 };
        sum.sizeBytes += sizeBytes;
        sum.blobCount++;
        sums.set(bucketId, sum);
      }
    }
    return { buckets: [...sums.values()], claimed, ...(!isWhole && last && { next: last }) };
  },
};

export const findCompositions: QuerySpec<QueryOf<'find-compositions'>, ResultOf<'find-compositions'>> = {
  async run({ blobIds, isCharging = false }, state, { shard }) {
    const holders: CompositionHolder[] = [];
    const look = newLook(state, shard, isCharging);
    for (const blobId of blobIds) {
      if (look.linksLeft <= 0) break;
      holders.push(holderOf(await compositionsOf(blobId, look)));
    }
    return { holders };
  },
};

function holderOf(found: Holders | undefined): CompositionHolder {
  if (found === undefined) return { kind: 'other' };
  const { bucketId, claims } = found;
  if (bucketId !== undefined) return { kind: 'composition', bucketId };
  return claims.length > 0 ? { kind: 'claimed', claims } : { kind: 'none' };
}

/**
 * A manifest with pages of parts counts with its bytes: it may have been appended to, and then the links of its pages are
 * not marked. Those of a composition's pages are.
 */
function isCounted({ kind, isComposed, condemnedAtMs }: BlobRecord): boolean {
  return condemnedAtMs === undefined && (kind === 'data' || isComposed === undefined);
}

/** Until its minimum duration has passed, data that was deleted is charged as that. */
function isOrphaned(blobId: BlobId, { day, minimumDays }: Charging): boolean {
  return orphanedFrom(idTimeMs(blobId), minimumDays) <= day;
}

async function countedBytes(blob: BlobRecord, look: Look): Promise<number> {
  const asTheyCame = await bytesAsTheyCame(blob, look);
  if (blob.sizeBytes === asTheyCame) return 0;
  return (look.isCharging ? chargedOf(blob) : blob.sizeBytes) - asTheyCame;
}

/**
 * For a compacted blob: how many of its bytes still exist as they were uploaded, for another version or a copy. They were
 * uploaded once, and are counted with their original blobs, or charged with an object that has these.
 */
async function bytesAsTheyCame({ foldedFrom }: BlobRecord, look: Look): Promise<number> {
  const { state, shard } = look;
  const ranges = unpackRanges(foldedFrom);
  if (ranges.length === 0) return 0;
  const blobIds = [...new Set(ranges.map(({ blobId }) => blobId))];
  look.linksLeft -= blobIds.length;
  const isHome = (blobId: BlobId) => homeShardOf(blobId) === shard;
  const rows = await state.rows(blobIds.map((blobId) => (isHome(blobId) ? blobRow : foreignRow)(blobId)));
  const live = new Set(
    blobIds.filter((blobId, at) => {
      const { [at]: row } = rows;
      return row !== undefined && (!isHome(blobId) || isLiveBlob(blobCodec.decode(row)));
    }),
  );
  return coveredBytes(ranges.filter(({ blobId }) => live.has(blobId)));
}

/** undefined where anything else of this shard holds it, too. */
async function compositionsOf(blobId: BlobId, look: Look): Promise<Holders | undefined> {
  const claimants = new Set<number>();
  const inPages = new Map<string, BlobClaim>();
  let first: BucketId | undefined;
  for await (const links of pagesOfLinks(blobId, look)) {
    for (const { state: held, shard, composedIn, inManifest, isCharged } of links) {
      if (held !== 'own') claimants.add(shard);
      else if (composedIn === undefined || (isCharged && look.isCharging)) return undefined;
      else if (inManifest === undefined) first ??= composedIn;
      else if (first === undefined) {
        const holders = await holdersOfManifest(inManifest, look);
        if (holders === undefined) return undefined;
        first = holders.bucketId;
        for (const claim of holders.claims) inPages.set(`${claim.blobId} ${claim.shard}`, claim);
      }
    }
  }
  const own = [...claimants].map((shard) => ({ blobId, shard }));
  if (first !== undefined) return { bucketId: first, claims: own };
  return { claims: [...own, ...inPages.values()] };
}

/**
 * Of a composition's manifest, which compositions alone are made of: a copy in any bucket holds its pages, wherever it was
 * composed. Neither a bucket nor a claim: it is gone, and so will be its pages.
 */
async function holdersOfManifest(manifestId: BlobId, look: Look): Promise<Holders | undefined> {
  if (look.manifests.has(manifestId)) return look.manifests.get(manifestId);
  const holders = await compositionsOf(manifestId, look);
  look.manifests.set(manifestId, holders);
  return holders;
}

/** The first ones of very many. */
async function* pagesOfLinks(blobId: BlobId, look: Look): AsyncGenerator<LinkRecord[]> {
  const range = linkRange(blobId, LINKS);
  for (let { gte } = range, readCount = 0; ; ) {
    const rows = await look.state.range({ ...range, gte });
    readCount += rows.length;
    // A look at a blob costs as much as some links, even where there are none.
    look.linksLeft -= rows.length + 1;
    yield rows.map(({ value }) => linkCodec.decode(value));
    const last = rows.at(-1);
    if (last === undefined || rows.length < LINKS || readCount >= BLOB_LINKS) return;
    gte = behind(last.key);
  }
}
