// Idempotency tokens (extensions 2.1): what a request did is kept under the token that it bore, in the entry that did
// it, so that sending it again repeats the answer and not the deed. A command that takes one asks for it in `locks`,
// `look` and `decide`, before it looks at anything that its first run may have changed.
import { concatBytes, fromHex, fromUtf8, toHex, utf8 } from '../../base/bytes/bytes.ts';
import type { IdempotencyToken, StoredToken, TokenAnswer } from '../../ports/metadata/jobs.ts';
import type { LockRequest, RangeAddress, RowAddress, View } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import type { AccountId, BucketId } from '../../types/names.ts';
import { type TokenRecord, tokenCodec } from '../../types/records/rows.ts';
import { NO_CHANGE, type RowChange } from '../blobs/repair-entries.ts';
import { findBucket } from '../buckets/buckets.ts';
import { rangeBehind } from '../buckets/rows-of-buckets.ts';
import { exclusive, LOCK } from '../schema/define-command.ts';
import { u48 } from '../schema/key-parts.ts';
import { PRESENT, prefixRange, put, remove, TABLES } from '../schema/keyspace.ts';
import { outcomeDeltas } from './outcome-bounds.ts';

const BUCKET_ID_BYTES = 8;
/** What the store takes for both rows of a token, besides their keys and the record. */
const ROWS_BYTES = 64;

export interface TokenUse {
  bucketId: BucketId;
  token?: IdempotencyToken;
}

type TokenName = Pick<StoredToken, 'bucketId' | 'token'>;

export function tokenRow(bucketId: BucketId, token: string): RowAddress {
  return { table: TABLES.tokens, key: concatBytes(fromHex(bucketId), utf8(token)) };
}

/** Those of a bucket; `after` is a row's key, exclusive. */
export function bucketTokens(
  bucketId: BucketId,
  { after, limit }: { after?: Uint8Array | undefined; limit: number },
): RangeAddress {
  return rangeBehind(prefixRange({ table: TABLES.tokens, prefix: fromHex(bucketId), limit }), after);
}

export function readTokenKey(rowKey: Uint8Array): { bucketId: BucketId; token: string } {
  return {
    bucketId: toHex(rowKey.subarray(0, BUCKET_ID_BYTES)) as BucketId,
    token: fromUtf8(rowKey.subarray(BUCKET_ID_BYTES)),
  };
}

export function tokenTimeRow(keptAtMs: number, bucketId: BucketId, token: string): RowAddress {
  const parts = [u48(keptAtMs), fromHex(bucketId), utf8(token)];
  return { table: TABLES.tokenTimes, key: concatBytes(...parts) };
}

/** Where bucket and token begin in a row of `tokenTimes`. */
export const TOKEN_TIME_BYTES = 6;

export function tokenLocks({ bucketId, token }: TokenUse): LockRequest[] {
  return token === undefined ? [] : [exclusive(LOCK.token(bucketId, token.token))];
}

export function lookAtToken({ bucketId, token }: TokenUse, view: View): void {
  if (token !== undefined) view.row(tokenRow(bucketId, token.token));
}

/**
 * What the token stands for already; undefined: nothing yet, or it is too old. An outcome is as it was, whatever has become
 * of its subject.
 */
export function storedOutcome<Outcome>(
  { bucketId, token }: TokenUse,
  view: View,
  nowMs: number,
): TokenAnswer<Outcome> | undefined {
  const row = token && view.row(tokenRow(bucketId, token.token));
  return row && outcomeIn(row, token, nowMs);
}

/** The same of the token's row. */
export function outcomeIn<Outcome>(
  row: Uint8Array,
  token: IdempotencyToken | undefined,
  nowMs: number,
): TokenAnswer<Outcome> | undefined {
  const { digest, keptAtMs, outcome } = tokenCodec.decode(row);
  if (isExpired(keptAtMs, nowMs)) return undefined;
  return digest === token?.digest
    ? { kind: 'repeated', outcome: outcome as Outcome }
    : { kind: 'token-reused' };
}

/**
 * What keeps `outcome` under the token for LIMITS.idempotencyTokenKeptMs, nothing without a token. An expired outcome that
 * has not been removed yet is replaced. Whether it may be kept is asked of mayBeStored (outcome-bounds.ts), before anything is
 * done. `payer`: for whom it counts where there is no bucket whose owner it could be.
 */
export function keepOutcome(
  { bucketId, token }: TokenUse,
  outcome: unknown,
  { owner, nowMs, view, payer }: { owner: AccountId; nowMs: number; view: View; payer?: string },
): RowChange {
  if (token === undefined) return NO_CHANGE;
  const record = { digest: token.digest, keptAtMs: nowMs, outcome, ...(payer !== undefined && { payer }) };
  const rows = [tokenRow(bucketId, token.token), tokenTimeRow(nowMs, bucketId, token.token)] as const;
  const keysBytes = rows.reduce((sum, { key }) => sum + key.length, ROWS_BYTES);
  const keptBytes = keysBytes + tokenCodec.encode(record).length;
  const expired = view.row(rows[0]);
  const before = expired && tokenCodec.decode(expired);
  const puts = [put(rows[0], tokenCodec.encode({ ...record, keptBytes })), put(rows[1], PRESENT)];
  if (before !== undefined && before.keptAtMs !== nowMs)
    puts.push(remove(tokenTimeRow(before.keptAtMs, bucketId, token.token)));
  return { puts, counters: outcomeDeltas(owner, keptBytes - (before?.keptBytes ?? 0)) };
}

function isExpired(keptAtMs: number, nowMs: number): boolean {
  return nowMs - keptAtMs >= LIMITS.idempotencyTokenKeptMs;
}

/** For `look` of what forgets tokens. */
export function lookAtStored({ bucketId, token }: TokenName, view: View): void {
  view.row(tokenRow(bucketId, token));
  findBucket(view, bucketId);
}

/** What forgets a token; nothing when it is too young, or gone. */
export function forgetToken(name: TokenName, view: View, nowMs: number): RowChange {
  const row = view.row(tokenRow(name.bucketId, name.token));
  if (row === undefined) return NO_CHANGE;
  const record = tokenCodec.decode(row);
  if (!isExpired(record.keptAtMs, nowMs)) return NO_CHANGE;
  return dropToken(name, record, findBucket(view, name.bucketId)?.owner);
}

/** `ownerOfBucket`: undefined where there is none. */
export function dropToken(
  { bucketId, token }: TokenName,
  { keptAtMs, keptBytes = 0, payer }: TokenRecord,
  ownerOfBucket: AccountId | undefined,
): RowChange {
  const owner = payerOf(payer, ownerOfBucket);
  return {
    puts: [remove(tokenRow(bucketId, token)), remove(tokenTimeRow(keptAtMs, bucketId, token))],
    counters: outcomeDeltas(owner, -keptBytes),
  };
}

/** In whose share of what is kept a token's outcome counts. Undefined: in that of all alone, as older answers do. */
export function payerOf(
  payer: TokenRecord['payer'],
  ownerOfBucket: AccountId | undefined,
): AccountId | undefined {
  return (payer as AccountId | undefined) ?? ownerOfBucket;
}
