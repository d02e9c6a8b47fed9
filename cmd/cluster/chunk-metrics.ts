// What a metadata node measures of chunks: the placement map that it knows, and what the shards that it leads know of copies
// that are owed and of their audits.
import type { PromTelemetry } from '../../src/adapters/prom-telemetry.ts';
import { COPIES_UNKNOWN } from '../../src/model/debts.ts';
import type { QueryName, ResultOf } from '../../src/ports/metadata.ts';
import type { PlacementMap } from '../../src/ports/placement.ts';
import type { MetadataNode } from '../../src/shard/metadata-node.ts';
import { sumDebts } from './chunk-status.ts';

const LEAVES = ['staying', 'draining', 'absent'] as const;
const UNKNOWN = 'unknown';
const COPIES = [...Array.from({ length: COPIES_UNKNOWN }, (_, copies) => String(copies)), UNKNOWN];

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
export function measureDebts(telemetry: PromTelemetry, node: Node): void {
  telemetry.onScrape(async () => {
    const led = node.status().flatMap(({ shard, role }) => (role === 'primary' ? [shard] : []));
    const [counts, audits] = await Promise.all([
      Promise.all(led.map((shard) => ask(node, shard, 'count-debts'))),
      Promise.all(led.map((shard) => ask(node, shard, 'get-audit'))),
    ]);
    const { debts } = sumDebts(counts);
    for (const copies of COPIES) {
      const debt = debts.find((one) => String(one.copies ?? UNKNOWN) === copies);
      telemetry.gauge('holdfast_owed_blobs', debt?.blobCount ?? 0, { copies });
      telemetry.gauge('holdfast_owed_chunks', debt?.chunkCount ?? 0, { copies });
    }
    const known = audits.flatMap((answer) => (answer === undefined ? [] : [answer.audit]));
    const versions = known.map((audit) => audit?.ended?.mapVersion ?? 0);
    telemetry.gauge('holdfast_audited_placement_version', versions.length === 0 ? 0 : Math.min(...versions));
    telemetry.gauge('holdfast_audits_under_way', known.filter((audit) => audit?.isUnderWay === true).length);
  });
}

async function ask<Q extends QueryName>(
  node: Node,
  shard: number,
  name: Q,
): Promise<ResultOf<Q> | undefined> {
  const reply = await node
    .replica(shard)
    ?.query({ shard }, name, {})
    ?.catch(() => undefined);
  return reply?.kind === 'done' ? (reply.value as ResultOf<Q>) : undefined;
}
