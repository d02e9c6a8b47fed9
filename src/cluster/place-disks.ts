// The one in the cluster who makes and changes the placement map (R34, R39, R44): the first one as soon as there are disks
// for all copies, on as many nodes, and not before; then disks join, are given up, return. What it decides by is in
// judge-disks.ts, who owns what then in placement.ts. Nothing rests on there being one: the map changes by compare-and-swap.

import { finishInTurns } from '../lib/steps.ts';
import type { ClockPort } from '../ports/clock.ts';
import type { JobLocksPort } from '../ports/job-locks.ts';
import type { Member } from '../ports/members.ts';
import type { DiskId, PlacedDisk, PlacementMap } from '../ports/placement.ts';
import type { PlacementMapPort, StoredPlacement } from '../ports/placement-map.ts';
import type { Logger } from '../ports/telemetry.ts';
import { DiskPresence } from './disk-presence.ts';
import { type Judgement, judgeDisks } from './judge-disks.ts';
import { changePlacementInSteps, makePlacementInSteps } from './placement.ts';
import { clearPrevious, isPending, movedCount, newDisks } from './placement-changes.ts';
import { documentOf, placementOf } from './placement-document.ts';

const LOOK_EVERY_MS = 1000;
const WRITTEN_LOOK_MS = 5000;
/** A look that comes later than so many times what it should has not watched meanwhile. */
const LATE_LOOKS_MAX = 3;
/** Disks that are new to the map join together: when for so long no other has come, or after the longer time. */
const JOIN_SETTLE_MS = 5000;
const JOIN_WAIT_MAX_MS = 60_000;

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
  /** The least map version at which all shards have finished an audit (R39); undefined: not all have answered. */
  auditedAt(): Promise<number | undefined>;
  /** Between two steps of a long computation: lets requests have their turn. */
  pause(): Promise<void>;
}

/** Until `signal` aborts. Never rejects. */
export async function runDiskPlacer(deps: DiskPlacerDeps, signal: AbortSignal): Promise<void> {
  const { clock, jobLocks, log } = deps;
  while (!signal.aborted) {
    try {
      const lock = await jobLocks.acquire('place-disks', signal);
      const either = AbortSignal.any([signal, lock.lost]);
      // Who has the job anew has not watched anybody yet.
      const placer = new DiskPlacer(deps);
      while (!either.aborted) {
        const isWritten = await placer.look().catch((error: unknown) => {
          log.warn({ err: error }, 'disks-not-placed');
          return false;
        });
        await clock.sleep(
          isWritten ? Math.min(WRITTEN_LOOK_MS, deps.awayAfterMs / 10) : LOOK_EVERY_MS,
          either,
        );
      }
      await lock.release();
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'disks-not-placed');
    }
  }
}

class DiskPlacer {
  readonly #deps: DiskPlacerDeps;
  readonly #presence: DiskPresence;
  #lookedAtMs: number | undefined;
  #newcomers = { ids: '', sinceMs: 0, firstAtMs: 0 };
  /** The version whose shares were found to be as even as can be. */
  #evenVersion = 0;
  #alarm: Judgement['alarm'];

  constructor(deps: DiskPlacerDeps) {
    this.#deps = deps;
    this.#presence = new DiskPresence(deps.awayAfterMs);
  }

  /** True when there is a map. */
  async look(): Promise<boolean> {
    const { placementMap, newestKnown } = this.#deps;
    // Before etcd is asked: what it says then is no older, unless it has forgotten.
    const known = newestKnown();
    const stored = await placementMap.read();
    const present = stored && placementOf(stored.document);
    if (known !== undefined && known.version > (present?.version ?? 0)) {
      await this.#restore(known, stored);
      return true;
    }
    if (stored === undefined || present === undefined) return this.#placeFirst();
    await this.#change(present, stored);
    return true;
  }

