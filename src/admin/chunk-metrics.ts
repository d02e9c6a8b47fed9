// What a metadata node measures of where chunks lie: the placement map that it knows, and how far the shards that it leads
// have looked at that; and a gateway of whether new ones can be stored. What shards owe is
// src/metadata/blobs/watch-debts.ts.

import { within } from '../base/async/within.ts';
import type { ReplicatedChunks } from '../chunks/copies/replicated-chunks.ts';
import { areEnough, neededCopies, nodeCountOf } from '../chunks/copies/write-needs.ts';
import { isFull } from '../chunks/disk/disk-reserve.ts';
import { countOwnerNodes, isMissed, type SeenDisk } from '../chunks/placement/see-disks.ts';
import { servedDisks } from '../chunks/placement/served-disks.ts';
import type { MetadataNode } from '../metadata/replication/metadata-node.ts';
import { gaugeIfKnown, type PromTelemetry } from '../platform/telemetry/prom-telemetry.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { DiskDirectory } from '../ports/disk-chunks.ts';
import type { Member } from '../ports/members.ts';
import type { ResultOf } from '../ports/metadata.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../ports/placement.ts';
import type { Figure } from '../ports/telemetry.ts';
import { LIMITS } from '../types/limits.ts';
import type { HistoryRecord } from '../types/records/rows.ts';
import { describeAudits } from './chunk-status.ts';

const LEAVES = ['staying', 'draining', 'absent'] as const;

/** Disks that a node serves, and that did not answer when repair, audits or the hearing of damage last asked them. */
export function measureSilentDisks(
  telemetry: PromTelemetry,
  read: { silent(): readonly DiskId[]; members(): readonly Member[] },
): void {
  telemetry.onScrape(async () => {
    const served = servedDisks(read.members());
    telemetry.gauge('holdfast_silent_disks', read.silent().filter((disk) => served.has(disk)).length);
  });
}

export function measurePlacement(telemetry: PromTelemetry, read: () => PlacementMap): void {
  telemetry.onScrape(async () => {
    const { version, auditFrom, previous, disks, copies } = read();
    telemetry.gauge('holdfast_placement_version', version);
    telemetry.gauge('holdfast_placement_audit_from', auditFrom);
    telemetry.gauge('holdfast_placement_copies', copies);
    telemetry.gauge(
      'holdfast_placement_pending_partitions',
      previous.filter(({ length }) => length > 0).length,
    );
    for (const leave of LEAVES) {
      const count = disks.filter((disk) => (disk.leave ?? 'staying') === leave).length;
      telemetry.gauge('holdfast_placement_disks', count, { leave });
    }
  });
}

/**
 * Whether new chunks can be stored: of each disk of the map what writes have found of late, for it may say what it holds while
 * its drive hangs in writes, or say nothing soon because it takes so many; else what it says when it is asked.
 */
export function measureWriting(
  telemetry: PromTelemetry,
  parts: {
    placement: () => PlacementMap;
    takesWrites: ReplicatedChunks['takesWrites'];
    directory: DiskDirectory;
    clock: Pick<ClockPort, 'sleep'>;
  },
): void {
  const { placement, takesWrites, directory, clock } = parts;
  const takes = async (disk: PlacedDisk) => {
    const known = takesWrites(disk);
    if (known !== undefined) return known;
    const asked = (async () => directory.chunksOf(disk).usage())();
    const usage = await within(asked, LIMITS.usageAnswerMaxMs, clock).catch(() => undefined);
    return usage !== undefined && !isFull(usage);
  };
  telemetry.onScrape(async () => {
    const { version, disks, copies } = placement();
    const found = await Promise.all(disks.map(takes));
    const taking = disks.filter((_, at) => found[at]);
    const isRefused = !areEnough(taking, neededCopies(disks, copies));
    const isKnown = version > 0;
    gaugeIfKnown(telemetry, 'holdfast_chunk_writes_refused', isKnown ? Number(isRefused) : undefined);
    gaugeIfKnown(telemetry, 'holdfast_chunk_taking_nodes', isKnown ? nodeCountOf(taking) : undefined);
  });
}

