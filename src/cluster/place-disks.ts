// The one in the cluster who makes the placement map (R34, R44): the first one as soon as there are disks for all
// copies, on as many nodes, and not before. Disks that come later are added to it, and stand in for owners that are away.
// They own their share when data can be moved to them under the eyes of its homes (R38, R39).
import { fromBase64, toBase64 } from '../lib/bytes.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { JobLocksPort } from '../ports/job-locks.ts';
import type { Member } from '../ports/members.ts';
import type { PlacedDisk, PlacementMap } from '../ports/placement.ts';
import type { PlacementDocument, PlacementMapPort } from '../ports/placement-map.ts';
import type { Logger } from '../ports/telemetry.ts';
import { addDisks, disksById, makePlacement } from './placement.ts';
import { decodePlacement, encodePlacement } from './placement-record.ts';

const LOOK_EVERY_MS = 1000;
const WRITTEN_LOOK_MS = 10_000;

export interface DiskPlacerDeps {
  chunkCopies: number;
  placementMap: PlacementMapPort;
  jobLocks: JobLocksPort;
  clock: ClockPort;
  log: Logger;
  members(): readonly Member[];
}

/** Until `signal` aborts. Never rejects. */
export async function runDiskPlacer(deps: DiskPlacerDeps, signal: AbortSignal): Promise<void> {
  const { clock, jobLocks, log } = deps;
  while (!signal.aborted) {
    try {
      const lock = await jobLocks.acquire('place-disks', signal);
      const either = AbortSignal.any([signal, lock.lost]);
      while (!either.aborted) {
        const isWritten = await place(deps).catch((error: unknown) => {
          log.warn({ err: error }, 'disks-not-placed');
          return false;
        });
        await clock.sleep(isWritten ? WRITTEN_LOOK_MS : LOOK_EVERY_MS, either);
      }
      await lock.release();
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'disks-not-placed');
    }
  }
}

/** True when there is a map. */
async function place(deps: DiskPlacerDeps): Promise<boolean> {
  const { placementMap, log } = deps;
  const disks = disksOf(deps.members());
  const stored = await placementMap.read();
  if (stored === undefined) return placeFirst(deps, disks);
  const present = placementOf(stored.document);
  const known = disksById(present);
  const added = disks.filter(({ id }) => !known.has(id));
  if (added.length === 0) return true;
  const map = addDisks(present, added);
  await placementMap.swap({ expected: stored.revision, document: documentOf(map) });
  log.info({ version: map.version, added: added.map(({ id }) => id) }, 'disks-added');
  return true;
}

async function placeFirst(deps: DiskPlacerDeps, disks: readonly PlacedDisk[]): Promise<boolean> {
  const { placementMap, chunkCopies: copies, log } = deps;
  const nodeCount = new Set(disks.map(({ nodeId }) => nodeId)).size;
  if (nodeCount < copies) return false;
  const map = makePlacement({ disks, copies });
  await placementMap.swap({ expected: 0, document: documentOf(map) });
  log.info({ version: map.version, diskCount: disks.length, copies }, 'placement-made');
  return true;
}

function disksOf(members: readonly Member[]): PlacedDisk[] {
  return members.flatMap(({ role, nodeId, zone, address, disks }) =>
    role === 'storage'
      ? disks.map(({ diskId: id, capacityBytes }) => ({ id, nodeId, zone, address, capacityBytes }))
      : [],
  );
}

export function documentOf(map: PlacementMap): PlacementDocument {
  return { version: map.version, map: toBase64(encodePlacement(map)) };
}

export function placementOf({ map }: PlacementDocument): PlacementMap {
  return decodePlacement(fromBase64(String(map)));
}
