// Tests with a long form: more seeds, rounds or bytes than `npm test` has time for. `npm run test:long` runs the long forms, and
// finds the files that have one by their import of this module.

/** Set by `npm run test:long`. */
export const isLongForm = process.env.HOLDFAST_TEST_LONG === 'true';

/** The cases of this run: those of the short form, and in the long form all. */
export function casesOf<T>({
  short,
  longOnly,
}: {
  short: readonly T[];
  longOnly: readonly T[];
}): readonly T[] {
  return isLongForm ? [...short, ...longOnly] : short;
}

/** How often, how many or how large in this run: `byHand`, the text of a variable of its own, comes first. */
export function amountOf(amounts: { short: number; long: number; byHand?: string | undefined }): number {
  if (amounts.byHand !== undefined) return Number(amounts.byHand);
  return isLongForm ? amounts.long : amounts.short;
}
