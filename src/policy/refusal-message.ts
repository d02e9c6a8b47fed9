// The message for a refused caller, in AWS's words (AWS "Troubleshoot access denied error messages"): who asked for what,
// and which kind of policy denied it or should have allowed it. Nothing about other accounts: across accounts no reason is
// given.
import type { PolicyDecision, PolicyKind } from './evaluate.ts';
import type { Caller } from './principals.ts';

/** With its article, as `in` has it, and without. */
const WORDS: Readonly<Record<PolicyKind, readonly [denying: string, lacking: string]>> = {
  identity: ['an identity-based policy', 'identity-based policy'],
  boundary: ['a permissions boundary', 'permissions boundary'],
  session: ['a session policy', 'session policy'],
  resource: ['a resource-based policy', 'resource-based policy'],
  trust: ['the role trust policy', 'role trust policy'],
};

export interface Refused {
  readonly caller: Caller;
  readonly action: string;
  readonly resource: string;
  readonly resourceAccount: string;
  readonly decision: Extract<PolicyDecision, { isAllowed: false }>;
  /** S3 puts the resource into quotation marks, IAM and STS do not. */
  readonly isOfS3: boolean;
}

/** undefined: anonymous callers, and S3 callers of another account than the resource's, get `Access Denied` and no more. */
export function refusalMessage(refused: Refused): string | undefined {
  const { caller, action, resource, resourceAccount, decision, isOfS3 } = refused;
  if (caller.kind === 'anonymous') return undefined;
  const isOfAccount = caller.accountId === resourceAccount;
  if (isOfS3 && !isOfAccount) return undefined;
  const named = isOfS3 ? `"${resource}"` : resource;
  const what = `User: ${caller.arn} is not authorized to perform: ${action} on resource: ${named}`;
  if (!isOfAccount) return what;
  if (decision.reason === 'explicit-deny')
    return `${what} with an explicit deny in ${WORDS[decision.by.kind][0]}`;
  return `${what} because no ${WORDS[decision.lacking][1]} allows the ${action} action`;
}
