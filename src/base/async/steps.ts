// Long computations in short steps: a generator yields where others may have their turn, and who runs it decides whether
// they get it. The result is the same either way.

/** A computation that yields after each few milliseconds of work. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** All steps at once: where nobody waits. */
export function finishAtOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** `pause` after each step: lets whatever else is ready run. */
export async function finishInTurns<T>(steps: Steps<T>, pause: () => Promise<void>): Promise<T> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await pause();
  }
}
