// Metrics of the repair entries of shards led here: by copies, and the remaining time at the pace of the last minutes.

import type { ClockPort } from '../../ports/clock.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { TelemetryPort } from '../../ports/telemetry.ts';
import type { Worker } from '../../ports/worker.ts';
import { COPIES_UNKNOWN } from '../../types/repair-entries.ts';

const LOOK_EVERY_MS = 10_000;
/** Weight of the newest look in the pace. */
const NEWEST_SHARE = 0.2;

export function createRepairWatch(deps: {
  metadata: MetadataPort;
  shards(): readonly number[];
  clock: ClockPort;
  telemetry: TelemetryPort;
}): Worker {
  const { metadata, shards, clock, telemetry } = deps;
  let last: { byShard: Map<number, number>; atMs: number } | undefined;
  let chunksPerMs = 0;

  /** By copies, and the chunks of each shard; those that do not answer are left out, and counted. */
  async function count(): Promise<{
    sums: { blobCount: number; chunkCount: number }[];
    byShard: Map<number, number>;
    silentCount: number;
  }> {
    const sums = Array.from({ length: COPIES_UNKNOWN + 1 }, () => ({ blobCount: 0, chunkCount: 0 }));
    const byShard = new Map<number, number>();
    let silentCount = 0;
    for (const shard of shards()) {
      const reply = await metadata.query({ shard }, 'count-debts', {});
      if (reply.kind !== 'done') {
        silentCount++;
        continue;
      }
      byShard.set(shard, 0);
      for (const { copies, ...some } of reply.value.debts) {
        const sum = sums[copies];
        if (sum === undefined) continue;
        sum.blobCount += some.blobCount;
        sum.chunkCount += some.chunkCount;
        byShard.set(shard, (byShard.get(shard) ?? 0) + some.chunkCount);
      }
    }
    return { sums, byShard, silentCount };
  }

  /** A shard that is led elsewhere now, or does not answer, has not been repaired. */
  function repairedSince(before: ReadonlyMap<number, number>, now: ReadonlyMap<number, number>): number {
    let repaired = 0;
    for (const [shard, chunkCount] of now) repaired += (before.get(shard) ?? chunkCount) - chunkCount;
    return Math.max(0, repaired);
  }

  return {
    name: 'watch-repairs',
    async work() {
      const { sums, byShard, silentCount } = await count();
      telemetry.gauge('holdfast_shards_unanswered', silentCount, { question: 'debts' });
      for (const [copies, { blobCount, chunkCount }] of sums.entries()) {
        const labels = { copies: copies === COPIES_UNKNOWN ? 'unknown' : String(copies) };
        telemetry.gauge('holdfast_repair_entries', blobCount, labels);
        telemetry.gauge('holdfast_chunks_to_repair', chunkCount, labels);
      }
      const chunkCount = sums.reduce((sum, some) => sum + some.chunkCount, 0);
      const atMs = clock.monotonicMs();
      if (last !== undefined && atMs > last.atMs) {
        const pace = repairedSince(last.byShard, byShard) / (atMs - last.atMs);
        chunksPerMs = chunksPerMs === 0 ? pace : chunksPerMs + NEWEST_SHARE * (pace - chunksPerMs);
      }
      if (last !== undefined) telemetry.gauge('holdfast_repair_chunks_per_second', chunksPerMs * 1000);
      last = { byShard, atMs };
      const leftMs =
        chunkCount === 0 ? 0 : chunksPerMs === 0 ? Number.POSITIVE_INFINITY : chunkCount / chunksPerMs;
      telemetry.gauge('holdfast_repair_left_seconds', leftMs / 1000);
      return { state: 'idle', idleMs: LOOK_EVERY_MS };
    },
  };
}
