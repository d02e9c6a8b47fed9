import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compareBytes } from './bytes/bytes.ts';
import { SortedRows } from './sorted-rows.ts';

const keys = fc.uint8Array({ minLength: 0, maxLength: 3 }).map((bytes) => bytes.map((byte) => byte & 0xc1));

test('behaves as a plain list of rows kept in order', () => {
  const steps = fc.array(fc.record({ key: keys, value: fc.option(fc.nat(), { nil: null }) }), {
    maxLength: 60,
  });
  fc.assert(
    fc.property(steps, keys, keys, (changes, gte, lt) => {
      const rows = new SortedRows<number>();
      let model: { key: Uint8Array; value: number }[] = [];
      for (const { key, value } of changes) {
        const before = model.find((row) => compareBytes(row.key, key) === 0)?.value;
        model = model.filter((row) => compareBytes(row.key, key) !== 0);
        if (value === null) rows.delete(key);
        else {
          expect(rows.set(key, value)).toBe(before);
          model.push({ key, value });
        }
      }
      model.sort((a, b) => compareBytes(a.key, b.key));
      const inRange = model.filter((row) => compareBytes(row.key, gte) >= 0 && compareBytes(row.key, lt) < 0);
      expect(Array.from(rows.between(gte, lt), ({ key, value }) => [...key, value])).toEqual(
        inRange.map(({ key, value }) => [...key, value]),
      );
      expect(rows.size).toBe(model.length);
      for (const { key, value } of model) expect(rows.get(key)?.value).toBe(value);
    }),
  );
});

test('keeps its order over many rows, added in any order and taken away again', () => {
  const rows = new SortedRows<number>();
  const count = 5000;
  const bytes = (text: string) => Buffer.from(text, 'latin1');
  const keyOf = (at: number) => bytes(String((at * 7919) % count).padStart(5, '0'));
  for (let at = 0; at < count; at++) rows.set(keyOf(at), at);
  const all = () =>
    Array.from(rows.between(bytes('0'), bytes('9')), ({ key }) => Buffer.from(key).toString());
  expect(all()).toEqual(Array.from({ length: count }, (_, at) => String(at).padStart(5, '0')));
  for (let at = 0; at < count; at++) if (at % 10 !== 0 && at % 2 === 0) rows.delete(keyOf(at));
  rows.deleteMany(
    Array.from({ length: count }, (_, at) => keyOf(at)),
    (at) => at % 2 === 1,
  );
  expect(all()).toHaveLength(count / 10);
  for (let at = 1; at < count; at += 2) rows.set(keyOf(at), at);
  expect(all()).toEqual(all().toSorted());
  expect(all()).toHaveLength(count / 10 + count / 2);
  rows.deleteMany(Array.from({ length: count / 2 }, (_, at) => keyOf(2 * at + 1)));
  for (let at = 0; at < count; at += 10) rows.delete(keyOf(at));
  expect(all()).toEqual([]);
  rows.set(bytes('1'), 1);
  expect(rows.get(bytes('1'))?.value).toBe(1);
});

test('rows that come and go before a range is asked for, and come again, are in their place', () => {
  const rows = new SortedRows<number>();
  const bytes = (text: string) => Buffer.from(text, 'latin1');
  const keyOf = (at: number) => bytes(String((at * 7919) % 10_000).padStart(5, '0'));
  for (let round = 0; round < 3; round++) {
    for (let at = 0; at < 10_000; at++) rows.set(keyOf(at), round);
    for (let at = 0; at < 10_000; at++) if (at % 10 !== round) rows.delete(keyOf(at));
  }
  for (let at = 0; at < 10_000; at += 10) rows.set(keyOf(at), 3);
  const found = Array.from(rows.between(bytes('0'), bytes('9')), (row) => [
    bytes(String(row.key)),
    row.value,
  ]);
  const expected = Array.from({ length: 10_000 }, (_, at) => at)
    .filter((at) => at % 10 === 0 || at % 10 === 2)
    .map((at) => [keyOf(at), at % 10 === 0 ? 3 : 2] as const)
    .sort(([one], [other]) => compareBytes(one, other));
  expect(found).toEqual(expected);
});

test('of rows that stay most are in their place before a range is asked for; of those that go soon none is', () => {
  const bytes = (text: string) => Buffer.from(text, 'latin1');
  const count = 60_000;
  const keyOf = (at: number) => bytes(String((at * 7919) % count).padStart(5, '0'));
  const staying = new SortedRows<number>();
  let most = 0;
  for (let at = 0; at < count; at++) {
    staying.set(keyOf(at), at);
    most = Math.max(most, staying.unplacedCount);
  }
  expect(most).toBeLessThanOrEqual(4096);
  const found = Array.from(staying.between(bytes('0'), bytes('9')), ({ key }) => bytes(String(key)));
  expect(found.map(String)).toEqual(Array.from({ length: count }, (_, at) => String(at).padStart(5, '0')));
  const going = new SortedRows<number>();
  for (let at = 0; at < count; at++) {
    going.set(keyOf(at), at);
    if (at >= 1000) going.delete(keyOf(at - 1000));
  }
  // None of them has taken a place: the last thousand, and some that are gone, wait for one.
  expect(going.unplacedCount).toBeGreaterThanOrEqual(going.size);
});
