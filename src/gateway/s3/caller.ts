// Who asks, and what for: what authentication finds out and authorisation judges.
import type { AccessRule } from '../../policy/authorize.ts';
import type { AccountRecord } from '../../types/records/rows.ts';

/**
 * An action and the ARN that it acts on: the operation runs only when every pair is allowed, by its rule (AccessRule of
 * policy/authorize.ts).
 */
export type AccessPair = readonly [action: string, resource: string, rule?: AccessRule];

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
