// Reports the disks of a storage node: metrics, and a capacity that has changed since it was announced.
import { within } from '../../base/async/within.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { TelemetryPort } from '../../ports/telemetry.ts';
import type { Worker } from '../../ports/worker.ts';
import { chunkRoomOf } from './disk-reserve.ts';
import type { OpenDisk } from './node-disks.ts';
import type { ScrubProgress } from './scrub.ts';

const REPORT_EVERY_MS = 10_000;
/** A disk that takes longer is silent, and the others are reported without it. */
const ANSWER_MAX_MS = 3000;
/** Least change of a capacity: some file systems count what is free to all of their volumes as their own. */
const WORTH_TELLING_SHARE = 0.01;

export interface ReportDeps {
  /** The disks that are served. */
  served(): readonly OpenDisk[];
  /** The number of disks that should be served and are not. */
  unservedCount(): number;
  scrubOf(disk: OpenDisk): ScrubProgress;
  telemetry: TelemetryPort;
  clock: ClockPort;
  /** Called when the capacity of a disk has changed. */
  onCapacity(): void;
}

/** Gauges of a disk, `holdfast_disk_` before them. */
const FIGURES = [
  ...(['chunks', 'chunk_bytes', 'pending_reclaim_bytes', 'free_bytes', 'bytes'] as const),
  ...(['full_below_bytes', 'scarce_below_bytes', 'quarantined_chunks', 'unread_chunks'] as const),
  ...(['scrub_progress_ratio', 'scrub_found_chunks', 'scrub_ended_timestamp_seconds'] as const),
  ...(['direct_writes'] as const),
];
type Figures = Readonly<Record<(typeof FIGURES)[number], number | undefined>>;

export function createDiskReport(deps: ReportDeps): Worker {
  const { telemetry, clock } = deps;

  async function figuresOf(disk: OpenDisk): Promise<Figures & { bytes: number }> {
    const usage = await disk.chunks.usage();
    const room = chunkRoomOf(usage);
    const { share, foundCount, endedAtMs } = deps.scrubOf(disk);
    return {
      chunks: usage.chunkCount,
      chunk_bytes: usage.liveBytes,
      pending_reclaim_bytes: usage.pendingReclaimBytes,
      free_bytes: room.freeBytes,
      bytes: room.totalBytes,
      full_below_bytes: room.fullBelowBytes,
      scarce_below_bytes: room.scarceBelowBytes,
      quarantined_chunks: disk.chunks.quarantinedCount,
      unread_chunks: disk.chunks.unreadCount,
      scrub_progress_ratio: share,
      scrub_found_chunks: foundCount,
      scrub_ended_timestamp_seconds: endedAtMs === undefined ? undefined : endedAtMs / 1000,
      direct_writes: usage.largeWrites && Number(usage.largeWrites === 'direct'),
    };
  }

  /** Metrics of disks that are not served any more, or do not answer, are removed. */
  function publish(reported: readonly { disk: OpenDisk; figures: Figures }[]): void {
    for (const name of FIGURES) {
      const rows = reported.flatMap(({ disk, figures }) => {
        const value = figures[name];
        return value === undefined ? [] : [{ value, labels: { disk: disk.identity.diskId } }];
      });
      telemetry.gaugeAll(`holdfast_disk_${name}`, rows);
    }
  }

  function hasGrown(disk: OpenDisk, totalBytes: number): boolean {
    const change = Math.abs(totalBytes - disk.capacityBytes);
    if (change <= disk.capacityBytes * WORTH_TELLING_SHARE) return false;
    disk.capacityBytes = totalBytes;
    return true;
  }

  return {
    name: 'report-disks',
    async work() {
      const disks = deps.served();
      const failures: unknown[] = [];
      const asked = disks.map(async (disk) => {
        const work = figuresOf(disk).catch((error: unknown) => void failures.push(error));
        const figures = await within(work, ANSWER_MAX_MS, clock);
        return figures ? [{ disk, figures }] : [];
      });
      const reported = (await Promise.all(asked)).flat();
      publish(reported);
      const counts = {
        serving: reported.length,
        silent: disks.length - reported.length,
        unserved: deps.unservedCount(),
      };
      for (const [state, count] of Object.entries(counts))
        telemetry.gauge('holdfast_node_disks', count, { state });
      const grown = reported.filter(({ disk, figures }) => hasGrown(disk, figures.bytes));
      if (grown.length > 0) deps.onCapacity();
      if (failures.length > 0) throw failures[0];
      return { state: 'idle', idleMs: REPORT_EVERY_MS };
    },
  };
}
