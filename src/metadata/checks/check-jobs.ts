// Jobs: each lies under its own id, and its bucket is known.
import { toHex } from '../../lib/bytes.ts';
import { jobCodec } from '../../model/records/job-record.ts';
import type { RowCheck } from './scan.ts';

export const checkJob: RowCheck = async (row, scan) => {
  const job = jobCodec.decode(row.value);
  const { jobId, bucketId } = job;
  const place = { bucket: bucketId, table: 'jobs' as const };
  if (toHex(row.key) !== jobId) scan.found('broken-row', { ...place, note: toHex(row.key) });
  const bucket = await scan.bucket(bucketId);
  if (bucket === undefined) scan.found('bucket-missing', { ...place, note: jobId });
  // Nobody would drive it on.
  const isLost = job.kind === 'empty-bucket' && job.endedAtMs === undefined && bucket?.jobId !== jobId;
  if (isLost) scan.found('queue-stray', { ...place, note: jobId });
};
