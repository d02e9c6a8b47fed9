// ListMultipartUploads: open uploads by key, and of one key by initiation (AWS ListMultipartUploads).
import { must } from '../../base/assert.ts';
import { afterPrefix, compareBytes, concatBytes, fromHex } from '../../base/bytes/bytes.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, StateReader } from '../../ports/state-machine.ts';
import { commonPrefixOf, markerBytes, pageAfter } from '../../types/listing.ts';
import type { BucketId, ObjectKey, UploadId } from '../../types/names.ts';
import { uploadCodec } from '../../types/records/rows.ts';
import { escapeBytes } from '../schema/key-parts.ts';
import { TABLES, uploadsAfter, uploadTimeRow, uploadTimeValue } from '../schema/keyspace.ts';
import { createRowScan, SCAN_BYTES_MAX } from '../schema/row-scan.ts';

type Query = QueryOf<'list-uploads'>;
type Page = ResultOf<'list-uploads'>;

export const listUploads: QuerySpec<Query, Page> = {
  async run(query, state) {
    const page: Page = { uploads: [], commonPrefixes: [], isTruncated: false };
    if (await isMarkerOfOtherKey(query, state)) return { ...page, isMarkerOfOtherKey: true };
    if (query.max > 0) await fillPage(page, query, state);
    return page;
  },
};

/** An upload that has been completed or aborted since the page before marks its place all the same. */
async function isMarkerOfOtherKey(query: Query, state: StateReader): Promise<boolean> {
  const { bucketId, keyMarker, uploadIdMarker } = query;
  if (!keyMarker || uploadIdMarker === undefined) return false;
  const [place] = await state.rows([uploadTimeRow(uploadIdMarker as UploadId)]);
  if (place === undefined) return false;
  return compareBytes(place, uploadTimeValue(bucketId, keyMarker as ObjectKey)) !== 0;
}

async function fillPage(page: Page, query: Query, state: StateReader): Promise<void> {
  const { bucketId, max } = query;
  const { gte, lt } = boundsOf(query);
  if (compareBytes(gte, lt) >= 0) return;
  const cursor = state.cursor({ table: TABLES.uploads, gte, lt, bytesMax: SCAN_BYTES_MAX });
  const scan = createRowScan({ cursor, gte, lt, firstChunk: max + 1 });
  try {
    let last: { nextKeyMarker: string; nextUploadIdMarker?: string } = { nextKeyMarker: '' };
    for (let count = 0; ; count++) {
      const row = scan.peek() ?? ((await scan.fill()) ? scan.peek() : undefined);
      if (row === undefined) return;
      if (count === max) {
        Object.assign(page, last, { isTruncated: true });
        return;
      }
      const upload = uploadCodec.decode(row.value);
      const common = commonPrefixOf(upload.key, query);
      if (common === undefined) {
        page.uploads.push(upload);
        last = { nextKeyMarker: upload.key, nextUploadIdMarker: upload.uploadId };
        scan.advance();
      } else {
        page.commonPrefixes.push(common);
        last = { nextKeyMarker: common };
        scan.skipTo(behindPrefix(bucketId, common));
      }
    }
  } finally {
    cursor.close();
  }
}

function boundsOf(query: Query): { gte: Uint8Array; lt: Uint8Array } {
  const { bucketId, prefix, keyMarker, uploadIdMarker } = query;
  const start = prefixStart(bucketId, prefix);
  const lt = behindPrefix(bucketId, prefix);
  if (!keyMarker) return { gte: start, lt };
  const resume = pageAfter(keyMarker, query);
  const gte =
    resume.kind === 'prefix'
      ? behindPrefix(bucketId, resume.after)
      : uploadsAfter(bucketId, markerBytes(keyMarker), uploadIdMarker);
  return { gte: compareBytes(gte, start) > 0 ? gte : start, lt };
}

function prefixStart(bucketId: BucketId, prefix: string): Uint8Array {
  return concatBytes(fromHex(bucketId), escapeBytes(markerBytes(prefix)));
}

function behindPrefix(bucketId: BucketId, prefix: string): Uint8Array {
  return must(afterPrefix(prefixStart(bucketId, prefix)), 'uploads have something behind them');
}
