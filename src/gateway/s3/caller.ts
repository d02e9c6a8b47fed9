// Who asks, and what for: what authentication finds out and authorisation judges.
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
