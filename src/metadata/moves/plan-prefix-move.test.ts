// Keys of a prefix, renamed one after the other in the order of the plan, come out as if all were renamed at one moment.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import { compareBytes, utf8 } from '../../base/bytes/bytes.ts';
import { planPrefixMove } from './plan-prefix-move.ts';

const text = (minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom('a', 'b', '/', 'ä'), minLength, maxLength });

function inOrder(keys: readonly string[], reverse: boolean): string[] {
  const sorted = [...keys].sort((a, b) => compareBytes(utf8(a), utf8(b)));
  return reverse ? sorted.reverse() : sorted;
}

/** The walk as a driver makes it: the next key behind the last one, of those that are there by then. */
function walk(before: readonly string[], from: string, to: string): Map<string, string> {
  const now = new Map(before.map((key) => [key, key]));
  for (const { gte, lt, reverse } of planPrefixMove(from, to)) {
    const isIn = (key: string) => compareBytes(utf8(key), gte) >= 0 && compareBytes(utf8(key), lt) < 0;
    for (let after: string | undefined; ; ) {
      const next = inOrder([...now.keys()].filter(isIn), reverse).find(
        (key) => after === undefined || compareBytes(utf8(key), utf8(after)) * (reverse ? -1 : 1) > 0,
      );
      if (next === undefined) break;
      now.set(to + next.slice(from.length), now.get(next) ?? '');
      now.delete(next);
      after = next;
    }
  }
  return now;
}

function atOnce(before: readonly string[], from: string, to: string): Map<string, string> {
  const others = before.filter((key) => !key.startsWith(from));
  const moved = before.filter((key) => key.startsWith(from));
  return new Map([
    ...others.map((key) => [key, key] as const),
    ...moved.map((key) => [to + key.slice(from.length), key] as const),
  ]);
}

const keys = fc.uniqueArray(text(1, 6), { maxLength: 24 });
const sorted = (map: Map<string, string>) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));

test.each([
  ['apart', (a: string, b: string) => [a, b]],
  ['into itself', (a: string, b: string) => [a, a + b]],
  ['out of itself', (a: string, b: string) => [a + b, a]],
] as const)('%s', (_, pair) => {
  fc.assert(
    fc.property(keys, text(1, 3), text(1, 3), (before, a, b) => {
      const [from = '', to = ''] = pair(a, b);
      fc.pre(from !== to);
      expect(sorted(walk(before, from, to))).toEqual(sorted(atOnce(before, from, to)));
    }),
    { numRuns: amountOf({ short: 80, long: 400 }) },
  );
});
