// Which name led to which bucket at every moment, as readers could see it: the rows of names in the system shard and of
// buckets in their homes, entry by entry. What must hold of them at each (I13), and whether an answer was so at one
// moment between question and answer (I7).
import { fromUtf8, toHex } from '../../src/base/bytes/bytes.ts';
import { keyOfRow } from '../../src/metadata/engine/row-keys.ts';
import { TABLES } from '../../src/metadata/schema/keyspace.ts';
import { SYSTEM_SHARD } from '../../src/ports/metadata/port.ts';
import type { AccountId, BucketId } from '../../src/types/names.ts';
import {
  type AccountRecord,
  accountCodec,
  type BucketRecord,
  bucketCodec,
  type NameRecord,
  nameCodec,
} from '../../src/types/records/rows.ts';
import type { EntryFact } from './node.ts';
import { SimulationFailure } from './scheduler.ts';

/** A name as it was from one step on. */
export interface NameMoment {
  step: number;
  record: NameRecord | undefined;
  /** The bucket that the name leads to, which may be closing; undefined: readers find none. */
  leads: BucketId | undefined;
}

/** How many buckets an account had from one step on. */
interface CountMoment {
  step: number;
  count: number;
}

export class NameHistory {
  readonly #names = new Map<string, NameRecord>();
  readonly #buckets = new Map<BucketId, BucketRecord>();
  readonly #accounts = new Map<AccountId, AccountRecord>();
  readonly #moments = new Map<string, NameMoment[]>();
  readonly #counts = new Map<AccountId, CountMoment[]>();
  /** Whose buckets are made by name: others are made without. */
  readonly #owners: readonly AccountId[];

  constructor(owners: readonly AccountId[]) {
    this.#owners = owners;
  }

  /** An entry can be read from now on. */
  apply(shard: number, { rows }: EntryFact, step: number): void {
    const touched = new Set<string>();
    for (const { column, key, value } of rows) {
      if (column !== 'rows') continue;
      const id = keyOfRow(key);
      if (key[2] === TABLES.buckets.id) this.#noteBucket(toHex(id) as BucketId, value, touched);
      if (shard !== SYSTEM_SHARD) continue;
      if (key[2] === TABLES.names.id) this.#noteName(fromUtf8(id), value, touched);
      if (key[2] === TABLES.accounts.id && value !== null) {
        const account = accountCodec.decode(value);
        this.#accounts.set(account.accountId, account);
      }
    }
    this.#checkBuckets();
    if (shard === SYSTEM_SHARD) this.#checkAccounts(step);
    for (const name of touched) this.#noteMoment(name, step);
  }

  /** What a name was between two steps, both included. */
  moments(name: string, { from, to }: { from: number; to: number }): NameMoment[] {
    return between(
      this.#moments.get(name) ?? [],
      { from, to },
      { step: 0, record: undefined, leads: undefined },
    );
  }

  counts(owner: AccountId, { from, to }: { from: number; to: number }): number[] {
    const moments = between(this.#counts.get(owner) ?? [], { from, to }, { step: 0, count: 0 });
    return moments.map(({ count }) => count);
  }

  bucket(bucketId: BucketId): BucketRecord | undefined {
    return this.#buckets.get(bucketId);
  }

  /** Nothing is under way: each bucket has its name, and each name its bucket. */
  checkRest(): void {
    for (const [name, { state, bucketId }] of this.#names) {
      if (state !== 'active') throw new SimulationFailure(`I16: the name ${name} is still ${state}`);
      const bucket = this.#buckets.get(bucketId);
      if (bucket?.state !== 'open' || bucket.name !== name)
        throw new SimulationFailure(
          `I13: at rest the name ${name} leads to ${bucketId}, which is ${bucket?.state} as ${bucket?.name}`,
        );
    }
    for (const { bucketId, name } of this.#open())
      if (this.#names.get(name)?.bucketId !== bucketId)
        throw new SimulationFailure(`I13: at rest nothing leads to bucket ${bucketId}, called ${name}`);
  }

  #noteBucket(bucketId: BucketId, value: Uint8Array | null, touched: Set<string>): void {
    if (value === null) return;
    const bucket = bucketCodec.decode(value);
    const before = this.#buckets.get(bucketId);
    if (before?.state === 'deleted' && bucket.state !== 'deleted')
      throw new SimulationFailure(`I13: bucket ${bucketId} is ${bucket.state}, and was deleted`);
    if (before !== undefined) touched.add(before.name);
    touched.add(bucket.name);
    this.#buckets.set(bucketId, bucket);
  }

  #noteName(name: string, value: Uint8Array | null, touched: Set<string>): void {
    touched.add(name);
    if (value === null) this.#names.delete(name);
    else this.#names.set(name, nameCodec.decode(value));
  }

  #open(): BucketRecord[] {
    return [...this.#buckets.values()].filter(
      ({ owner, state }) => state !== 'deleted' && this.#owners.includes(owner),
    );
  }

  #checkBuckets(): void {
    const byName = new Map<string, BucketId>();
    for (const { name, bucketId } of this.#open()) {
      const other = byName.get(name);
      if (other !== undefined)
        throw new SimulationFailure(`I13: buckets ${other} and ${bucketId} both bear the name ${name}`);
      byName.set(name, bucketId);
    }
  }

  /** R41: an account has as many buckets as its row says, and no more than it may have. */
  #checkAccounts(step: number): void {
    for (const owner of this.#owners) {
      const account = this.#accounts.get(owner);
      const records = [...this.#names.values()].filter((record) => record.owner === owner);
      const count = new Set(records.map(({ bucketId }) => bucketId)).size;
      if (account === undefined) continue;
      if (account.bucketCount !== count)
        throw new SimulationFailure(
          `I13: account ${owner} counts ${account.bucketCount} buckets, and has names of ${count}`,
        );
      if (count > account.bucketsMax)
        throw new SimulationFailure(`I13: account ${owner} has ${count} buckets of ${account.bucketsMax}`);
      const moments = this.#counts.get(owner) ?? [];
      this.#counts.set(owner, moments);
      moments.push({ step, count });
    }
  }

  #noteMoment(name: string, step: number): void {
    const record = this.#names.get(name);
    const bucket = record && this.#buckets.get(record.bucketId);
    const isThere = bucket !== undefined && bucket.state !== 'deleted';
    const isRead = record?.state !== 'creating' && isThere && bucket.name === name;
    const moments = this.#moments.get(name) ?? [];
    this.#moments.set(name, moments);
    moments.push({ step, record, leads: isRead ? bucket.bucketId : undefined });
  }
}

/** Those in between, and the one that was so at the beginning. */
function between<T extends { step: number }>(
  moments: readonly T[],
  { from, to }: { from: number; to: number },
  before: T,
): T[] {
  const first = moments.findLast(({ step }) => step < from) ?? before;
  return [first, ...moments.filter(({ step }) => step >= from && step <= to)];
}
