// What a metadata node measures of where chunks lie: the placement map that it knows, and how far the shards that it leads
// have looked at that. What they owe is src/metadata/background/watch-debts.ts.
import type { PromTelemetry } from '../../src/adapters/prom-telemetry.ts';
import type { ResultOf } from '../../src/ports/metadata.ts';
import type { PlacementMap } from '../../src/ports/placement.ts';
import type { MetadataNode } from '../../src/shard/metadata-node.ts';

const LEAVES = ['staying', 'draining', 'absent'] as const;

export function measurePlacement(telemetry: PromTelemetry, read: () => PlacementMap): void {
  telemetry.onScrape(async () => {
    const { version, auditFrom, previous, disks } = read();
    telemetry.gauge('holdfast_placement_version', version);
    telemetry.gauge('holdfast_placement_audit_from', auditFrom);
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
