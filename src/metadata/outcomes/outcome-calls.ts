// The commands and queries of stored outcomes (extensions 2.1): how much is stored, what a token stands for, and how tokens are
// forgotten.
import type { CommandOf, OutcomeOf, QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec } from '../../ports/state-machine.ts';
import { joinChanges } from '../blobs/repair-entries.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { readU48 } from '../schema/key-parts.ts';
import { TABLES, timeRange } from '../schema/keyspace.ts';
import { TOKENLESS, UNDER_TOKENS } from './outcome-bounds.ts';
import { forgetToken, lookAtStored, outcomeIn, readTokenKey, TOKEN_TIME_BYTES, tokenRow } from './tokens.ts';

/** Commands look for themselves. This is for requests whose answer would else depend on what became of other objects since. */
export const getStoredOutcome: QuerySpec<QueryOf<'get-kept-outcome'>, ResultOf<'get-kept-outcome'>> = {
  async run({ bucketId, token }, state, { nowMs }) {
    const [row] = await state.rows([tokenRow(bucketId, token.token)]);
    return (row && outcomeIn(row, token, nowMs)) ?? { kind: 'none' };
  },
};

// How much a shard keeps of requests that are over, as outcome-bounds.ts counts it.

export const countOutcomes: QuerySpec<QueryOf<'count-kept'>, ResultOf<'count-kept'>> = {
  async run(_query, state) {
    const [tokenBytes = 0, tokenlessBytes = 0] = await state.counters([UNDER_TOKENS.all, TOKENLESS.all]);
    return { tokenBytes, tokenlessBytes };
  },
};

// Idempotency tokens by age (extensions 2.1), oldest first.

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

// Forgets what requests with idempotency tokens were answered once it has been kept long enough.

export const forgetTokens = defineCommand<CommandOf<'forget-tokens'>, OutcomeOf<'forget-tokens'>>({
  locks: ({ tokens }) =>
    tokens.flatMap(({ bucketId, token }) => [
      exclusive(LOCK.token(bucketId, token)),
      // Who empties the bucket takes its tokens, too, and none may be counted down twice.
      shared(LOCK.bucket(bucketId)),
    ]),

  leavesBusy: ({ leavesBusy }) => leavesBusy === true,

  look({ tokens }, view) {
    for (const token of tokens) lookAtStored(token, view);
  },

  decide({ tokens }, view, { nowMs, left: busy }) {
    const each = new Map(tokens.map((token) => [LOCK.token(token.bucketId, token.token), token]));
    const left = [...each].flatMap(([name, token]) =>
      busy.has(name) || busy.has(LOCK.bucket(token.bucketId)) ? [token] : [],
    );
    const changes = [...each.values()].flatMap((token) =>
      left.includes(token) ? [] : [forgetToken(token, view, nowMs)],
    );
    return { outcome: { kind: 'forgotten', ...(left.length > 0 && { left }) }, ...joinChanges(changes) };
  },
});
