// Usage as queries tell it: records of closed days, the present, and what is still to be closed.
import { concatBytes, fromHex, toHex } from '../../base/bytes/bytes.ts';
import { behind, TABLE_END } from '../../base/table-rows.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { BucketDay } from '../../ports/metadata/usage.ts';
import type { QuerySpec, StateReader } from '../../ports/state-machine.ts';
import { add, dayOf, firstBucketId, isAccountTraffic } from '../../types/metered.ts';
import type { AccountId, BucketId, BucketName } from '../../types/names.ts';
import { bucketCodec } from '../../types/records/rows.ts';
import { usageRecordCodec, usageStateCodec } from '../../types/records/usage-record.ts';
import { COUNTER } from '../schema/counters.ts';
import { readU48, u48 } from '../schema/key-parts.ts';
import { bucketRow, TABLES, USAGE_CLOSED_ROW, usageRecordRow, usageStateRow } from '../schema/keyspace.ts';
import { figuresOf, measuresFor, readUsageRecordKey, readUsageStateKey, storedAfter } from './usage-rows.ts';

/** Rows that one query reads: a client may have made and deleted any number of buckets. */
const PAGE_ROWS = 200;
/** Buckets with the same number, of a day: it is chance that there are two. */
const SAME_NUMBER_MAX = 10;

export const listOpenUsage: QuerySpec<QueryOf<'list-open-usage'>, ResultOf<'list-open-usage'>> = {
  async run({ throughDay, after, limit }, state) {
    const gte = behind(after && usageStateRow(after.accountId, after.bucketId).key);
    const rows = await state.range({ table: TABLES.usageStates, gte, lt: TABLE_END, limit });
    const open = rows.filter(({ value }) => usageStateCodec.decode(value).closedDay < throughDay);
    const last = rows.length < limit ? undefined : rows.at(-1);
    return {
      buckets: open.map(({ key }) => readUsageStateKey(key)),
      ...(last && { next: readUsageStateKey(last.key) }),
    };
  },
};

export const listUnmetered: QuerySpec<QueryOf<'list-unmetered'>, ResultOf<'list-unmetered'>> = {
  async run({ after, limit }, state) {
    const gte = behind(after && bucketRow(after).key);
    const rows = await state.range({ table: TABLES.buckets, gte, lt: TABLE_END, limit });
    const buckets = rows
      .map(({ value }) => bucketCodec.decode(value))
      .filter(({ state: is }) => is !== 'deleted');
    const metered = await state.rows(buckets.map(({ owner, bucketId }) => usageStateRow(owner, bucketId)));
    const unmetered = buckets.filter((_, at) => metered[at] === undefined);
    const last = rows.length < limit ? undefined : rows.at(-1);
    return {
      buckets: unmetered.map(({ owner, bucketId }) => ({ accountId: owner, bucketId })),
      ...(last && { next: toHex(last.key) as BucketId }),
    };
  },
};

export const listUsages: QuerySpec<QueryOf<'list-usages'>, ResultOf<'list-usages'>> = {
  async run(query, state) {
    if (query.bucketNumber !== undefined) return listOfNumber(query, query.bucketNumber, state);
    const { accountId, fromDay, toDay, after } = query;
    const limit = Math.min(query.limit ?? PAGE_ROWS, PAGE_ROWS);
    const account = u48(Number(accountId));
    const gte =
      after === undefined
        ? concatBytes(account, u48(fromDay))
        : behind(usageRecordRow({ accountId, bucketId: after.bucketId }, after.day).key);
    const lt = concatBytes(account, u48(toDay + 1));
    const days = (await state.range({ table: TABLES.usageRecords, gte, lt, limit })).map(readRecord);
    const last = days.length < limit ? undefined : days.at(-1);
    return { days, ...(last && { next: { day: last.day, bucketId: last.bucketId } }) };
  },
};

function readRecord({ key, value }: { key: Uint8Array; value: Uint8Array }): BucketDay {
  const { bucketId, day } = readUsageRecordKey(key);
  return { bucketId, day, ...usageRecordCodec.decode(value) };
}

/** Of each day only the rows of these buckets are read. */
async function listOfNumber(
  { accountId, fromDay, toDay, after }: QueryOf<'list-usages'>,
  bucketNumber: number,
  state: StateReader,
): Promise<ResultOf<'list-usages'>> {
  const firstId = firstBucketId(bucketNumber);
  const first = after === undefined ? fromDay : after.day + 1;
  if (firstId === undefined || first > toDay) return { days: [] };
  const last = Math.min(toDay, first + PAGE_ROWS - 1);
  const nextId = firstBucketId(bucketNumber + 1);
  const all = Array.from({ length: last - first + 1 }, (_, at) => first + at);
  const found = await Promise.all(
    all.map((day) => {
      const gte = usageRecordRow({ accountId, bucketId: firstId }, day).key;
      const lt =
        nextId === undefined
          ? concatBytes(u48(Number(accountId)), u48(day + 1))
          : usageRecordRow({ accountId, bucketId: nextId }, day).key;
      return state.range({ table: TABLES.usageRecords, gte, lt, limit: SAME_NUMBER_MAX });
    }),
  );
  return {
    days: found.flat().map(readRecord),
    ...(last < toDay && { next: { day: last, bucketId: firstId } }),
  };
}

