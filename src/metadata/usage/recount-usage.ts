// Proves what is metered of a bucket: counts its versions and its days, under one view. What is missing stays missing, whatever
// is written meanwhile, because both change alike: so it can be added later (mend-usage).
import { concatBytes, fromHex } from '../../base/bytes/bytes.ts';
import { allRows } from '../../base/table-rows.ts';
import type { QueryOf, ResultOf } from '../../ports/metadata/port.ts';
import type { QuerySpec, StateView } from '../../ports/state-machine.ts';
import { AT, add, addVersion, dayOf } from '../../types/metered.ts';
import type { AccountId, BucketId } from '../../types/names.ts';
import { bucketCodec } from '../../types/records/rows.ts';
import { usageStateCodec } from '../../types/records/usage-record.ts';
import { decodeVersion } from '../../types/records/version-record.ts';
import { COUNTER } from '../schema/counters.ts';
import { u48 } from '../schema/key-parts.ts';
import { bucketRow, REGION, TABLES, usageStateRow } from '../schema/keyspace.ts';
import { readUsageStateKey } from './usage-rows.ts';

/** Fields that follow from what is there now; of what is deleted only days tell. */
const PROVEN = AT.deletedObjects;
/** Days looked at of a bucket that is not metered yet: it is, soon after the first start of a program that meters. */
const UNMETERED_DAYS = 400;

export const recountUsage: QuerySpec<QueryOf<'recount-usage'>, ResultOf<'recount-usage'>> = {
  async run({ bucketId }, state, { nowMs }) {
    const view = state.view();
    try {
      const [row] = await view.rows([bucketRow(bucketId)]);
      if (row === undefined) return { kind: 'no-such-bucket' };
      const { owner, name, createdAtMs } = bucketCodec.decode(row);
      const counted = await countVersions(view, bucketId);
      const [stateRow] = await view.rows([usageStateRow(owner, bucketId)]);
      const today = dayOf(nowMs);
      const unmetered = { closedDay: Math.max(dayOf(createdAtMs), today - UNMETERED_DAYS) - 1, sums: [] };
      const { closedDay, sums } = stateRow === undefined ? unmetered : usageStateCodec.decode(stateRow);
      const days = await sumDays(view, bucketId, { from: closedDay + 1, to: today });
      const missing = counted.map((value, at) => value - (sums[at] ?? 0) - (days[at] ?? 0));
      const names = [COUNTER.bucketObjects(bucketId), COUNTER.bucketBytes(bucketId)];
      const [objects = 0, bytes = 0] = await view.counters(names);
      const held = {
        objects: (counted[AT.objects] ?? 0) - objects,
        bytes: (counted[AT.rawBytes] ?? 0) - bytes,
      };
      return { kind: 'counted', owner, name, counted, missing, held };
    } finally {
      view.close();
    }
  },
};

async function countVersions(view: StateView, bucketId: BucketId): Promise<number[]> {
  const counted = new Array<number>(PROVEN).fill(0);
  for (const region of Object.values(REGION)) {
    const prefix = concatBytes(Uint8Array.of(region), fromHex(bucketId));
    for await (const { value } of allRows(view, TABLES.objects, prefix))
      addVersion(counted, decodeVersion(value), 1);
  }
  return counted;
}

/** Of the days that are not closed, up to today: what is behind it is of deleted data alone. */
async function sumDays(
  view: StateView,
  bucketId: BucketId,
  range: { from: number; to: number },
): Promise<number[]> {
  const sums = new Array<number>(PROVEN).fill(0);
  for (let day = range.from; day <= range.to; day++) {
    const [delta = []] = await view.vectors([COUNTER.dayUsage(bucketId, day)]);
    for (let at = 0; at < PROVEN; at++) add(sums, at, delta[at] ?? 0);
  }
  return sums;
}

/** The same of what an account holds by the counters of its buckets, for quotas: accounts of earlier releases have none. */
export const recountAccount: QuerySpec<QueryOf<'recount-account'>, ResultOf<'recount-account'>> = {
  async run({ accountId }, state) {
    const view = state.view(TABLES.buckets);
    try {
      const sums = [0, 0, 0];
      for await (const { key } of allRows(view, TABLES.usageStates, u48(Number(accountId)))) {
        const { bucketId } = readUsageStateKey(key);
        const names = [
          COUNTER.bucketObjects(bucketId),
          COUNTER.bucketBytes(bucketId),
          COUNTER.bucketUploadBytes(bucketId),
        ];
        for (const [at, value] of (await view.counters(names)).entries()) add(sums, at, value);
      }
      const stored = await view.counters(accountCounters(accountId));
      const [objects = 0, bytes = 0, uploadBytes = 0] = sums.map((sum, at) => sum - (stored[at] ?? 0));
      return { missing: { objects, bytes, uploadBytes } };
    } finally {
      view.close();
    }
  },
};

export function accountCounters(accountId: AccountId): string[] {
  return [
    COUNTER.accountObjects(accountId),
    COUNTER.accountBytes(accountId),
    COUNTER.accountUploadBytes(accountId),
  ];
}
