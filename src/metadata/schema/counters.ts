// The counters of a shard: their names, and what changes of versions add to them. Objects are all versions but delete
// markers, current or not; bytes are theirs, as often as versions show them, however many share a blob. Parts of open
// uploads are not counted. Besides there is a vector of each bucket and day: what the day has changed of what is metered, whose
// fields types/metered.ts lists. The sum of all days up to one is what was stored at that day's end.

import type { CounterDelta } from '../../ports/state-machine.ts';
import type { EventConsumer } from '../../types/events.ts';
import { AT, add, addVersion, dayOf, noUsage } from '../../types/metered.ts';
import type { AccountId, BucketId, LinkId } from '../../types/names.ts';
import type { JobKind, JobState } from '../../types/records/job-record.ts';
import type { BucketRecord } from '../../types/records/rows.ts';
import { dataLinkId, type VersionRecord } from '../../types/version.ts';

export const COUNTER = {
  objects: 'objects',
  bytes: 'bytes',
  /** Open buckets whose home this is. */
  buckets: 'buckets',
  /** Blobs that are marked for deletion and not yet erased. */
  condemned: 'condemned',
  /** Keys that were renamed, ever: a walk over all versions compares it to see whether one has passed it by. */
  moves: 'moves',
  /** What is kept of requests that are over, in all and of one account: under tokens, and without (outcome-bounds.ts). */
  keptBytes: 'kept-bytes',
  accountOutcomeBytes: (accountId: AccountId) => `kept-bytes/${accountId}`,
  tokenlessBytes: 'tokenless-bytes',
  accountTokenlessBytes: (accountId: AccountId) => `tokenless-bytes/${accountId}`,
  /** Jobs that are kept. */
  jobs: (kind: JobKind, state: JobState) => `jobs/${kind}/${state}`,
  /** Blobs that lack copies, and their chunks that do, by the fewest copies. */
  debts: (copies: number) => `debts/${copies}`,
  debtChunks: (copies: number) => `debt-chunks/${copies}`,
  /** Events that were ever written for a consumer: the number of the next one. */
  events: (consumer: EventConsumer) => `events/${consumer}`,
  /** Changes of what is in the bucket that may make due what was not, where anything goes by itself (lifecycle-rows.ts). */
  lifecycleChanges: (bucketId: BucketId) => `bucket/${bucketId}/lifecycle-changes`,
  bucketObjects: (bucketId: BucketId) => `bucket/${bucketId}/objects`,
  bucketBytes: (bucketId: BucketId) => `bucket/${bucketId}/bytes`,
  /** A vector: what the day has changed of what is metered of the bucket. */
  dayUsage: (bucketId: BucketId, day: number) => `usage/${bucketId}/${day}`,
  /** Of the parts of open uploads, for quotas. */
  bucketUploadBytes: (bucketId: BucketId) => `bucket/${bucketId}/upload-bytes`,
  /** The same of all buckets of an account in this shard. */
  accountObjects: (accountId: AccountId) => `account/${accountId}/objects`,
  accountBytes: (accountId: AccountId) => `account/${accountId}/bytes`,
  accountUploadBytes: (accountId: AccountId) => `account/${accountId}/upload-bytes`,
  /** How much of an account's quota the shard may fill (quotas/held.ts). */
  quotaLease: (accountId: AccountId, field: 'bytes' | 'objects' | 'version') =>
    `account/${accountId}/lease-${field}`,
} as const;

/** Versions of one bucket that come and go in one entry. */
export interface UsageChange {
  added: readonly VersionRecord[];
  removed: readonly VersionRecord[];
  /** Links that versions of this entry begin, or take over: data under them is not deleted. */
  begun?: readonly { linkId: LinkId }[];
}

export function usageDeltas(
  { bucketId, owner }: Pick<BucketRecord, 'bucketId' | 'owner'>,
  change: UsageChange,
  metering: { nowMs: number; minimumDays: number },
): CounterDelta[] {
  const days = daysOf(change, metering);
  const [today] = days;
  if (today === undefined) return [];
  const objects = today.delta[AT.objects] ?? 0;
  const bytes = today.delta[AT.rawBytes] ?? 0;
  const deltas = [
    { name: COUNTER.objects, delta: objects },
    { name: COUNTER.bucketObjects(bucketId), delta: objects },
    { name: COUNTER.bytes, delta: bytes },
    { name: COUNTER.bucketBytes(bucketId), delta: bytes },
    { name: COUNTER.accountObjects(owner), delta: objects },
    { name: COUNTER.accountBytes(owner), delta: bytes },
  ].filter(({ delta }) => delta !== 0);
  return [...deltas, ...days.map(({ day, delta }) => ({ name: COUNTER.dayUsage(bucketId, day), delta }))];
}

/**
 * Today, and the days on which the minimum duration of what goes has passed. What goes inside of it is deleted storage until
 * then: today gets it, and that day gives it back, so nothing is to be done when the day comes. None: nothing is changed.
 */
function daysOf(
  { added, removed, begun = [] }: UsageChange,
  { nowMs, minimumDays }: { nowMs: number; minimumDays: number },
): { day: number; delta: number[] }[] {
  const sums = noUsage();
  const today = dayOf(nowMs);
  const ends = new Map<number, number[]>();
  for (const version of added) addVersion(sums, version, 1);
  for (const version of removed) {
    const padded = addVersion(sums, version, -1);
    const endsOn = dayOf(version.modifiedAtMs) + minimumDays;
    if (padded === 0 || today >= endsOn || isCarried(version, begun)) continue;
    const atEnd = ends.get(endsOn) ?? noUsage();
    ends.set(endsOn, atEnd);
    for (const [on, sign] of [
      [sums, 1],
      [atEnd, -1],
    ] as const) {
      add(on, AT.deletedObjects, sign);
      add(on, AT.deletedBytes, sign * padded);
    }
  }
  if (sums.every((sum) => sum === 0)) return [];
  return [{ day: today, delta: sums }, ...[...ends].map(([day, delta]) => ({ day, delta }))];
}

/** Whether its data goes on as another version's, as where a copy onto itself or an append takes its place. */
function isCarried({ manifest }: VersionRecord, begun: readonly { linkId: LinkId }[]): boolean {
  const linkId = dataLinkId(manifest);
  return linkId !== null && begun.some((link) => link.linkId === linkId);
}

/** One delta for each counter. */
export function sumDeltas(deltas: readonly CounterDelta[]): CounterDelta[] {
  const sums = new Map<string, number | number[]>();
  for (const { name, delta } of deltas) {
    const sum = sums.get(name);
    if (typeof delta === 'number') sums.set(name, Number(sum ?? 0) + delta);
    else if (!Array.isArray(sum)) sums.set(name, [...delta]);
    else for (const [at, by] of delta.entries()) add(sum, at, by);
  }
  return [...sums].map(([name, delta]) => ({ name, delta }));
}
