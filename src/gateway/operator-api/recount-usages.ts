// A recount of usage and of what quotas count, step by step: what is metered against all versions that there are. One call takes
// some seconds at most, but for a bucket that takes longer, and says where the next one goes on.
import type { ClockPort } from '../../ports/clock.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { MeteredBucket } from '../../ports/metadata/usage.ts';
import { AppError } from '../../types/errors.ts';
import { isAccountTraffic, METERED } from '../../types/metered.ts';
import { type AccountId, type BucketId, parseAccountId } from '../../types/names.ts';
import { requireDone } from '../../types/require-done.ts';
import { findBucket } from './find-bucket.ts';

/** A counter that is wrong by `missing`. */
export interface WrongCounter {
  account: string;
  /** Absent: of all buckets of the account in a shard. */
  bucket?: string;
  /** `metered`: of usage records; `held`: of quotas. */
  of: 'metered' | 'held';
  field: string;
  missing: number;
}

export interface RecountStep {
  bucketCount: number;
  wrong: WrongCounter[];
  isRepaired: boolean;
  /** Where the next call goes on; absent: all are counted. */
  next?: string;
}

const CALL_MS = 2000;
const PAGE = 100;
/** Of an answer: what is beyond comes with the next call. */
const WRONG_MAX = 500;
const EVERY_DAY = Number.MAX_SAFE_INTEGER;
const CURSOR = /^(\d{1,5})\.(\d{12})\.([0-9a-f]{16})$/;

interface Place {
  shard: number;
  after?: MeteredBucket;
}

export class Recount {
  readonly #metadata: MetadataPort;
  readonly #clock: Pick<ClockPort, 'monotonicMs'>;
  readonly #repair: boolean;
  readonly #step: RecountStep;

  constructor(
    { metadata, clock }: { metadata: MetadataPort; clock: Pick<ClockPort, 'monotonicMs'> },
    { repair }: { repair: boolean },
  ) {
    this.#metadata = metadata;
    this.#clock = clock;
    this.#repair = repair;
    this.#step = { bucketCount: 0, wrong: [], isRepaired: repair };
  }

  /** Throws NoSuchEntity. */
  async bucket(name: string): Promise<RecountStep> {
    const { record, homeShard } = await findBucket(this.#metadata, name);
    await this.#recountBucket(homeShard, { accountId: record.owner, bucketId: record.bucketId });
    await this.#recountAccount(homeShard, record.owner);
    return this.#step;
  }

  /** Throws ValidationError for a cursor that is none. */
  async from(cursor: string | undefined): Promise<RecountStep> {
    let place: Place | undefined = cursor === undefined ? { shard: 0 } : this.#placeOf(cursor);
    const endMs = this.#clock.monotonicMs() + CALL_MS;
    const isOver = () => this.#clock.monotonicMs() >= endMs || this.#step.wrong.length >= WRONG_MAX;
    while (place !== undefined && !isOver()) place = await this.#page(place, isOver);
    return place === undefined ? this.#step : { ...this.#step, next: cursorOf(place) };
  }

  #placeOf(cursor: string): Place {
    const [, shard, account, bucketId] = CURSOR.exec(cursor) ?? [];
    const accountId = parseAccountId(account ?? '');
    if (accountId === undefined || Number(shard) >= this.#metadata.shardCount)
      throw new AppError('ValidationError', { fields: { from: 'must be the next of an answer' } });
    const after = { accountId, bucketId: bucketId as BucketId };
    return { shard: Number(shard), ...(account !== BEFORE_ALL.accountId && { after }) };
  }

  /** Where it goes on. */
  async #page({ shard, after }: Place, isOver: () => boolean): Promise<Place | undefined> {
    const query = { throughDay: EVERY_DAY, limit: PAGE, ...(after && { after }) };
    const { buckets, next } = requireDone(await this.#metadata.query({ shard }, 'list-open-usage', query));
    let last = after;
    for (const metered of buckets) {
      if (last !== undefined && last.accountId !== metered.accountId)
        await this.#recountAccount(shard, last.accountId);
      if (!isAccountTraffic(metered)) await this.#recountBucket(shard, metered);
      last = metered;
      if (isOver()) return { shard, after: metered };
    }
    if (next !== undefined) return { shard, after: next };
    if (last !== undefined) await this.#recountAccount(shard, last.accountId);
    return shard + 1 < this.#metadata.shardCount ? { shard: shard + 1 } : undefined;
  }

  async #recountBucket(shard: number, { accountId, bucketId }: MeteredBucket): Promise<void> {
    const found = requireDone(await this.#metadata.query({ shard }, 'recount-usage', { bucketId }));
    if (found.kind !== 'counted') return;
    this.#step.bucketCount++;
    const { name, missing, held } = found;
    const wrong = [
      ...missing.map((value, at) => ({ of: 'metered' as const, field: METERED[at] ?? '', missing: value })),
      ...Object.entries(held).map(([field, value]) => ({ of: 'held' as const, field, missing: value })),
    ].filter((counter) => counter.missing !== 0);
    if (wrong.length === 0) return;
    this.#step.wrong.push(...wrong.map((counter) => ({ account: accountId, bucket: name, ...counter })));
    if (!this.#repair) return;
    requireDone(
      await this.#metadata.execute({ shard }, 'mend-usage', { accountId, bucketId, missing, held }),
    );
  }

  async #recountAccount(shard: number, accountId: AccountId): Promise<void> {
    const { missing } = requireDone(await this.#metadata.query({ shard }, 'recount-account', { accountId }));
    const wrong = Object.entries(missing).filter(([, value]) => value !== 0);
    if (wrong.length === 0) return;
    this.#step.wrong.push(
      ...wrong.map(([field, value]) => ({ account: accountId, of: 'held' as const, field, missing: value })),
    );
    if (!this.#repair) return;
    requireDone(await this.#metadata.execute({ shard }, 'mend-account', { accountId, missing }));
  }
}

/** Of a shard of which nothing is counted yet. */
const BEFORE_ALL = { accountId: '000000000000', bucketId: '0'.repeat(16) };

function cursorOf({ shard, after }: Place): string {
  const { accountId, bucketId } = after ?? BEFORE_ALL;
  return `${shard}.${accountId}.${bucketId}`;
}
