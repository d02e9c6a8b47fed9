// Many of something in a test: some at a time, which takes a fraction of one after the other.

const SLICE = 500;

/** `act` for 0 to `count` - 1. */
export async function inSlices(count: number, act: (index: number) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < count; from += SLICE) {
    const size = Math.min(SLICE, count - from);
    await Promise.all(Array.from({ length: size }, (_, at) => act(from + at)));
  }
}
