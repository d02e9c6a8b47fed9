// The error of a drive that answers neither with what it was asked for nor with an error, as one that is dying may for hours
// (adapters/hang-watch.ts). Whether what it was asked for was done nobody knows; it may still be, as long as it is not closed.

export class DriveHangs extends Error {
  override name = 'DriveHangs';
}

/** Closes it, however that ends; but what hangs is closed by nobody before its drive answers, and that is not waited for. */
export function closeUnlessItHangs(store: {
  close(): Promise<void>;
  readonly failed: Promise<Error>;
}): Promise<void> {
  const hangs = new Promise<void>((resolve) => {
    store.failed.then((error) => {
      if (error instanceof DriveHangs) resolve();
    });
  });
  return Promise.race([store.close(), hangs]);
}
