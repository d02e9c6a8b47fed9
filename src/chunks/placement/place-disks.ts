// The placer: the one process of the cluster that makes and changes the placement map (R34, R39, R44). It makes the first
// map as soon as there are disks on enough nodes for all copies, and those just being asked have had time to answer; after
// that disks join, are given up, and return. judge-disks.ts decides what changes, placement.ts who owns what. Correctness
// does not depend on there being one placer: the map changes by compare-and-swap.

import { finishInTurns } from '../../base/async/steps.ts';
import { type HeldJob, holdJob } from '../../coordination/hold-job.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { ClusterState } from '../../ports/cluster-identity.ts';
import type { JobLocksPort } from '../../ports/coordination.ts';
import type { Member } from '../../ports/members.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import type { PlacementMapPort } from '../../ports/placement-map.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { DiskPresence } from './disk-presence.ts';
import { JoiningDisks } from './joining-disks.ts';
import { type Judgement, judgeDisks } from './judge-disks.ts';
import { changePlacementInSteps, makePlacementInSteps, servedDisks } from './placement.ts';
import { clearPrevious, isPending, movedCount, newDisks } from './placement-changes.ts';
import { documentOf, placementOf } from './placement-document.ts';

const LOOK_EVERY_MS = 1000;
const WRITTEN_LOOK_MS = 5000;
/** A look that is later than this many intervals means that the process stood still. */
const LATE_LOOKS_MAX = 3;
/** How often a process that is not the placer checks whether etcd has lost the map. */
const FORGOTTEN_LOOK_MS = 20_000;
/** After this time the placer does not wait any longer for a process that knows the announced map. */
const UNKNOWN_WAIT_MS = 60_000;
const AUDITED_ANSWER_MAX_MS = 10_000;

export interface DiskPlacerDeps {
  chunkCopies: number;
  /** A disk that has not been served for this long is given up: its partitions go to others until it returns. */
  awayAfterMs: number;
  placementMap: PlacementMapPort;
  jobLocks: JobLocksPort;
  clock: ClockPort;
  log: Logger;
  members(): readonly Member[];
  /** What the coordinator says of this cluster. */
  cluster(): Promise<ClusterState>;
  /** The newest map that is known here, whatever etcd has. */
  newestKnown(): PlacementMap | undefined;
  /** The highest version that anyone has announced. */
  announcedVersion(): number;
  /** Called with the map in etcd: a watch may be silent, and a node without the map audits nothing (R39). */
  learn(map: PlacementMap): void;
  /** The lowest map version at which all shards have ended an audit (R39); undefined while one has not answered. */
  auditedVersion(): Promise<number | undefined>;
  /** Resolves when the disk has answered; rejects with why it has not. */
  reach(disk: PlacedDisk): Promise<unknown>;
  /** Called at each look with what the placer sees; undefined: another process places disks now. */
  onLook?(seen: PlacementSeen | undefined): void;
  /** Called between two steps of a long computation, so that requests get their turn. */
  pause(): Promise<void>;
}

export interface PlacementSeen {
  /** undefined: there is none yet. */
  map: PlacementMap | undefined;
  members: readonly Member[];
}

/** Until `signal` aborts. Never rejects. */
export async function runDiskPlacer(deps: DiskPlacerDeps, signal: AbortSignal): Promise<void> {
  await Promise.all([placeWhileHolding(deps, signal), restoreForgotten(deps, signal)]);
}

/** Writes back a map that etcd has lost: the placer may not know it. */
async function restoreForgotten(deps: DiskPlacerDeps, signal: AbortSignal): Promise<void> {
  const { clock, log } = deps;
  while (!signal.aborted) {
    await clock.sleep(FORGOTTEN_LOOK_MS, signal);
    if (signal.aborted) return;
    await readMap(deps).catch((error: unknown) => log.warn({ err: error }, 'placement-not-read'));
  }
}

function placeWhileHolding(deps: DiskPlacerDeps, signal: AbortSignal): Promise<void> {
  const job: HeldJob = {
    name: 'place-disks',
    failedEvent: 'disks-not-placed',
    retryMs: LOOK_EVERY_MS,
    onWaiting: () => deps.onLook?.(undefined),
    begin() {
      // A new placer has watched no disk yet.
      const placer = new DiskPlacer(deps);
      return async () =>
        (await placer.look()) ? Math.min(WRITTEN_LOOK_MS, deps.awayAfterMs / 10) : LOOK_EVERY_MS;
    },
  };
  return holdJob(deps, job, signal);
}

