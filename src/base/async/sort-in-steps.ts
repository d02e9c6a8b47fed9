// Long lists are put in order in steps: a hundred thousand texts take a tenth of a second.
import type { Steps } from './steps.ts';

/** Items of one step. */
const ITEMS_OF_STEP = 5000;

/** A new list in order; items that compare as equal stay in the order that they had. */
export function* sortInSteps<Item>(
  items: readonly Item[],
  compare: (a: Item, b: Item) => number,
): Steps<Item[]> {
  let runs: Item[][] = [];
  for (let at = 0; at < items.length; at += ITEMS_OF_STEP) {
    runs.push(items.slice(at, at + ITEMS_OF_STEP).sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const merged: Item[][] = [];
    for (let at = 0; at < runs.length; at += 2)
      merged.push(yield* mergeInSteps(runs[at] ?? [], runs[at + 1] ?? [], compare));
    runs = merged;
  }
  return runs[0] ?? [];
}

function* mergeInSteps<Item>(
  before: readonly Item[],
  after: readonly Item[],
  compare: (a: Item, b: Item) => number,
): Steps<Item[]> {
  const merged: Item[] = [];
  let [beforeAt, afterAt] = [0, 0];
  while (merged.length < before.length + after.length) {
    const takesAfter =
      beforeAt === before.length ||
      (afterAt < after.length && compare(after[afterAt] as Item, before[beforeAt] as Item) < 0);
    merged.push((takesAfter ? after[afterAt++] : before[beforeAt++]) as Item);
    if (merged.length % ITEMS_OF_STEP === 0) yield;
  }
  return merged;
}
