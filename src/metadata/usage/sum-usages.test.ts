// Sums over the records of accounts that have made and deleted very many buckets.
import { expect, test } from 'vitest';
import { openMetadata } from '../../../tests/support/metadata/metadata-shards.ts';
import { createUsages } from '../../accounts/usages.ts';
import type { MetadataPort, QueryName } from '../../ports/metadata/port.ts';
import { METERED } from '../../types/metered.ts';
import type { AccountId, BucketId, BucketName } from '../../types/names.ts';
import { usageRecordCodec } from '../../types/records/usage-record.ts';
import { rowKey } from '../engine/row-keys.ts';
import { usageRecordRow } from '../schema/keyspace.ts';

const ACCOUNTS = ['000000000011', '000000000012', '000000000013'] as AccountId[];
const DAYS = [20_000, 20_001];
/** Of each account and day. */
const BUCKETS = 2600;
/** Of one question, with the page in which it comes to its end. */
const READ_MAX = 2500;

test('sums and counts of millions of records are asked for in pages, and are those of all of them', async () => {
  const world = await openMetadata();
  const value = usageRecordCodec.encode({ bucketName: 'a' as BucketName, figures: METERED.map(() => 1) });
  const bucketIds = Array.from({ length: BUCKETS }, (_, at) => at.toString(16).padStart(16, '0') as BucketId);
  for (const accountId of ACCOUNTS)
    for (const day of DAYS)
      await world.kv.commit(
        bucketIds.map((bucketId) => {
          const { table, key } = usageRecordRow({ accountId, bucketId }, day);
          return { column: 'rows', key: rowKey(0, table, key), value };
        }),
      );
  let readCount = 0;
  let readMost = 0;
  const { range } = world.kv;
  world.kv.range = async (bounds) => {
    const rows = await range.call(world.kv, bounds);
    readCount += rows.length;
    return rows;
  };
  const metadata = {
    ...world.shards,
    shardCount: 1,
    async query(envelope: { shard: number }, name: QueryName, query: never) {
      readCount = 0;
      const reply = await world.shards.query(envelope, name, query);
      readMost = Math.max(readMost, readCount);
      return reply;
    },
  } as unknown as MetadataPort;
  const usages = createUsages(metadata, world.clock);
  const [fromDay = 0, toDay = 0] = DAYS;
  const sums = await usages.sums(ACCOUNTS.map((accountId) => ({ accountId, fromDay, toDay })));
  expect(sums.map(({ accountId, day, objects }) => [accountId, day, objects])).toEqual(
    ACCOUNTS.flatMap((accountId) => DAYS.map((day) => [accountId, day, BUCKETS])),
  );
  for (const accountId of ACCOUNTS)
    expect([...(await usages.countByBucket(accountId, { fromDay, toDay }))]).toEqual(
      DAYS.map((day) => [day, BUCKETS]),
    );
  expect(readMost).toBeLessThanOrEqual(READ_MAX);
});