/** By who places disks; undefined: another one does. */
export function measureDisks(telemetry: PromTelemetry, seen: readonly SeenDisk[] | undefined): void {
  const rows = seen ?? [];
  const tell = (name: string, of: (disk: SeenDisk) => readonly Figure[]) =>
    telemetry.gaugeAll(name, rows.flatMap(of));
  tell('holdfast_disk_state', ({ disk: { id: disk, nodeId: node, leave = 'staying' }, state }) => [
    { value: 1, labels: { disk, node, state, leave } },
  ]);
  tell('holdfast_disk_capacity_bytes', ({ disk: { id: disk, capacityBytes } }) => [
    { value: capacityBytes, labels: { disk } },
  ]);
  tell('holdfast_disk_partitions', ({ disk: { id: disk }, ownedCount, pendingCount }) => [
    { value: ownedCount, labels: { disk, hold: 'owned' } },
    { value: pendingCount, labels: { disk, hold: 'pending' } },
  ]);
  const missed = rows.filter(
    ({ disk, state, ...held }) => state === 'away' && isMissed({ ...disk, ...held }),
  );
  const nodeCount = countOwnerNodes(rows.map(({ disk, ...held }) => ({ ...disk, ...held })));
  gaugeIfKnown(telemetry, 'holdfast_missed_disks', seen && missed.length);
  gaugeIfKnown(telemetry, 'holdfast_placement_owner_nodes', seen && nodeCount);
}

type Node = Pick<MetadataNode, 'status' | 'replica'>;

/** A shard that does not say just now is left out, and counted as that. */
export function measureAudits(
  telemetry: PromTelemetry,
  { node, placement }: { node: Node; placement: () => PlacementMap },
): void {
  telemetry.onScrape(async () => {
    const led = node.status().filter(({ role }) => role === 'primary');
    // Those of the first history have nothing to confirm (R23).
    const doubtful = led.filter(({ incarnation }) => incarnation > 1);
    const [audits, histories] = await Promise.all([
      Promise.all(led.map(({ shard }) => ask(node, shard, 'get-audit'))),
      Promise.all(doubtful.map(({ shard }) => ask(node, shard, 'get-history'))),
    ]);
    const known = audits.filter((answer) => answer !== undefined);
    const { version, auditFrom } = placement();
    const { leastVersion = 0, underWayCount, doneCount } = describeAudits(known, auditFrom);
    const audited = known.length > 0 ? leastVersion : undefined;
    gaugeIfKnown(telemetry, 'holdfast_audited_placement_version', audited);
    telemetry.gauge('holdfast_audits_under_way', underWayCount);
    gaugeIfKnown(telemetry, 'holdfast_audits_awaited', version > 0 ? known.length - doneCount : undefined);
    const isUnconfirmed = (history: HistoryRecord | null | undefined) =>
      history !== undefined && history !== null && history.confirmedAtMs === undefined;
    const unconfirmed = histories.filter((answer) => isUnconfirmed(answer?.history));
    telemetry.gauge('holdfast_shards_unconfirmed', unconfirmed.length);
    const silent = { audit: led.length - known.length, history: histories.filter((one) => !one).length };
    for (const [question, count] of Object.entries(silent))
      telemetry.gauge('holdfast_shards_unanswered', count, { question });
  });
}

async function ask<Name extends 'get-audit' | 'get-history'>(
  node: Node,
  shard: number,
  name: Name,
): Promise<ResultOf<Name> | undefined> {
  const reply = await node
    .replica(shard)
    ?.query({ shard }, name, {})
    ?.catch(() => undefined);
  return reply?.kind === 'done' ? (reply.value as ResultOf<Name>) : undefined;
}
