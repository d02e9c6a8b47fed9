// The status report of a process that serves clients, as the operator API answers it, and its gauges.

import { chunkRoomOf, type Room } from '../../chunks/disk/disk-reserve.ts';
import type { StatusReport } from '../../gateway/operator-api/status-report.ts';
import { readVersion } from '../../platform/version.ts';
import type { ProcessContext } from '../process-context.ts';
import { alarmsOf, SERVER_ALARMS } from './alarms.ts';
import { ALL_DISKS_METRICS, OWN_DISK_METRICS, ROOM_METRICS, report, SERVER_METRICS } from './metrics.ts';
import { readServer, type ServerFacts, type ServerParts } from './server-status.ts';

export interface Reports {
  /** `endpoint`: as clients on this machine reach the server. Rejects when no disk answers. */
  readStatus(endpoint: string): Promise<StatusReport>;
}

/** Reports the gauges from now on. */
export function createReports(
  { telemetry, log, clock, loop }: Pick<ProcessContext, 'telemetry' | 'log' | 'clock' | 'loop'>,
  parts: ServerParts,
): Reports {
  const { rotation, accounts } = parts;
  const startedAtMs = clock.wallMs();
  const read = () => readServer(parts, () => loop.heldMs());

  telemetry.onScrape(async () => {
    const facts = await read();
    report(telemetry, SERVER_METRICS, facts);
    if (facts.own === undefined) {
      report(telemetry, ALL_DISKS_METRICS, facts);
      return;
    }
    report(telemetry, ROOM_METRICS, facts.stored && chunkRoomOf(facts.stored));
    const largeWrites = facts.stored?.largeWrites;
    report(telemetry, OWN_DISK_METRICS, { ...facts.own, ...(largeWrites && { largeWrites }) });
  });

  return {
    async readStatus(endpoint) {
      const [facts, allAccounts] = await Promise.all([read(), accounts.list()]);
      const { objectCount, objectBytes, bucketCount, stored, pendingReclaimBytes, clockJumpMs } = facts;
      if (stored === undefined || pendingReclaimBytes === undefined) throw facts.failure;
      return {
        version: readVersion(),
        endpoint,
        startedAt: new Date(startedAtMs).toISOString(),
        uptimeMs: clock.wallMs() - startedAtMs,
        accountCount: allAccounts.length,
        objectCount,
        objectBytes,
        bucketCount,
        chunkCount: stored.chunkCount,
        chunkBytes: stored.liveBytes,
        pendingReclaimBytes,
        diskFreeBytes: stored.diskFreeBytes,
        diskTotalBytes: stored.diskTotalBytes,
        ...(stored.largeWrites && { largeWrites: stored.largeWrites }),
        ...(facts.own && describeOwn(facts, { own: facts.own, room: chunkRoomOf(stored) })),
        clockJumpMs,
        keys: await rotation.progress(),
        lastErrors: log.recent(),
      };
    },
  };
}

function describeOwn(
  { clockJumpMs, loopHeldMs }: ServerFacts,
  { own, room }: { own: NonNullable<ServerFacts['own']>; room: Room },
) {
  const { damagedCount, missingCount, damage } = own;
  return {
    diskFullBelowBytes: room.fullBelowBytes,
    diskScarceBelowBytes: room.scarceBelowBytes,
    damagedChunkCount: damagedCount,
    missingChunkCount: missingCount,
    ...(damage.blobCount > 0 && { damage }),
    alarms: alarmsOf(SERVER_ALARMS, { room, damagedCount, missingCount, damage, clockJumpMs, loopHeldMs }),
  };
}
