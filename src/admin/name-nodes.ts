// Metadata nodes as an operator names them, by commands that take names of disks and of storage nodes as well
// (name-disks.ts).
import { Refusal } from '../base/refusal.ts';
import type { NodeId } from '../ports/replication.ts';
import type { KnownDisks } from './name-disks.ts';
import { idsFitting, meantId } from './name-ids.ts';

/**
 * undefined: the names are of disks and storage nodes. Throws {@link Refusal} for a name of nothing, or of more than one,
 * and for names of both kinds: a command changes one record, or nothing.
 */
export function nodesNamed(
  metadataNodes: ReadonlySet<NodeId>,
  known: KnownDisks,
  names: readonly string[],
): Set<NodeId> | undefined {
  const disks = new Set(known.disks.flatMap(({ id, nodeId }) => [id, nodeId]));
  const retired = new Set(known.retired);
  const all = new Set([...metadataNodes, ...disks]);
  const nodes = new Set<NodeId>();
  let isOfDisks = false;
  for (const name of names) {
    const fitting = idsFitting(all, name);
    const [only] = fitting;
    if (fitting.length > 1) throw new Refusal(`${name} may be any of ${fitting.join(', ')}`);
    if (only === undefined && idsFitting(retired, name).length === 0)
      throw new Refusal(`there is no disk, storage node or metadata node ${name}${meantId(all, name)}`);
    if (only !== undefined && metadataNodes.has(only)) nodes.add(only);
    else isOfDisks = true;
  }
  if (nodes.size === 0) return undefined;
  if (isOfDisks) throw new Refusal('disks and metadata nodes are changed by commands of their own');
  return nodes;
}
