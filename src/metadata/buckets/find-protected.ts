// Whether all of a bucket may go: of every version and every marker it is asked what keeps it (service 3, 4.2), unless
// nothing in the bucket can be kept at all.
import { must } from '../../base/assert.ts';
import { fromHex, toHex } from '../../base/bytes/bytes.ts';
import { isLastPage } from '../../base/row-pages.ts';
import type { ProtectedVersion } from '../../ports/metadata/buckets.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, Row, StateReader } from '../../ports/state-machine.ts';
import type { DeleteBlocker, DeleteRules } from '../../types/delete-blocker.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BucketId } from '../../types/names.ts';
import { bucketCodec } from '../../types/records/rows.ts';
import { decodeVersion, decodeVersionSummary } from '../../types/records/version-record.ts';
import { COUNTER } from '../schema/counters.ts';
import { bucketRow, REGION } from '../schema/keyspace.ts';
import { objectKeyOf, versionsBehind } from './rows-of-buckets.ts';

type Query = QueryOf<'find-protected'>;
type Result = ResultOf<'find-protected'>;

/** Read on another thread at once, and looked at between two turns of the process. */
const PAGE_ROWS = 1000;

export function findProtected(rules: DeleteRules): QuerySpec<Query, Result> {
  return {
    async run(query, state, { acceptedMs }) {
      const { bucketId, after, limit } = query;
      const [row] = await state.rows([bucketRow(bucketId)]);
      const bucket = bucketCodec.decode(must(row, 'who looks has seen the bucket'));
      if (!rules.mayBlockDeletes(bucket)) {
        const [objectCount = 0] = await state.counters([COUNTER.bucketObjects(bucketId)]);
        return { count: objectCount };
      }
      let [count, rowCount] = [0, 0];
      let last = after;
      for await (const page of versionPages(state, query)) {
        for (const found of page) {
          const version = decodeVersionSummary(found.value);
          const blocker = rules.deleteBlocker(version, bucket, { acceptedMs });
          if (blocker !== undefined) return { count, kept: protectedVersion(found, blocker) };
          if (!version.isDeleteMarker) count++;
        }
        rowCount += page.length;
        last = toHex(must(page.at(-1), 'a page has rows').key);
      }
      return { count, ...(rowCount === limit && last !== undefined && { next: last }) };
    },
  };
}

/** All versions and markers of a bucket, region by region, behind the row `after`; `limit` rows at most. */
export async function* versionPages(
  state: StateReader,
  { bucketId, after, limit }: { bucketId: BucketId; after?: string; limit: number },
): AsyncGenerator<Row[]> {
  let from = after === undefined ? undefined : fromHex(after);
  let left = limit;
  for (const region of Object.values(REGION)) {
    if (from !== undefined && must(from[0], 'a row has a region') > region) continue;
    let behind = from?.[0] === region ? from : undefined;
    while (left > 0) {
      const wanted = Math.min(left, PAGE_ROWS);
      const asked = { limit: wanted, bytesMax: LIMITS.queryPageBytesMax };
      const rows = await state.range({
        ...versionsBehind({ region, bucketId, after: behind, limit: wanted }),
        ...asked,
      });
      if (rows.length > 0) yield rows;
      left -= rows.length;
      if (isLastPage(rows, asked)) break;
      behind = rows.at(-1)?.key;
    }
    from = undefined;
  }
}

function protectedVersion({ key, value }: Row, blocker: DeleteBlocker): ProtectedVersion {
  return { key: objectKeyOf(key), versionId: decodeVersion(value).versionId, blocker };
}
