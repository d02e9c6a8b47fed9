// The present of an account: of its buckets, and of its requests without one. It may have made and deleted millions of buckets
// today, each of which has something until the day is closed: sums are made in the shards, and of lists a page is kept.
import type { ClockPort } from '../ports/clock.ts';
import type { MetadataPort, ResultOf } from '../ports/metadata/port.ts';
import type { AccountId, BucketId } from '../types/names.ts';
import { requireDone } from '../types/require-done.ts';
import { METERED_NOTHING, type UsageDay, type UsageFigures } from '../types/usage.ts';
import {
  type Asker,
  createPresentPlaces,
  OPERATORS,
  type PresentPlaces,
  requireHere,
} from './present-places.ts';
import type { Page, PageOf } from './tenancy.ts';
import { addFigures, figuresIn, usageDay } from './usage-days.ts';

/** Buckets of one question to a shard. */
const PAGE = 200;
/** Shards that are asked at once for one account: what they answer comes in one turn of the loop. */
const SHARDS_AT_ONCE = 8;
/** A page that has so many, and is the only one, takes no turn of the loop. */
const SMALL_PAGE = 20;
/** Records that are kept until it is known which are of the page; where there are more, those of the page are read again. */
const KEPT_MAX = 2000;

export interface PresentOptions {
  page: Page;
  /** Default an operator. */
  asker?: Asker;
  isWanted?(usage: UsageDay): boolean;
  /** Only of buckets without a record of that closed day or an earlier one. */
  withoutRecordOf?: number;
  /** Of buckets with this number alone: no others are read. */
  bucketNumber?: number;
}

export interface PresentUsages {
  /** Work that reads as much for one who asks, as a search in closed days, in one of the same places: it asks nothing of the below. */
  inPlace: PresentPlaces['within'];
  /** Of each bucket, and of requests without one, in records of today that is not closed, in order of shards and buckets. */
  current(accountId: AccountId, options: PresentOptions): Promise<PageOf<UsageDay>>;
  /** Summed, of all or of those that are wanted; undefined: there are none. `asker`: default an operator. */
  currentOf(
    accountId: AccountId,
    asker?: Asker,
    isWanted?: (usage: UsageDay) => boolean,
  ): Promise<UsageFigures | undefined>;
}

type Which = Pick<PresentOptions, 'withoutRecordOf' | 'bucketNumber'> & {
  accountId: AccountId;
  asker: Asker;
};

