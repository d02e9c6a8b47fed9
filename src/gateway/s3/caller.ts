// Who asks, as authentication finds out. Rules judge the account alone (`Principal` in src/policy/authorize.ts); policies have
// a form of their own for callers (src/policy/principals.ts).
import type { AccountRecord } from '../../types/records/rows.ts';

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
