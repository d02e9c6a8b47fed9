// What became of requests without an answer, as the log shows: which version each of them made, if any.
import { expect, test } from 'vitest';
import type { BucketOperation, BucketRecord } from './bucket-operations.ts';
import { closeHistories, type MadeVersion } from './committed-versions.ts';

function asked(operation: BucketOperation, atMs: number, outcome?: BucketRecord['outcome']): BucketRecord {
  const times = { invokedAt: atMs, answeredAt: atMs + 1, invokedAtMs: atMs, answeredAtMs: atMs + 1 };
  return { requestId: `${atMs}`, shard: 0, client: 0, operation, ...times, outcome };
}
const made = (versionId: string, value: string | null, madeAtMs: number, key = 'k'): MadeVersion => ({
  key,
  versionId,
  value,
  madeAtMs,
  isMoved: false,
});
const put = (value: string, atMs: number) => asked({ kind: 'put', key: 'k', value }, atMs);
const append = (piece: string, atMs: number) => asked({ kind: 'append', key: 'k', piece }, atMs);
const idsOf = (history: BucketRecord[], versions: MadeVersion[], mayBeNull = false) =>
  closeHistories(history, { made: versions, mayBeNull }).map(
    ({ operation }) => 'versionId' in operation && operation.versionId,
  );

test('by their metadata, and never before their request', () => {
  const history = [put('x/1', 5), put('x/1', 15), asked({ kind: 'mark', key: 'k' }, 1)];
  const versions = [made('v1', 'x/1', 10), made('v2', null, 12), made('v3', 'x/1', 20)];
  expect(idsOf(history, versions)).toEqual(['v1', 'v3', 'v2']);
  expect(() => idsOf([put('x/1', 15)], [made('v1', 'x/1', 10)])).toThrow('nobody asked for version v1');
});

test('refused requests are left out, unless they may have made a null version', () => {
  expect(idsOf([put('x/1', 5)], [])).toEqual([]);
  expect(idsOf([put('x/1', 5)], [], true)).toEqual(['null']);
});

test('an answer is trusted', () => {
  const known: BucketOperation = { kind: 'put', key: 'k', value: 'x/1', versionId: 'v1' };
  const history = [asked(known, 5, { kind: 'written' }), put('x/1', 1)];
  expect(idsOf(history, [made('v1', 'x/1', 10)])).toEqual(['v1']);
  expect(() => idsOf(history, [])).toThrow('v1 was acknowledged and never made');
  const absent = asked({ kind: 'append', key: 'k', piece: 'y/1' }, 3, { kind: 'absent' });
  expect(idsOf([absent], [])).toEqual([false]);
});

test('the first version that ends with a piece is that of its append', () => {
  const versions = [made('v1', 'x/1+y/1', 10), made('v2', 'x/1+y/1', 12)];
  expect(idsOf([put('x/1+y/1', 2), append('y/1', 3)], versions)).toEqual(['v2', 'v1']);
  const elsewhere = [made('null', 'x/1+y/1', 10), made('v2', 'x/1+y/1', 12)];
  expect(idsOf([put('x/1+y/1', 2), append('y/1', 3)], elsewhere, true)).toEqual(['v2', 'null']);
});

test('a copy onto itself has the remaining one', () => {
  const history = [asked({ kind: 'renew', key: 'k' }, 1), put('x/1', 2)];
  expect(idsOf(history, [made('v1', 'x/1', 10), made('v2', 'z/1', 12)])).toEqual(['v2', 'v1']);
});

test('a version that nobody requested is an error', () => {
  expect(() => idsOf([], [made('v1', 'x/1', 10)])).toThrow('nobody asked for version v1 of k');
  expect(() => idsOf([put('x/1', 1)], [made('v1', 'x/1', 10, 'l')])).toThrow('v1 of l');
});
