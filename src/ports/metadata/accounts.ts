// Commands and queries of the system shard about accounts and their keys, and the changes that gateways must know (R46).
import type { AccountId } from '../../types/names.ts';
import type { AccountRemovalRecord } from '../../types/records/account-removal-record.ts';
import type {
  IdentityRecord,
  IdentitySettingsRecord,
  KeyUseRecord,
  RoleUseRecord,
  StoredPrincipal,
} from '../../types/records/identity-records.ts';
import type { MailRecord } from '../../types/records/mail-record.ts';
import type { HeldMasterKeys, MasterKeysRecord } from '../../types/records/master-keys-record.ts';
import type { AccessKeyRecord, AccountRecord } from '../../types/records/rows.ts';
import type {
  CustomerRecord,
  NewCustomerRecord,
  NewTenancyRecord,
  TenancyKind,
  TenancyRecord,
} from '../../types/records/tenancy-records.ts';
import type { IdentityChange, IdentityPosition } from '../identity-feed.ts';

/** Of an outcome that takes rights away. */
export interface Revocation {
  /** R46: the number of its change of identities; answered once gateways have applied it. Absent: nothing was revoked. */
  revokedSeq?: number;
  /**
   * Some gateway could not be waited for by the shard's primary, which holds no answer for so long: it stops to use its cache
   * within this time. Whoever gave the command answers its client after it.
   */
  settlesInMs?: number;
}

/** Of a command about what opens an account. */
export interface Signed {
  /** The access key of long term that has signed for it. Where it is gone, disabled or suspended by now, nothing is done. */
  by?: string;
}

/** What happens to an access key of a user together with a change of identities. */
export type KeyOfUserChange =
  | { kind: 'add'; key: Pick<AccessKeyRecord, 'accessKey' | 'sealedSecret'> & { userId: string } }
  | { kind: 'delete' | 'disable' | 'enable'; accessKey: string };

