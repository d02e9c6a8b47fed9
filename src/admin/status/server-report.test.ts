import { expect, test } from 'vitest';
import { openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import { createPromTelemetry } from '../../platform/telemetry/prom-telemetry.ts';
import { rememberErrors } from '../../platform/telemetry/recent-errors.ts';
import { createReports } from './server-report.ts';

test('figures of chunks are absent while no disk answers, and the others are told', async () => {
  const world = await openMetadata();
  await world.createBucket();
  const nothing = { debug() {}, info() {}, warn() {}, error() {} };
  const log = rememberErrors(nothing, world.clock);
  const telemetry = createPromTelemetry({ log });
  let isSilent = false;
  const usage = async () => {
    if (isSilent) throw new Error('no disk answers');
    return { chunkCount: 3, liveBytes: 10, pendingReclaimBytes: 2, diskFreeBytes: 5, diskTotalBytes: 9 };
  };
  const loop = { heldMs: () => 0 };
  createReports({ telemetry, log, clock: world.clock, loop } as never, {
    metadata: world.shards,
    chunks: { usage } as never,
    pendingReclaimBytes: async () => (await usage()).pendingReclaimBytes,
    timeJumps: { unacceptedMs: async () => 0 } as never,
    rotation: { progress: () => ({}) as never },
    accounts: { list: async () => [] },
  });
  const disk = ['holdfast_chunks 3', 'holdfast_pending_reclaim_bytes 2', 'holdfast_disk_free_bytes 5'];
  const { text } = await telemetry.scrape();
  for (const line of ['holdfast_buckets 1', ...disk]) expect(text).toContain(`${line}\n`);
  isSilent = true;
  const { text: then } = await telemetry.scrape();
  expect(then).toContain('holdfast_buckets 1\n');
  expect(then).not.toMatch(
    /^holdfast_(chunks|chunk_bytes|pending_reclaim_bytes|disk_free_bytes|disk_bytes) /m,
  );
});
