// What compositions alone keep: blobs without a link that anything else holds (service.txt 4.2, compose rule 6), for
// whoever charges for it. What other shards hold of a blob they alone know: its home says which ones to ask
// (find-compositions), and who asks puts the answers together (gateway/operator/composed-report.ts).
import { toHex } from '../../lib/bytes.ts';
import { behind, TABLE_END } from '../../lib/table-rows.ts';
import { coveredBytes, type FoldedRange, unpackRanges } from '../../model/folded-from.ts';
import { LIMITS } from '../../model/limits.ts';
import { type BlobId, type BucketId, homeShardOf } from '../../model/names.ts';
import { type BlobRecord, blobCodec, isLiveBlob, linkCodec } from '../../model/records/rows.ts';
import type { ClaimedBlob, ComposedOnly, CompositionHolder } from '../../ports/compose-calls.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata.ts';
import type { QuerySpec, StateReader } from '../../ports/state-machine.ts';
import { blobRow, foreignRow, linkRange, TABLES } from '../keyspace.ts';
import { isLastPage } from './row-pages.ts';

/** Links of one blob that are read at a time. */
const LINKS = 100;
/** Links that one query reads, but for those of its last blob: about 3 µs of the shard each. */
const QUERY_LINKS = 5000;
/** Of one blob: what so many compositions hold, and nothing else among them, is theirs. */
const BLOB_LINKS = 10_000;

/** What one query may still read. */
interface Budget {
  links: number;
}

export const countComposedOnly: QuerySpec<QueryOf<'count-composed-only'>, ResultOf<'count-composed-only'>> = {
  async run({ after, limit }, state, { shard }) {
    const gte = behind(after && blobRow(after).key);
    const asked = { limit, bytesMax: LIMITS.queryPageBytesMax };
    const rows = await state.range({ table: TABLES.blobs, gte, lt: TABLE_END, ...asked });
    const sums = new Map<BucketId, ComposedOnly>();
    const claimed: ClaimedBlob[] = [];
    const budget: Budget = { links: QUERY_LINKS };
    let last: BlobId | undefined;
    let isWhole = isLastPage(rows, asked);
    for (const { key, value } of rows) {
      if (budget.links <= 0) {
        isWhole = false;
        break;
      }
      const blob = blobCodec.decode(value);
      last = toHex(key) as BlobId;
      const holders = isCounted(blob) ? await compositionsOf(last, state, budget) : undefined;
      if (holders === undefined) continue;
      const sizeBytes = blob.sizeBytes - (await bytesAsTheyCame(blob, { state, shard, budget }));
      if (sizeBytes === 0) continue;
      const { bucketId, claimants } = holders;
      if (claimants.size > 0) {
        const shards = [...claimants].sort((a, b) => a - b);
        claimed.push({ blobId: last, sizeBytes, shards, ...(bucketId && { bucketId }) });
      } else if (bucketId !== undefined) {
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
  async run({ blobIds }, state) {
    const holders: CompositionHolder[] = [];
    const budget: Budget = { links: QUERY_LINKS };
    for (const blobId of blobIds) {
      if (budget.links <= 0) break;
      const found = await compositionsOf(blobId, state, budget);
      if (found === undefined) holders.push({ kind: 'other' });
      else if (found.bucketId === undefined) holders.push({ kind: 'none' });
      else holders.push({ kind: 'composition', bucketId: found.bucketId });
    }
    return { holders };
  },
};

/**
 * A manifest whose pages were parts stands for their bytes: it may have been appended to, and the links of its pages are
 * not marked then. Those of a composition's pages are.
 */
function isCounted({ kind, isComposed, condemnedAtMs }: BlobRecord): boolean {
  return condemnedAtMs === undefined && (kind === 'data' || isComposed === undefined);
}

/**
 * Of a blob that was folded: how many of its bytes are still there as they came, for another version or a copy. They were
 * uploaded once: they are told with the blobs that they came as, or charged with an object that has these.
 */
async function bytesAsTheyCame(
  { foldedFrom }: BlobRecord,
  { state, shard, budget }: { state: StateReader; shard: number; budget: Budget },
): Promise<number> {
  const ranges = unpackRanges(foldedFrom);
  if (ranges.length === 0) return 0;
  budget.links -= ranges.length;
  const isHome = ({ blobId }: FoldedRange) => homeShardOf(blobId) === shard;
  const rows = await state.rows(ranges.map((range) => (isHome(range) ? blobRow : foreignRow)(range.blobId)));
  const live = ranges.filter((range, at) => {
    const { [at]: row } = rows;
    return row !== undefined && (!isHome(range) || isLiveBlob(blobCodec.decode(row)));
  });
  return coveredBytes(live);
}

/**
 * The bucket of the first composition of this shard that holds the blob, and other shards that do by whatever they have.
 * undefined where anything else of this shard does too.
 */
async function compositionsOf(
  blobId: BlobId,
  state: StateReader,
  budget: Budget,
): Promise<{ bucketId?: BucketId; claimants: Set<number> } | undefined> {
  const range = linkRange(blobId, LINKS);
  const claimants = new Set<number>();
  let first: BucketId | undefined;
  for (let { gte } = range, readCount = 0; ; ) {
    const rows = await state.range({ ...range, gte });
    readCount += rows.length;
    // A look at a blob costs as much as some links, even where there are none.
    budget.links -= rows.length + 1;
    for (const { value } of rows) {
      const { state: held, shard, composedIn } = linkCodec.decode(value);
      if (held !== 'own') claimants.add(shard);
      else if (composedIn === undefined) return undefined;
      else first ??= composedIn;
    }
    const last = rows.at(-1);
    const isEnd = last === undefined || rows.length < LINKS || readCount >= BLOB_LINKS;
    if (isEnd) return { claimants, ...(first && { bucketId: first }) };
    gte = behind(last.key);
  }
}
