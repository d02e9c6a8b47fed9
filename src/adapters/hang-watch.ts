// Notices a drive that hangs. What waits for it would wait as long as it does, and a node that others could stand in for
// would keep its place.
import { DriveHangs } from '../lib/drive-hangs.ts';
import type { ClockPort } from '../ports/clock.ts';

export interface HangWatch {
  clock: ClockPort;
  /** How long one piece of work may take. */
  afterMs: number;
}

/** Only a slice in which this process ran is counted, so that one that was stopped does not blame its drive. */
const SLICES = 20;

/**
 * Resolves with the error once the same piece of work has been under way for so long, or with undefined once `signal`
 * aborts. `underWay`: what was begun first of what is not done.
 */
export async function watchForHang(
  { clock, afterMs }: HangWatch,
  { underWay, signal }: { underWay(): object | undefined; signal: AbortSignal },
): Promise<DriveHangs | undefined> {
  let last: object | undefined;
  let slices = 0;
  for (;;) {
    await clock.sleep(afterMs / SLICES, signal);
    if (signal.aborted) return undefined;
    const work = underWay();
    slices = work !== undefined && work === last ? slices + 1 : 0;
    last = work;
    if (slices >= SLICES) return new DriveHangs(`the drive has not answered a write for ${afterMs / 1000} s`);
  }
}
