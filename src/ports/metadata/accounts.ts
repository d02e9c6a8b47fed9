// Commands and queries of the system shard about accounts and their keys, and the changes that gateways must know (R46).
import type { AccountId } from '../../types/names.ts';
import type { AccessKeyRecord, AccountRecord } from '../../types/records/rows.ts';
import type { IdentityChange, IdentityPosition } from '../identity-feed.ts';

/** Of an outcome that takes rights away. */
export interface Revocation {
  /** R46: the number of its change of identities; answered once gateways have applied it. Absent: nothing was revoked. */
  revokedSeq?: number;
}

export interface AccountCommands {
  'create-account': {
    command: {
      account: Omit<AccountRecord, 'createdAtMs' | 'bucketCount'>;
      accessKey: Omit<AccessKeyRecord, 'createdAtMs' | 'accountId'>;
    };
    outcome:
      | { kind: 'created'; account: AccountRecord }
      | { kind: 'conflict'; field: 'accountId' | 'name' | 'email' | 'canonicalId' | 'accessKey' };
  };
  'set-account': {
    command: { accountId: AccountId; changes: Partial<Pick<AccountRecord, 'state' | 'bucketsMax'>> };
    outcome: ({ kind: 'changed'; account: AccountRecord } | { kind: 'no-such-account' }) & Revocation;
  };
  'delete-account': {
    command: { accountId: AccountId };
    outcome: /** No such account, or no more: who revokes again hears it no sooner than who did. */
      | (({ kind: 'deleted' } | { kind: 'no-such-account' }) & Revocation)
      | { kind: 'owns-buckets' }
      | { kind: 'is-root' };
  };
  'add-access-key': {
    command: { accountId: AccountId; accessKey: Pick<AccessKeyRecord, 'accessKey' | 'sealedSecret'> };
    outcome:
      | { kind: 'added'; accessKey: AccessKeyRecord }
      | { kind: 'no-such-account' }
      | { kind: 'taken' }
      | { kind: 'too-many-keys' };
  };
  'change-access-key': {
    command: { accountId: AccountId; accessKey: string; change: 'disable' | 'enable' | 'delete' };
    outcome: /** Of a key that is gone: who revokes again hears it no sooner than who did. */
    (({ kind: 'changed' } | { kind: 'no-such-key' }) & Revocation) | { kind: 'last-key-of-root' };
  };
}

export interface AccountQueries {
  'get-access-key': {
    query: { accessKey: string };
    result: { kind: 'found'; accessKey: AccessKeyRecord; account: AccountRecord } | { kind: 'unknown' };
  };
  /** The keys of an account by name, in order. */
  'list-access-keys': { query: { accountId: AccountId }; result: { accessKeys: AccessKeyRecord[] } };
  'get-account': { query: { accountId: AccountId }; result: { account: AccountRecord | null } };
  /**
   * R46: what has changed since. `gateway` names who asks, one process for its life: revocations wait for it. `reset`:
   * what lies between is not kept, or was never so.
   */
  'identity-changes': {
    query: { gateway: string; since?: IdentityPosition };
    result:
      | { kind: 'changes'; upTo: IdentityPosition; changes: IdentityChange[] }
      | { kind: 'reset'; upTo: IdentityPosition };
  };
  'find-account': {
    query: { name?: string; email?: string; canonicalId?: string };
    result: { account: AccountRecord | null };
  };
  'list-accounts': {
    query: { after?: AccountId; limit: number };
    result: { accounts: AccountRecord[]; accessKeys: string[][] };
  };
}
