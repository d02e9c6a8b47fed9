// The one in the cluster who makes and changes the placement map (R34, R39, R44): the first one as soon as there are disks
// for all copies, on as many nodes, and not before, nor before those just being asked have had time to answer; then disks
// join, are given up, return. What it decides by is in judge-disks.ts, who owns what then in placement.ts. Nothing rests on
// there being one: the map changes by compare-and-swap.

import { finishInTurns } from '../../base/async/steps.ts';
import { type HeldJob, holdJob } from '../../coordination/hold-job.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { JobLocksPort } from '../../ports/job-locks.ts';
import type { Member } from '../../ports/members.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../../ports/placement.ts';
import type { PlacementMapPort } from '../../ports/placement-map.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { DiskPresence } from './disk-presence.ts';
import { JoiningDisks } from './joining-disks.ts';
import { type Judgement, judgeDisks } from './judge-disks.ts';
import { changePlacementInSteps, makePlacementInSteps } from './placement.ts';
import { clearPrevious, isPending, movedCount, newDisks } from './placement-changes.ts';
import { documentOf, placementOf } from './placement-document.ts';
import { servedDisks } from './served-disks.ts';

const LOOK_EVERY_MS = 1000;
const WRITTEN_LOOK_MS = 5000;
/** A look that comes later than so many times what it should has not watched meanwhile. */
const LATE_LOOKS_MAX = 3;
/** How often one who does not place disks looks whether etcd has forgotten the map. */
const FORGOTTEN_LOOK_MS = 20_000;
/** After that nobody is waited for who might know a map that others have heard of. */
const UNKNOWN_WAIT_MS = 60_000;
const AUDITED_ANSWER_MAX_MS = 10_000;

export interface DiskPlacerDeps {
  chunkCopies: number;
  /** A disk that nobody has served for so long is given up: its partitions go to others until it returns. */
  awayAfterMs: number;
  placementMap: PlacementMapPort;
  jobLocks: JobLocksPort;
  clock: ClockPort;
  log: Logger;
  members(): readonly Member[];
  /** The newest map that is known here, whatever etcd has. */
  newestKnown(): PlacementMap | undefined;
  /** The highest version that anyone has told of. */
  heardVersion(): number;
  /** What etcd has: a watch may be silent, and a node that does not know the map audits nothing (R39). */
  learn(map: PlacementMap): void;
  /** The least map version at which all shards have finished an audit (R39); undefined: not all have answered. */
  auditedAt(): Promise<number | undefined>;
  /** Resolves when the disk has answered; rejects with why it has not. */
  reach(disk: PlacedDisk): Promise<unknown>;
  /** What is gone by, at each look; undefined: another one places disks now. */
  onLook?(seen: PlacementSeen | undefined): void;
  /** Between two steps of a long computation: lets requests have their turn. */
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

/** Whoever knows more than etcd says so: the one who places disks may not. */
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
    ...{ name: 'place-disks', failedEvent: 'disks-not-placed', retryMs: LOOK_EVERY_MS },
    onWaiting: () => deps.onLook?.(undefined),
    begin() {
      // Who has the job anew has not watched anybody yet.
      const placer = new DiskPlacer(deps);
      return async () =>
        (await placer.look()) ? Math.min(WRITTEN_LOOK_MS, deps.awayAfterMs / 10) : LOOK_EVERY_MS;
    },
  };
  return holdJob(deps, job, signal);
}

type ReadMap =
  | { kind: 'none' }
  /** The newest that is known here. `revision`: of what etcd has. */
  | { kind: 'there'; map: PlacementMap; revision: number }
  /** etcd was lost, or set back: what nodes go by is newer, and was written back, unless another was faster. */
  | { kind: 'restored' };

