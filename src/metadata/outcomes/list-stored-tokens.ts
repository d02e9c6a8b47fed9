// Idempotency tokens by age (extensions 2.1), oldest first.
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { readU48 } from '../schema/key-parts.ts';
import { TABLES, timeRange } from '../schema/keyspace.ts';
import { readTokenKey, TOKEN_TIME_BYTES } from './tokens.ts';

export const listStoredTokens: QuerySpec<QueryOf<'list-kept-tokens'>, ResultOf<'list-kept-tokens'>> = {
  async run({ fromMs, olderThanMs, limit }, state, { nowMs }) {
    const toMs = Math.max(0, nowMs - olderThanMs);
    const rows = await state.range(timeRange({ table: TABLES.tokenTimes, fromMs, toMs, limit }));
    const tokens = rows.map(({ key }) => ({
      keptAtMs: readU48(key),
      ...readTokenKey(key.subarray(TOKEN_TIME_BYTES)),
    }));
    return { tokens };
  },
};
