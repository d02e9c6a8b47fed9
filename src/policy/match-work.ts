// How much may be compared to decide one question. A policy of 20 KB may have thousands of patterns, a request a text of
// thousands of characters or a thousand values of one key, and a caller a hundred policies: without a bound one request could
// keep the thread for seconds.

/** Steps of a search, some ns each: what takes more than some 20 ms ends here. */
export const MATCH_WORK_MAX = 6_000_000;

/** Thrown by `spend` within `boundWork`. */
export class TooMuchWork extends Error {
  override name = 'TooMuchWork';
}

/** Since the start of the program. */
let doneWork = 0;
let endsAt = Number.POSITIVE_INFINITY;

/** To hold a pattern or a value against a text, however soon it is known that it does not fit. */
export const COMPARISON_STEPS = 12;

/** To understand a text as a number, a date or an address, however short it is, and for each code unit of it. */
export const PARSE_STEPS = 250;
export const PARSE_UNIT_STEPS = 4;

/** Notes the steps of a search: before it, that it begins, and behind it what it has taken. */
export function spend(steps: number): void {
  doneWork += steps;
  if (doneWork > endsAt) throw new TooMuchWork();
}

/** Whether `spend` would throw, and has thrown before: who asks first need not have it thrown again, some us each time. */
export function isTooMuch(): boolean {
  return doneWork > endsAt;
}

/** Of all questions so far: the difference of two readings tells what was compared between them. */
export function matchWork(): number {
  return doneWork;
}

/** Runs `act` to its end: what it takes is noted, and is none of the question's that it is within. */
export function besideWork<T>(act: () => T): T {
  const outer = endsAt;
  const before = doneWork;
  endsAt = Number.POSITIVE_INFINITY;
  try {
    return act();
  } finally {
    endsAt = outer + (doneWork - before);
  }
}

/** Runs `decide`, within which `spend` throws once more than MATCH_WORK_MAX has been done. */
export function boundWork<T>(decide: () => T): T {
  const outer = endsAt;
  endsAt = Math.min(outer, doneWork + MATCH_WORK_MAX);
  try {
    return decide();
  } finally {
    endsAt = outer;
  }
}
