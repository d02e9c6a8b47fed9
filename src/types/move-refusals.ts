// Why nothing of a key was renamed, and the code and text for the client: an Error element (extensions 2.1).
import { unreachable } from '../base/assert.ts';
import { type DeleteBlocker, explainBlocker } from './delete-blocker.ts';
import { ERRORS, type ErrorCode } from './errors.ts';
import { LIMITS } from './limits.ts';
import type { VersionId } from './names.ts';

export type MoveRefusal =
  | { kind: 'no-such-key' }
  /** An object is under the destination, or one of its versions would be lost there. */
  | { kind: 'exists' }
  | { kind: 'blocked'; versionId: VersionId; blocker: DeleteBlocker }
  /** A version has an access control list, and who asks may not give one at the destination. */
  | { kind: 'not-private' }
  /** More than one entry may hold; or more than are looked at where it would move in several. */
  | { kind: 'too-many-versions' }
  /** It is the source or destination of a rename that takes several entries. */
  | { kind: 'being-renamed' }
  | { kind: 'key-too-long' }
  /** Another object, or one with other tags, is there than the caller was judged by. */
  | { kind: 'not-judged' }
  | { kind: 'source-condition' | 'target-condition'; condition: string };

export function explainMoveRefusal(refusal: MoveRefusal): { code: ErrorCode; message: string } {
  const code = codeOf(refusal);
  if (refusal.kind === 'blocked') return { code, message: explainBlocker(refusal.blocker) };
  if (refusal.kind === 'not-private') {
    const message =
      'It has an access control list, which goes along: that needs s3:PutObjectAcl at the destination.';
    return { code, message };
  }
  if (refusal.kind !== 'too-many-versions') return { code, message: ERRORS[code].message };
  const message = `A key with more than ${LIMITS.moveCheckedVersionsMax} versions, or very large ones, cannot be renamed in a bucket whose versions may be protected, or without s3:PutObjectAcl at the destination.`;
  return { code, message };
}

function codeOf(refusal: MoveRefusal): ErrorCode {
  switch (refusal.kind) {
    case 'no-such-key':
      return 'NoSuchKey';
    case 'exists':
      return 'ObjectAlreadyExists';
    case 'blocked':
    case 'not-private':
      return 'AccessDenied';
    case 'too-many-versions':
      return 'InvalidRequest';
    case 'being-renamed':
      return 'OperationAborted';
    case 'key-too-long':
      return 'KeyTooLongError';
    case 'not-judged':
      return 'ServiceUnavailable';
    case 'source-condition':
    case 'target-condition':
      return 'PreconditionFailed';
    default:
      return unreachable(refusal);
  }
}