async function readMap(deps: DiskPlacerDeps): Promise<ReadMap> {
  const { placementMap, newestKnown, heardVersion, log } = deps;
  // Before etcd is asked: what it says then is no older, unless it has forgotten.
  const known = newestKnown();
  const heard = heardVersion();
  const stored = await placementMap.read();
  const foundVersion = stored?.document.version ?? 0;
  const revision = stored?.revision ?? 0;
  if (known !== undefined && known.version > foundVersion) {
    // Others have gone by a newer one still: whoever knows that writes it back.
    if (heard > known.version) return { kind: 'there', map: known, revision };
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
  /** The version whose shares were found to be as even as can be. */
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
    const heard = this.#deps.heardVersion();
    const read = await readMap(this.#deps);
    if (read.kind === 'restored') return true;
    const members = this.#deps.members();
    this.#deps.onLook?.({ map: read.kind === 'there' ? read.map : undefined, members });
    if (heard <= (read.kind === 'none' ? 0 : read.map.version)) this.#unknownSinceMs = undefined;
    else if (!this.#isUnknownForLong()) return read.kind === 'there';
    if (read.kind === 'none') return this.#placeFirst(heard);
    const { map, revision } = read;
    if (heard > map.version) await this.#outdo(heard, map, revision);
    else await this.#change(map, revision);
    return true;
  }

  /** Nodes have heard of a map that nobody has any more, as it seems. */
  #isUnknownForLong(): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    this.#unknownSinceMs ??= nowMs;
    return nowMs - this.#unknownSinceMs >= UNKNOWN_WAIT_MS;
  }

  /** They refuse what is written by an older one. */
  async #outdo(heard: number, map: PlacementMap, revision: number): Promise<void> {
    const { log } = this.#deps;
    const version = heard + 1;
    // Who owned what by the lost one is not known, so all is audited.
    if (await this.#swap({ ...map, version, auditFrom: version }, revision))
      log.error({ version, found: map.version }, 'placement-unknown-outdone');
  }

  /** `heard`: of a former one, which its nodes would hold against an older one. */
  async #placeFirst(heard: number): Promise<boolean> {
    const { chunkCopies: copies, log, pause } = this.#deps;
    const served = [...this.#served().values()];
    const unreached = this.#joiningDisks.unreachedOf(served);
    const disks = served.filter((disk) => !unreached.includes(disk));
    const nodeCount = new Set(disks.map(({ nodeId }) => nodeId)).size;
    if (nodeCount < copies || this.#joiningDisks.areAwaited(unreached)) return false;
    const version = heard + 1;
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
    const { disks, alarm, ...told } = judgeDisks(map, {
      served,
      away: this.#presence.away(),
      steady: this.#presence.steady(),
      areJoiningDisksSettled: this.#joiningDisks.areSettled(newDisks(map, [...served.values()])),
    });
    this.#sayAlarm(alarm, map, served);
    if (disks !== undefined) {
      const laidOut = await this.#laidOut(map, disks);
      const next = told.cut.length === 0 ? laidOut : { ...laidOut, auditFrom: laidOut.version };
      if (await this.#swap(next, revision))
        log.info(
          { version: next.version, ...told, copiesToMake: movedCount(map, next) },
          'placement-changed',
        );
    } else if (isPending(map)) await this.#endChange(map, revision);
    else await this.#evenOut(map, revision);
  }

  async #endChange(map: PlacementMap, revision: number): Promise<void> {
    const { auditedAt, clock, log } = this.#deps;
    const answered = new AbortController();
    const late = clock.sleep(AUDITED_ANSWER_MAX_MS, answered.signal).then(() => undefined);
    const audited = await Promise.race([auditedAt(), late]).finally(() => answered.abort());
    if (audited === undefined || audited < map.auditFrom) return;
    const next = clearPrevious(map);
    if (await this.#swap(next, revision))
      log.info({ version: next.version, auditFrom: map.auditFrom }, 'placement-change-done');
  }

  /** What could not be moved while another change was pending. */
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

  /** Lost races are looked at again. */
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

  /** Once, not at each look. */
  #sayAlarm(alarm: Judgement['alarm'], map: PlacementMap, served: ReadonlyMap<DiskId, PlacedDisk>): void {
    if (alarm === this.#alarm) return;
    this.#alarm = alarm;
    const silentCount = map.disks.filter(({ id, leave }) => leave === undefined && !served.has(id)).length;
    const fields = { silentCount, diskCount: map.disks.length };
    if (alarm !== undefined) this.#deps.log.error({ ...fields, why: alarm }, 'disks-away-not-given-up');
    else this.#deps.log.info(fields, 'disks-away-no-more');
  }

  /** By nodes that are there now. Of one that tells of no room there is no saying what its share is. */
  #served(): Map<DiskId, PlacedDisk> {
    const served = [...servedDisks(this.#deps.members())];
    return new Map(served.filter(([, { capacityBytes }]) => capacityBytes > 0));
  }
}
