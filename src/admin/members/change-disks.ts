// holdfast cluster drain, undrain, remove, for disks: writes the operator's wish into the placement map by
// compare-and-swap, as the placer does (src/chunks/placement/place-disks.ts).

import { Refusal } from '../../base/refusal.ts';
import { changePlacement, disksById, servedDisks } from '../../chunks/placement/placement.ts';
import {
  holdings,
  isPending,
  leastSpread,
  movedCount,
  newDisks,
  retireDisks,
  withLeave,
} from '../../chunks/placement/placement-changes.ts';
import { documentOf, placementOf } from '../../chunks/placement/placement-document.ts';
import { formatId } from '../../cli/format.ts';
import type { Coordination } from '../../ports/coordination.ts';
import type { Member } from '../../ports/members.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import { answer } from '../join-cluster.ts';
import { disksNamed, knownDisks } from './name-members.ts';

export type DiskChange = 'drain' | 'undrain' | 'remove';

/** Other writers are rare: after this many lost races something else is wrong. */
const TRIES_MAX = 5;

export interface DiskWish {
  change: DiskChange;
  /** Ids of disks, or of nodes for all of their disks, or prefixes of ids. */
  names: readonly string[];
  /** For `remove`: accept disks that may have the only copies of chunks. */
  acceptLoss?: boolean;
}

/** Throws {@link Refusal} when it cannot be done, and then nothing has changed. */
export async function writeDiskChange(
  parts: {
    coordination: Pick<Coordination, 'placementMap'>;
    members: readonly Member[];
    print(line: string): void;
    /** Why repair entries may need these disks; undefined: they do not. */
    whyRequired(disks: ReadonlySet<DiskId>): Promise<string | undefined>;
  },
  { change, names, acceptLoss = false }: DiskWish,
): Promise<void> {
  const { placementMap } = parts.coordination;
  const served = servedDisks(parts.members);
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const stored = await answer(placementMap.read());
    if (stored === undefined) throw new Refusal('no disk is placed yet');
    const map = placementOf(stored.document);
    const ids = disksNamed(knownDisks(map, served), names);
    const next = CHANGES[change](map, ids, served);
    if (next === undefined) {
      parts.print('Nothing to do: it is so already.');
      if (change === 'drain') reportProgress(map, ids, parts.print);
      return;
    }
    if (change === 'remove' && !acceptLoss) refuseRequired(await parts.whyRequired(ids));
    const swapped = await answer(
      placementMap.swap({ expected: stored.revision, document: documentOf(next) }),
    );
    if (swapped.kind === 'lost') continue;
    reportChange({ map, next, ids, change, print: parts.print });
    return;
  }
  throw new Refusal('the placement map changes all the time: somebody else writes to etcd; run this again');
}

type ServedDisks = ReadonlyMap<DiskId, PlacedDisk>;

/** undefined: the map has it already. */
const CHANGES: Record<
  DiskChange,
  (map: PlacementMap, ids: ReadonlySet<DiskId>, served: ServedDisks) => PlacementMap | undefined
> = {
  drain(map, ids, served) {
    // A new disk is added as a draining one: otherwise it would join and get its share.
    const disks = [...map.disks, ...newAmong(map, ids, served)];
    if (disks.every(({ id, leave }) => !ids.has(id) || leave === 'draining')) return undefined;
    return changePlacement(map, { disks: withLeave(disks, ids, 'draining') });
  },
  undrain(map, ids) {
    const drained = map.disks.filter(({ id, leave }) => ids.has(id) && leave === 'draining');
    if (drained.length === 0) return undefined;
    const drainedIds = new Set(drained.map(({ id }) => id));
    return changePlacement(map, { disks: withLeave(map.disks, drainedIds, undefined) });
  },
  remove(map, ids, served) {
    refuseNeeded(map, ids, served);
    return retireDisks(map, ids);
  },
};

/** Disks that are in no map yet: they hold nothing. */
const newAmong = (map: PlacementMap, ids: ReadonlySet<DiskId>, served: ServedDisks) =>
  newDisks(map, [...served.values()]).filter(({ id }) => ids.has(id));

