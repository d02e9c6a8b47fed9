// Idempotency tokens by age (extensions.md 2.1), oldest first.
import { fromUtf8, toHex } from '../../lib/bytes.ts';
import type { BucketId } from '../../model/names.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { readU48 } from '../key-parts.ts';
import { TABLES, timeRange } from '../keyspace.ts';
import { TOKEN_AT, TOKEN_TIME_BYTES } from '../tokens.ts';

export const listKeptTokens: QuerySpec<QueryOf<'list-kept-tokens'>, ResultOf<'list-kept-tokens'>> = {
  async run({ fromMs, olderThanMs, limit }, state, { nowMs }) {
    const toMs = Math.max(0, nowMs - olderThanMs);
    const rows = await state.range(timeRange({ table: TABLES.tokenTimes, fromMs, toMs, limit }));
    const tokens = rows.map(({ key }) => ({
      keptAtMs: readU48(key),
      bucketId: toHex(key.subarray(TOKEN_TIME_BYTES, TOKEN_TIME_BYTES + TOKEN_AT)) as BucketId,
      token: fromUtf8(key.subarray(TOKEN_TIME_BYTES + TOKEN_AT)),
    }));
    return { tokens };
  },
};
