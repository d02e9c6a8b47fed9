// Work that must not overlap: each piece begins when the one before it has ended, well or not.

/** Runs `work` after all that was given before; its outcome is the caller's alone. */
export type Sequence = <T>(work: () => Promise<T>) => Promise<T>;

export function createSequence(): Sequence {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const done = last.then(work);
    last = done.catch(() => {});
    return done;
  };
}