export const listCurrentUsages: QuerySpec<QueryOf<'list-current-usages'>, ResultOf<'list-current-usages'>> = {
  async run(query, state, { nowMs, shard }) {
    const day = dayOf(nowMs);
    const { days, next } = await readPresent(query, state, { day, shard });
    return { day, days, ...(next && { next }) };
  },
};

export const sumCurrentUsages: QuerySpec<QueryOf<'sum-current-usages'>, ResultOf<'sum-current-usages'>> = {
  async run(query, state, { nowMs, shard }) {
    const { days, next } = await readPresent(query, state, { day: dayOf(nowMs), shard });
    const figures: number[] = [];
    for (const one of days) for (const [at, figure] of one.figures.entries()) add(figures, at, figure);
    return { figures, count: days.length, ...(next && { next }) };
  },
};

async function readPresent(
  { accountId, after, limit, withoutRecordOf, bucketNumber }: QueryOf<'list-current-usages'>,
  state: StateReader,
  { day, shard }: { day: number; shard: number },
): Promise<{ days: BucketDay[]; next?: BucketId }> {
  const account = u48(Number(accountId));
  const [firstId, nextId] =
    bucketNumber === undefined ? [] : [0, 1].map((by) => firstBucketId(bucketNumber + by));
  if (bucketNumber !== undefined && firstId === undefined) return { days: [] };
  const from = after ?? firstId;
  const first = from === undefined ? account : concatBytes(account, fromHex(from));
  const gte = after === undefined ? first : behind(first);
  const lt = concatBytes(account, nextId === undefined ? TABLE_END : fromHex(nextId));
  const count = Math.min(limit, PAGE_ROWS);
  const rows = await state.range({ table: TABLES.usageStates, gte, lt, limit: count });
  const metered = rows.map(({ key, value }) => ({
    bucketId: readUsageStateKey(key).bucketId,
    ...usageStateCodec.decode(value),
  }));
  const fresh =
    withoutRecordOf === undefined
      ? metered
      : await withoutRecord(metered, state, { accountId, withoutRecordOf });
  const buckets = await state.rows(fresh.map(({ bucketId }) => bucketRow(bucketId)));
  const open = fresh.map(({ bucketId, closedDay }) =>
    Array.from({ length: Math.max(0, day - closedDay) }, (_, at) =>
      COUNTER.dayUsage(bucketId, closedDay + 1 + at),
    ),
  );
  const vectors = await state.vectors(open.flat());
  const days: BucketDay[] = [];
  let vectorAt = 0;
  for (const [at, { bucketId, closedDay, sums, deletedDay, orphaned }] of fresh.entries()) {
    const untilAt = vectorAt + (open[at]?.length ?? 0);
    const deltas = vectors.slice(vectorAt, untilAt);
    vectorAt = untilAt;
    const row = buckets[at];
    if (row === undefined && !isAccountTraffic({ accountId, bucketId })) continue;
    // As it was at the end of the last day that is closed.
    const measures = measuresFor(orphaned, { day: closedDay, shard });
    const figures = figuresOf(deltas.reduce(storedAfter, sums), deltas.at(-1) ?? [], measures);
    const bucketName = row === undefined ? ('' as BucketName) : bucketCodec.decode(row).name;
    days.push({ bucketId, bucketName, day, figures, ...(deletedDay !== undefined && { deletedDay }) });
  }
  const last = rows.length < count ? undefined : metered.at(-1);
  return { days, ...(last && { next: last.bucketId }) };
}

/** Those that have no record of the day, nor of an earlier one. */
async function withoutRecord<State extends { bucketId: BucketId; closedDay: number }>(
  metered: readonly State[],
  state: StateReader,
  { accountId, withoutRecordOf }: { accountId: AccountId; withoutRecordOf: number },
): Promise<State[]> {
  const dayOfRecord = ({ closedDay }: State) => Math.min(closedDay, withoutRecordOf);
  const asked = metered.filter((one) => dayOfRecord(one) >= 0);
  const records = await state.rows(
    asked.map((one) => usageRecordRow({ accountId, bucketId: one.bucketId }, dayOfRecord(one))),
  );
  const recorded = new Set(asked.filter((_, at) => records[at] !== undefined));
  return metered.filter((one) => !recorded.has(one));
}

export const getUsageClosed: QuerySpec<QueryOf<'get-usage-closed'>, ResultOf<'get-usage-closed'>> = {
  async run(_query, state) {
    const [row] = await state.rows([USAGE_CLOSED_ROW]);
    return { day: row === undefined ? null : readU48(row) };
  },
};
