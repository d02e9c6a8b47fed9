// ListObjectVersions: all versions and delete markers of a bucket, by key, newest first.
import { must } from '../../base/assert.ts';
import { afterPrefix, compareBytes, concatBytes, fromHex } from '../../base/bytes/bytes.ts';
import type { ListVersionsPage, ListVersionsQuery } from '../../ports/metadata/versions.ts';
import type { QuerySpec, StateReader } from '../../ports/state-machine.ts';
import { commonPrefixOf, markerBytes, pageAfter } from '../../types/listing.ts';
import type { BucketId, ObjectKey, VersionId } from '../../types/names.ts';
import { decodeVersionSummary, storedVersionId, versionOrder } from '../../types/records/version-record.ts';
import { END_MARK, escapeBytes, invertedOrder, readU48 } from '../schema/key-parts.ts';
import { currentRow, markerRow, readVersionPosition, versionIdRow } from '../schema/keyspace.ts';
import { createVersionWalk, type WalkBound } from './version-walk.ts';

const CHUNK_WITH_DELIMITER = 64;

export const listVersions: QuerySpec<ListVersionsQuery, ListVersionsPage> = {
  async run(query, state) {
    const page: ListVersionsPage = { versions: [], commonPrefixes: [], isTruncated: false };
    if (query.max > 0) await fillPage(page, query, state);
    return page;
  },
};

async function fillPage(page: ListVersionsPage, query: ListVersionsQuery, state: StateReader): Promise<void> {
  const { max, prefix, delimiter } = query;
  const start = boundAt(query, markerBytes(prefix));
  const resume = await resumeAt(query, state);
  const from = resume !== undefined && compareBytes(resume.escaped, start.escaped) > 0 ? resume : start;
  const walk = createVersionWalk({
    state,
    from,
    to: boundBehind(query, prefix),
    firstChunk: delimiter ? CHUNK_WITH_DELIMITER : max + 1,
  });
  try {
    let last: Pick<ListVersionsPage, 'nextKeyMarker' | 'nextVersionIdMarker'> = {};
    for (let count = 0; ; count++) {
      const walked = walk.peek() ?? ((await walk.fill()) ? walk.peek() : undefined);
      if (walked === undefined) return;
      if (count === max) {
        Object.assign(page, last, { isTruncated: true });
        return;
      }
      const { key } = readVersionPosition(walked.position);
      const common = commonPrefixOf(key, query);
      if (common === undefined) {
        const { isLatest, value } = walked;
        const versionId = storedVersionId(value);
        page.versions.push({ key, versionId, isLatest, summary: decodeVersionSummary(value) });
        last = { nextKeyMarker: key, nextVersionIdMarker: versionId };
        walk.advance();
      } else {
        page.commonPrefixes.push(common);
        last = { nextKeyMarker: common };
        walk.skipTo(boundBehind(query, common));
      }
    }
  } finally {
    walk.close();
  }
}

/** Everything whose key is `bytes` or behind it. */
function boundAt({ bucketId }: ListVersionsQuery, bytes: Uint8Array): WalkBound {
  const bucket = fromHex(bucketId);
  return { plain: concatBytes(bucket, bytes), escaped: concatBytes(bucket, escapeBytes(bytes)) };
}

/** Everything behind the keys that begin with `prefix`. */
function boundBehind(query: ListVersionsQuery, prefix: string): WalkBound {
  const { plain, escaped } = boundAt(query, markerBytes(prefix));
  const behind = (bytes: Uint8Array) => must(afterPrefix(bytes), 'a bucket has something behind it');
  return { plain: behind(plain), escaped: behind(escaped) };
}

/** Behind what the markers name; undefined where they name nothing. */
async function resumeAt(query: ListVersionsQuery, state: StateReader): Promise<WalkBound | undefined> {
  const { keyMarker, versionIdMarker } = query;
  if (!keyMarker) return undefined;
  const resume = pageAfter(keyMarker, query);
  if (resume.kind === 'prefix') return boundBehind(query, resume.after);
  const { plain, escaped } = boundAt(query, markerBytes(keyMarker));
  const versions = concatBytes(escaped, END_MARK);
  if (!versionIdMarker) {
    const behind = must(afterPrefix(versions), 'a bucket has something behind it');
    return { plain: concatBytes(plain, Uint8Array.of(0)), escaped: behind };
  }
  const name = { key: keyMarker as ObjectKey, versionId: versionIdMarker as VersionId };
  const order = await orderOf({ ...name, bucketId: query.bucketId }, state);
  // Gone since: the key's versions are listed again, because leaving some out would be worse.
  if (order === undefined) return { plain, escaped: versions };
  return { plain, escaped: concatBytes(versions, invertedOrder(order), Uint8Array.of(0)) };
}

async function orderOf(
  { bucketId, key, versionId }: { bucketId: BucketId; key: ObjectKey; versionId: VersionId },
  state: StateReader,
): Promise<number | undefined> {
  const [current, marker, order] = await state.rows([
    currentRow(bucketId, key),
    markerRow(bucketId, key),
    versionIdRow(bucketId, key, versionId),
  ]);
  const latest = current ?? marker;
  if (latest !== undefined) {
    if (storedVersionId(latest) === versionId) return versionOrder(latest);
  }
  return order && readU48(order);
}
