// What a shard keeps of requests that are over, against the counters that bound it: in all, and of each account that has a
// bucket here or had one.
import { allRows } from '../../base/table-rows.ts';
import type { StateView } from '../../ports/state-machine.ts';
import type { AccountId, BucketId } from '../../types/names.ts';
import { jobCodec } from '../../types/records/job-record.ts';
import { bucketCodec, tokenCodec } from '../../types/records/rows.ts';
import { storedBytesOf } from '../jobs/jobs.ts';
import { TABLES } from '../schema/keyspace.ts';
import { outcomeDeltas, TOKENLESS, UNDER_TOKENS } from './outcome-bounds.ts';
import { payerOf, readTokenKey } from './tokens.ts';

/** What these counters are to be. */
export async function outcomeCounts(view: StateView): Promise<[name: string, value: number][]> {
  const owners = new Map<BucketId, AccountId>();
  for await (const { value } of allRows(view, TABLES.buckets)) {
    const { bucketId, owner } = bucketCodec.decode(value);
    owners.set(bucketId, owner);
  }
  const names = [UNDER_TOKENS, TOKENLESS].flatMap(({ all, ofAccount }) => [
    all,
    ...[...owners.values()].map((owner) => ofAccount(owner)),
  ]);
  const sums = new Map(names.map((name) => [name, 0]));
  const add = (owner: AccountId | undefined, bytes: number, options?: { isTokenless: boolean }) => {
    for (const { name, delta } of outcomeDeltas(owner, bytes, options))
      sums.set(name, (sums.get(name) ?? 0) + delta);
  };
  for await (const { key, value } of allRows(view, TABLES.tokens)) {
    const record = tokenCodec.decode(value);
    add(payerOf(record.payer, owners.get(readTokenKey(key).bucketId)), record.keptBytes ?? 0);
  }
  for await (const { value } of allRows(view, TABLES.jobs)) {
    const job = jobCodec.decode(value);
    add(owners.get(job.bucketId), storedBytesOf(job), { isTokenless: job.isTokenless === true });
  }
  return [...sums];
}
