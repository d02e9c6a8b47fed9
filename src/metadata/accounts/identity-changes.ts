// The changes of identities, as rows that the commands write which make them (R46): numbered without gaps, the last
// ones kept. Creations are not among them: what was not there is in no cache.
import { toHex } from '../../base/bytes/bytes.ts';
import { TABLE_END } from '../../base/table-rows.ts';
import type { IdentityPosition } from '../../ports/identity-feed.ts';
import type { Revocation } from '../../ports/metadata/accounts.ts';
import type { RangeAddress, Row, RowAddress, RowPut, View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AccountId } from '../../types/names.ts';
import { identityChangeCodec } from '../../types/records/rows.ts';
import { readU48, u48 } from '../schema/key-parts.ts';
import { put, remove, TABLES } from '../schema/keyspace.ts';

const MARK_BYTES = 8;

export function identityChangeRow(seq: number): RowAddress {
  return { table: TABLES.identityChanges, key: u48(seq) };
}

/** Changes from number `from` on. */
export function identityChangeRange(from: number): RangeAddress {
  const { key, table } = identityChangeRow(from);
  return { table, gte: key, lt: TABLE_END, limit: LIMITS.identityChangesKept };
}

export const LAST_IDENTITY_CHANGE: RangeAddress = { ...identityChangeRange(0), limit: 1, reverse: true };

/** Before the first change. */
const BEGINNING: IdentityPosition = { seq: 0, mark: '' };

/** What `noteChange` will look at. */
export function lookAtChanges(view: View): void {
  view.range(LAST_IDENTITY_CHANGE);
}

/** For an answer that an account is gone: its deletion must have been applied by all gateways that wait for it (R46). */
export function allChanges(view: View): Revocation {
  const { seq } = positionOf(view.range(LAST_IDENTITY_CHANGE)[0]);
  return seq === 0 ? {} : { revokedSeq: seq };
}

/** One change more. Its command holds LOCK.identities. */
export function noteChange(
  view: View,
  { accountId, random }: { accountId: AccountId; random(sizeBytes: number): Uint8Array },
): { seq: number; puts: RowPut[] } {
  const seq = positionOf(view.range(LAST_IDENTITY_CHANGE)[0]).seq + 1;
  const change = { accountId, mark: toHex(random(MARK_BYTES)) };
  const puts = [put(identityChangeRow(seq), identityChangeCodec.encode(change))];
  const oldest = seq - LIMITS.identityChangesKept;
  if (oldest > 0) puts.push(remove(identityChangeRow(oldest)));
  return { seq, puts };
}

/** Of a change; undefined: before all of them. */
export function positionOf(row: Row | undefined): IdentityPosition {
  if (row === undefined) return BEGINNING;
  return { seq: readU48(row.key), mark: identityChangeCodec.decode(row.value).mark };
}
