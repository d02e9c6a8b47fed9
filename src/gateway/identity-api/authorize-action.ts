// Whether a caller may take an action of IAM or STS: the one place that decides it.
import type { PolicyDecision } from '../../policy/evaluate.ts';
import type { ContextOf } from '../../policy/patterns.ts';
import type { Caller } from '../../policy/principals.ts';
import { refusalMessage } from '../../policy/refusal-message.ts';
import { AppError } from '../../types/errors.ts';
import type { AccountRecord } from '../../types/records/rows.ts';
import type { SignedCaller } from '../http/service-route.ts';

/** Who asks, as IAM and STS know callers. */
export interface IdentityCaller {
  readonly account: AccountRecord;
  readonly accessKey: string;
  /** As policies see it. */
  readonly principal: Exclude<Caller, { kind: 'anonymous' }>;
  /** The name of a user, also where a session of it asks. */
  readonly userName?: string;
}

export interface ActionQuestion {
  /** As policies name it, `iam:GetUser`. */
  readonly action: string;
  /** ARN, or `*` for an action of no resource. */
  readonly resource: string;
  /** Whose the resource is. */
  readonly resourceAccount: string;
  /** Condition keys of the action and its resource; global ones are not among them. */
  readonly contextOf: ContextOf;
}

export function callerOf({ account, accessKey }: SignedCaller): IdentityCaller {
  const { accountId, canonicalId } = account;
  const arn = `arn:aws:iam::${accountId}:root`;
  return { account, accessKey, principal: { kind: 'root', accountId, canonicalId, arn } };
}

/** Throws AccessDenied, which names caller, action and resource. */
export async function authorizeAction(caller: IdentityCaller, question: ActionQuestion): Promise<void> {
  const { action, resource, resourceAccount } = question;
  const { principal } = caller;
  if (principal.kind === 'root' && principal.accountId === resourceAccount) return;
  const decision: PolicyDecision = { isAllowed: false, reason: 'no-allow', lacking: 'identity' };
  const refused = { caller: principal, action, resource, resourceAccount, decision, isOfS3: false };
  const message = refusalMessage(refused);
  throw new AppError('AccessDenied', message === undefined ? {} : { message });
}
