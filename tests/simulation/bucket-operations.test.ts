// Renames and appends as the checker understands them: what is explained by some order passes, and what none explains is found.
import { expect, test } from 'vitest';
import {
  type BucketOperation,
  type BucketOutcome,
  type BucketRecord,
  byKinship,
} from './bucket-operations.ts';
import { checkBucket } from './check-history.ts';

function record(
  operation: BucketOperation,
  [from, to]: [number, number],
  outcome?: BucketOutcome,
): BucketRecord {
  const times = { invokedAt: from, answeredAt: to, invokedAtMs: from, answeredAtMs: to };
  return { requestId: `${from}`, shard: 0, client: 0, operation, ...times, outcome };
}
const put = (key: string, value: string, at: [number, number]) =>
  record({ kind: 'put', key, value }, at, { kind: 'written' });
const read = (key: string, value: string | null, at: [number, number]) =>
  record({ kind: 'read', key }, at, { kind: 'value', value });
const move = (key: string, to: string, at: [number, number], outcome?: BucketOutcome['kind']) =>
  record({ kind: 'move', key, to, overwrites: false }, at, outcome && ({ kind: outcome } as BucketOutcome));
const sweep = (key: string, to: string, at: [number, number]) =>
  record({ kind: 'sweep', key, to, overwrites: true }, at, { kind: 'swept' });
const append = (key: string, piece: string, at: [number, number], sizeBytes?: number) =>
  record(
    { kind: 'append', key, piece },
    at,
    sizeBytes === undefined ? undefined : { kind: 'appended', sizeBytes },
  );
const check = (...history: BucketRecord[]) => {
  try {
    checkBucket('here', history);
    return 'ok';
  } catch {
    return 'impossible';
  }
};

test('an object is under exactly one of two keys', () => {
  const born = put('a', 'x/1', [1, 2]);
  expect(
    check(born, move('a', 'b', [3, 9], 'moved'), read('a', 'x/1', [4, 5]), read('b', 'x/1', [6, 7])),
  ).toBe('ok');
  expect(
    check(born, move('a', 'b', [3, 9], 'moved'), read('b', 'x/1', [4, 5]), read('a', 'x/1', [6, 7])),
  ).toBe('impossible');
  expect(check(born, move('a', 'b', [3, 9], 'moved'), read('a', null, [4, 5]), read('b', null, [6, 7]))).toBe(
    'impossible',
  );
  expect(check(born, move('a', 'b', [3, 4]), read('a', 'x/1', [5, 6]), read('b', 'x/1', [7, 8]))).toBe('ok');
});

test('a move without overwriting is refused where there is something', () => {
  const history = [put('a', 'x/1', [1, 2]), put('b', 'y/1', [3, 4])];
  expect(check(...history, move('a', 'b', [5, 6], 'exists'), read('a', 'x/1', [7, 8]))).toBe('ok');
  expect(check(...history, move('a', 'b', [5, 6], 'moved'))).toBe('impossible');
  expect(check(move('a', 'b', [5, 6], 'absent'))).toBe('ok');
});

test('a prefix that is moved leaves nothing behind that was there before it', () => {
  const born = put('m/a', 'x/1', [1, 2]);
  expect(check(born, sweep('m/a', 'n/a', [3, 9]), read('n/a', 'x/1', [10, 11]))).toBe('ok');
  expect(check(born, sweep('m/a', 'n/a', [3, 9]), read('m/a', 'x/1', [10, 11]))).toBe('impossible');
  expect(check(put('m/a', 'x/1', [4, 5]), sweep('m/a', 'n/a', [3, 9]), read('m/a', 'x/1', [10, 11]))).toBe(
    'ok',
  );
});

test('each piece that is acknowledged is there once', () => {
  const born = put('a', 'x/5', [1, 2]);
  const both = [append('a', 'y/2', [3, 9], 7), append('a', 'z/3', [3, 9], 10)];
  expect(check(born, ...both, read('a', 'x/5+y/2+z/3', [10, 11]))).toBe('ok');
  expect(check(born, ...both, read('a', 'x/5+z/3', [10, 11]))).toBe('impossible');
  expect(check(born, ...both, read('a', 'x/5+y/2+z/3+z/3', [10, 11]))).toBe('impossible');
  expect(
    check(born, append('a', 'y/2', [3, 9]), read('a', 'x/5', [4, 5]), read('a', 'x/5+y/2', [10, 11])),
  ).toBe('ok');
  expect(check(born, append('a', 'y/2', [3, 9], 8))).toBe('impossible');
});

test('keys are looked at together where something moved between them', () => {
  const history = [put('a', '1/1', [1, 2]), put('b', '2/1', [3, 4]), put('c', '3/1', [5, 6])];
  expect(byKinship(history)).toHaveLength(3);
  expect(byKinship([...history, move('a', 'c', [7, 8]), sweep('c', 'd', [9, 9])])).toHaveLength(2);
});
