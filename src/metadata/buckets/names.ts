// Bucket names in the system shard (R41-R43): their rows, beside those of the account's list.
import { fromHex } from '../../base/bytes/bytes.ts';
import type { View } from '../../ports/state-machine.ts';
import { type BucketName, makeOutboxId, type OutboxId } from '../../types/names.ts';
import { type NameRecord, nameCodec } from '../../types/records/rows.ts';
import { nameRow } from '../schema/keyspace.ts';

export function findName(view: View, name: BucketName): NameRecord | undefined {
  const row = view.row(nameRow(name));
  return row && nameCodec.decode(row);
}

/** The item that finishes a creation whose gateway went away; the name's row leads to it. */
export function creationItemId({ createdAtMs, bucketId }: NameRecord): OutboxId {
  return makeOutboxId({ timeMs: createdAtMs, tail: fromHex(bucketId) });
}
