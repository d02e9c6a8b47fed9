// Who asks, as authentication finds out.
import type { AccountRecord } from '../../types/records/rows.ts';
import type { Principal } from '../auth/principal.ts';

/** Whose signature the request bears. */
export type Caller =
  | {
      kind: 'account';
      account: AccountRecord;
      /** Root, user or session, with the policies that allow and limit it. */
      principal: Principal;
      accessKey: string;
      signatureVersion: 'SigV2' | 'SigV4';
      authType: 'AuthHeader' | 'QueryString' | 'Form';
    }
  | { kind: 'anonymous' };