function refuseNeeded(map: PlacementMap, ids: ReadonlySet<DiskId>, served: ServedDisks): void {
  for (const { id, nodeId, address } of newAmong(map, ids, served))
    throw new Refusal(
      `disk ${formatId(id)} of node ${formatId(nodeId)} at ${address} is new and holds nothing: stop it, or \`holdfast cluster drain\` it, and it gets nothing`,
    );
  const held = holdings(map);
  for (const id of ids) {
    const { ownedCount = 0, pendingCount = 0 } = held.get(id) ?? {};
    const disk = `disk ${formatId(id)}`;
    if (ownedCount > 0)
      throw new Refusal(
        `${disk} owns ${ownedCount} partitions: \`holdfast cluster drain\` it first, and see that ${map.copies} other disks stay`,
      );
    if (pendingCount > 0)
      throw new Refusal(
        `${disk} may have the only copies of chunks of ${pendingCount} partitions: wait until \`holdfast cluster disks\` shows no change pending`,
      );
    const node = served.get(id);
    if (node !== undefined)
      throw new Refusal(
        `${disk} is still served by node ${formatId(node.nodeId)} at ${node.address}: stop it first`,
      );
  }
  const left = map.disks.length - ids.size;
  if (left < map.copies)
    throw new Refusal(`${left} disks would be left, and there are to be ${map.copies} copies of each chunk`);
}

/** After all audits previous owners are forgotten, and only repair entries name them (R39). */
function refuseRequired(why: string | undefined): void {
  if (why !== undefined)
    throw new Refusal(
      `${why}, and a disk that is removed is never asked for them again: run this again when \`holdfast cluster status\` shows fewer chunks that lack copies, or say --accept-loss`,
    );
}

function reportChange(done: {
  map: PlacementMap;
  next: PlacementMap;
  ids: ReadonlySet<DiskId>;
  change: DiskChange;
  print(line: string): void;
}): void {
  const { map, next, ids, change, print } = done;
  const held = holdings(next);
  const before = disksById(map);
  for (const id of ids) {
    const owned = held.get(id)?.ownedCount ?? 0;
    if (change === 'remove') print(`Disk ${formatId(id)} is removed, and is not taken in again.`);
    else if (change === 'undrain') print(`Disk ${formatId(id)} stays: it owns ${owned} partitions.`);
    else if (!before.has(id))
      print(`Disk ${formatId(id)} drains: it is new, holds nothing, and gets nothing.`);
    else if (owned === 0) print(`Disk ${formatId(id)} drains: others own its partitions.`);
    else print(stillOwns(next, id, owned));
  }
  if (change === 'remove') return;
  warnOfSpread(map, next, print);
  print(`Placement ${next.version}: ${movedCount(map, next)} copies of partitions are to be made.`);
  if (isPending(next)) print('`holdfast cluster disks` shows when it is done.');
}

/** For disks that are draining already. */
function reportProgress(map: PlacementMap, ids: ReadonlySet<DiskId>, print: (line: string) => void): void {
  const held = holdings(map);
  for (const id of ids) {
    const { ownedCount = 0, pendingCount = 0 } = held.get(id) ?? {};
    if (ownedCount > 0) print(stillOwns(map, id, ownedCount));
    else if (pendingCount > 0)
      print(`Disk ${formatId(id)}: ${pendingCount} partitions are still being copied to others.`);
    else print(`Disk ${formatId(id)} owns nothing any more.`);
  }
}

function stillOwns({ copies }: PlacementMap, id: DiskId, ownedCount: number): string {
  return `Disk ${formatId(id)} drains, but owns ${ownedCount} partitions still: fewer than ${copies} other disks stay. Add disks.`;
}

/** Copies in one place are lost together, and nothing else would warn. */
function warnOfSpread(map: PlacementMap, next: PlacementMap, print: (line: string) => void): void {
  const [before, after] = [leastSpread(map), leastSpread(next)];
  if (after.zones < before.zones || after.nodes < before.nodes)
    print(
      `Attention: some chunks have their copies in ${after.zones} zones on ${after.nodes} nodes now, and had them in ${before.zones} on ${before.nodes}. Add disks of others, or undrain.`,
    );
}
