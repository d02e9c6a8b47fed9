// Pages of a day with many buckets: each record is in one page, and a page costs no more for what is before it.
import { expect, test } from 'vitest';
import type { AccountId, BucketId } from '../types/names.ts';
import { METERED_NOTHING, type UsageDay } from '../types/usage.ts';
import { createDayPages } from './day-pages.ts';

const COUNT = 5500;
const DAY = 20_000;
const ACCOUNT = '000000000001' as AccountId;
const records: UsageDay[] = Array.from({ length: COUNT }, (_, at) => ({
  ...{ ...METERED_NOTHING, day: DAY, accountId: ACCOUNT, isClosed: true },
  bucketId: at.toString(16).padStart(16, '0') as BucketId,
}));

let readCount = 0;
async function* walkDay(
  _account: AccountId,
  { after }: { after?: BucketId },
): AsyncGenerator<UsageDay, void> {
  for (const usage of records) {
    if (after !== undefined && (usage.bucketId ?? '') <= after) continue;
    readCount++;
    yield usage;
  }
}

test.each([7, 100, 1000, 1001])('pages of %i hold each record once, in order', async (size) => {
  const pages = createDayPages({ walkDay });
  const found: UsageDay[] = [];
  for (let offset = 0; offset < COUNT; offset += size) {
    readCount = 0;
    found.push(...(await pages.read(ACCOUNT, DAY, { offset, size })));
    expect(readCount, `at ${offset}`).toBeLessThanOrEqual(size + 1000);
  }
  expect(found).toEqual(records);
});

test('a page far behind is found at once, and those near it cost no more than themselves from then on', async () => {
  const pages = createDayPages({ walkDay });
  const read = async (offset: number) => {
    readCount = 0;
    return (await pages.read(ACCOUNT, DAY, { offset, size: 10 })).map(({ bucketId }) => bucketId);
  };
  expect(await read(5000)).toEqual(records.slice(5000, 5010).map(({ bucketId }) => bucketId));
  expect(await read(4990)).toEqual(records.slice(4990, 5000).map(({ bucketId }) => bucketId));
  expect(readCount).toBe(1000);
  expect(await read(COUNT)).toEqual([]);
});
