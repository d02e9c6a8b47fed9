// Disks that are in no placement map yet. A node tells etcd of its disks before any other has called it: only disks that have
// answered here join, or those of a node with another secret or authority would get their share, which nobody could reach.
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskId, PlacedDisk } from '../../ports/placement.ts';
import type { Logger } from '../../ports/telemetry.ts';

/** JoiningDisks join together: when for so long no other has come, or after the longer time. */
const JOIN_SETTLE_MS = 5000;
const JOIN_WAIT_MAX_MS = 60_000;
/** The first map waits no longer for those that have not said yet whether they can be reached. */
const FIRST_ANSWERS_MAX_MS = 5000;

export interface JoiningDisksDeps {
  clock: ClockPort;
  log: Logger;
  /** Resolves when the disk has answered; rejects with why it has not. */
  reach(disk: PlacedDisk): Promise<unknown>;
}

export class JoiningDisks {
  readonly #deps: JoiningDisksDeps;
  readonly #reached = new Set<DiskId>();
  readonly #asked = new Set<DiskId>();
  /** Told of once, not at each look. */
  readonly #unreached = new Set<DiskId>();
  #latest = { ids: '', sinceMs: 0, firstAtMs: 0 };
  #awaitedSinceMs: number | undefined;

  constructor(deps: JoiningDisksDeps) {
    this.#deps = deps;
  }

  /** Those of `joining disks`, all that there are, who may not join; asks them, for the next look. */
  unreachedOf(joiningDisks: readonly PlacedDisk[]): PlacedDisk[] {
    const present = new Set(joiningDisks.map(({ id }) => id));
    for (const known of [this.#reached, this.#unreached])
      for (const id of known) if (!present.has(id)) known.delete(id);
    const unreached = joiningDisks.filter(({ id }) => !this.#reached.has(id));
    for (const disk of unreached) if (!this.#asked.has(disk.id)) void this.#ask(disk);
    return unreached;
  }

  /**
   * Whether one of `unreached` may answer its first call any moment: a map without it would be changed at once. Not for
   * long, whoever comes meanwhile, and not for one that has failed, which is asked again at each look.
   */
  areAwaited(unreached: readonly PlacedDisk[]): boolean {
    if (unreached.every(({ id }) => this.#unreached.has(id))) {
      this.#awaitedSinceMs = undefined;
      return false;
    }
    const nowMs = this.#deps.clock.monotonicMs();
    this.#awaitedSinceMs ??= nowMs;
    return nowMs - this.#awaitedSinceMs < FIRST_ANSWERS_MAX_MS;
  }

  /** Has no deadline of its own: each call to a disk has one. */
  async #ask(disk: PlacedDisk): Promise<void> {
    const { id, nodeId, address } = disk;
    this.#asked.add(id);
    try {
      await this.#deps.reach(disk);
      this.#reached.add(id);
    } catch (error) {
      if (!this.#unreached.has(id))
        this.#deps.log.error({ disk: id, node: nodeId, address, err: error }, 'new-disk-not-reached');
      this.#unreached.add(id);
    } finally {
      this.#asked.delete(id);
    }
  }

  /** Whether no other is to be waited for. `joining disks`: those that may join, so that one that never will delays nobody. */
  areSettled(joiningDisks: readonly PlacedDisk[]): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    const ids = joiningDisks.map(({ id }) => id).join();
    if (ids !== this.#latest.ids) {
      const firstAtMs = this.#latest.ids === '' ? nowMs : this.#latest.firstAtMs;
      this.#latest = { ids, sinceMs: nowMs, firstAtMs };
    }
    const { sinceMs, firstAtMs } = this.#latest;
    return nowMs - sinceMs >= JOIN_SETTLE_MS || nowMs - firstAtMs >= JOIN_WAIT_MAX_MS;
  }
}
