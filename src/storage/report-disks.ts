// What a storage node says of its disks: metrics, and a capacity that has changed since it was announced.
import type { TelemetryPort } from '../ports/telemetry.ts';
import type { Worker } from '../ports/worker.ts';
import type { OpenDisk } from './node-disks.ts';
import type { ScrubProgress } from './scrub.ts';

const REPORT_EVERY_MS = 10_000;
/** Of a capacity: some file systems count what is free to all of their volumes as their own. */
const WORTH_TELLING_SHARE = 0.01;

export interface ReportDeps {
  /** Those that are served now. */
  served(): readonly OpenDisk[];
  scrubOf(disk: OpenDisk): ScrubProgress;
  telemetry: TelemetryPort;
  /** Of a disk the capacity is another than it was. */
  onCapacity(): void;
}

export function createDiskReport(deps: ReportDeps): Worker {
  async function report(disk: OpenDisk): Promise<boolean> {
    const { identity, chunks } = disk;
    const labels = { disk: identity.diskId };
    const gauge = (name: string, value: number) =>
      deps.telemetry.gauge(`holdfast_disk_${name}`, value, labels);
    const usage = await chunks.usage();
    gauge('chunks', usage.chunkCount);
    gauge('chunk_bytes', usage.liveBytes);
    gauge('pending_reclaim_bytes', usage.pendingReclaimBytes);
    gauge('free_bytes', usage.diskFreeBytes);
    gauge('bytes', usage.diskTotalBytes);
    gauge('aside_chunks', chunks.asideCount);
    const { share, foundCount, endedAtMs } = deps.scrubOf(disk);
    gauge('scrub_progress_ratio', share);
    gauge('scrub_found_chunks', foundCount);
    if (endedAtMs !== undefined) gauge('scrub_ended_timestamp_seconds', endedAtMs / 1000);
    const change = Math.abs(usage.diskTotalBytes - disk.capacityBytes);
    if (change <= disk.capacityBytes * WORTH_TELLING_SHARE) return false;
    disk.capacityBytes = usage.diskTotalBytes;
    return true;
  }

  return {
    name: 'report-disks',
    async work() {
      const hasChanged = await Promise.all(deps.served().map(report));
      if (hasChanged.includes(true)) deps.onCapacity();
      return { state: 'idle', idleMs: REPORT_EVERY_MS };
    },
  };
}