export interface AccountCommands {
  'create-account': {
    command: {
      account: Omit<AccountRecord, 'createdAtMs' | 'bucketCount'>;
      accessKey: Omit<AccessKeyRecord, 'createdAtMs' | 'accountId'>;
      /** The account is a sub-account: its record comes with it. */
      customer?: NewCustomerRecord;
      /** How its root signs in by hand: the first of its identities. */
      rootLogin?: IdentitySettingsRecord['rootLogin'];
    };
    outcome:
      | { kind: 'created'; account: AccountRecord; customer?: CustomerRecord }
      | { kind: 'conflict'; field: 'accountId' | 'name' | 'email' | 'canonicalId' | 'accessKey' };
  };
  'set-account': {
    command: {
      accountId: AccountId;
      changes: Partial<
        Pick<AccountRecord, 'state' | 'bucketsMax' | 'isUnpaid' | 'mayBePublic' | 'name' | 'email'>
      >;
      /** Of the sub-account that it is, in the same commit; `ifRevision` as of `change-tenancy`. */
      customer?: { record: CustomerRecord; ifRevision: number };
    };
    outcome: /** `outdated`: the sub-account's record has changed since. */
      | (({ kind: 'changed'; account: AccountRecord } | { kind: 'no-such-account' }) & Revocation)
      | { kind: 'conflict'; field: 'name' | 'email' }
      | { kind: 'outdated' };
  };
  'delete-account': {
    /** `withBuckets`: where it owns some, its keys go now, and the worker removes the rest. Repeated: tries again now. */
    /** `ifNotHeld`: not one that an operator has suspended. */
    command: { accountId: AccountId; withBuckets?: true; ifNotHeld?: true };
    outcome: /** No such account, or no more: who revokes again hears it no sooner than who did. */
      | (({ kind: 'deleted' } | { kind: 'no-such-account' }) & Revocation)
      | { kind: 'owns-buckets' }
      | { kind: 'is-held' }
      | { kind: 'is-root' };
  };
  /** Replaces the account's row of removals behind step `stepCount`; null: nothing of the account is left. */
  'note-account-removal': {
    command: { accountId: AccountId; stepCount: number; after: AccountRemovalRecord | null };
    outcome: { kind: 'noted'; stepCount: number } | { kind: 'elsewhere' };
  };
  /** A mail to a customer; where there are too many, the oldest one goes of the control account that has most. */
  'add-mail': {
    /** `isBounded`: partners order so many and no more. */
    command: {
      mail: Pick<MailRecord, 'kind' | 'customerId' | 'controlId' | 'to' | 'isToBeSent'>;
      isBounded?: true;
    };
    /** `waits`: one that is like it is to be sent yet. */
    outcome: { kind: 'added'; mail: MailRecord } | { kind: 'waits' } | { kind: 'too-many' };
  };
  'note-mail': {
    /** With `ifTriedAtMs`: only of one that waits and was last tried then; null: never. */
    command: { id: number; state: MailRecord['state']; failure?: string; ifTriedAtMs?: number | null };
    outcome: { kind: 'noted'; mail: MailRecord } | { kind: 'gone' } | { kind: 'elsewhere' };
  };
  'add-access-key': {
    command: {
      accountId: AccountId;
      accessKey: Pick<AccessKeyRecord, 'accessKey' | 'sealedSecret'>;
      /** All others of the account go in the same commit. */
      isOnly?: true;
    } & Signed;
    outcome:
      | ({ kind: 'added'; accessKey: AccessKeyRecord } & Revocation)
      | { kind: 'no-such-signer' }
      | { kind: 'no-such-account' }
      | { kind: 'taken' }
      | { kind: 'too-many-keys' };
  };
  'change-access-key': {
    command: { accountId: AccountId; accessKey: string; change: 'disable' | 'enable' | 'delete' } & Signed;
    outcome: /** Of a key that is gone: who revokes again hears it no sooner than who did. */
      | (({ kind: 'changed' } | { kind: 'no-such-key' }) & Revocation)
      | { kind: 'last-key-of-root' }
      | { kind: 'no-such-signer' };
  };
  /**
   * Writes rows of identities that were decided by what `read-identities` gave at revision `ifRevision`: `conflict` where
   * anything of the account has changed since. A record of null removes the row.
   */
  'change-identities': {
    command: {
      accountId: AccountId;
      ifRevision: number;
      rows: { key: string; record: IdentityRecord | null }[];
      keys?: KeyOfUserChange[];
      alias?: { before?: string; after?: string };
      /** Records of the tree that change in the same commit; as `replace` of `change-tenancy`. */
      records?: { record: TenancyRecord; ifRevision: number }[];
      /** And that come with it; as `add`. */
      newRecords?: NewTenancyRecord[];
      /** Gateways may have it in memory: answered once all of them go by it. False for what is new. */
      isSeen: boolean;
    } & Signed;
    outcome: /** `conflict`: read again, decide again. */
    /** `added`: of `newRecords`. */
      | ({ kind: 'changed'; revision: number; added?: TenancyRecord[] } & Revocation)
      | { kind: 'conflict' }
      | { kind: 'no-such-account' }
      | { kind: 'alias-taken' }
      | { kind: 'key-taken' }
      | { kind: 'login-taken' };
  };
  /** Removes what a deleted account has left of identities, `limit` rows at most. */
  'forget-identities': {
    command: { accountId: AccountId; limit: number };
    outcome: { kind: 'forgotten'; isAll: boolean } | { kind: 'account-exists' };
  };
  /**
   * Adds records, or replaces them where they still have this revision: all of them or none. `conflict`: read again, decide
   * again. `taken`: the login is another record's.
   */
  'change-tenancy': {
    command: {
      add?: NewTenancyRecord[];
      replace?: { record: TenancyRecord; ifRevision: number }[];
    };
    outcome: { kind: 'changed'; records: TenancyRecord[] } | { kind: 'conflict' } | { kind: 'taken' };
  };
  /** When access keys and sessions of roles were used last; earlier notes than what is there change nothing. */
  'note-key-uses': {
    command: {
      uses: ({ accessKey: string } & KeyUseRecord)[];
      roles?: ({ accountId: AccountId; id: string } & Omit<RoleUseRecord, 'kind'>)[];
    };
    outcome: { kind: 'noted' };
  };
}

