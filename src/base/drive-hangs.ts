// The error of a drive that answers neither with what it was asked for nor with an error, as one that is dying may for hours
// (platform/disk/hang-watch.ts). Whether what it was asked for was done nobody knows; it may still be, as long as it is not closed.
import { within } from './async/within.ts';

export class DriveHangs extends Error {
  override name = 'DriveHangs';
}

/** Closes it, but waits for no drive that hangs, and no longer than `maxMs`. Rejects as the store's `close` does. */
export async function closeUnlessItHangs(
  store: { close(): Promise<void>; readonly failed: Promise<Error> },
  { clock, maxMs }: { clock: Parameters<typeof within>[2]; maxMs: number },
): Promise<void> {
  const hangs = new Promise<void>((resolve) => {
    store.failed.then((error) => {
      if (error instanceof DriveHangs) resolve();
    });
  });
  await within(Promise.race([store.close(), hangs]), maxMs, clock);
}
