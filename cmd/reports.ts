// What the server tells of itself: the status report and the gauges of the metrics, from the same figures.

import type { Accounts } from '../src/accounts/accounts.ts';
import { alarmsOfNode } from '../src/admin/node-alarms.ts';
import type { Surroundings } from '../src/admin/process-context.ts';
import { measureFolderRoom } from '../src/admin/room-report.ts';
import { chunkRoomOf } from '../src/chunks/disk/disk-reserve.ts';
import type { StatusReport } from '../src/gateway/operator-api/status-report.ts';
import type { KeyRotation } from '../src/metadata/master-keys/rotate-keys.ts';
import { gaugeIfKnown } from '../src/platform/telemetry/prom-telemetry.ts';
import { readVersion } from '../src/platform/version.ts';
import type { MetadataPort } from '../src/ports/metadata.ts';
import { JOB_KINDS, JOB_STATES } from '../src/types/records/job-record.ts';
import type { Stores } from './open-stores.ts';

export interface Reports {
  readStatus(endpoint: string): Promise<StatusReport>;
}

export function createReports(
  { telemetry, log, clock, loop }: Surroundings,
  parts: Pick<Stores, 'metadata' | 'chunks' | 'pendingReclaimBytes' | 'timeJumps'> & {
    rotation: Pick<KeyRotation, 'progress'>;
    accounts: Pick<Accounts, 'list'>;
    /** Of a single node. */
    own?: Pick<Stores, 'lost' | 'scrub'>;
  },
): Reports {
  const { metadata, chunks, rotation, accounts, pendingReclaimBytes, timeJumps, own } = parts;
  const startedAtMs = clock.wallMs();
  const startedAt = new Date(startedAtMs).toISOString();

  telemetry.onScrape(async () => {
    const [usage, jobs, stored, pendingBytes] = await Promise.all([
      countUsage(metadata),
      countJobs(metadata),
      // With no disk that answers they are not known; all else is, and is needed then.
      chunks.usage().catch(() => undefined),
      pendingReclaimBytes().catch(() => undefined),
    ]);
    telemetry.gauge('holdfast_objects', usage.objectCount);
    telemetry.gauge('holdfast_object_bytes', usage.objectBytes);
    telemetry.gauge('holdfast_buckets', usage.bucketCount);
    for (const kind of JOB_KINDS) {
      for (const state of JOB_STATES) {
        telemetry.gauge('holdfast_jobs', jobs.get(`${kind} ${state}`) ?? 0, { kind, state });
      }
    }
    gaugeIfKnown(telemetry, 'holdfast_chunks', stored?.chunkCount);
    gaugeIfKnown(telemetry, 'holdfast_chunk_bytes', stored?.liveBytes);
    gaugeIfKnown(telemetry, 'holdfast_pending_reclaim_bytes', pendingBytes);
    if (own === undefined) {
      gaugeIfKnown(telemetry, 'holdfast_disk_free_bytes', stored?.diskFreeBytes);
      gaugeIfKnown(telemetry, 'holdfast_disk_bytes', stored?.diskTotalBytes);
      return;
    }
    measureFolderRoom(telemetry, stored && chunkRoomOf(stored));
    telemetry.gauge('holdfast_lost_chunks', own.lost.list().length);
    const { share, foundCount, endedAtMs } = own.scrub.progress();
    telemetry.gauge('holdfast_disk_scrub_progress_ratio', share);
    telemetry.gauge('holdfast_disk_scrub_found_chunks', foundCount);
    const endedAt = endedAtMs === undefined ? undefined : endedAtMs / 1000;
    gaugeIfKnown(telemetry, 'holdfast_disk_scrub_ended_timestamp_seconds', endedAt);
  });

  function stateOf(
    stored: { diskFreeBytes: number; diskTotalBytes: number },
    { lost }: Pick<Stores, 'lost'>,
  ) {
    const [damagedCount, missingCount] = [lost.count('damaged'), lost.count('missing')];
    const room = chunkRoomOf(stored);
    return {
      diskFullBelowBytes: room.fullBelowBytes,
      diskScarceBelowBytes: room.scarceBelowBytes,
      damagedChunkCount: damagedCount,
      missingChunkCount: missingCount,
      alarms: alarmsOfNode({
        ...{ room, damagedCount, missingCount },
        clockJumpMs: timeJumps.unacceptedMs(),
        loopHeldMs: loop.heldMs(),
      }),
    };
  }

  return {
    async readStatus(endpoint) {
      const [usage, stored, pendingBytes, allAccounts] = await Promise.all([
        countUsage(metadata),
        chunks.usage(),
        pendingReclaimBytes(),
        accounts.list(),
      ]);
      return {
        version: readVersion(),
        endpoint,
        startedAt,
        uptimeMs: clock.wallMs() - startedAtMs,
        accountCount: allAccounts.length,
        ...usage,
        chunkCount: stored.chunkCount,
        chunkBytes: stored.liveBytes,
        pendingReclaimBytes: pendingBytes,
        diskFreeBytes: stored.diskFreeBytes,
        diskTotalBytes: stored.diskTotalBytes,
        ...(own && stateOf(stored, own)),
        clockJumpMs: timeJumps.unacceptedMs(),
        keys: rotation.progress(),
        lastErrors: log.recent(),
      };
    },
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
