// Jobs: each lies under its own id, and its bucket is known.
import { toHex } from '../../lib/bytes.ts';
import { jobCodec } from '../../model/records/job-record.ts';
import type { RowCheck } from './scan.ts';

export const checkJob: RowCheck = async (row, scan) => {
  const { jobId, bucketId } = jobCodec.decode(row.value);
  const place = { bucket: bucketId, table: 'jobs' as const };
  if (toHex(row.key) !== jobId) scan.found('broken-row', { ...place, note: toHex(row.key) });
  if ((await scan.bucket(bucketId)) === undefined) scan.found('bucket-missing', { ...place, note: jobId });
};
