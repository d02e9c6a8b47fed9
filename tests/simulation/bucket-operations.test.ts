// Renames and appends as the checker understands them: what is explained by some order passes, and what none explains is found.
import { describe, expect, test } from 'vitest';
import {
  type BucketOperation,
  type BucketOutcome,
  type BucketRecord,
  byKinship,
  NULL_ID,
  type RenamePhase,
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
  const created = put('a', 'x/1', [1, 2]);
  expect(
    check(created, move('a', 'b', [3, 9], 'moved'), read('a', 'x/1', [4, 5]), read('b', 'x/1', [6, 7])),
  ).toBe('ok');
  expect(
    check(created, move('a', 'b', [3, 9], 'moved'), read('b', 'x/1', [4, 5]), read('a', 'x/1', [6, 7])),
  ).toBe('impossible');
  expect(
    check(created, move('a', 'b', [3, 9], 'moved'), read('a', null, [4, 5]), read('b', null, [6, 7])),
  ).toBe('impossible');
  expect(check(created, move('a', 'b', [3, 4]), read('a', 'x/1', [5, 6]), read('b', 'x/1', [7, 8]))).toBe(
    'ok',
  );
});

test('a move without overwriting is refused at an existing object', () => {
  const history = [put('a', 'x/1', [1, 2]), put('b', 'y/1', [3, 4])];
  expect(check(...history, move('a', 'b', [5, 6], 'exists'), read('a', 'x/1', [7, 8]))).toBe('ok');
  expect(check(...history, move('a', 'b', [5, 6], 'moved'))).toBe('impossible');
  expect(check(move('a', 'b', [5, 6], 'absent'))).toBe('ok');
});

test('with overwriting a null version is refused where versions are kept, and only there', () => {
  const history = [put('a', 'x/1', [1, 2]), put('b', 'y/1', [3, 4])];
  const over = (kind: 'exists' | 'moved', keepsNull: boolean) =>
    record({ kind: 'move', key: 'a', to: 'b', overwrites: true, keepsNull }, [5, 6], { kind });
  expect(check(...history, over('exists', true), read('a', 'x/1', [7, 8]))).toBe('ok');
  expect(check(...history, over('moved', false), read('b', 'x/1', [7, 8]))).toBe('ok');
  expect(check(...history, over('exists', false))).toBe('impossible');
  expect(check(...history, over('moved', true))).toBe('impossible');
});

test('a moved prefix leaves nothing behind that was there before', () => {
  const created = put('m/a', 'x/1', [1, 2]);
  expect(check(created, sweep('m/a', 'n/a', [3, 9]), read('n/a', 'x/1', [10, 11]))).toBe('ok');
  expect(check(created, sweep('m/a', 'n/a', [3, 9]), read('m/a', 'x/1', [10, 11]))).toBe('impossible');
  expect(check(put('m/a', 'x/1', [4, 5]), sweep('m/a', 'n/a', [3, 9]), read('m/a', 'x/1', [10, 11]))).toBe(
    'ok',
  );
});

test('each acknowledged piece is there once', () => {
  const created = put('a', 'x/5', [1, 2]);
  const both = [append('a', 'y/2', [3, 9], 7), append('a', 'z/3', [3, 9], 10)];
  expect(check(created, ...both, read('a', 'x/5+y/2+z/3', [10, 11]))).toBe('ok');
  expect(check(created, ...both, read('a', 'x/5+z/3', [10, 11]))).toBe('impossible');
  expect(check(created, ...both, read('a', 'x/5+y/2+z/3+z/3', [10, 11]))).toBe('impossible');
  expect(
    check(created, append('a', 'y/2', [3, 9]), read('a', 'x/5', [4, 5]), read('a', 'x/5+y/2', [10, 11])),
  ).toBe('ok');
  expect(check(created, append('a', 'y/2', [3, 9], 8))).toBe('impossible');
});

test('keys are checked together where something moved between them', () => {
  const history = [put('a', '1/1', [1, 2]), put('b', '2/1', [3, 4]), put('c', '3/1', [5, 6])];
  expect(byKinship(history)).toHaveLength(3);
  expect(byKinship([...history, move('a', 'c', [7, 8]), sweep('c', 'd', [9, 9])])).toHaveLength(2);
});

