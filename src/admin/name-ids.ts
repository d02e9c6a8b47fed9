// Ids as an operator types them: whole, or how they begin.
import { nearestWord } from '../base/nearest-word.ts';

/** Fewer digits name nothing: too many ids begin with them. */
const DIGITS_MIN = 4;

/** Those of `ids` that `name` may mean; the one alone that it is. */
export function idsFitting(ids: ReadonlySet<string>, name: string): string[] {
  if (ids.has(name)) return [name];
  return [...ids].filter((id) => name.length >= DIGITS_MIN && id.startsWith(name));
}

/** `: did you mean ...?`, for a name that fits none; empty when none is near. Of a few digits, the nearest beginning. */
export function meantId(ids: ReadonlySet<string>, name: string): string {
  const nearest = nearestWord(name, new Set([...ids].map((id) => id.slice(0, name.length))));
  return nearest === undefined ? '' : `: did you mean ${nearest}?`;
}
