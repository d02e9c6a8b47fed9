// What a request of the account management API was answered, kept under its Idempotency-Key: for services whose requests are
// about no bucket. The rows are those of idempotency tokens, under the id of no bucket, and are forgotten with them.
import type { CommandOf, OutcomeOf } from '../../ports/metadata/port.ts';
import type { AccountId, BucketId } from '../../types/names.ts';
import { defineCommand } from '../schema/define-command.ts';
import { mayBeStored } from './outcome-bounds.ts';
import { keepOutcome, lookAtToken, storedOutcome, tokenLocks } from './tokens.ts';

/** Ids of buckets are random; this one is never made. */
const NO_BUCKET = '0000000000000000' as BucketId;

export const keepAnswer = defineCommand<CommandOf<'keep-answer'>, OutcomeOf<'keep-answer'>>({
  locks: ({ token }) => tokenLocks({ bucketId: NO_BUCKET, token }),

  look({ token }, view) {
    lookAtToken({ bucketId: NO_BUCKET, token }, view);
  },

  decide({ token, answer, payer }, view, { nowMs, counter }) {
    const use = { bucketId: NO_BUCKET, token };
    if (storedOutcome(use, view, nowMs) !== undefined) return { outcome: { kind: 'kept' }, puts: [] };
    const kept = keepOutcome(use, answer, { owner: payer as AccountId, nowMs, view, payer });
    if (!mayBeStored(payer as AccountId, kept.counters, { counter })) {
      return { outcome: { kind: 'too-much-kept' }, puts: [] };
    }
    return { outcome: { kind: 'kept' }, ...kept };
  },
});