describe('a bucket that keeps versions', () => {
  const putAs = (versionId: string, value: string, at: [number, number]) =>
    record({ kind: 'put', key: 'a', value, versionId }, at, { kind: 'written' });
  const mark = (versionId: string, at: [number, number]) =>
    record({ kind: 'mark', key: 'a', versionId }, at, { kind: 'written' });
  const readAs = (versionId: string, value: string | null, at: [number, number]) =>
    record({ kind: 'read', key: 'a' }, at, { kind: 'value', value, versionId });
  const removeVersion = (versionId: string, isMarker: boolean, at: [number, number]) =>
    record({ kind: 'remove-version', key: 'a', versionId }, at, { kind: 'removed', isMarker });
  /** Of a marker: `-id`. */
  const list = (key: string, names: string[], at: [number, number]) => {
    const versions = names.map((name) => ({
      versionId: name.replace('-', ''),
      isMarker: name.startsWith('-'),
    }));
    return record({ kind: 'list', key }, at, { kind: 'listed', versions });
  };
  const moveAll = (overwrites: boolean, versionIds: string[], at: [number, number]) =>
    record({ kind: 'move', key: 'a', to: 'b', overwrites }, at, { kind: 'moved', versionIds });

  test('a delete marker hides what is below it, and shows it when it is deleted', () => {
    const history = [putAs('v1', 'x/1', [1, 2]), mark('v2', [3, 4])];
    expect(check(...history, readAs('v2', null, [5, 6]), list('a', ['-v2', 'v1'], [7, 8]))).toBe('ok');
    expect(check(...history, read('a', null, [5, 6]))).toBe('impossible');
    expect(check(...history, readAs('v1', 'x/1', [5, 6]))).toBe('impossible');
    const shown = [...history, removeVersion('v2', true, [5, 6])];
    expect(check(...shown, readAs('v1', 'x/1', [7, 8]))).toBe('ok');
    expect(check(...shown, read('a', null, [7, 8]))).toBe('impossible');
    expect(check(...history, removeVersion('v1', false, [5, 6]), list('a', ['-v2'], [7, 8]))).toBe('ok');
  });

  test('each version stays until it is deleted by id', () => {
    const history = [putAs('v1', 'x/1', [1, 2]), putAs('v2', 'y/1', [3, 4])];
    const readOld = (value: string | null) =>
      record({ kind: 'read-version', key: 'a', versionId: 'v1' }, [5, 6], {
        kind: 'value',
        value,
        ...(value !== null && { versionId: 'v1' }),
      });
    expect(check(...history, readOld('x/1'), list('a', ['v2', 'v1'], [7, 8]))).toBe('ok');
    expect(check(...history, readOld(null))).toBe('impossible');
    expect(check(...history, list('a', ['v2'], [7, 8]))).toBe('impossible');
  });

  test('an append makes a version, and needs an object', () => {
    const appendAs = (versionId: string, at: [number, number], sizeBytes: number) =>
      record({ kind: 'append', key: 'a', piece: 'z/3', versionId }, at, { kind: 'appended', sizeBytes });
    const created = putAs('v1', 'x/5', [1, 2]);
    expect(check(created, appendAs('v2', [3, 4], 8), list('a', ['v2', 'v1'], [5, 6]))).toBe('ok');
    expect(check(created, appendAs('v2', [3, 4], 8), list('a', ['v2'], [5, 6]))).toBe('impossible');
    const onMarker = record({ kind: 'append', key: 'a', piece: 'z/3' }, [5, 6], { kind: 'absent' });
    expect(check(created, mark('v2', [3, 4]), onMarker)).toBe('ok');
    expect(check(created, onMarker)).toBe('impossible');
  });

  test('a null version replaces the one before it', () => {
    const history = [putAs('null', 'x/1', [1, 2]), putAs('v2', 'y/1', [3, 4])];
    expect(check(...history, mark('null', [5, 6]), list('a', ['-null', 'v2'], [7, 8]))).toBe('ok');
    expect(check(...history, mark('null', [5, 6]), list('a', ['-null', 'v2', 'null'], [7, 8]))).toBe(
      'impossible',
    );
  });

  test('all versions move, with their ids, above existing ones', () => {
    const created = [putAs('v1', 'x/1', [1, 2]), mark('v2', [3, 4])];
    const there = record({ kind: 'put', key: 'b', value: 'y/1', versionId: 'w1' }, [1, 2], {
      kind: 'written',
    });
    const moved = moveAll(true, ['v2', 'v1'], [5, 6]);
    const lists = [list('a', [], [7, 8]), list('b', ['-v2', 'v1', 'w1'], [9, 10])];
    expect(check(...created, there, moved, ...lists)).toBe('ok');
    expect(check(...created, there, moveAll(false, ['v2', 'v1'], [5, 6]))).toBe('impossible');
    expect(check(...created, there, moveAll(true, ['v1'], [5, 6]))).toBe('impossible');
    expect(check(...created, there, moved, list('a', ['-v2'], [7, 8]))).toBe('impossible');
  });
});

