// Which disks have been served, as far as one process has watched: how long a disk has been silent, and whether it comes
// and goes. Only watched time counts: a process that stood still has seen nobody away.
import type { DiskId } from '../../ports/placement.ts';

/** Slices of the time after which a disk counts as away. */
const SLICES = 30;
/** The share of that time for which a disk that comes and goes must be served, not to count as away. */
const SERVED_SHARE = 1 / 5;
/** Number of returns that make a disk one that comes and goes. */
const COMINGS = 2;

interface Slice {
  servedMs: number;
  comings: number;
}

interface Watched {
  isServed: boolean;
  watchedForMs: number;
  silentForMs: number;
  /** Time for which it has met the condition of being away. */
  awayForMs: number;
  slices: Slice[];
}

export class DiskPresence {
  readonly #awayAfterMs: number;
  readonly #disks = new Map<DiskId, Watched>();
  #watchedMs = 0;

  /** Has watched nothing yet, so no disk is away before `awayAfterMs`. */
  constructor(awayAfterMs: number) {
    this.#awayAfterMs = awayAfterMs;
  }

  /** Records that `served` were served for the last `ms`; `disks`: all disks of interest. */
  watch({ ms, disks, served }: { ms: number; disks: readonly DiskId[]; served: ReadonlySet<DiskId> }): void {
    const sliceMs = this.#awayAfterMs / SLICES;
    const before = Math.floor(this.#watchedMs / sliceMs);
    this.#watchedMs += ms;
    const passed = Math.min(SLICES, Math.floor(this.#watchedMs / sliceMs) - before);
    const asked = new Set(disks);
    for (const id of this.#disks.keys()) if (!asked.has(id)) this.#disks.delete(id);
    for (const id of asked) {
      const disk = this.#disks.get(id) ?? joiningDisk(served.has(id));
      this.#disks.set(id, disk);
      const slice = disk.slices[0] as Slice;
      if (served.has(id)) {
        slice.servedMs += ms;
        if (!disk.isServed) slice.comings++;
      }
      disk.isServed = served.has(id);
      disk.watchedForMs += ms;
      disk.silentForMs = disk.isServed ? 0 : disk.silentForMs + ms;
      disk.awayForMs = this.#isGone(disk) ? disk.awayForMs + ms : 0;
      for (let at = 0; at < passed; at++) {
        disk.slices.unshift({ servedMs: 0, comings: 0 });
        disk.slices.pop();
      }
    }
  }

  #isGone(disk: Watched): boolean {
    // A disk that has just joined has not been served for long.
    if (disk.watchedForMs < this.#awayAfterMs) return false;
    if (disk.silentForMs >= this.#awayAfterMs) return true;
    const { servedMs, comings } = sumOf(disk);
    return comings >= COMINGS && servedMs < SERVED_SHARE * this.#awayAfterMs;
  }

  /**
   * Disks silent for too long, and disks that come and go and were served too little. Empty until the first of them has
   * been away for one slice more, so that disks that fail together are found together.
   */
  away(): Set<DiskId> {
    const gone = [...this.#disks].filter(([, { awayForMs }]) => awayForMs > 0);
    const isTime = gone.some(([, { awayForMs }]) => awayForMs > this.#awayAfterMs / SLICES);
    return new Set(isTime ? gone.map(([id]) => id) : []);
  }

  /** Disks that are served, and for long enough not to be away again at once. */
  steady(): Set<DiskId> {
    const enoughMs = SERVED_SHARE * this.#awayAfterMs;
    const here = [...this.#disks].filter(([, disk]) => disk.isServed && sumOf(disk).servedMs >= enoughMs);
    return new Set(here.map(([id]) => id));
  }
}

const joiningDisk = (isServed: boolean): Watched => ({
  isServed,
  watchedForMs: 0,
  silentForMs: 0,
  awayForMs: 0,
  slices: Array.from({ length: SLICES }, () => ({ servedMs: 0, comings: 0 })),
});

function sumOf({ slices }: Watched): Slice {
  return slices.reduce((sum, { servedMs, comings }) => ({
    servedMs: sum.servedMs + servedMs,
    comings: sum.comings + comings,
  }));
}
