// What is in a bucket, row by row: versions by the regions of the table `objects`, each in the order of its keys.
import { concatBytes, fromUtf8 } from '../../base/bytes/bytes.ts';
import type { RangeAddress } from '../../ports/state-machine.ts';
import type { BucketId, ObjectKey } from '../../types/names.ts';
import { OBJECT_KEY_AT, REGION, type Region, readVersionPosition, regionRange } from '../schema/keyspace.ts';

/** Where the bucket begins in a row key of the table `objects`. */
const REGION_BYTES = 1;

/** What of `range` is behind the row with key `after`; all of it without one. */
export function rangeBehind(range: RangeAddress, after: Uint8Array | undefined): RangeAddress {
  return after === undefined ? range : { ...range, gte: concatBytes(after, Uint8Array.of(0)) };
}

/** `after` is a row's key, exclusive. */
export function versionsBehind(options: {
  region: Region;
  bucketId: BucketId;
  after: Uint8Array | undefined;
  limit: number;
}): RangeAddress {
  return rangeBehind(regionRange(options), options.after);
}

/** The object's, of a row of the table `objects`. */
export function objectKeyOf(rowKey: Uint8Array): ObjectKey {
  if (rowKey[0] === REGION.version) return readVersionPosition(rowKey.subarray(REGION_BYTES)).key;
  return fromUtf8(rowKey.subarray(OBJECT_KEY_AT)) as ObjectKey;
}