export interface AccountQueries {
  'get-access-key': {
    /**
     * `mayBeDisabled`: for those who look at keys; such a key signs nothing. `textsBytesMax`: whose policies take more is answered
     * as `large`, without them; default: any number.
     */
    query: { accessKey: string; mayBeDisabled?: true; textsBytesMax?: number };
    result: /** `principal`: of a user's key. */
      | {
          kind: 'found';
          accessKey: AccessKeyRecord;
          account: AccountRecord;
          principal?: StoredPrincipal;
        }
      | { kind: 'large'; account: AccountRecord; entity: { id: string; name: string } }
      | { kind: 'unknown' };
  };
  /** A user or role by its id; null: there is none. `textsBytesMax`: likewise. */
  'get-principal': {
    query: { accountId: AccountId; id: string; textsBytesMax?: number };
    result: { account: AccountRecord; principal: StoredPrincipal | 'large' } | null;
  };
  /** Rows of an account's identities, one look at one moment. `after`: a key; ranges go by key. */
  'read-identities': {
    query: {
      accountId: AccountId;
      keys?: string[];
      ranges?: { prefix: string; after?: string; limit: number }[];
    };
    result: {
      revision: number;
      rows: (IdentityRecord | null)[];
      ranges: { key: string; record: IdentityRecord }[][];
    };
  };
  'get-key-uses': { query: { accessKeys: string[] }; result: { uses: (KeyUseRecord | null)[] } };
  /** The keys of an account by name, in order. */
  'list-access-keys': { query: { accountId: AccountId }; result: { accessKeys: AccessKeyRecord[] } };
  'get-account': { query: { accountId: AccountId }; result: { account: AccountRecord | null } };
  /**
   * R46: what has changed since. `gateway` names who asks, one process for its life: revocations wait for it. `reset`:
   * what lies between is not kept, or was never so. `held` and `masterKeys`: the master keys that it has, and that the
   * cluster uses.
   */
  'identity-changes': {
    query: { gateway: string; since?: IdentityPosition; held?: HeldMasterKeys };
    result: (
      | { kind: 'changes'; upTo: IdentityPosition; changes: IdentityChange[] }
      | { kind: 'reset'; upTo: IdentityPosition }
    ) & { masterKeys?: MasterKeysRecord };
  };
  /**
   * Records that have changed since change number `since`, `limit` at most, in order of their last changes; each once.
   * `upTo`: where the next question goes on. A number above all there are: the history is another one, ask from 0 again.
   */
  'tenancy-changes': {
    query: { since: number; limit: number };
    result: { records: TenancyRecord[]; upTo: number; isAll: boolean; lastChange: number };
  };
  /** Records by id, in the order of the ids; null: there is none. */
  'read-tenancy': {
    query: { ids: number[] };
    result: { records: (TenancyRecord | null)[] };
  };
  /** A record by its login. */
  'find-tenancy': {
    query: { kind: Extract<TenancyKind, 'partner-user' | 'member'>; login: string };
    result: { record: TenancyRecord | null };
  };
  /** Accounts that are deleted and have left something, by id. */
  'list-account-removals': {
    query: { after?: AccountId; limit: number };
    result: { removals: AccountRemovalRecord[]; next?: AccountId; nowMs: number };
  };
  /** null: nothing of it is left, or it is not deleted. */
  'get-account-removal': {
    query: { accountId: AccountId };
    /** `bucketCount`: buckets that the account still owns. */
    result: { removal: AccountRemovalRecord | null; bucketCount: number };
  };
  /** The newest first. */
  'list-mails': { query: Record<never, never>; result: { mails: MailRecord[] } };
  'find-account': {
    query: { name?: string; email?: string; canonicalId?: string; alias?: string };
    result: { account: AccountRecord | null };
  };
  'list-accounts': {
    query: { after?: AccountId; limit: number };
    result: { accounts: AccountRecord[]; accessKeys: string[][] };
  };
}