type ReadMap =
  /** Nothing is written: it may be another cluster's. */
  | { kind: 'not-ours' }
  | { kind: 'none' }
  /** `map`: the newest that is known here. `revision`: of the map in etcd. */
  | { kind: 'there'; map: PlacementMap; revision: number }
  /** etcd was lost or set back; the newer map was written back here, or by another process. */
  | { kind: 'restored' };

async function readMap(deps: DiskPlacerDeps): Promise<ReadMap> {
  const { placementMap, newestKnown, announcedVersion, log } = deps;
  // Read before etcd answers, so that etcd's map is at least as new unless it was lost.
  const known = newestKnown();
  const announced = announcedVersion();
  const stored = await placementMap.read();
  if ((await deps.cluster()) === 'unknown') return { kind: 'not-ours' };
  const foundVersion = stored?.document.version ?? 0;
  const revision = stored?.revision ?? 0;
  if (known !== undefined && known.version > foundVersion) {
    // Another process knows a newer map, and writes it back.
    if (announced > known.version) return { kind: 'there', map: known, revision };
    const version = known.version + 1;
    if (await swap(deps, { ...known, version }, revision))
      log.error({ version, found: foundVersion }, 'placement-restored');
    return { kind: 'restored' };
  }
  if (stored === undefined) return { kind: 'none' };
  const map = placementOf(stored.document);
  deps.learn(map);
  return { kind: 'there', map, revision };
}

async function swap({ placementMap }: DiskPlacerDeps, map: PlacementMap, expected: number): Promise<boolean> {
  const { kind } = await placementMap.swap({ expected, document: documentOf(map) });
  return kind === 'done';
}

class DiskPlacer {
  readonly #deps: DiskPlacerDeps;
  readonly #presence: DiskPresence;
  readonly #joiningDisks: JoiningDisks;
  #lookedAtMs: number | undefined;
  /** The version whose shares are known to be as even as possible. */
  #evenVersion = 0;
  #alarm: Judgement['alarm'];
  #unknownSinceMs: number | undefined;

  constructor(deps: DiskPlacerDeps) {
    this.#deps = deps;
    this.#presence = new DiskPresence(deps.awayAfterMs);
    this.#joiningDisks = new JoiningDisks(deps);
  }

