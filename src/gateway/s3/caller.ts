// Who asks, and what for: what authentication finds out and authorisation judges.
import type { AccountRecord } from '../../model/records/rows.ts';

/**
 * An action and the ARN that it acts on: the operation runs only when every pair is allowed. `not-denied`: it need not be
 * allowed, but where it is denied the operation is refused (extensions.md 2.1).
 */
export type AccessPair = readonly [action: string, resource: string, rule?: 'not-denied'];

/** Whose signature the request bears. */
export type Caller =
  | {
      kind: 'account';
      account: AccountRecord;
      accessKey: string;
      signatureVersion: 'SigV2' | 'SigV4';
      authType: 'AuthHeader' | 'QueryString';
    }
  | { kind: 'anonymous' };
