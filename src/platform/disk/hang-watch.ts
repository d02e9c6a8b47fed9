// Notices a drive that hangs. What waits for it would wait as long as it does, and a node that others could stand in for
// would keep its place.
import { DriveHangs } from '../../base/drive-hangs.ts';
import type { ClockPort } from '../../ports/clock.ts';

export interface HangWatch {
  clock: ClockPort;
  /** How long one piece of work may take. */
  afterMs: number;
}

export interface WatchedWork {
  /** What was begun first of what is not done. */
  underWay(): object | undefined;
  /** Whether it waits for other work of the drive: that may take long, and hang as well. Such time counts for a tenth. */
  isHeldUp?(): boolean;
  /** Resolves when the work could have been begun. Without that a slice does not end: others may be in its way. */
  turn?(): Promise<void>;
  /** Ends the watch. */
  signal: AbortSignal;
}

/** Only a slice in which this process ran is counted, so that one that was stopped does not blame its drive. */
const SLICES = 20;
const HELD_UP_SHARE = 0.1;

/** Resolves with the error once the same piece of work has been under way for so long, or with undefined at the end. */
export async function watchForHang(
  { clock, afterMs }: HangWatch,
  { underWay, isHeldUp, turn, signal }: WatchedWork,
): Promise<DriveHangs | undefined> {
  let last: object | undefined;
  let slices = 0;
  for (;;) {
    await Promise.all([clock.sleep(afterMs / SLICES, signal), turn?.()]);
    if (signal.aborted) return undefined;
    const work = underWay();
    if (work === undefined || work !== last) slices = 0;
    else slices += isHeldUp?.() === true ? HELD_UP_SHARE : 1;
    last = work;
    if (slices >= SLICES) return new DriveHangs(`the drive has not answered a write for ${afterMs / 1000} s`);
  }
}
