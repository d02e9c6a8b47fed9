// Lifecycle rules that a bucket had when MFA delete was switched on go on removing versions. Who brings versions under such a rule,
// by another key or other tags, has them removed, and needs the second factor that their deletion needs (extensions 3.1).
import type { BucketLifecycle } from '../../../types/lifecycle.ts';
import type { OperationContext } from '../context.ts';
import { mayHaveFactorFor, needsSecondFactor, secondFactorMissing } from '../second-factor.ts';
import { presentBucket } from './present-bucket.ts';

/**
 * AccessDenied where rules that look at `what` remove versions, and the request has no second factor. For rows with
 * `decidesInRun`: a cached row refuses nobody.
 */
export async function requireFactorUnderRules(
  context: OperationContext,
  what: 'prefix' | 'tags',
): Promise<void> {
  const bucket = context.bucket();
  if (!needsSecondFactor(bucket) || !hasRulesBy(what, bucket.configs.lifecycle)) return;
  if (mayHaveFactorFor(bucket, context.caller) && (await context.hasSecondFactor())) return;
  await presentBucket(context);
  throw secondFactorMissing();
}

function hasRulesBy(what: 'prefix' | 'tags', lifecycle: BucketLifecycle | undefined): boolean {
  return (lifecycle?.rules ?? []).some(({ isEnabled, filter, expiration, noncurrentExpiration }) => {
    const removes = expiration !== undefined || noncurrentExpiration !== undefined;
    return isEnabled && removes && (filter[what] ?? '').length > 0;
  });
}
