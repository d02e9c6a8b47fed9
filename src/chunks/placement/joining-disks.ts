// Disks that are in no placement map yet. A node announces its disks in etcd before any other node has called it. Only
// disks that have answered here join; otherwise a node with a wrong secret or authority would get a share that nobody could
// reach.
import type { ClockPort } from '../../ports/clock.ts';
import type { DiskId, PlacedDisk } from '../../ports/placement.ts';
import type { Logger } from '../../ports/telemetry.ts';

/** Disks join together: when no other has come for this time, or after the longer time. */
const JOIN_QUIET_MS = 5000;
const JOIN_WAIT_MAX_MS = 60_000;
/** The first map does not wait longer for disks that have not answered yet. */
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
  /** Logged once, not at each look. */
  readonly #unreached = new Set<DiskId>();
  #latest = { ids: '', sinceMs: 0, firstAtMs: 0 };
  #awaitedSinceMs: number | undefined;

  constructor(deps: JoiningDisksDeps) {
    this.#deps = deps;
  }

  /** The `joiningDisks` (all that there are) that may not join yet. Asks them, for the next look. */
  unreachedOf(joiningDisks: readonly PlacedDisk[]): PlacedDisk[] {
    const present = new Set(joiningDisks.map(({ id }) => id));
    for (const known of [this.#reached, this.#unreached])
      for (const id of known) if (!present.has(id)) known.delete(id);
    const unreached = joiningDisks.filter(({ id }) => !this.#reached.has(id));
    for (const disk of unreached) if (!this.#asked.has(disk.id)) void this.#ask(disk);
    return unreached;
  }

  /**
   * Whether one of `unreached` may answer at any moment: a map without it would change at once. False after a bounded time,
   * and for disks that failed, which are asked again at each look.
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

  /** Without a deadline of its own: each call to a disk has one. */
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

  /**
   * Whether the joining disks have been the same for a while. `joiningDisks`: those that may join, so that an unreachable
   * one delays nobody.
   */
  areComplete(joiningDisks: readonly PlacedDisk[]): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    const ids = joiningDisks.map(({ id }) => id).join();
    if (ids !== this.#latest.ids) {
      const firstAtMs = this.#latest.ids === '' ? nowMs : this.#latest.firstAtMs;
      this.#latest = { ids, sinceMs: nowMs, firstAtMs };
    }
    const { sinceMs, firstAtMs } = this.#latest;
    return nowMs - sinceMs >= JOIN_QUIET_MS || nowMs - firstAtMs >= JOIN_WAIT_MAX_MS;
  }
}