  /** etcd was lost, or set back: what nodes go by is newer. */
  async #restore(known: PlacementMap, stored: StoredPlacement | undefined): Promise<void> {
    const map = { ...known, version: known.version + 1 };
    if (await this.#swap(map, stored?.revision ?? 0))
      this.#deps.log.error(
        { version: map.version, found: stored?.document.version ?? 0 },
        'placement-restored',
      );
  }

  async #placeFirst(): Promise<boolean> {
    const { chunkCopies: copies, log, pause } = this.#deps;
    const disks = [...this.#served().values()];
    const nodeCount = new Set(disks.map(({ nodeId }) => nodeId)).size;
    if (nodeCount < copies) return false;
    const map = await finishInTurns(makePlacementInSteps({ disks, copies }), pause);
    if (await this.#swap(map, 0))
      log.info({ version: map.version, diskCount: disks.length, copies }, 'placement-made');
    return true;
  }

  async #change(map: PlacementMap, stored: StoredPlacement): Promise<void> {
    const { log } = this.#deps;
    const served = this.#served();
    this.#watch(map, served);
    const { disks, alarm, ...told } = judgeDisks(map, {
      served,
      away: this.#presence.away(),
      steady: this.#presence.steady(),
      areNewcomersSettled: this.#areSettled(newDisks(map, [...served.values()])),
    });
    this.#sayAlarm(alarm, map, served);
    if (disks !== undefined) {
      const next = await this.#laidOut(map, disks);
      if (await this.#swap(next, stored.revision))
        log.info({ version: next.version, ...told, moved: movedCount(map, next) }, 'placement-changed');
    } else if (isPending(map)) await this.#endChange(map, stored);
    else await this.#evenOut(map, stored);
  }

  async #endChange(map: PlacementMap, stored: StoredPlacement): Promise<void> {
    const { auditedAt, log } = this.#deps;
    const audited = await auditedAt();
    if (audited === undefined || audited < map.auditFrom) return;
    const next = clearPrevious(map);
    if (await this.#swap(next, stored.revision))
      log.info({ version: next.version, auditFrom: map.auditFrom }, 'placement-change-done');
  }

  /** What could not be moved while another change was pending. */
  async #evenOut(map: PlacementMap, stored: StoredPlacement): Promise<void> {
    if (map.version === this.#evenVersion) return;
    const next = await this.#laidOut(map, map.disks);
    const moved = movedCount(map, next);
    if (moved === 0) this.#evenVersion = map.version;
    else if (await this.#swap(next, stored.revision))
      this.#deps.log.info({ version: next.version, moved }, 'placement-evened-out');
  }

  #laidOut(map: PlacementMap, disks: readonly PlacedDisk[]): Promise<PlacementMap> {
    return finishInTurns(changePlacementInSteps(map, { disks }), this.#deps.pause);
  }

  /** Lost races are looked at again. */
  async #swap(map: PlacementMap, expected: number): Promise<boolean> {
    const { kind } = await this.#deps.placementMap.swap({ expected, document: documentOf(map) });
    return kind === 'done';
  }

  #watch(map: PlacementMap, served: ReadonlyMap<DiskId, PlacedDisk>): void {
    const { clock, awayAfterMs } = this.#deps;
    const nowMs = clock.monotonicMs();
    const lookMs = Math.min(WRITTEN_LOOK_MS, awayAfterMs / 10);
    const ms = Math.min(nowMs - (this.#lookedAtMs ?? nowMs), LATE_LOOKS_MAX * lookMs);
    this.#lookedAtMs = nowMs;
    this.#presence.watch({ ms, disks: map.disks.map(({ id }) => id), served: new Set(served.keys()) });
  }

  #areSettled(newcomers: readonly PlacedDisk[]): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    const ids = newcomers.map(({ id }) => id).join();
    if (ids !== this.#newcomers.ids) {
      const firstAtMs = this.#newcomers.ids === '' ? nowMs : this.#newcomers.firstAtMs;
      this.#newcomers = { ids, sinceMs: nowMs, firstAtMs };
    }
    const { sinceMs, firstAtMs } = this.#newcomers;
    return nowMs - sinceMs >= JOIN_SETTLE_MS || nowMs - firstAtMs >= JOIN_WAIT_MAX_MS;
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

  /** By nodes that are there now. */
  #served(): Map<DiskId, PlacedDisk> {
    const placed = this.#deps
      .members()
      .flatMap(({ role, nodeId, zone, address, disks }) =>
        role === 'storage'
          ? disks
              .filter(({ capacityBytes }) => capacityBytes > 0)
              .map(
                ({ diskId: id, capacityBytes }): PlacedDisk => ({ id, nodeId, zone, address, capacityBytes }),
              )
          : [],
      );
    return new Map(placed.map((disk) => [disk.id, disk]));
  }
}
