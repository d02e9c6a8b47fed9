// Usage of accounts by this shard, summed over their buckets: for lists of many accounts, which need no bucket's record.
import { concatBytes } from '../../base/bytes/bytes.ts';
import { behind, TABLE_END } from '../../base/table-rows.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
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
  async run({ of }, state) {
    const days: ResultOf<'sum-usages'>['days'] = [];
    for (const { accountId, fromDay, toDay } of of) {
      const sums = new Map<number, number[]>();
      for await (const { day, value } of recordsOf(state, accountId, { fromDay, toDay }))
        addTo(sums, day, usageRecordCodec.decode(value).figures);
      for (const [day, figures] of sums) days.push({ accountId, day, figures });
    }
    return { days };
  },
};

export const countUsages: QuerySpec<QueryOf<'count-usages'>, ResultOf<'count-usages'>> = {
  async run({ accountId, fromDay, toDay }, state) {
    const counts = new Map<number, number>();
    for await (const { day, bucketId } of recordsOf(state, accountId, { fromDay, toDay }))
      if (!isAccountTraffic({ accountId, bucketId })) counts.set(day, (counts.get(day) ?? 0) + 1);
    return { counts: [...counts] };
  },
};

async function* recordsOf(
  state: StateReader,
  accountId: AccountId,
  { fromDay, toDay }: { fromDay: number; toDay: number },
): AsyncGenerator<{ day: number; bucketId: BucketId; value: Uint8Array }, void> {
  const account = u48(Number(accountId));
  const lt = concatBytes(account, u48(toDay + 1));
  for (let gte = concatBytes(account, u48(fromDay)); ; ) {
    const rows = await state.range({ table: TABLES.usageRecords, gte, lt, limit: ROWS });
    for (const { key, value } of rows) yield { ...readUsageRecordKey(key), value };
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
