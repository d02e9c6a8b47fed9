// What the server tells of itself: the status report and the gauges of the metrics, from the same figures.

import type { Accounts } from '../src/accounts/accounts.ts';
import { gaugeIfKnown } from '../src/adapters/prom-telemetry.ts';
import type { StatusReport } from '../src/gateway/operator/status-report.ts';
import type { KeyRotation } from '../src/metadata/background/rotate-keys.ts';
import { JOB_KINDS, JOB_STATES } from '../src/model/records/job-record.ts';
import type { MetadataPort } from '../src/ports/metadata.ts';
import type { Stores } from './open-stores.ts';
import type { Surroundings } from './surroundings.ts';
import { readVersion } from './version.ts';

export interface Reports {
  readStatus(endpoint: string): Promise<StatusReport>;
}

export function createReports(
  { telemetry, log, clock }: Surroundings,
  parts: Pick<Stores, 'metadata' | 'chunks' | 'pendingReclaimBytes' | 'timeJumps'> & {
    rotation: Pick<KeyRotation, 'progress'>;
    accounts: Pick<Accounts, 'list'>;
  },
): Reports {
  const { metadata, chunks, rotation, accounts, pendingReclaimBytes, timeJumps } = parts;
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
    gaugeIfKnown(telemetry, 'holdfast_disk_free_bytes', stored?.diskFreeBytes);
    gaugeIfKnown(telemetry, 'holdfast_disk_bytes', stored?.diskTotalBytes);
  });

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
