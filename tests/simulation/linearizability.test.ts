// The checker itself: what is linearizable passes, what is not is found, also by comparison with trying every order.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { byKey, type KeyRecord, linearize } from './linearizability.ts';
import { type HistoryRecord, isEqualOutcome, type Operation, type Outcome, stepKey } from './operations.ts';

function record(
  operation: Operation,
  [invokedAt, answeredAt]: [number, number],
  outcome?: Outcome,
): HistoryRecord {
  const times = { invokedAt, answeredAt, invokedAtMs: invokedAt, answeredAtMs: answeredAt };
  return { requestId: `${invokedAt}`, shard: 0, client: 0, operation, ...times, outcome };
}
const put = (value: string, at: [number, number], isKnown = true) =>
  record({ kind: 'put', key: 'k', value }, at, isKnown ? { kind: 'written' } : undefined);
const create = (value: string, at: [number, number], kind: 'written' | 'exists') =>
  record({ kind: 'create', key: 'k', value }, at, { kind });
const read = (value: string | null, at: [number, number]) =>
  record({ kind: 'read', key: 'k' }, at, { kind: 'value', value });

const kinds = (history: HistoryRecord[]) =>
  [...byKey(history).values()].map((records) => linearize(records).kind);

test('overlapping operations may have happened in any order', () => {
  expect(kinds([put('a', [1, 5]), read(null, [2, 3]), read('a', [4, 6])])).toEqual(['ok']);
  expect(kinds([put('a', [1, 9]), put('b', [2, 8]), read('a', [10, 11])])).toEqual(['ok']);
  expect(kinds([put('a', [1, 9]), put('b', [2, 8]), read('b', [10, 11])])).toEqual(['ok']);
});

test('a read of a value before its write, of an overwritten one, and of one that came and went', () => {
  expect(kinds([put('a', [1, 2]), read(null, [3, 4])])).toEqual(['impossible']);
  expect(kinds([put('a', [1, 2]), put('b', [3, 4]), read('a', [5, 6])])).toEqual(['impossible']);
  expect(kinds([put('a', [1, 9]), read('a', [2, 3]), read(null, [4, 5])])).toEqual(['impossible']);
});

test('of racing creators one wins', () => {
  const one = create('a', [1, 5], 'written');
  expect(kinds([one, create('b', [2, 6], 'exists')])).toEqual(['ok']);
  expect(kinds([one, create('b', [2, 6], 'written')])).toEqual(['impossible']);
  expect(kinds([create('a', [1, 5], 'exists'), create('b', [2, 6], 'exists')])).toEqual(['impossible']);
});

test('an operation with an unknown outcome may happen late, or never, but not before it began', () => {
  const lost = put('a', [1, 2], false);
  expect(kinds([lost, read(null, [3, 4]), read('a', [5, 6])])).toEqual(['ok']);
  expect(kinds([lost, read(null, [3, 4])])).toEqual(['ok']);
  expect(kinds([lost, read('a', [3, 4]), read(null, [5, 6])])).toEqual(['impossible']);
  expect(kinds([read('a', [1, 2]), put('a', [3, 4], false)])).toEqual(['impossible']);
});

test('a page is a read of each key that it covers, and of no other', () => {
  const page = (items: [string, string][], isLast: boolean, after = '') =>
    record({ kind: 'list', after, limit: 2 }, [3, 4], { kind: 'page', items, isLast });
  const a = record({ kind: 'put', key: 'a', value: '1' }, [1, 2], { kind: 'written' });
  const c = record({ kind: 'put', key: 'c', value: '1' }, [1, 2], { kind: 'written' });
  expect(
    kinds([
      a,
      c,
      page(
        [
          ['a', '1'],
          ['c', '1'],
        ],
        true,
      ),
    ]),
  ).toEqual(['ok', 'ok']);
  expect(kinds([a, c, page([['a', '1']], false)])).toEqual(['ok', 'ok']);
  expect(kinds([a, c, page([['a', '1']], true)])).toEqual(['ok', 'impossible']);
  expect(kinds([a, c, page([['c', '1']], true, 'b')])).toEqual(['ok', 'ok']);
  expect(kinds([a, page([['b', '1']], true)])).toContain('impossible');
});

test('a counterexample names what could not be explained', () => {
  const [records = []] = byKey([put('a', [1, 2]), read(null, [3, 4])]).values();
  expect(linearize(records)).toMatchObject({
    kind: 'impossible',
    after: [{ operation: { kind: 'put' } }],
    stuckAt: [{ operation: { kind: 'read' } }],
  });
});

test('agrees with trying every order', () => {
  const value = fc.constantFrom('a', 'b');
  const operation = fc.oneof(
    fc.record({ kind: fc.constant('put' as const), key: fc.constant('k'), value }),
    fc.record({ kind: fc.constant('create' as const), key: fc.constant('k'), value }),
    fc.record({ kind: fc.constant('remove' as const), key: fc.constant('k') }),
    fc.record({ kind: fc.constant('read' as const), key: fc.constant('k') }),
  );
  const outcome = fc.constantFrom<Outcome | undefined>(
    { kind: 'written' },
    { kind: 'exists' },
    { kind: 'gone' },
    { kind: 'value', value: null },
    { kind: 'value', value: 'a' },
    undefined,
  );
  const times = fc.tuple(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 1, max: 6 }));
  const seen = { ok: 0, impossible: 0, undecided: 0 };
  fc.assert(
    fc.property(fc.array(fc.tuple(operation, times, outcome), { maxLength: 5 }), (drawn) => {
      const records = drawn.flatMap(([what, [at, length], answer]): KeyRecord[] => {
        if (answer !== undefined && !canAnswer(what.kind, answer)) return [];
        const of = record(what, [at * 2, (at + length) * 2 + 1], answer);
        return [{ operation: what, invokedAt: of.invokedAt, answeredAt: of.answeredAt, outcome: answer, of }];
      });
      const { kind } = linearize(records);
      seen[kind]++;
      expect(kind).toBe(hasOrder(records, null) ? 'ok' : 'impossible');
    }),
    { numRuns: 3000 },
  );
  expect(Math.min(seen.ok, seen.impossible)).toBeGreaterThan(200);
});

function canAnswer(kind: Operation['kind'], { kind: answer }: Outcome): boolean {
  if (kind === 'read') return answer === 'value';
  if (kind === 'put') return answer === 'written';
  if (kind === 'create') return answer === 'written' || answer === 'exists';
  return answer === 'gone';
}

/** By trying everything that may come first. */
function hasOrder(left: readonly KeyRecord[], value: string | null): boolean {
  if (left.every(({ outcome }) => outcome === undefined)) return true;
  const known = left.filter(({ outcome }) => outcome !== undefined);
  const firstAnswer = Math.min(...known.map(({ answeredAt }) => answeredAt));
  return left.some((record) => {
    if (record.invokedAt > firstAnswer) return false;
    const next = stepKey(value, record.operation);
    if (record.outcome !== undefined && !isEqualOutcome(next.outcome, record.outcome)) return false;
    return hasOrder(
      left.filter((other) => other !== record),
      next.value,
    );
  });
}
