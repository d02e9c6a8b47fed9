import { expect, test } from 'vitest';
import { list, nested, readValues, structures, text } from './parameter-rules.ts';

/** Counts how often its names are gone through. */
class CountedNames extends Map<string, string> {
  lookCount = 0;
  override keys() {
    this.lookCount++;
    return super.keys();
  }
}

const value = text({ charactersMax: 100 });
const rules = {
  Entries: structures(
    { Name: value, Values: list(value, { countMax: 10 }), Inner: nested({ Name: value }) },
    { countMax: 1000 },
  ),
};

test('names of parameters are gone through once, however many structures have lists and structures', () => {
  const sent = new CountedNames();
  for (let at = 1; at <= 1000; at++) {
    sent.set(`Entries.member.${at}.Name`, `n${at}`);
    sent.set(`Entries.member.${at}.Values.member.2`, 'b');
    sent.set(`Entries.member.${at}.Values.member.1`, 'a');
    if (at % 2 === 0) sent.set(`Entries.member.${at}.Inner.Name`, 'i');
  }
  const { Entries } = readValues(rules, sent);
  expect(sent.lookCount).toBe(1);
  expect(Entries).toHaveLength(1000);
  expect(Entries?.slice(0, 2)).toEqual([
    { Name: 'n1', Values: ['a', 'b'], Inner: undefined },
    { Name: 'n2', Values: ['a', 'b'], Inner: { Name: 'i' } },
  ]);
});

test.each([
  ['Entries.member.01.Name'],
  ['Entries.member.0.Name'],
  ['Entries.member.1x.Name'],
  ['Entries.members.1.Name'],
  ['xEntries.member.1.Name'],
  ['Entries.member'],
])('%s names no item of the list', (name) => {
  expect(readValues(rules, new Map([[name, 'a']]))).toEqual({ Entries: undefined });
});

test('a name of many parts names an item by its first ones', () => {
  const sent = new Map([[`Entries.member.7${'.member.1'.repeat(1000)}`, 'a']]);
  expect(readValues(rules, sent)).toEqual({
    Entries: [{ Name: undefined, Values: undefined, Inner: undefined }],
  });
});