  /** True when there is a map. */
  async look(): Promise<boolean> {
    const announced = this.#deps.announcedVersion();
    const read = await readMap(this.#deps);
    if (read.kind === 'restored') return true;
    if (read.kind === 'not-ours') return false;
    const members = this.#deps.members();
    this.#deps.onLook?.({ map: read.kind === 'there' ? read.map : undefined, members });
    if (announced <= (read.kind === 'none' ? 0 : read.map.version)) this.#unknownSinceMs = undefined;
    else if (!this.#isUnknownForLong()) return read.kind === 'there';
    if (read.kind === 'none') return this.#placeFirst(announced);
    const { map, revision } = read;
    if (announced > map.version) await this.#outdo(announced, map, revision);
    else await this.#change(map, revision);
    return true;
  }

  /** A version was announced for long, and no process seems to have its map. */
  #isUnknownForLong(): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    this.#unknownSinceMs ??= nowMs;
    return nowMs - this.#unknownSinceMs >= UNKNOWN_WAIT_MS;
  }

  /** Makes a map above the announced version: nodes refuse writes by older ones. */
  async #outdo(announced: number, map: PlacementMap, revision: number): Promise<void> {
    const { log } = this.#deps;
    const version = announced + 1;
    // The owners by the lost map are unknown, so everything is audited.
    if (await this.#swap({ ...map, version, auditFrom: version }, revision))
      log.error({ version, found: map.version }, 'placement-unknown-outdone');
  }

  /** `announced`: the version of a former map; nodes would refuse a lower one. */
  async #placeFirst(announced: number): Promise<boolean> {
    const { chunkCopies: copies, log, pause } = this.#deps;
    const served = [...this.#served().values()];
    const unreached = this.#joiningDisks.unreachedOf(served);
    const disks = served.filter((disk) => !unreached.includes(disk));
    const nodeCount = new Set(disks.map(({ nodeId }) => nodeId)).size;
    if (nodeCount < copies || this.#joiningDisks.areAwaited(unreached)) return false;
    const version = announced + 1;
    const made = await finishInTurns(makePlacementInSteps({ disks, copies }), pause);
    const map = { ...made, version, auditFrom: version };
    if (await this.#swap(map, 0))
      log.info({ version: map.version, diskCount: disks.length, copies }, 'placement-made');
    return true;
  }

  async #change(map: PlacementMap, revision: number): Promise<void> {
    const { log } = this.#deps;
    const served = this.#served();
    this.#watch(map, served);
    for (const { id } of this.#joiningDisks.unreachedOf(newDisks(map, [...served.values()])))
      served.delete(id);
    const { disks, alarm, ...changes } = judgeDisks(map, {
      served,
      away: this.#presence.away(),
      steady: this.#presence.steady(),
      areJoiningDisksComplete: this.#joiningDisks.areComplete(newDisks(map, [...served.values()])),
    });
    this.#reportAlarm(alarm, map, served);
    if (disks !== undefined) {
      const laidOut = await this.#laidOut(map, disks);
      const next = changes.cut.length === 0 ? laidOut : { ...laidOut, auditFrom: laidOut.version };
      if (await this.#swap(next, revision))
        log.info(
          { version: next.version, ...changes, copiesToMake: movedCount(map, next) },
          'placement-changed',
        );
    } else if (isPending(map)) await this.#endChange(map, revision);
    else await this.#evenOut(map, revision);
  }

  async #endChange(map: PlacementMap, revision: number): Promise<void> {
    const { auditedVersion, clock, log } = this.#deps;
    const answered = new AbortController();
    const late = clock.sleep(AUDITED_ANSWER_MAX_MS, answered.signal).then(() => undefined);
    const audited = await Promise.race([auditedVersion(), late]).finally(() => answered.abort());
    if (audited === undefined || audited < map.auditFrom) return;
    const next = clearPrevious(map);
    if (await this.#swap(next, revision))
      log.info({ version: next.version, auditFrom: map.auditFrom }, 'placement-change-done');
  }

  /** Moves what could not be moved during another change. */
  async #evenOut(map: PlacementMap, revision: number): Promise<void> {
    if (map.version === this.#evenVersion) return;
    const next = await this.#laidOut(map, map.disks);
    const moved = movedCount(map, next);
    if (moved === 0) this.#evenVersion = map.version;
    else if (await this.#swap(next, revision))
      this.#deps.log.info({ version: next.version, copiesToMake: moved }, 'placement-evened-out');
  }

  #laidOut(map: PlacementMap, disks: readonly PlacedDisk[]): Promise<PlacementMap> {
    return finishInTurns(changePlacementInSteps(map, { disks }), this.#deps.pause);
  }

  /** False when another process was faster; the next look tries again. */
  #swap(map: PlacementMap, expected: number): Promise<boolean> {
    return swap(this.#deps, map, expected);
  }

  #watch(map: PlacementMap, served: ReadonlyMap<DiskId, PlacedDisk>): void {
    const { clock, awayAfterMs } = this.#deps;
    const nowMs = clock.monotonicMs();
    const lookMs = Math.min(WRITTEN_LOOK_MS, awayAfterMs / 10);
    const ms = Math.min(nowMs - (this.#lookedAtMs ?? nowMs), LATE_LOOKS_MAX * lookMs);
    this.#lookedAtMs = nowMs;
    this.#presence.watch({ ms, disks: map.disks.map(({ id }) => id), served: new Set(served.keys()) });
  }

  /** Logged once, not at each look. */
  #reportAlarm(alarm: Judgement['alarm'], map: PlacementMap, served: ReadonlyMap<DiskId, PlacedDisk>): void {
    if (alarm === this.#alarm) return;
    this.#alarm = alarm;
    const silentCount = map.disks.filter(({ id, leave }) => leave === undefined && !served.has(id)).length;
    const fields = { silentCount, diskCount: map.disks.length };
    if (alarm !== undefined) this.#deps.log.error({ ...fields, why: alarm }, 'disks-away-not-given-up');
    else this.#deps.log.info(fields, 'disks-away-no-more');
  }

  /** Disks by the nodes that are there now. A disk that reports no room has no share. */
  #served(): Map<DiskId, PlacedDisk> {
    const served = [...servedDisks(this.#deps.members())];
    return new Map(served.filter(([, { capacityBytes }]) => capacityBytes > 0));
  }
}
