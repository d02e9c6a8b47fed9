// The check of answers against the committed order: what it must accuse, and what it must let pass.
import { expect, test } from 'vitest';
import { checkCommittedOrder, checkRaces } from './committed-order.ts';
import type { HistoryRecord, Operation, Outcome } from './operations.ts';

function record(
  requestId: string,
  operation: Operation,
  [invokedAt, answeredAt]: [number, number],
  outcome?: Outcome,
): HistoryRecord {
  const times = { invokedAt, answeredAt, invokedAtMs: invokedAt, answeredAtMs: answeredAt };
  return { requestId, shard: 0, client: 0, operation, ...times, outcome };
}
const put = (
  id: string,
  key: string,
  at: [number, number],
  outcome: Outcome | undefined = { kind: 'written' },
) => record(id, { kind: 'put', key, value: id }, at, outcome);
const read = (id: string, key: string, at: [number, number], value: string | null) =>
  record(id, { kind: 'read', key }, at, { kind: 'value', value });
const list = (id: string, at: [number, number], items: [string, string][]) =>
  record(id, { kind: 'list', after: '', limit: 9 }, at, { kind: 'page', items, isLast: true });

function check(history: HistoryRecord[], committed: (string | undefined)[]): () => void {
  return () =>
    checkCommittedOrder(history, {
      lastSeq: committed.length,
      requestAt: (seq) => committed[seq - 1],
      seqOf: (requestId) => (committed.includes(requestId) ? committed.indexOf(requestId) + 1 : undefined),
    });
}

const a = put('a', 'x', [1, 4]);
const b = put('b', 'y', [2, 5]);

test('a page is the state at one moment', () => {
  expect(check([a, b, list('l', [3, 9], [])], ['a', 'b'])).not.toThrow();
  expect(check([a, b, list('l', [3, 9], [['x', 'a']])], ['a', undefined, 'b'])).not.toThrow();
  expect(check([a, b, list('l', [3, 9], [['y', 'b']])], ['a', 'b'])).toThrow('I7: at no moment');
  expect(check([a, b, list('l', [3, 9], [['y', 'b']])], ['b', 'a'])).not.toThrow();
});

test('a page shows what was acknowledged before it, and nothing goes back', () => {
  expect(check([a, b, list('l', [6, 9], [['x', 'a']])], ['a', 'b'])).toThrow('I7: at no moment');
  const first = list('l', [2, 3], [['x', 'a']]);
  expect(check([a, first, read('r', 'x', [4, 5], null)], ['a'])).toThrow('I7: at no moment');
});

test('a visible change precedes those that began after it was seen', () => {
  const late = put('late', 'x', [10, 12]);
  expect(check([late, read('r', 'x', [1, 2], 'late')], ['late'])).toThrow('committed at 1, before');
  expect(check([a, put('c', 'x', [6, 8])], ['c', 'a'])).toThrow('committed at 1, before');
});

test('an acknowledged change is committed, and answered as it was committed', () => {
  expect(check([a], [])).toThrow('I2: acknowledged, and nowhere committed');
  const create = record('n', { kind: 'create', key: 'x', value: 'n' }, [6, 8], { kind: 'exists' });
  expect(check([a, create], ['a'])).not.toThrow();
  expect(check([a, { ...create, outcome: { kind: 'written' } }], ['a', 'n'])).toThrow('where the answer is');
  expect(check([create], [])).toThrow('I7: at no moment');
});

test('a change with an unknown outcome may be committed or not', () => {
  const lost = put('u', 'x', [1, 2], undefined);
  lost.outcome = undefined;
  expect(check([lost, read('r', 'x', [3, 4], null)], [])).not.toThrow();
  expect(check([lost, read('r', 'x', [3, 4], null), read('s', 'x', [5, 6], 'u')], ['u'])).not.toThrow();
  expect(check([lost, read('r', 'x', [3, 4], 'u')], [])).toThrow('I7: at no moment');
});

test('of racing creators exactly one wins', () => {
  const create = (id: string, outcome: Outcome | undefined) =>
    record(id, { kind: 'create', key: 'race', value: id }, [1, 5], outcome);
  const won = create('1', { kind: 'written' });
  const lost = create('2', { kind: 'exists' });
  expect(() => checkRaces([won, lost])).not.toThrow();
  expect(() => checkRaces([lost, create('3', undefined)])).not.toThrow();
  expect(() => checkRaces([won, create('3', { kind: 'written' })])).toThrow('2 creators');
  expect(() => checkRaces([lost, create('3', { kind: 'exists' })])).toThrow('0 creators');
});
