// Uploads that nobody will end: above an age, or of a deleted bucket.
import { fromUtf8, toHex } from '../../base/bytes/bytes.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, StateReader } from '../../ports/state-machine.ts';
import type { BucketId, ObjectKey, UploadId } from '../../types/names.ts';
import { uploadCodec } from '../../types/records/rows.ts';
import { bucketUploads, TABLES, timeRange } from '../schema/keyspace.ts';

type Result = ResultOf<'list-stale-uploads'>;

/** Deleted buckets looked at in one go. */
const BUCKETS_MAX = 10;

export const listStaleUploads: QuerySpec<QueryOf<'list-stale-uploads'>, Result> = {
  async run({ fromMs, olderThanMs, limit }, state, { nowMs }) {
    const result = await ofDeletedBuckets(state, limit);
    const toMs = Math.max(0, nowMs - olderThanMs);
    const range = timeRange({ table: TABLES.uploadTimes, fromMs, toMs, limit });
    for (const { key, value } of await state.range(range)) {
      result.uploads.push({
        bucketId: toHex(value.subarray(0, 8)) as BucketId,
        key: fromUtf8(value.subarray(8)) as ObjectKey,
        uploadId: toHex(key) as UploadId,
      });
    }
    return result;
  },
};

async function ofDeletedBuckets(state: StateReader, limit: number): Promise<Result> {
  const all = { table: TABLES.deletedBuckets, gte: new Uint8Array(8), lt: new Uint8Array(9).fill(0xff) };
  const result: Result = { uploads: [], emptiedBucketIds: [] };
  for (const { key } of await state.range({ ...all, limit: BUCKETS_MAX })) {
    const bucketId = toHex(key) as BucketId;
    const rows = await state.range(bucketUploads(bucketId, limit));
    if (rows.length === 0) result.emptiedBucketIds.push(bucketId);
    for (const row of rows) {
      const { key, uploadId } = uploadCodec.decode(row.value);
      result.uploads.push({ bucketId, key, uploadId });
    }
  }
  return result;
}
