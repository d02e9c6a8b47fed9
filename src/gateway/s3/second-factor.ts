// The second factor of requests that remove versions for good, or switch that protection (extensions 3.1): a code of the caller's
// own device in x-amz-mfa, or credentials behind which MFA stands.
import { AppError } from '../../types/errors.ts';
import type { MfaCodes } from '../identity-api/mfa-codes.ts';
import type { Caller } from './caller.ts';
import type { ResolvedBucket } from './context.ts';

export const MFA_HEADER = 'x-amz-mfa';

/** The device's ARN or serial, blanks, six digits. */
const VALUE = /^(\S{1,256})\s+(\d{6})$/;

/**
 * Whether the request has a second factor. Its code is used up by the first question: ask once for each request
 * (`OperationContext.hasSecondFactor` does).
 */
export async function checkSecondFactor(
  mfaCodes: MfaCodes,
  caller: Caller,
  header: string | undefined,
): Promise<boolean> {
  if (caller.kind === 'anonymous') return false;
  const { principal, account } = caller;
  const { session } = principal;
  if (session?.mfaAtMs !== undefined) return session.isMfaUnvouched !== true;
  const [, serial, code] = VALUE.exec(header?.trim() ?? '') ?? [];
  if (serial === undefined || code === undefined) return false;
  const asked = { accountId: account.accountId, serial, code, owner: principal.id };
  return (await mfaCodes.verify(asked)) === 'vouched';
}

/** Devices of other accounts are theirs to make: they guard nothing of this one. */
export function mayHaveFactorFor({ record }: ResolvedBucket, caller: Caller): boolean {
  return caller.kind === 'account' && caller.account.accountId === record.owner;
}

/** Whether versions of the bucket go for good only with a second factor. */
export function needsSecondFactor({ configs }: ResolvedBucket): boolean {
  return configs.versioning?.mfaDelete === 'enabled';
}

export function secondFactorMissing(): AppError {
  return new AppError('AccessDenied', { message: SECOND_FACTOR_MISSING });
}

export const SECOND_FACTOR_MISSING =
  "Mfa Authentication must be used for this request: x-amz-mfa with a device of the caller and its present code, or credentials that were given with MFA; of the bucket's account, and by a device that was enabled with MFA.";
