import fc from 'fast-check';
import { expect, test } from 'vitest';
import { amountOf } from '../../../tests/support/run/long-form.ts';
import { fromUtf8, utf8 } from '../../base/bytes/bytes.ts';
import { createMemoryKv, type MemoryKv } from '../../platform/memory/memory-kv.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
import { LIMITS } from '../../types/limits.ts';
import { cacheRows } from './cached-rows.ts';
import { forwardKv } from './forward-kv.ts';

interface World {
  kv: KvPort;
  store: MemoryKv;
  /** Keys that the store was asked for. */
  asked: string[];
}

function open(instead: (store: MemoryKv) => Partial<KvPort> = () => ({})): World {
  const store = createMemoryKv(['rows', 'bodies']);
  const asked: string[] = [];
  const counted = forwardKv(store, {
    getMany(column, keys) {
      asked.push(...keys.map(fromUtf8));
      return store.getMany(column, keys);
    },
    ...instead(store),
  });
  return { kv: cacheRows(counted, 'rows'), store, asked };
}

const put = (key: string, value: string | null, column = 'rows'): KvPut => ({
  column,
  key: utf8(key),
  value: value === null ? null : utf8(value),
});

async function read(kv: KvPort, key: string, column = 'rows'): Promise<string | undefined> {
  const [value] = await kv.getMany(column, [utf8(key)]);
  return value && fromUtf8(value);
}

/** As often as it takes to be kept. */
async function readOften(kv: KvPort, key: string): Promise<void> {
  for (let time = 0; time < 3; time++) await read(kv, key);
}

test('a repeated read of a row comes from memory, one of another column does not', async () => {
  const { kv, asked } = open();
  await kv.commit([put('a', '1'), put('a', 'body', 'bodies')]);
  await readOften(kv, 'a');
  asked.length = 0;
  expect(await read(kv, 'a')).toBe('1');
  expect(asked).toEqual([]);
  expect(await read(kv, 'a', 'bodies')).toBe('body');
  expect(asked).toEqual(['a']);
});

test('of several rows only missing ones are read from the store', async () => {
  const { kv, asked } = open();
  await kv.commit([put('a', '1'), put('b', '2')]);
  await readOften(kv, 'a');
  asked.length = 0;
  const values = await kv.getMany('rows', ['b', 'a', 'c'].map(utf8));
  expect(values.map((value) => value && fromUtf8(value))).toEqual(['2', '1', undefined]);
  expect(asked).toEqual(['b', 'c']);
});

test('a cached row follows writes, and is gone when it is deleted', async () => {
  const { kv, asked } = open();
  await kv.commit([put('a', '1')]);
  await readOften(kv, 'a');
  asked.length = 0;
  await Promise.all([kv.commit([put('a', '2')]), kv.commit([put('a', '3')])]);
  expect(await read(kv, 'a')).toBe('3');
  expect(asked).toEqual([]);
  await kv.commit([put('a', null)]);
  expect(await read(kv, 'a')).toBeUndefined();
});

test('during a commit of a row the store is read', async () => {
  const { kv, store, asked } = open();
  await kv.commit([put('a', '1')]);
  await readOften(kv, 'a');
  asked.length = 0;
  store.holdCommits();
  const committed = kv.commit([put('a', '2')]);
  expect(await read(kv, 'a')).toBe('1');
  expect(asked).toEqual(['a']);
  store.releaseCommits();
  await committed;
  expect(await read(kv, 'a')).toBe('2');
});

/** A store whose next read is told at the signal alone, as it was when it was asked for. */
function openLate(): World & {
  readLate(key: string): Promise<{ told: Promise<string | undefined> }>;
  tell(): void;
} {
  const gate = Promise.withResolvers<void>();
  let onRead: (() => void) | undefined;
  const world = open((store) => ({
    async getMany(column, keys) {
      const begun = onRead;
      onRead = undefined;
      const values = await store.getMany(column, keys);
      if (begun !== undefined) {
        begun();
        await gate.promise;
      }
      return values;
    },
  }));
  return {
    ...world,
    tell: gate.resolve,
    async readLate(key) {
      const begun = new Promise<void>((resolve) => {
        onRead = resolve;
      });
      const told = read(world.kv, key);
      await begun;
      return { told };
    },
  };
}

test('a read that a commit overtakes is not cached', async () => {
  const { kv, readLate, tell } = openLate();
  await kv.commit([put('a', '1')]);
  await read(kv, 'a');
  const { told } = await readLate('a');
  await kv.commit([put('a', '2')]);
  tell();
  expect(await told).toBe('1');
  expect(await read(kv, 'a')).toBe('2');
});

test('nor is one that began during a commit, and ended after it', async () => {
  const { kv, store, readLate, tell } = openLate();
  await kv.commit([put('a', '1')]);
  await read(kv, 'a');
  store.holdCommits();
  const committed = kv.commit([put('a', '2')]);
  const { told } = await readLate('a');
  store.releaseCommits();
  await committed;
  tell();
  expect(await told).toBe('1');
  expect(await read(kv, 'a')).toBe('2');
});

