// Idempotency tokens (extensions.md 2.1): what a request did is kept under the token that it bore, in the entry that did
// it, so that sending it again repeats the answer and not the deed. A command that takes one asks for it in `locks`,
// `look` and `decide`, before it looks at anything that its first run may have changed.
import { concatBytes, fromHex, fromUtf8, toHex, utf8 } from '../lib/bytes.ts';
import { LIMITS } from '../model/limits.ts';
import type { BucketId } from '../model/names.ts';
import { tokenCodec } from '../model/records/rows.ts';
import type { TokenAnswer } from '../ports/compose-calls.ts';
import type { IdempotencyToken } from '../ports/extension-calls.ts';
import type { LockRequest, RangeAddress, RowAddress, RowPut, View } from '../ports/state-machine.ts';
import { exclusive, LOCK } from './define-command.ts';
import { u48 } from './key-parts.ts';
import { PRESENT, prefixRange, put, remove, TABLES } from './keyspace.ts';
import { rangeBehind } from './rows-of-buckets.ts';

const BUCKET_ID_BYTES = 8;

export interface TokenUse {
  bucketId: BucketId;
  token?: IdempotencyToken;
}

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

/** What the token stands for already; undefined: nothing yet. An outcome is as it was, whatever has become of its subject. */
export function keptOutcome<Outcome>(
  { bucketId, token }: TokenUse,
  view: View,
): TokenAnswer<Outcome> | undefined {
  const row = token && view.row(tokenRow(bucketId, token.token));
  return row && outcomeIn(row, token);
}

/** The same of the token's row. */
export function outcomeIn<Outcome>(
  row: Uint8Array,
  token: IdempotencyToken | undefined,
): TokenAnswer<Outcome> {
  const { digest, outcome } = tokenCodec.decode(row);
  return digest === token?.digest
    ? { kind: 'repeated', outcome: outcome as Outcome }
    : { kind: 'token-reused' };
}

/** The rows that keep `outcome` under the token for LIMITS.idempotencyTokenKeptMs; none without a token. */
export function keepOutcome({ bucketId, token }: TokenUse, outcome: unknown, nowMs: number): RowPut[] {
  if (token === undefined) return [];
  const record = { digest: token.digest, keptAtMs: nowMs, outcome };
  return [
    put(tokenRow(bucketId, token.token), tokenCodec.encode(record)),
    put(tokenTimeRow(nowMs, bucketId, token.token), PRESENT),
  ];
}

/** The rows that forget a token; none when it is too young, or gone. */
export function forgetToken(
  { bucketId, token }: { bucketId: BucketId; token: string },
  view: View,
  nowMs: number,
): RowPut[] {
  const address = tokenRow(bucketId, token);
  const row = view.row(address);
  if (row === undefined) return [];
  const { keptAtMs } = tokenCodec.decode(row);
  if (nowMs - keptAtMs < LIMITS.idempotencyTokenKeptMs) return [];
  return [remove(address), remove(tokenTimeRow(keptAtMs, bucketId, token))];
}