/** See this file's head. `takeTurn`: of the account, for one page. */
export function createPresentUsages(
  metadata: MetadataPort,
  deps: { clock: Pick<ClockPort, 'sleep'>; takeTurn(accountId: AccountId): Promise<void> },
): PresentUsages {
  const { clock, takeTurn } = deps;
  const shards = Array.from({ length: metadata.shardCount }, (_, shard) => shard);
  const presents = createPresentPlaces(clock);

  /** Page by page, until `visit` has enough. */
  async function walk(
    shard: number,
    { asker, ...which }: Which,
    visit: (days: readonly UsageDay[]) => { isEnough: boolean },
  ): Promise<void> {
    const { accountId } = which;
    for (let after: BucketId | undefined, isMore = true; isMore; ) {
      requireHere(asker);
      const query = { limit: PAGE, ...which, ...(after !== undefined && { after }) };
      const page: ResultOf<'list-current-usages'> = requireDone(
        await metadata.query({ shard }, 'list-current-usages', query),
      );
      if (page.days.length > SMALL_PAGE || page.next !== undefined) await takeTurn(accountId);
      const { isEnough } = visit(page.days.map((day) => usageDay(accountId, day, { isClosed: false })));
      after = page.next;
      isMore = after !== undefined && !isEnough;
    }
  }

  /** From one place to another among those of a shard that are wanted. */
  async function readSlice(
    shard: number,
    which: Which,
    wanted: { fromAt: number; toAt: number; isWanted(usage: UsageDay): boolean },
  ): Promise<UsageDay[]> {
    const { fromAt, toAt, isWanted } = wanted;
    const found: UsageDay[] = [];
    let at = 0;
    await walk(shard, which, (days) => {
      for (const day of days) {
        if (!isWanted(day)) continue;
        if (at >= fromAt && at < toAt) found.push(day);
        at++;
      }
      return { isEnough: at >= toAt };
    });
    return found;
  }

  async function readPage(
    which: Which,
    { page, isWanted }: { page: Page; isWanted(usage: UsageDay): boolean },
  ): Promise<PageOf<UsageDay>> {
    const counts = shards.map(() => 0);
    const kept = { byShard: shards.map((): UsageDay[] => []), count: 0 };
    const note = (shard: number, usage: UsageDay) => {
      counts[shard] = (counts[shard] ?? 0) + 1;
      if (++kept.count <= KEPT_MAX) kept.byShard[shard]?.push(usage);
      else kept.byShard = [];
    };
    const count = (shard: number) =>
      walk(shard, which, (days) => {
        for (const day of days) if (isWanted(day)) note(shard, day);
        return { isEnough: false };
      });
    await eachOf(shards, count);
    const fromAt = (page.page - 1) * page.size;
    const toAt = fromAt + page.size;
    if (kept.count <= KEPT_MAX) return { items: kept.byShard.flat().slice(fromAt, toAt), total: kept.count };
    let before = 0;
    const slices = new Map<number, Parameters<typeof readSlice>[2]>();
    for (const shard of shards) {
      const ofShard = counts[shard] ?? 0;
      const slice = {
        fromAt: Math.max(0, fromAt - before),
        toAt: Math.min(ofShard, toAt - before),
        isWanted,
      };
      before += ofShard;
      if (slice.fromAt < slice.toAt) slices.set(shard, slice);
    }
    const items = await eachOf([...slices], ([shard, slice]) => readSlice(shard, which, slice));
    return { items: items.flat(), total: before };
  }

  async function sumShard(shard: number, { accountId, asker }: Which) {
    let sum: UsageFigures | undefined;
    for (let after: BucketId | undefined, isMore = true; isMore; ) {
      requireHere(asker);
      const query = { accountId, limit: PAGE, ...(after !== undefined && { after }) };
      const page: ResultOf<'sum-current-usages'> = requireDone(
        await metadata.query({ shard }, 'sum-current-usages', query),
      );
      if (page.count > 0) sum = addFigures(sum ?? METERED_NOTHING, figuresIn(page.figures));
      after = page.next;
      isMore = after !== undefined;
      if (isMore) await takeTurn(accountId);
    }
    return sum;
  }

  async function sumWanted(shard: number, which: Which, isWanted: (usage: UsageDay) => boolean) {
    let sum: UsageFigures | undefined;
    await walk(shard, which, (days) => {
      for (const day of days) if (isWanted(day)) sum = addFigures(sum ?? METERED_NOTHING, day);
      return { isEnough: false };
    });
    return sum;
  }

  return {
    inPlace: presents.within,
    current: (accountId, { asker = OPERATORS, page, isWanted = () => true, ...which }) =>
      presents.within(asker, async () => {
        await takeTurn(accountId);
        return readPage({ accountId, asker, ...which }, { page, isWanted });
      }),
    currentOf: (accountId, asker = OPERATORS, isWanted) =>
      presents.within(asker, async () => {
        await takeTurn(accountId);
        const which = { accountId, asker };
        const sum = (shard: number) =>
          isWanted === undefined ? sumShard(shard, which) : sumWanted(shard, which, isWanted);
        const parts = (await eachOf(shards, sum)).filter((part) => part !== undefined);
        return parts.length === 0 ? undefined : parts.reduce(addFigures);
      }),
  };
}

/** Some at once. After a failure no others begin. */
async function eachOf<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const left = [...items.entries()].reverse();
  const workOn = async () => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const [at, item] = next;
      try {
        results[at] = await work(item);
      } catch (error) {
        left.length = 0;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: SHARDS_AT_ONCE }, workOn));
  return results;
}
