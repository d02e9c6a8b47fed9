import { expect, test } from 'vitest';
import type { MetadataPort } from '../ports/metadata/port.ts';
import type { NewTenancyRecord, TenancyRecord } from '../types/records/tenancy-records.ts';
import { createTenancyDirectory } from './tenancy-directory.ts';

const COUNT = 5000;

/** A directory of these records, in the order of their changes. */
async function openDirectory(records: TenancyRecord[]) {
  const metadata = {
    shardCount: 1,
    query: async (_envelope: unknown, _name: string, { since, limit }: { since: number; limit: number }) => {
      const some = records.slice(since, since + limit);
      const upTo = since + some.length;
      const value = { records: some, upTo, lastChange: records.length, isAll: upTo === records.length };
      return { kind: 'done', value, timeMs: 0 };
    },
  } as unknown as MetadataPort;
  const directory = createTenancyDirectory(metadata);
  await directory.refresh();
  return directory;
}

function partner(id: number, name = `partner ${id}`): TenancyRecord {
  const fields = { level: 'control', name, email: 'p@example.com', status: 'active', contact: {} } as const;
  const record: NewTenancyRecord = { kind: 'partner', ...fields };
  return { ...record, id, revision: 1, createdAtMs: 0 } as TenancyRecord;
}

test('entries are in order of ids, whenever they were changed, and once each', async () => {
  const records = [3, 1, 2, 5].map((id) => partner(id));
  const directory = await openDirectory(records);
  records.push(partner(4), partner(2, 'changed'), partner(6));
  await directory.refresh();
  const found: [number, string][] = [];
  await directory.walk('partner', 'owner', ({ id, name }) => found.push([id, name]));
  const names = [1, 2, 3, 4, 5, 6].map((id) => [id, id === 2 ? 'changed' : `partner ${id}`]);
  expect(found).toEqual(names);
  expect(directory.all('partner').map(({ id, name }) => [id, name])).toEqual(names);
  expect(directory.all('member')).toEqual([]);
});

test('walks stop after some entries, and owners take turns', async () => {
  const directory = await openDirectory(Array.from({ length: COUNT }, (_, at) => partner(at + 1)));
  const visits: string[] = [];
  const walk = (owner: string) => directory.walk('partner', owner, () => visits.push(owner));
  let isElsewhere = false;
  setImmediate(() => {
    isElsewhere = visits.length < COUNT;
  });
  await Promise.all([walk('one'), walk('one'), walk('two')]);
  expect(isElsewhere).toBe(true);
  expect(visits).toHaveLength(3 * COUNT);
  // Behind a step of each before it, of which those of one owner count once.
  expect(visits.indexOf('two')).toBeLessThan(COUNT);
  expect(visits.lastIndexOf('two')).toBeLessThan(3 * COUNT - 1);
});
