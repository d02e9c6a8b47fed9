// Large documents of buckets, decoded once for each form that they have: a lifecycle of a thousand rules takes 5 to 20 ms, and
// whoever is refused at its bucket has it read past the gateway's cache. What is kept is held against the row each time, so it
// is never older than the row.
import { BoundedMap } from '../../base/bounded-map.ts';
import type { ConfigKind } from '../../types/bucket-config.ts';
import type { BucketId } from '../../types/names.ts';
import { bucketConfigCodec } from '../../types/records/rows.ts';

/** Shorter rows are decoded each time, which takes no longer than to look for them. */
const LARGE_BYTES = 4096;
const KEPT_MAX = 256;
/** As rows; decoded they take some five times as much. */
const KEPT_BYTES_MAX = 4 * 1024 * 1024;

interface Kept {
  readonly row: Buffer;
  readonly document: unknown;
}

const kept = new BoundedMap<string, Kept>(KEPT_MAX, {
  weightMax: KEPT_BYTES_MAX,
  weightOf: ({ row }) => row.length,
});

/** What the row of a document says. It is shared by all who ask: not to be changed. */
export function decodeDocument(
  row: Uint8Array,
  { bucketId, kind }: { bucketId: BucketId; kind: ConfigKind },
): unknown {
  if (row.length < LARGE_BYTES) return bucketConfigCodec.decode(row).document;
  const name = `${bucketId}/${kind}`;
  const known = kept.get(name);
  if (known?.row.equals(row)) return known.document;
  const { document } = bucketConfigCodec.decode(row);
  // A copy: a row may be a part of what the store has read in one piece.
  kept.set(name, { row: Buffer.from(row), document });
  return document;
}
