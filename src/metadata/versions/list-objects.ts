// ListObjects and ListObjectsV2: a page of a bucket's current objects. Reads only current versions, and passes over a
// common prefix with one seek, so a page costs what it shows, whatever the size of the bucket.
import { must } from '../../base/assert.ts';
import { afterPrefix, asBuffer, compareBytes, concatBytes } from '../../base/bytes/bytes.ts';
import type { ListObjectsPage, ListObjectsQuery } from '../../ports/metadata/versions.ts';
import type { QuerySpec, StateReader } from '../../ports/state-machine.ts';
import { commonPrefixOf, markerBytes, pageAfter } from '../../types/listing.ts';
import type { BucketId, ObjectKey } from '../../types/names.ts';
import { decodeVersionSummary } from '../../types/records/version-record.ts';
import { OBJECT_KEY_AT, objectsKey, REGION, TABLES } from '../schema/keyspace.ts';
import { createRowScan, SCAN_BYTES_MAX } from '../schema/row-scan.ts';

/** Rows to begin with where there may be common prefixes to pass over. */
const CHUNK_WITH_DELIMITER = 64;

export const listObjects: QuerySpec<ListObjectsQuery, ListObjectsPage> = {
  async run(query, state) {
    const page: ListObjectsPage = { objects: [], commonPrefixes: [], isTruncated: false };
    if (query.max > 0) await fillPage(page, query, state);
    return page;
  },
};

async function fillPage(page: ListObjectsPage, query: ListObjectsQuery, state: StateReader): Promise<void> {
  const { bucketId, max, delimiter } = query;
  const { gte, lt } = boundsOf(query);
  if (compareBytes(gte, lt) >= 0) return;
  const cursor = state.cursor({ table: TABLES.objects, gte, lt, bytesMax: SCAN_BYTES_MAX });
  const scan = createRowScan({ cursor, gte, lt, firstChunk: delimiter ? CHUNK_WITH_DELIMITER : max + 1 });
  try {
    let last = '';
    for (let count = 0; ; count++) {
      const row = scan.peek() ?? ((await scan.fill()) ? scan.peek() : undefined);
      if (row === undefined) return;
      if (count === max) {
        page.isTruncated = true;
        page.nextAfter = last;
        return;
      }
      const key = asBuffer(row.key).toString('utf8', OBJECT_KEY_AT);
      const common = commonPrefixOf(key, query);
      if (common === undefined) {
        page.objects.push({ key: key as ObjectKey, summary: decodeVersionSummary(row.value) });
        scan.advance();
      } else {
        page.commonPrefixes.push(common);
        scan.skipTo(behindPrefix(bucketId, common));
      }
      last = common ?? key;
    }
  } finally {
    cursor.close();
  }
}

function boundsOf(query: ListObjectsQuery): { gte: Uint8Array; lt: Uint8Array } {
  const { bucketId, prefix, after } = query;
  const start = objectsKey(REGION.current, bucketId, markerBytes(prefix));
  const lt = must(afterPrefix(start), 'a region has something behind it');
  if (after === undefined) return { gte: start, lt };
  const resume = pageAfter(after, query);
  const gte =
    resume.kind === 'prefix'
      ? behindPrefix(bucketId, resume.after)
      : concatBytes(objectsKey(REGION.current, bucketId, markerBytes(after)), Uint8Array.of(0));
  return { gte: compareBytes(gte, start) > 0 ? gte : start, lt };
}

/** The least key of the region behind everything that begins with `prefix`. */
function behindPrefix(bucketId: BucketId, prefix: string): Uint8Array {
  const start = objectsKey(REGION.current, bucketId, markerBytes(prefix));
  return must(afterPrefix(start), 'a region has something behind it');
}