test('nor one that began while its range was cleared', async () => {
  const { kv, store, readLate, tell } = openLate();
  await kv.commit([put('a', '1')]);
  await read(kv, 'a');
  store.holdCommits();
  const cleared = kv.clear({ column: 'rows', gte: utf8('a'), lt: utf8('b') });
  const { told } = await readLate('a');
  store.releaseCommits();
  await cleared;
  tell();
  expect(await told).toBe('1');
  expect(await read(kv, 'a')).toBeUndefined();
});

test('many rows at once are read from the store, at one moment', async () => {
  const { kv, asked } = open();
  const keys = Array.from({ length: LIMITS.syncReadKeysMax + 1 }, (_, at) => `k${at}`);
  await kv.commit(keys.map((key) => put(key, key)));
  for (const key of keys) await readOften(kv, key);
  asked.length = 0;
  await kv.getMany('rows', keys.map(utf8));
  expect(asked).toEqual(keys);
});

test('a refused commit leaves nothing in the cache', async () => {
  const refusal = new Error('too much waits');
  let isRefused = false;
  const { kv } = open((store) => ({
    commit: (rows, options) => (isRefused ? Promise.reject(refusal) : store.commit(rows, options)),
  }));
  await kv.commit([put('a', '1')]);
  await readOften(kv, 'a');
  isRefused = true;
  await expect(kv.commit([put('a', '2')])).rejects.toBe(refusal);
  expect(await read(kv, 'a')).toBe('1');
  isRefused = false;
  await kv.commit([put('a', '3')]);
  expect(await read(kv, 'a')).toBe('3');
});

test('rows of a cleared range are gone, and none is cached meanwhile', async () => {
  const { kv, store } = open();
  await kv.commit([put('a', '1'), put('b', '2')]);
  await readOften(kv, 'a');
  store.holdCommits();
  const cleared = kv.clear({ column: 'rows', gte: utf8('a'), lt: utf8('b') });
  await readOften(kv, 'a');
  store.releaseCommits();
  await cleared;
  expect(await read(kv, 'a')).toBeUndefined();
  expect(await read(kv, 'b')).toBe('2');
});

test('rows of one commit are of one moment, though some of them are read late', async () => {
  const { kv, store } = open((of) => ({
    async getMany(column, keys) {
      const isLate = keys.some((key) => fromUtf8(key) === 'late');
      if (isLate) await kv.commit([put('a', '2'), put('late', '2')]);
      return of.getMany(column, keys);
    },
  }));
  await store.commit([put('a', '1'), put('late', '1')]);
  await readOften(kv, 'a');
  const values = await kv.getMany('rows', [utf8('a'), utf8('late')]);
  expect(values.map((value) => value && fromUtf8(value))).toEqual(['2', '2']);
});

test('a large row is not cached', async () => {
  const { kv, asked } = open();
  await kv.commit([put('a', 'x'.repeat(LIMITS.cachedRowBytesMax + 1))]);
  await readOften(kv, 'a');
  asked.length = 0;
  await read(kv, 'a');
  expect(asked).toEqual(['a']);
});

test("changes of the caller's memory do not affect the cache", async () => {
  const { kv } = open();
  await kv.commit([put('a', '1')]);
  await readOften(kv, 'a');
  const pool = utf8('..2..');
  await kv.commit([{ column: 'rows', key: utf8('a'), value: pool.subarray(2, 3) }]);
  pool.fill(0);
  expect(await read(kv, 'a')).toBe('2');
});

test('reads equal those of the store, in any order of commits, ranges and reads', async () => {
  const keys = ['a', 'b', 'c'];
  const step = fc.oneof(
    fc.record({ kind: fc.constant('put' as const), key: fc.constantFrom(...keys), isDelete: fc.boolean() }),
    fc.record({ kind: fc.constant('clear' as const) }),
    fc.record({ kind: fc.constant('read' as const), key: fc.constantFrom(...keys) }),
    fc.record({ kind: fc.constant('hold' as const) }),
    fc.record({ kind: fc.constant('release' as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { kv, store } = open();
      const under: Promise<void>[] = [];
      for (const [at, of] of steps.entries()) {
        if (of.kind === 'put') under.push(kv.commit([put(of.key, of.isDelete ? null : `${at}`)]));
        else if (of.kind === 'clear') under.push(kv.clear({ column: 'rows', gte: utf8('b'), lt: utf8('c') }));
        else if (of.kind === 'hold') store.holdCommits();
        else if (of.kind === 'release') store.releaseCommits();
        else {
          // Both are asked in the same moment.
          const [told, stored] = await Promise.all([read(kv, of.key), read(store, of.key)]);
          expect(told).toBe(stored);
        }
      }
      store.releaseCommits();
      await Promise.all(under);
      for (const key of keys) {
        await readOften(kv, key);
        expect(await read(kv, key)).toBe(await read(store, key));
      }
    }),
    { numRuns: amountOf({ short: 100, long: 500 }) },
  );
});
