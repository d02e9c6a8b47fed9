// Whether all of a bucket may go: every version and every marker is asked for, whatever keeps it (service.txt 3, 4.2).
import { must } from '../../lib/assert.ts';
import { fromHex, toHex } from '../../lib/bytes.ts';
import type { deleteBlocker } from '../../model/delete-blocker.ts';
import { type BucketRecord, bucketCodec } from '../../model/records/rows.ts';
import { decodeVersion, decodeVersionSummary } from '../../model/records/version-record.ts';
import type { KeptVersion } from '../../ports/extension-calls.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata.ts';
import type { QuerySpec, Row, StateReader } from '../../ports/state-machine.ts';
import { bucketRow, REGION } from '../keyspace.ts';
import { objectKeyOf, versionsBehind } from '../rows-of-buckets.ts';

type Query = QueryOf<'look-for-kept'>;
type Result = ResultOf<'look-for-kept'>;

/** Read on another thread at once, and looked at between two turns of the process. */
const PAGE_ROWS = 1000;

/** `blockerOf` is deleteBlocker; a test may have another one, to see what becomes of its word. */
export function lookForKept(blockerOf: typeof deleteBlocker): QuerySpec<Query, Result> {
  return {
    async run(query, state, { nowMs }) {
      const { bucketId, after, limit } = query;
      const [row] = await state.rows([bucketRow(bucketId)]);
      const bucket = bucketCodec.decode(must(row, 'who looks has seen the bucket'));
      let count = 0;
      let last = after;
      for await (const page of pagesOf(state, query)) {
        for (const found of page) {
          const kept = keptBy(blockerOf, found, { bucket, nowMs });
          if (kept !== undefined) return { count, kept };
          count++;
        }
        last = toHex(must(page.at(-1), 'a page has rows').key);
      }
      return { count, ...(count === limit && last !== undefined && { next: last }) };
    },
  };
}

/** Of all regions, one after the other; `limit` rows at most. */
async function* pagesOf(state: StateReader, { bucketId, after, limit }: Query): AsyncGenerator<Row[]> {
  let from = after === undefined ? undefined : fromHex(after);
  let left = limit;
  for (const region of Object.values(REGION)) {
    if (from !== undefined && must(from[0], 'a row has a region') > region) continue;
    let behind = from?.[0] === region ? from : undefined;
    while (left > 0) {
      const wanted = Math.min(left, PAGE_ROWS);
      const rows = await state.range(versionsBehind({ region, bucketId, after: behind, limit: wanted }));
      if (rows.length > 0) yield rows;
      left -= rows.length;
      if (rows.length < wanted) break;
      behind = rows.at(-1)?.key;
    }
    from = undefined;
  }
}

function keptBy(
  blockerOf: typeof deleteBlocker,
  { key, value }: Row,
  { bucket, nowMs }: { bucket: BucketRecord; nowMs: number },
): KeptVersion | undefined {
  const blocker = blockerOf(decodeVersionSummary(value), bucket, nowMs);
  if (blocker === undefined) return undefined;
  return { key: objectKeyOf(key), versionId: decodeVersion(value).versionId, blocker };
}
