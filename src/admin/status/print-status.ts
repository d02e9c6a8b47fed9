// What `holdfast cluster status` prints for people; machines ask with --json.
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatId,
  formatTable,
  formatTime,
} from '../../cli/format.ts';
import type { VerificationStatus } from '../../ports/shard-calls.ts';
import type {
  ClusterStatus,
  DiskStatus,
  LeavingNodeStatus,
  PlacementStatus,
  RepairStatus,
  VoterStatus,
} from './cluster-status.ts';

export function printClusterStatus(status: ClusterStatus, print: (line: string) => void): void {
  print(`Cluster ${status.clusterId}`);
  print('');
  const members = status.members.map(({ nodeId, role, address, zone, version }) => [
    ...[formatId(nodeId), role, address, zone === nodeId ? '' : zone, version],
  ]);
  print(formatTable([['NODE', 'ROLE', 'ADDRESS', 'ZONE', 'VERSION'], ...members]));
  print('');
  const shards = status.shards.map(({ shard, epoch, primary, isOpen, voters, verification }) => [
    String(shard),
    String(epoch),
    primary === undefined ? '' : formatId(primary),
    isOpen ? 'open' : 'not open',
    voters.map(describeVoter).join(', '),
    describePass(verification),
  ]);
  print(formatTable([['SHARD', 'EPOCH', 'PRIMARY', 'STATE', 'VOTERS', 'COMPARED'], ...shards]));
  print('');
  printDisks(status, print);
  if (status.placement !== undefined)
    for (const line of describePlacement(status.placement, status.shards.length)) print(line);
  for (const line of describeRepair(status.repair)) print(line);
  for (const line of leavingSentences(status.leavingNodes)) print(line);
  print('');
  if (status.alarms.length === 0) print('No alarms.');
  for (const alarm of status.alarms) print(`ALARM ${alarm}`);
}

/** When all of it was last compared. */
function describePass(verification: VerificationStatus | undefined): string {
  const { lastPass = null } = verification ?? {};
  if (lastPass === null) return '';
  return `${formatTime(lastPass.endedAtMs)}${lastPass.partialCount > 0 ? ' in part' : ''}`;
}

function describeVoter({ nodeId, state, lag }: VoterStatus): string {
  const words = [formatId(nodeId), ...(state === 'live' ? [] : [state]), ...(lag ? [`-${lag}`] : [])];
  return words.join(' ');
}

function printDisks({ disks, repair }: ClusterStatus, print: (line: string) => void): void {
  const hasRepairs = repair.chunkCount + repair.unansweredCount > 0;
  if (disks.length === 0) return;
  const rows = disks.map((disk) => {
    const { diskId, nodeId, zone, usage, ownedCount, pendingCount } = disk;
    const {
      liveBytes = 0,
      chunkCount = 0,
      diskFreeBytes = 0,
      diskTotalBytes = 0,
      quarantinedCount = 0,
      largeWrites = '',
    } = usage ?? {};
    const hasUsage = usage !== undefined;
    return [
      ...[formatId(diskId), formatId(nodeId), zone === nodeId ? '' : zone, describeState(disk, hasRepairs)],
      hasUsage ? formatBytes(liveBytes) : '',
      hasUsage ? formatCount(chunkCount) : '',
      hasUsage ? `${formatBytes(diskFreeBytes)} of ${formatBytes(diskTotalBytes)}` : '',
      ...[String(ownedCount), pendingCount === 0 ? '' : String(pendingCount)],
      quarantinedCount === 0 ? '' : formatCount(quarantinedCount),
      largeWrites,
    ];
  });
  const head = ['DISK', 'NODE', 'ZONE', 'STATE', 'USED', 'CHUNKS', 'FREE', 'OWNS', 'OWNED'];
  print(formatTable([[...head, 'QUARANTINED', 'WRITES'], ...rows]));
  print('');
}

/**
 * With what is left of a drain: first the partitions that no other disk has for certain, then the repair entries that may
 * name it.
 */
function describeState({ state, leave, ownedCount, pendingCount }: DiskStatus, hasRepairs: boolean): string {
  if (leave === undefined) return state;
  const left = ownedCount + pendingCount;
  const last = hasRepairs ? 'needed while chunks lack copies' : 'may be removed';
  return `${state}, ${leave}: ${left === 0 ? last : `${formatCount(left)} partitions left`}`;
}

function describePlacement(placement: PlacementStatus, shardCount: number): string[] {
  const { version, copies, partitionCount, pendingCount, auditFrom, audits } = placement;
  const { leastVersion, doneCount, underWayCount } = audits;
  const pending =
    pendingCount === 0
      ? 'no change is pending'
      : `${formatCount(pendingCount)} of ${formatCount(partitionCount)} partitions have former owners`;
  const least = leastVersion === undefined ? '' : `, all by version ${leastVersion} at least`;
  return [
    `Placement map ${version}, ${copies} copies: ${pending}.`,
    `Audits of version ${auditFrom}: ended by ${doneCount} of ${shardCount} shards, ${underWayCount} under way${least}.`,
  ];
}

function describeRepair(repair: RepairStatus): string[] {
  const { debts, chunkCount, chunksPerSecond = 0, leftMs, unansweredCount } = repair;
  const silent =
    unansweredCount === 0 ? [] : [`${unansweredCount} shards do not report their missing copies.`];
  if (chunkCount === 0) return ['No shard that answers lacks copies of chunks.', ...silent];
  const by = debts.map(({ copies, chunkCount: count }) =>
    copies === undefined
      ? `${formatCount(count)} to be looked at`
      : `${formatCount(count)} with ${copies === 1 ? '1 copy' : `${copies} copies`}`,
  );
  const rate =
    leftMs === undefined
      ? 'not getting fewer just now'
      : `${formatCount(Math.round(chunksPerSecond))} fewer each second, ${formatDuration(leftMs)} left`;
  return [`Chunks that lack copies: ${formatCount(chunkCount)} (${by.join(', ')}); ${rate}.`, ...silent];
}

/** One of each that is as the operator wants it, and of each that is on the way there. */
export function leavingSentences(leaving: readonly LeavingNodeStatus[]): string[] {
  return leaving.flatMap(({ nodeId, leave, isThere, voterCount }) => {
    const node = `Metadata node ${formatId(nodeId)}`;
    if (leave === 'gone')
      return isThere
        ? [`${node} was removed and runs: it gets no shards until \`holdfast cluster undrain\`.`]
        : [];
    if (voterCount > 0) return [`${node} drains: ${voterCount} shards have a voter there still.`];
    const last = isThere ? 'it may be stopped and removed' : 'it may be removed';
    return [`${node} drains: no shard has a voter there, ${last}.`];
  });
}
