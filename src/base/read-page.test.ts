import { describe, expect, test } from 'vitest';
import { createMemoryKv } from '../platform/memory/memory-kv.ts';
import type { KvPort, KvRange } from '../ports/kv.ts';
import { Corruption } from './corruption.ts';
import { readPage } from './read-page.ts';

const keyOf = (at: number) => {
  const key = Buffer.alloc(21);
  key[0] = 1;
  key.writeUInt32BE(at, 3);
  return key;
};
const everything = { column: 'rows', gte: Uint8Array.of(1), lt: Uint8Array.of(2) };

/** Rows 0 to 99, some blocks of which are lost: reading a row in such a block fails, and so does reading over it. */
async function kvWithout(...lost: readonly (readonly [from: number, to: number])[]) {
  const kv = createMemoryKv(['rows']);
  await kv.commit(
    Array.from({ length: 100 }, (_, at) => ({ column: 'rows', key: keyOf(at), value: Uint8Array.of(at) })),
  );
  let readCount = 0;
  const range: KvPort['range'] = async (wanted: KvRange) => {
    readCount++;
    const rows = await kv.range(wanted);
    const isLost = rows.some(({ value: [at = 0] }) => lost.some(([from, to]) => at >= from && at < to));
    if (isLost) throw new Corruption('block checksum mismatch');
    return rows;
  };
  return { range, readCount: () => readCount };
}

async function readAll(kv: Pick<KvPort, 'range'>, limit: number) {
  const read: number[] = [];
  const gaps: { gte: Uint8Array; lt: Uint8Array }[] = [];
  for (let gte: Uint8Array | undefined = everything.gte; gte !== undefined; ) {
    const page: Awaited<ReturnType<typeof readPage>> = await readPage(kv, { ...everything, gte, limit });
    expect(page.rows.length).toBeLessThanOrEqual(limit);
    read.push(...page.rows.map(({ value: [at = -1] }) => at));
    if (page.lost !== undefined) gaps.push(page.lost);
    gte = page.next;
  }
  return { read, gaps };
}

const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);

describe.each([1, 7, 100, 1000])('pages of %i', (limit) => {
  test('contain all rows of an intact store', async () => {
    expect(await readAll(await kvWithout(), limit)).toEqual({ read: numbers(0, 100), gaps: [] });
  });

  test.each<[string, [number, number]]>([
    ['in the middle', [30, 40]],
    ['at the beginning', [0, 10]],
    ['at the end', [90, 100]],
  ])('go on behind what is lost %s', async (_where, [from, to]) => {
    const { read, gaps } = await readAll(await kvWithout([from, to]), limit);
    expect(read).toEqual([...numbers(0, from), ...numbers(to, 100)]);
    expect(gaps).toHaveLength(1);
    // The lost rows lie between the two ends of the gap.
    for (const at of numbers(from, to)) {
      expect(Buffer.compare(gaps[0]?.gte ?? everything.lt, keyOf(at))).toBeLessThanOrEqual(0);
      expect(Buffer.compare(gaps[0]?.lt ?? everything.gte, keyOf(at))).toBe(1);
    }
  });
});

test('are empty when all rows are lost', async () => {
  const { read, gaps } = await readAll(await kvWithout([0, 100]), 10);
  expect(read).toEqual([]);
  expect(gaps).toHaveLength(1);
  expect(Buffer.compare(gaps[0]?.lt ?? everything.gte, keyOf(99))).toBe(1);
});

test('skip several lost blocks one by one, with few reads', async () => {
  const kv = await kvWithout([10, 12], [50, 60]);
  const { read } = await readAll(kv, 20);
  expect(read).toEqual(expect.arrayContaining([...numbers(0, 10), ...numbers(60, 100)]));
  expect(read).not.toContain(11);
  expect(kv.readCount()).toBeLessThan(1000);
});

test('fail with any other error', async () => {
  const kv = { range: () => Promise.reject(new Error('too many open files')) };
  await expect(readPage(kv, { ...everything, limit: 10 })).rejects.toThrow('too many open files');
});
