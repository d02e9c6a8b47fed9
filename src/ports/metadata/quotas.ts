// Commands and queries about quotas. An account's hard bounds are exact although its buckets are in many shards: each shard fills
// its lease alone, and the system shard grants no more in leases than the bounds. A grant is written before the lease that uses
// it, and a lease is given back before its grant, so the sum of leases never passes the bounds, whatever crashes in between.
import type { AccountId, BucketId, ObjectKey } from '../../types/names.ts';
import type { HeldAmount, PassedBound, Quota } from '../../types/quota.ts';
import type { AccountQuotaRecord, QuotaLease, QuotaSource } from '../../types/records/quota-record.ts';

/** A command would grow beyond a hard bound: nothing is written. */
export type OverQuota = { kind: 'over-quota' } & PassedBound;

/**
 * It would grow beyond the lease of its shard. `wanted`: the least one with which it fits. Gateways extend the lease and ask again
 * (metadata/quotas/lease-quotas.ts), so that requests see an OverQuota, if anything.
 */
export interface OverLease {
  kind: 'over-lease';
  accountId: AccountId;
  wanted: HeldAmount;
}

/** Of commands under quotas (metadata/quotas/enforce-quotas.ts). */
export type QuotaRefusal = OverQuota | OverLease;

export interface QuotaCommands {
  // ---- the system shard ----
  /** null takes away what this source has set. */
  'set-account-quota': {
    command: { accountId: AccountId; source: QuotaSource; quota: Quota | null };
    outcome: { kind: 'set'; quota: AccountQuotaRecord | null } | { kind: 'no-such-account' };
  };
  /** Grants a shard a lease of `wanted` at least: more where much is free, so that it does not ask for each object. */
  'grant-quota': {
    command: { accountId: AccountId; shard: number; wanted: HeldAmount };
    outcome:
      | { kind: 'granted'; lease: QuotaLease }
      | { kind: 'short'; unit: keyof HeldAmount; bound: number }
      /** Some shard has no lease yet, or soon has none: when that is done, ask again. */
      | { kind: 'opening' }
      | { kind: 'closing' }
      | { kind: 'no-quota' };
  };
  /** A shard has this lease: the first one, or a smaller one than it was granted. */
  'note-quota-lease': {
    command: { accountId: AccountId; shard: number; lease: QuotaLease };
    /** `other`: it was granted another one since. */
    outcome: { kind: 'noted' } | { kind: 'other' };
  };
  /** All shards have a lease, or none any more. */
  'end-quota-phase': {
    command: { accountId: AccountId; phase: 'opening' | 'closing'; shardCount: number };
    outcome: { kind: 'ended' | 'not-so' };
  };

  /** The account holds more than its soft bounds, which is an event, or no longer does. Where that is known nothing happens. */
  'note-soft-quota': {
    command: { accountId: AccountId; isAbove: boolean };
    outcome: { kind: 'noted' | 'unchanged' };
  };

  // ---- each shard ----
  /** Whether a body of this size fits, before it is taken in. Changes nothing but that a gateway extends the lease for it. */
  'check-room': {
    command: { bucketId: BucketId; key: ObjectKey; sizeBytes: number; isPart?: true };
    outcome: { kind: 'room' } | QuotaRefusal;
  };
  /**
   * The first lease is what the account holds in the shard. One that is there stays as large, and is newer from then on: a call that
   * was to end it, and is on its way, comes to nothing.
   */
  'open-quota-lease': { command: { accountId: AccountId }; outcome: { kind: 'opened'; lease: QuotaLease } };
  /** Nothing where the shard has a newer one, or none. */
  'set-quota-lease': {
    command: { accountId: AccountId; lease: QuotaLease };
    outcome: { kind: 'set' | 'unchanged' };
  };
  /** Lowers the lease to what is held, and to no less than `version`: a grant of it that is on its way comes to nothing. */
  'shrink-quota-lease': {
    command: { accountId: AccountId; version: number };
    outcome: { kind: 'shrunk'; lease: QuotaLease } | { kind: 'no-lease' };
  };
  /**
   * `version`: of the last grant, which may be on its way: the next lease is newer than that. `newer`: the lease is newer, and
   * stays.
   */
  'close-quota-lease': {
    command: { accountId: AccountId; version: number };
    outcome: { kind: 'closed' } | { kind: 'newer'; version: number };
  };
}

export interface QuotaQueries {
  'get-account-quota': { query: { accountId: AccountId }; result: { quota: AccountQuotaRecord | null } };
  /** By account. */
  'list-account-quotas': {
    query: { after?: AccountId; limit: number };
    /** `next`: there may be more behind this account. */
    result: { quotas: AccountQuotaRecord[]; next?: AccountId };
  };
  /** What an account holds in this shard. `lease`: null where it has none. */
  'get-held': {
    query: { accountId: AccountId };
    result: { held: HeldAmount; lease: QuotaLease | null };
  };
  /** The same of some accounts, in their order, without leases. */
  'get-held-of-accounts': { query: { accountIds: readonly AccountId[] }; result: { held: HeldAmount[] } };
  /** What a bucket holds. */
  'get-held-by-bucket': { query: { bucketId: BucketId }; result: { held: HeldAmount } };
}