describe('a key that is renamed in several entries', () => {
  const version = (key: string, versionId: string, at: [number, number]) =>
    record({ kind: 'put', key, value: `${versionId}/1`, versionId }, at, { kind: 'written' });
  const entry = (phase: RenamePhase, count: number, at: [number, number]) =>
    record({ kind: 'rename', key: 'a', to: 'b', overwrites: true, phase, count }, at, { kind: 'renamed' });
  const listed = (key: string, ids: readonly string[], at: [number, number]) => {
    const versions = ids.map((versionId) => ({ versionId, isMarker: false }));
    return record({ kind: 'list', key }, at, { kind: 'listed', versions });
  };
  const latest = (key: string, versionId: string | undefined, at: [number, number]) =>
    record({ kind: 'read', key }, at, {
      kind: 'value',
      value: versionId === undefined ? null : `${versionId}/1`,
      ...(versionId !== undefined && { versionId }),
    });
  /** Newest first: 4, the null version, 2, 1; and 0 under the new key. */
  const created = [
    version('b', '0', [1, 2]),
    version('a', '1', [3, 4]),
    version('a', '2', [5, 6]),
    version('a', NULL_ID, [7, 8]),
    version('a', '4', [9, 10]),
  ];

  test('has each of its versions under one of both keys, in order', () => {
    const all = (after: string[]) =>
      check(
        ...created,
        entry('open', 2, [11, 12]),
        listed('a', ['2', '1'], [13, 14]),
        listed('b', ['4', NULL_ID, '0'], [15, 16]),
        entry('move', 1, [17, 18]),
        listed('a', ['1'], [19, 20]),
        listed('b', ['4', NULL_ID, '2', '0'], [21, 22]),
        entry('move', 1, [23, 24]),
        entry('close', 0, [25, 26]),
        listed('a', [], [27, 28]),
        listed('b', after, [29, 30]),
      );
    expect(all(['4', NULL_ID, '2', '1', '0'])).toBe('ok');
    expect(all(['4', NULL_ID, '1', '2', '0'])).toBe('impossible');
    expect(all(['4', NULL_ID, '2', '0'])).toBe('impossible');
  });

  test('has its object under the new key from its first entry on, and none under the old one', () => {
    const open = entry('open', 2, [11, 12]);
    expect(check(...created, open, latest('b', '4', [13, 14]), latest('a', undefined, [15, 16]))).toBe('ok');
    expect(check(...created, open, latest('a', '2', [13, 14]))).toBe('impossible');
    expect(check(...created, open, latest('b', '0', [13, 14]))).toBe('impossible');
  });

  test('moves its null version at once, and is free only when no version is left', () => {
    expect(check(...created, entry('open', 1, [11, 12]))).toBe('impossible');
    expect(check(...created, entry('open', 2, [11, 12]), entry('close', 0, [13, 14]))).toBe('impossible');
  });

  test.each(['a', 'b'])('is changed by nobody else meanwhile: %s', (key) => {
    const open = entry('open', 2, [11, 12]);
    const done = [entry('move', 2, [15, 16]), entry('close', 0, [17, 18])];
    expect(check(...created, open, version(key, '5', [13, 14]), ...done)).toBe('impossible');
    expect(check(...created, open, ...done, version(key, '5', [19, 20]))).toBe('ok');
    expect(check(...created, open, move(key, 'c', [13, 14], 'moved'), ...done)).toBe('impossible');
  });
});
