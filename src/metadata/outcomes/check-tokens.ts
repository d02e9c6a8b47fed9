// Idempotency tokens and their times: each leads to the other.
import type { BucketId } from '../../types/names.ts';
import { tokenCodec } from '../../types/records/rows.ts';
import type { CheckScan, RowCheck } from '../checks/scan.ts';
import { readU48 } from '../schema/key-parts.ts';
import { readTokenKey, TOKEN_TIME_BYTES, tokenRow, tokenTimeRow } from './tokens.ts';

export const checkToken: RowCheck = async (row, scan) => {
  const { bucketId, token } = readTokenKey(row.key);
  const { keptAtMs } = tokenCodec.decode(row.value);
  const place = { bucket: await nameOf(bucketId, scan), table: 'tokens' as const, note: token };
  await scan.expectRow(tokenTimeRow(keptAtMs, bucketId, token), 'index-missing', place);
};

export const checkTokenTime: RowCheck = async (row, scan) => {
  const { bucketId, token } = readTokenKey(row.key.subarray(TOKEN_TIME_BYTES));
  const stored = await scan.row(tokenRow(bucketId, token));
  const isSame = stored !== undefined && tokenCodec.decode(stored).keptAtMs === readU48(row.key);
  if (isSame) return;
  const place = { bucket: await nameOf(bucketId, scan), table: 'tokenTimes' as const, note: token };
  scan.found('index-orphaned', place);
};

async function nameOf(bucketId: BucketId, scan: CheckScan): Promise<string> {
  return (await scan.bucket(bucketId))?.name ?? bucketId;
}
