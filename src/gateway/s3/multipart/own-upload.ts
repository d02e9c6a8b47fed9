// Uploads of others, as far as a bucket's access control list goes.
import type { AccountId } from '../../../types/names.ts';
import type { OperationContext } from '../context.ts';

/**
 * Who may write by the bucket's list alone lists and aborts uploads of its own, and nobody else's: AWS gives them to whoever began
 * them and to the bucket's account. Anonymous callers have none of their own. Throws AccessDenied.
 */
export async function requireOwnUpload(
  context: OperationContext,
  { action, resource, initiator }: { action: string; resource: string; initiator: AccountId },
): Promise<void> {
  if (isOfBucketsAccount(context)) return;
  const { caller } = context;
  if (caller.kind === 'account' && caller.account.accountId === initiator) return;
  await context.alsoNeed([[action, resource, undefined, { isOfOthersUpload: true }]]);
}

/** Whose uploads are not looked at: lists say nothing to it. */
export function isOfBucketsAccount(context: OperationContext): boolean {
  const { caller } = context;
  return caller.kind === 'account' && caller.account.accountId === context.bucket().record.owner;
}
