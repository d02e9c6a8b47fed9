// The rows of usage, as commands and queries read them.
import { toHex } from '../../base/bytes/bytes.ts';
import type { MeteredBucket } from '../../ports/metadata/usage.ts';
import type { View } from '../../ports/state-machine.ts';
import { AT, add, METERED, STORED_FIELDS } from '../../types/metered.ts';
import type { AccountId, BucketId } from '../../types/names.ts';
import {
  type OrphanedMeasure,
  type UsageStateRecord,
  usageStateCodec,
} from '../../types/records/usage-record.ts';
import { readU48 } from '../schema/key-parts.ts';
import { usageStateRow } from '../schema/keyspace.ts';

export function findUsageState(
  view: View,
  { accountId, bucketId }: MeteredBucket,
): UsageStateRecord | undefined {
  const row = view.row(usageStateRow(accountId, bucketId));
  return row && usageStateCodec.decode(row);
}

const ACCOUNT_BYTES = 6;
const DAY_BYTES = 6;

export function readUsageStateKey(key: Uint8Array): MeteredBucket {
  return { accountId: accountAt(key), bucketId: toHex(key.subarray(ACCOUNT_BYTES)) as BucketId };
}

export function readUsageRecordKey(key: Uint8Array): MeteredBucket & { day: number } {
  const day = readU48(key, ACCOUNT_BYTES);
  const bucketId = toHex(key.subarray(ACCOUNT_BYTES + DAY_BYTES)) as BucketId;
  return { accountId: accountAt(key), day, bucketId };
}

function accountAt(key: Uint8Array): AccountId {
  return String(readU48(key)).padStart(12, '0') as AccountId;
}

/** What was stored at the end of a day, from what was at its beginning and what it has changed. */
export function storedAfter(sums: readonly number[], delta: readonly number[]): number[] {
  const stored = sums.slice(0, STORED_FIELDS);
  for (let at = 0; at < STORED_FIELDS; at++) add(stored, at, delta[at] ?? 0);
  return stored;
}

/**
 * The measures that hold for a day. Days that are closed together have one. Another shard may not have measured the day yet:
 * then the day before holds.
 */
export function measuresFor(
  orphaned: readonly OrphanedMeasure[] = [],
  { day, shard }: { day: number; shard: number },
): OrphanedMeasure[] {
  return orphaned.filter((measure) => measure.day >= (measure.shard === shard ? day : day - 1));
}

/** A day's figures: what is stored at its end, and the traffic that it had. */
export function figuresOf(
  stored: readonly number[],
  delta: readonly number[],
  orphaned: readonly OrphanedMeasure[],
): number[] {
  const figures = METERED.map((_, at) => (at < STORED_FIELDS ? stored[at] : delta[at]) ?? 0);
  figures[AT.orphanedBytes] = orphaned.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  while (figures.at(-1) === 0) figures.pop();
  return figures;
}
