// x-amz-expiration of an object that a request has made without knowing its size and tags: an upload that is completed, a composition,
// an append. They are looked up where a rule may ask for them.
import type { ObjectKey, VersionId } from '../../../types/names.ts';
import type { OperationContext } from '../context.ts';
import { expirationHeader, hasExpiration } from '../request/lifecycle-headers.ts';
import { queryVersion } from './find-version.ts';

/** undefined where no rule applies, and where it is not the current one any more. */
export async function madeExpiration(
  context: OperationContext,
  made: { key: ObjectKey; versionId: VersionId },
): Promise<string | undefined> {
  if (!hasExpiration(context)) return undefined;
  // The object is there: the answer does without the header rather than fail.
  const found = await queryVersion(context, context.bucket(), { ...made, includeBody: false }).catch(
    () => undefined,
  );
  if (found?.kind !== 'found' || !found.isLatest) return undefined;
  return expirationHeader(context, { ...found.version, key: made.key });
}
