// A tenant's share of a resource: what one, several and greedy ones get, and that nothing is lost in counting.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createFairShare, type FairShare, type SharePath } from './fair-share.ts';

/** Takes single units until the share refuses; answers how many. */
function takeAll(share: FairShare, path: SharePath): number {
  let taken = 0;
  for (; share.mayTake(path, 1); taken++) share.take(path, 1);
  return taken;
}

describe('fair share', () => {
  test('one tenant alone leaves 1 / (weight + 1) free', () => {
    const share = createFairShare({ limit: 1000, weights: [4] });
    expect(takeAll(share, ['a'])).toBe(800);
    expect(share.mayTake(['b'], 100)).toBe(true);
  });

  test('a second tenant gets room while the first holds its maximum, and then the first is over its share', () => {
    const share = createFairShare({ limit: 1000, weights: [1] });
    expect(takeAll(share, ['a'])).toBe(500);
    expect(share.isOverShare(['a'])).toBe(false);
    expect(takeAll(share, ['b'])).toBe(250);
    expect(share.isOverShare(['a'])).toBe(true);
    expect(share.isOverShare(['b'])).toBe(false);
  });

  test('one address of an account leaves room for another address of it, and for another account', () => {
    const share = createFairShare({ limit: 1000, weights: [4, 2] });
    expect(takeAll(share, ['account', '1'])).toBe(533);
    expect(takeAll(share, ['account', '2'])).toBeGreaterThan(100);
    expect(takeAll(share, ['other', '1'])).toBeGreaterThan(100);
  });

  test('a tenant that holds nothing may take what is free', () => {
    const share = createFairShare({ limit: 3, weights: [1] });
    share.take(['a'], 2);
    expect(share.mayTake(['b'], 1)).toBe(true);
    expect(share.mayTake(['a'], 1)).toBe(false);
  });

  test('distinguishes a tenant with a used-up share from one that finds nothing free', () => {
    const share = createFairShare({ limit: 3, weights: [1] });
    share.take(['a'], 2);
    expect([share.mayTake(['a'], 1), share.usedUp(1)]).toEqual([false, 'tenant']);
    share.take(['b'], 1);
    expect([share.mayTake(['c'], 1), share.usedUp(1)]).toEqual([false, 'all']);
  });

  test('shares add up and the limit holds over any takes and returns', () => {
    const step = fc.record({
      tenant: fc.constantFrom('a', 'b', 'c'),
      units: fc.integer({ min: 1, max: 40 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const share = createFairShare({ limit: 100, weights: [2] });
        const held: { tenant: string; units: number }[] = [];
        for (const next of steps) {
          if (share.mayTake([next.tenant], next.units)) {
            share.take([next.tenant], next.units);
            held.push(next);
          } else {
            const first = held.shift();
            if (first !== undefined) share.giveBack([first.tenant], first.units);
          }
          expect(share.used).toBe(held.reduce((sum, { units }) => sum + units, 0));
          expect(share.used).toBeLessThanOrEqual(100);
        }
        for (const { tenant, units } of held) share.giveBack([tenant], units);
        expect(share.used).toBe(0);
        expect(share.usedBy(['a'])).toBe(0);
      }),
    );
  });
});
