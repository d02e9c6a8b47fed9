import { expect, test } from 'vitest';
import { COPIES_UNKNOWN } from '../../types/repair-entries.ts';
import { type DiskStatus, sumRepairs, withRate } from './cluster-status.ts';
import { printClusterStatus } from './print-status.ts';

const HOUR = 3_600_000;
const GiB = 1024 ** 3;
const NOW = Date.UTC(2026, 0, 2);
const debt = (copies: number, chunkCount: number) => ({ copies, blobCount: 1, chunkCount });
const DISK: DiskStatus = {
  diskId: 'd1'.repeat(16),
  nodeId: 'a'.repeat(32),
  address: '127.0.0.1:1',
  zone: 'z',
  state: 'serving',
  capacityBytes: 100 * GiB,
  ownedCount: 4096,
  pendingCount: 0,
  usage: {
    chunkCount: 7,
    liveBytes: 7,
    pendingReclaimBytes: 0,
    diskFreeBytes: 50 * GiB,
    diskTotalBytes: 100 * GiB,
  },
};
const placement = {
  version: 8,
  copies: 3,
  partitionCount: 4096,
  pendingCount: 12,
  auditFrom: 7,
  audits: { leastVersion: 6, doneCount: 3, underWayCount: 1, unansweredCount: 0, beganAtMs: NOW - HOUR },
};

test('is printed for people', () => {
  const lines: string[] = [];
  const repair = withRate(sumRepairs([{ debts: [debt(1, 1), debt(2, 120), debt(COPIES_UNKNOWN, 5)] }]), 2);
  const leaving: DiskStatus = { ...DISK, leave: 'draining', ownedCount: 30, pendingCount: 4 };
  const done: DiskStatus = { ...DISK, leave: 'draining', ownedCount: 0 };
  printClusterStatus(
    {
      clusterId: 'c',
      members: [],
      shards: [],
      leavingNodes: [],
      alarms: [],
      placement,
      repair,
      damage: { objects: [], unnamed: [], blobCount: 0 },
      disks: [DISK, leaving, done],
    },
    (line) => lines.push(line),
  );
  const text = lines.join('\n');
  for (const said of [
    'serving, draining: 34 partitions left',
    'serving, draining: needed while chunks lack copies',
    '50.0 GiB of 100 GiB',
    'Placement map 8, 3 copies: 12 of 4,096 partitions have former owners.',
    'Audits of version 7: ended by 3 of 0 shards, 1 under way, all by version 6 at least.',
    'Chunks that lack copies: 126 (1 with 1 copy, 120 with 2 copies, 5 to be looked at); 2 fewer each second, 1 min 3 s left.',
  ])
    expect(text).toContain(said);
});
