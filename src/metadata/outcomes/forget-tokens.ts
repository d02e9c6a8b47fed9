// Forgets what requests with idempotency tokens were answered once it has been kept long enough.
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import { joinChanges } from '../blobs/repair-entries.ts';
import { defineCommand, exclusive, LOCK, shared } from '../schema/define-command.ts';
import { forgetToken, lookAtStored } from './tokens.ts';

export const forgetTokens = defineCommand<CommandOf<'forget-tokens'>, OutcomeOf<'forget-tokens'>>({
  locks: ({ tokens }) =>
    tokens.flatMap(({ bucketId, token }) => [
      exclusive(LOCK.token(bucketId, token)),
      // Who empties the bucket takes its tokens, too, and none may be counted down twice.
      shared(LOCK.bucket(bucketId)),
    ]),

  look({ tokens }, view) {
    for (const token of tokens) lookAtStored(token, view);
  },

  decide({ tokens }, view, { nowMs }) {
    const each = new Map(tokens.map((token) => [LOCK.token(token.bucketId, token.token), token]));
    const changes = [...each.values()].map((token) => forgetToken(token, view, nowMs));
    return { outcome: { kind: 'forgotten' }, ...joinChanges(changes) };
  },
});
