// What a metadata node measures of where chunks lie: the placement map that it knows, and how far the shards that it leads
// have looked at that. What they owe is src/metadata/background/watch-debts.ts.
import type { PromTelemetry } from '../../src/adapters/prom-telemetry.ts';
import { countOwnerNodes, isMissed, type SeenDisk } from '../../src/cluster/see-disks.ts';
import type { ResultOf } from '../../src/ports/metadata.ts';
import type { PlacementMap } from '../../src/ports/placement.ts';
import type { Figure } from '../../src/ports/telemetry.ts';
import type { MetadataNode } from '../../src/shard/metadata-node.ts';

const LEAVES = ['staying', 'draining', 'absent'] as const;

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
  const known = (value: number) => (seen === undefined ? [] : [{ value }]);
  telemetry.gaugeAll('holdfast_missed_disks', known(missed.length));
  telemetry.gaugeAll('holdfast_placement_owner_nodes', known(nodeCount));
}

type Node = Pick<MetadataNode, 'status' | 'replica'>;

/** A shard that does not say just now is left out. */
export function measureAudits(telemetry: PromTelemetry, node: Node): void {
  telemetry.onScrape(async () => {
    const led = node.status().flatMap(({ shard, role }) => (role === 'primary' ? [shard] : []));
    const audits = await Promise.all(led.map((shard) => readAudit(node, shard)));
    const known = audits.flatMap((answer) => (answer === undefined ? [] : [answer.audit]));
    const versions = known.map((audit) => audit?.ended?.mapVersion ?? 0);
    telemetry.gauge('holdfast_audited_placement_version', versions.length === 0 ? 0 : Math.min(...versions));
    telemetry.gauge('holdfast_audits_under_way', known.filter((audit) => audit?.isUnderWay === true).length);
  });
}

async function readAudit(node: Node, shard: number): Promise<ResultOf<'get-audit'> | undefined> {
  const reply = await node
    .replica(shard)
    ?.query({ shard }, 'get-audit', {})
    ?.catch(() => undefined);
  return reply?.kind === 'done' ? (reply.value as ResultOf<'get-audit'>) : undefined;
}
