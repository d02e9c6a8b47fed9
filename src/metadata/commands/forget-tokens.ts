// Forgets what requests with idempotency tokens were answered once it has been kept long enough.
import type { CommandOf, OutcomeOf } from '../../ports/metadata.ts';
import { defineCommand, exclusive, LOCK } from '../define-command.ts';
import { forgetToken, tokenRow } from '../tokens.ts';

export const forgetTokens = defineCommand<CommandOf<'forget-tokens'>, OutcomeOf<'forget-tokens'>>({
  locks: ({ tokens }) => tokens.map(({ bucketId, token }) => exclusive(LOCK.token(bucketId, token))),

  look({ tokens }, view) {
    for (const { bucketId, token } of tokens) view.row(tokenRow(bucketId, token));
  },

  decide({ tokens }, view, { nowMs }) {
    const puts = tokens.flatMap((token) => forgetToken(token, view, nowMs));
    return { outcome: { kind: 'forgotten' }, puts };
  },
});
