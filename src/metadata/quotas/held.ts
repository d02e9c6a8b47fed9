// What buckets and accounts hold in a shard, as its counters have it, and what a command adds to it. Parts of open uploads hold
// room, too: an upload whose parts were taken can be completed.
import type { CounterDelta, DecideContext } from '../../ports/state-machine.ts';
import type { AccountId, BucketId } from '../../types/names.ts';
import type { HeldAmount } from '../../types/quota.ts';
import type { QuotaLease } from '../../types/records/quota-record.ts';
import type { PartRecord } from '../../types/records/rows.ts';
import { COUNTER } from '../schema/counters.ts';

type Counter = DecideContext['counter'];

/** Names of the counters whose sums are what is held. */
export interface HeldCounters {
  bytes: readonly string[];
  objects: readonly string[];
}

export const ofBucket = (bucketId: BucketId): HeldCounters => ({
  bytes: [COUNTER.bucketBytes(bucketId), COUNTER.bucketUploadBytes(bucketId)],
  objects: [COUNTER.bucketObjects(bucketId)],
});

export const ofAccount = (accountId: AccountId): HeldCounters => ({
  bytes: [COUNTER.accountBytes(accountId), COUNTER.accountUploadBytes(accountId)],
  objects: [COUNTER.accountObjects(accountId)],
});

export function heldIn({ bytes, objects }: HeldCounters, counter: Counter): HeldAmount {
  const sum = (names: readonly string[]) => names.reduce((total, name) => total + counter(name), 0);
  return { bytes: sum(bytes), objects: sum(objects) };
}

export function growthIn({ bytes, objects }: HeldCounters, deltas: readonly CounterDelta[]): HeldAmount {
  const sum = (names: readonly string[]) =>
    deltas.reduce((total, { name, delta }) => (names.includes(name) ? total + Number(delta) : total), 0);
  return { bytes: sum(bytes), objects: sum(objects) };
}

/** What parts of uploads that come and go add to what bucket and account hold. */
export function partDeltas(change: {
  added?: readonly PartRecord[];
  removed?: readonly PartRecord[];
}): CounterDelta[] {
  const sums = new Map<string, number>();
  const add = ({ heldBy, sizeBytes }: PartRecord, sign: number) => {
    if (heldBy === undefined) return;
    for (const name of [COUNTER.bucketUploadBytes(heldBy.bucketId), COUNTER.accountUploadBytes(heldBy.owner)])
      sums.set(name, (sums.get(name) ?? 0) + sign * sizeBytes);
  };
  for (const part of change.added ?? []) add(part, 1);
  for (const part of change.removed ?? []) add(part, -1);
  return [...sums].flatMap(([name, delta]) => (delta === 0 ? [] : [{ name, delta }]));
}

export const namesOf = ({ bytes, objects }: HeldCounters) => [...bytes, ...objects];

export const leaseCounters = (accountId: AccountId) => leaseNames(accountId).map(({ name }) => name);

const leaseNames = (accountId: AccountId) =>
  (['bytes', 'objects', 'version'] as const).map((field) => ({
    field,
    name: COUNTER.quotaLease(accountId, field),
  }));

/** A lease is kept in counters, which are in memory: a commit does not read a row for it. 0: none; else one more than it is. */
export function leaseOf(accountId: AccountId, counter: Counter): QuotaLease | undefined {
  if (counter(COUNTER.quotaLease(accountId, 'bytes')) === 0) return undefined;
  const [bytes = 0, objects = 0, version = 0] = leaseNames(accountId).map(({ name }) => counter(name));
  return { bytes: bytes - 1, objects: objects - 1, version };
}

/** Of the last lease, if it is closed since: versions are never used twice. */
export function lastLeaseVersion(accountId: AccountId, counter: Counter): number {
  return counter(COUNTER.quotaLease(accountId, 'version'));
}

export function leaseDeltas(accountId: AccountId, lease: QuotaLease, counter: Counter): CounterDelta[] {
  const { bytes, objects, version } = lease;
  return deltasTo(accountId, { bytes: bytes + 1, objects: objects + 1, version }, counter);
}

/** Ends the lease. A later one is newer than `version`, too. */
export function closedLeaseDeltas(accountId: AccountId, version: number, counter: Counter): CounterDelta[] {
  const last = Math.max(version, lastLeaseVersion(accountId, counter));
  return deltasTo(accountId, { bytes: 0, objects: 0, version: last }, counter);
}

function deltasTo(accountId: AccountId, stored: QuotaLease, counter: Counter): CounterDelta[] {
  return leaseNames(accountId)
    .map(({ field, name }) => ({ name, delta: stored[field] - counter(name) }))
    .filter(({ delta }) => delta !== 0);
}
