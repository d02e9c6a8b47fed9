// Usage of accounts by this shard, summed over their buckets: for lists of many accounts, which need no bucket's record.
import { concatBytes } from '../../base/bytes/bytes.ts';
import { behind, TABLE_END } from '../../base/table-rows.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { UsagePlace } from '../../ports/metadata/usage.ts';
import type { QuerySpec, StateReader } from '../../ports/state-machine.ts';
import { add, isAccountTraffic } from '../../types/metered.ts';
import type { AccountId, BucketId } from '../../types/names.ts';
import { usageRecordCodec, usageStateCodec } from '../../types/records/usage-record.ts';
import { u48 } from '../schema/key-parts.ts';
import { TABLES, usageRecordRow, usageStateRow } from '../schema/keyspace.ts';
import { readUsageRecordKey, readUsageStateKey } from './usage-rows.ts';

/** Rows that are read at once. */
const ROWS = 500;

export const sumUsages: QuerySpec<QueryOf<'sum-usages'>, ResultOf<'sum-usages'>> = {
  async run({ of, rowsMax = Number.POSITIVE_INFINITY }, state) {
    const days: ResultOf<'sum-usages'>['days'] = [];
    let leftCount = rowsMax;
    for (const [summedCount, asked] of of.entries()) {
      const { accountId } = asked;
      const sums = new Map<number, number[]>();
      let after: UsagePlace | undefined;
      for await (const rows of recordsOf(state, asked)) {
        for (const { day, value } of rows) addTo(sums, day, usageRecordCodec.decode(value).figures);
        leftCount -= rows.length;
        after = leftCount > 0 ? undefined : placeOf(rows);
        if (after !== undefined) break;
      }
      for (const [day, figures] of sums) days.push({ accountId, day, figures });
      if (after !== undefined) return { days, next: { summedCount, after } };
    }
    return { days };
  },
};

export const countUsages: QuerySpec<QueryOf<'count-usages'>, ResultOf<'count-usages'>> = {
  async run({ rowsMax = Number.POSITIVE_INFINITY, ...asked }, state) {
    const { accountId } = asked;
    const counts = new Map<number, number>();
    let leftCount = rowsMax;
    for await (const rows of recordsOf(state, asked)) {
      for (const { day, bucketId } of rows)
        if (!isAccountTraffic({ accountId, bucketId })) counts.set(day, (counts.get(day) ?? 0) + 1);
      leftCount -= rows.length;
      const after = leftCount > 0 ? undefined : placeOf(rows);
      if (after !== undefined) return { counts: [...counts], next: after };
    }
    return { counts: [...counts] };
  },
};

interface StoredRecord {
  day: number;
  bucketId: BucketId;
  value: Uint8Array;
}

/** Where it goes on behind them. */
function placeOf(rows: readonly StoredRecord[]): UsagePlace | undefined {
  const last = rows.at(-1);
  return last && { day: last.day, bucketId: last.bucketId };
}

/** Page by page. */
async function* recordsOf(
  state: StateReader,
  {
    accountId,
    fromDay,
    toDay,
    after,
  }: { accountId: AccountId; fromDay: number; toDay: number; after?: UsagePlace },
): AsyncGenerator<StoredRecord[], void> {
  const account = u48(Number(accountId));
  const lt = concatBytes(account, u48(toDay + 1));
  const begin =
    after === undefined
      ? concatBytes(account, u48(fromDay))
      : behind(usageRecordRow({ accountId, bucketId: after.bucketId }, after.day).key);
  for (let gte = begin; ; ) {
    const rows = await state.range({ table: TABLES.usageRecords, gte, lt, limit: ROWS });
    yield rows.map(({ key, value }) => ({ ...readUsageRecordKey(key), value }));
    const last = rows.at(-1);
    if (last === undefined || rows.length < ROWS) return;
    gte = behind(last.key);
  }
}

export const sumDay: QuerySpec<QueryOf<'sum-day'>, ResultOf<'sum-day'>> = {
  async run({ day, after, limit }, state) {
    const gte = behind(after && usageStateRow(after.accountId, after.bucketId).key);
    const rows = await state.range({ table: TABLES.usageStates, gte, lt: TABLE_END, limit });
    const sums = new Map<AccountId, number[]>();
    const closed = rows.filter(({ value }) => usageStateCodec.decode(value).closedDay >= day);
    const metered = closed.map(({ key }) => readUsageStateKey(key));
    const records = await state.rows(metered.map((one) => usageRecordRow(one, day)));
    for (const [at, { accountId }] of metered.entries()) {
      const record = records[at];
      if (record !== undefined) addTo(sums, accountId, usageRecordCodec.decode(record).figures);
    }
    const last = rows.length < limit ? undefined : rows.at(-1);
    const accounts = [...sums].map(([accountId, figures]) => ({ accountId, figures }));
    return { accounts, ...(last && { next: readUsageStateKey(last.key) }) };
  },
};

function addTo<Key>(sums: Map<Key, number[]>, key: Key, figures: readonly number[]): void {
  const sum = sums.get(key) ?? [];
  sums.set(key, sum);
  for (const [at, figure] of figures.entries()) add(sum, at, figure);
}
