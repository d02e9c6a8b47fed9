// Metrics of disks that answer, that do not answer, and that are gone.
import { expect, test } from 'vitest';
import { settleAll } from '../../../tests/support/disks/replicated-world.ts';
import { countedTelemetry } from '../../../tests/support/run/counted-telemetry.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import type { OpenDisk } from './node-disks.ts';
import { createDiskReport } from './report-disks.ts';

const USAGE = {
  chunkCount: 1,
  liveBytes: 10,
  pendingReclaimBytes: 0,
  quarantinedCount: 0,
  diskFreeBytes: 5,
  diskTotalBytes: 1000,
};
const diskOf = (diskId: string, usage: () => Promise<typeof USAGE>) =>
  ({
    identity: { diskId },
    capacityBytes: 1000,
    chunks: { usage, quarantinedCount: 0, unreadCount: 0 },
  }) as unknown as OpenDisk;

function setUp(disks: OpenDisk[], unservedCount = 0) {
  const clock = createManualClock(1e12);
  const found = countedTelemetry();
  const report = createDiskReport({
    served: () => disks,
    unservedCount: () => unservedCount,
    scrubOf: () => ({ share: 1, foundCount: 0, endedAtMs: 5000 }),
    telemetry: found.telemetry,
    clock,
    onCapacity() {},
  });
  return { ...found, clock, work: () => report.work(new AbortController().signal) };
}
const well = (diskId: string) => diskOf(diskId, async () => USAGE);

test('a disk that is not served any more has no metrics', async () => {
  const disks = [well('a'), well('b')];
  const { linesOf, work } = setUp(disks, 1);
  await work();
  expect(await linesOf('holdfast_disk_free_bytes')).toEqual(['{disk="a"} 5', '{disk="b"} 5']);
  expect(await linesOf('holdfast_disk_scrub_ended_timestamp_seconds')).toHaveLength(2);
  disks.shift();
  await work();
  for (const name of ['free_bytes', 'chunks', 'full_below_bytes', 'scrub_ended_timestamp_seconds'])
    expect(await linesOf(`holdfast_disk_${name}`)).toEqual([expect.stringContaining('{disk="b"}')]);
  expect(await linesOf('holdfast_node_disks')).toEqual([
    ...['{state="serving"} 1', '{state="silent"} 0', '{state="unserved"} 1'],
  ]);
});

test('a disk that does not answer holds up no other', async () => {
  const { linesOf, clock, work } = setUp([well('a'), diskOf('b', () => new Promise(() => {}))]);
  const working = work();
  await settleAll();
  expect(await linesOf('holdfast_node_disks')).toEqual([]);
  clock.advance(3000);
  expect(await working).toMatchObject({ state: 'idle' });
  expect(await linesOf('holdfast_disk_free_bytes')).toEqual(['{disk="a"} 5']);
  expect(await linesOf('holdfast_node_disks')).toContain('{state="silent"} 1');
});

test('a disk that fails makes the worker fail after the other disks are reported', async () => {
  const failing = diskOf('b', async () => Promise.reject(new Error('no such file system')));
  const { linesOf, work } = setUp([well('a'), failing]);
  await expect(work()).rejects.toThrow('no such file system');
  expect(await linesOf('holdfast_disk_free_bytes')).toEqual(['{disk="a"} 5']);
  expect(await linesOf('holdfast_node_disks')).toContain('{state="silent"} 1');
});
