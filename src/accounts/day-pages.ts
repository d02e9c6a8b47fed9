// Pages of one day's records of an account's buckets, by their place in the day. An account may have made and deleted any number of
// buckets, so a page reads neither all of them nor those before it: a closed day does not change, and where every thousandth record
// of it is stays known once somebody has come by.
import { BoundedMap } from '../base/bounded-map.ts';
import type { AccountId, BucketId } from '../types/names.ts';
import type { UsageDay } from '../types/usage.ts';
import type { Usages } from './usages.ts';

/** Records between two known places. */
const PLACE_EVERY = 1000;
/** Days of accounts of which places are known; each has one for a thousand records. */
const DAYS_MAX = 1000;

export interface DayPages {
  /** Of a closed day, in order of buckets: `size` records behind the first `offset`. */
  read(accountId: AccountId, day: number, page: { offset: number; size: number }): Promise<UsageDay[]>;
}

export function createDayPages(usages: Pick<Usages, 'walkDay'>): DayPages {
  /** By account and day: the last bucket of each full PLACE_EVERY records. */
  const known = new BoundedMap<string, BucketId[]>(DAYS_MAX);
  return {
    async read(accountId, day, { offset, size }) {
      const id = `${accountId} ${day}`;
      const places = known.get(id) ?? [];
      known.set(id, places);
      const skippedPlaces = Math.min(Math.floor(offset / PLACE_EVERY), places.length);
      const after = places[skippedPlaces - 1];
      let at = skippedPlaces * PLACE_EVERY;
      const records: UsageDay[] = [];
      const wanted = offset + size - at;
      for await (const usage of usages.walkDay(accountId, { day, wanted, ...(after && { after }) })) {
        if (at >= offset) records.push(usage);
        at++;
        const isNext = at === (places.length + 1) * PLACE_EVERY;
        if (isNext && usage.bucketId !== undefined) places.push(usage.bucketId);
        if (records.length === size) break;
      }
      return records;
    },
  };
}
