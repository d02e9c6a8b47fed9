// What the shard said of a delete, as an error or a success; DeleteObject throws the error, DeleteObjects lists it.
import { unreachable } from '../../../base/assert.ts';
import type { DeleteOutcome } from '../../../ports/metadata/versions.ts';
import { blockedRemoval } from '../../../types/delete-blocker.ts';
import { AppError } from '../../../types/errors.ts';

export type Deleted = Extract<DeleteOutcome, { kind: 'deleted' }>;

/** The success, or throws AccessDenied (s3-behaviour 41), PreconditionFailed, NoSuchKey. */
export function requireDeleted(outcome: DeleteOutcome): Deleted {
  switch (outcome.kind) {
    case 'deleted':
      return outcome;
    case 'blocked':
      throw blockedRemoval(outcome.blocker);
    case 'precondition-failed':
      throw new AppError('PreconditionFailed', { fields: { Condition: outcome.condition } });
    case 'no-such-key':
      throw new AppError('NoSuchKey');
    default:
      return unreachable(outcome);
  }
}
