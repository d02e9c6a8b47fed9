// What compositions alone keep: blobs without a link that anything else holds (service.txt 4.2, compose rule 6), for
// whoever charges for it. Blobs of other homes are left out: who else holds them, their home alone knows.
import { toHex } from '../../lib/bytes.ts';
import { behind, TABLE_END } from '../../lib/table-rows.ts';
import type { BlobId, BucketId } from '../../model/names.ts';
import { type BlobRecord, blobCodec, linkCodec } from '../../model/records/rows.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata.ts';
import type { QuerySpec, StateReader } from '../../ports/state-machine.ts';
import { blobRow, linkRange, TABLES } from '../keyspace.ts';

type Result = ResultOf<'count-composed-only'>;

/** Links of one blob that are read at a time. */
const LINKS = 100;

export const countComposedOnly: QuerySpec<QueryOf<'count-composed-only'>, Result> = {
  async run({ after, limit }, state) {
    const gte = behind(after && blobRow(after).key);
    const rows = await state.range({ table: TABLES.blobs, gte, lt: TABLE_END, limit });
    const sums = new Map<BucketId, Result['buckets'][number]>();
    for (const { key, value } of rows) {
      const blob = blobCodec.decode(value);
      const bucketId = isCounted(blob) ? await composedIn(toHex(key) as BlobId, state) : undefined;
      if (bucketId === undefined) continue;
      const sum = sums.get(bucketId) ?? { bucketId, sizeBytes: 0, blobCount: 0 };
      sum.sizeBytes += blob.sizeBytes;
      sum.blobCount++;
      sums.set(bucketId, sum);
    }
    const last = rows.length < limit ? undefined : rows.at(-1);
    return { buckets: [...sums.values()], ...(last && { next: toHex(last.key) as BlobId }) };
  },
};

/**
 * A manifest whose pages were parts stands for their bytes: it may have been appended to, and the links of its pages are
 * not marked then. Those of a composition's pages are.
 */
function isCounted({ kind, isComposed, condemnedAtMs }: BlobRecord): boolean {
  return condemnedAtMs === undefined && (kind === 'data' || isComposed === undefined);
}

/** The bucket of the first composition that holds the blob; undefined where anything else does too, or nothing. */
async function composedIn(blobId: BlobId, state: StateReader): Promise<BucketId | undefined> {
  const range = linkRange(blobId, LINKS);
  let first: BucketId | undefined;
  for (let { gte } = range; ; ) {
    const rows = await state.range({ ...range, gte });
    for (const { value } of rows) {
      const { state: held, composedIn: bucketId } = linkCodec.decode(value);
      if (held !== 'own' || bucketId === undefined) return undefined;
      first ??= bucketId;
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < LINKS) return first;
    gte = behind(last.key);
  }
}
