// What a process that serves clients knows of itself, as data: the server of a single node, or a gateway of a cluster. Its
// status report (server-report.ts), its alarms (alarms.ts) and its gauges (metrics.ts) are made from it.

import type { Accounts } from '../../accounts/accounts.ts';
import type { LostChunks } from '../../chunks/disk/lost-chunks.ts';
import type { Scrub, ScrubProgress } from '../../chunks/disk/scrub.ts';
import type { DamageNames } from '../../metadata/blobs/name-damage-worker.ts';
import type { KeyRotation } from '../../metadata/master-keys/rotate-keys.ts';
import type { ChunkPort } from '../../ports/chunks.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { TimeJumps } from '../../ports/time-jumps.ts';
import type { NamedDamage } from '../../types/named-damage.ts';

export interface ServerFacts {
  objectCount: number;
  /** As clients see them, before encryption. */
  objectBytes: number;
  bucketCount: number;
  /** By `kind state`. */
  jobCounts: ReadonlyMap<string, number>;
  /** Absent: no disk answers. */
  stored?: Awaited<ReturnType<ChunkPort['usage']>>;
  /** Deleted, but not yet given back to the file system. Absent: no disk answers. */
  pendingReclaimBytes?: number;
  /** Why one of both is absent. */
  failure?: unknown;
  /** How far the clock has jumped, waiting for the operator's word; else 0. */
  clockJumpMs: number;
  /** The longest time that the event loop stood still, lately; 0 when it was not long. */
  loopHeldMs: number;
  /** Of a single node: its own disk. */
  own?: {
    /** Chunks of live data that are known to be damaged, and to be missing. */
    damagedCount: number;
    missingCount: number;
    lostCount: number;
    /** Whose they are. */
    damage: NamedDamage;
    scrub: ScrubProgress;
  };
}

export interface ServerParts {
  metadata: MetadataPort;
  chunks: Pick<ChunkPort, 'usage'>;
  timeJumps: Pick<TimeJumps, 'unacceptedMs'>;
  pendingReclaimBytes(): Promise<number>;
  rotation: Pick<KeyRotation, 'progress'>;
  accounts: Pick<Accounts, 'list'>;
  /** Of a single node. */
  own?: {
    lost: Pick<LostChunks, 'count' | 'list' | 'blobs'>;
    scrub: Pick<Scrub, 'progress'>;
    damageNames: Pick<DamageNames, 'all'>;
  };
}

export async function readServer(
  { metadata, chunks, pendingReclaimBytes, timeJumps, own }: ServerParts,
  loopHeldMs: () => number,
): Promise<ServerFacts> {
  const [usage, jobCounts, clockJumpMs, [stored, pending]] = await Promise.all([
    countUsage(metadata),
    countJobs(metadata),
    timeJumps.unacceptedMs(),
    // With no disk that answers they are not known; all else is, and is needed then.
    Promise.allSettled([chunks.usage(), pendingReclaimBytes()]),
  ]);
  const failed = [stored, pending].find(({ status }) => status === 'rejected');
  return {
    ...usage,
    jobCounts,
    clockJumpMs,
    loopHeldMs: loopHeldMs(),
    ...(stored.status === 'fulfilled' && { stored: stored.value }),
    ...(pending.status === 'fulfilled' && { pendingReclaimBytes: pending.value }),
    ...(failed?.status === 'rejected' && { failure: failed.reason }),
    ...(own && {
      own: {
        damagedCount: own.lost.count('damaged'),
        missingCount: own.lost.count('missing'),
        lostCount: own.lost.list().length,
        damage: own.damageNames.all(own.lost.blobs().length),
        scrub: own.scrub.progress(),
      },
    }),
  };
}

/** By kind and state, over all shards that answer. */
async function countJobs(metadata: MetadataPort): Promise<Map<string, number>> {
  const shards = Array.from({ length: metadata.shardCount }, (_, shard) => shard);
  const replies = await Promise.all(shards.map((shard) => metadata.query({ shard }, 'count-jobs', {})));
  const total = new Map<string, number>();
  for (const reply of replies) {
    if (reply.kind !== 'done') continue;
    for (const { kind, state, count } of reply.value.counts) {
      const name = `${kind} ${state}`;
      total.set(name, (total.get(name) ?? 0) + count);
    }
  }
  return total;
}

/** Over all shards. One that does not answer is left out: the figures must not fail with it. */
async function countUsage(metadata: MetadataPort) {
  const shards = Array.from({ length: metadata.shardCount }, (_, shard) => shard);
  const replies = await Promise.all(shards.map((shard) => metadata.query({ shard }, 'count-usage', {})));
  const total = { objectCount: 0, objectBytes: 0, bucketCount: 0 };
  for (const reply of replies) {
    if (reply.kind !== 'done') continue;
    total.objectCount += reply.value.objectCount;
    total.objectBytes += reply.value.sizeBytes;
    total.bucketCount += reply.value.bucketCount;
  }
  return total;
}
