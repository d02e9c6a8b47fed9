// Who places disks (src/chunks/placement/place-disks.ts), alone with etcd: which disks are served, what is known and what other
// processes do is said by the test.
import { onTestFinished } from 'vitest';
import { must } from '../../../src/base/assert.ts';
import { type PlacementSeen, runDiskPlacer } from '../../../src/chunks/placement/place-disks.ts';
import { documentOf, placementOf } from '../../../src/chunks/placement/placement-document.ts';
import type { ClusterState } from '../../../src/ports/cluster-identity.ts';
import type { Member } from '../../../src/ports/members.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../../../src/ports/placement.ts';
import { pass, startCoordinatorWorld } from '../coordination/coordinator-world.ts';
import { eventLog, type LoggedEvents } from '../coordination/coordinators.ts';

export const AWAY_AFTER_MS = 120_000;
/** Two looks and what joining disks are waited for. */
export const LOOKED_MS = 16_000;
export const GIVEN_UP_MS = AWAY_AFTER_MS + AWAY_AFTER_MS / 30 + LOOKED_MS;

export const memberOf = ({ id, nodeId, zone, address, capacityBytes, cutSeq }: PlacedDisk): Member => ({
  nodeId,
  zone,
  address,
  role: 'storage',
  version: '0',
  disks: [{ diskId: id, capacityBytes, ...(cutSeq !== undefined && { cutSeq }) }],
});

/** Of one test: it stops with it. */
export function openPlacer({ known }: { known?: PlacementMap } = {}) {
  const world = startCoordinatorWorld();
  const { clock, connect } = world;
  const events: LoggedEvents = [];
  const learnt = new Set<number>();
  let members: Member[] = [];
  let audited: number | undefined;
  let newest = known;
  let announced = 0;
  let isSilent = false;
  let cluster: ClusterState = 'as-made';
  const unreached = new Set<DiskId>();
  const answersAfterMs = new Map<DiskId, number>();
  const seenBy = new Map<string, PlacementSeen | undefined>();
  let holding = new AbortController();
  const run = (holder: string, newestKnown = () => newest) => {
    const { placementMap, jobLocks } = connect(holder);
    const deps = {
      chunkCopies: 3,
      awayAfterMs: AWAY_AFTER_MS,
      placementMap,
      jobLocks,
      clock,
      log: eventLog(events),
      members: () => members,
      cluster: async () => cluster,
      newestKnown,
      announcedVersion: () => announced,
      learn: (map: PlacementMap) => void learnt.add(map.version),
      auditedVersion: () => (isSilent ? new Promise<undefined>(() => {}) : Promise.resolve(audited)),
      async reach({ id }: PlacedDisk) {
        const ms = answersAfterMs.get(id);
        if (ms !== undefined) await clock.sleep(ms);
        if (unreached.has(id)) throw new Error('of another authority');
      },
      onLook: (seen: PlacementSeen | undefined) => void seenBy.set(holder, seen),
      pause: async () => {},
    };
    holding = new AbortController();
    void runDiskPlacer(deps, holding.signal);
  };
  run('a');
  const { placementMap } = connect('b');
  const read = async () => {
    const stored = await placementMap.read();
    return stored && placementOf(stored.document);
  };
  const placer = {
    stop: () => holding.abort(),
    events: (name: string) => events.filter(([, event]) => event === name).length,
    read,
    learnt,
    unreached,
    answersAfterMs,
    /** What it says that it goes by; of `a` until another takes over. */
    seenBy: (holder: string) => seenBy.get(holder),
    serve(disks: readonly PlacedDisk[]) {
      members = disks.map(memberOf);
    },
    /** The map after these disks have been served for so long, and no others. */
    async after(disks: readonly PlacedDisk[], ms = LOOKED_MS): Promise<PlacementMap> {
      placer.serve(disks);
      await pass(clock, ms);
      return must(await read(), 'there is a map');
    },
    hasAudited(version: number) {
      audited = version;
    },
    /** What etcd says of the cluster. */
    meets(state: ClusterState) {
      cluster = state;
    },
    announce(version: number) {
      announced = version;
    },
    knows(map: PlacementMap) {
      newest = map;
    },
    async write(map: PlacementMap, expected?: number) {
      const revision = expected ?? (await placementMap.read())?.revision ?? 0;
      return placementMap.swap({ expected: revision, document: documentOf(map) });
    },
    neverAudits() {
      isSilent = true;
    },
    /** Another process, which waits for the job and knows a map. */
    alsoRuns(map: PlacementMap): AbortController {
      const before = holding;
      run('d', () => map);
      const its = holding;
      holding = before;
      return its;
    },
    /** Another process takes the job over. */
    takeOver() {
      holding.abort();
      run('c');
    },
    /** The clock goes on by so much at once, as for a process that stood still. */
    standStill: (ms: number) => clock.advance(ms),
    pass: (ms: number) => pass(clock, ms),
  };
  onTestFinished(placer.stop);
  return placer;
}
