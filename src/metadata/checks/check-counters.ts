// Counters against what they count, at one moment. The caller has counted versions bucket by bucket while others wrote;
// only where that differs from the counter is the bucket counted anew here, under the view that shows the counter.
import { concatBytes, fromHex } from '../../base/bytes/bytes.ts';
import { allRows } from '../../base/table-rows.ts';
import { type QueryOf, type ResultOf, SYSTEM_SHARD } from '../../ports/metadata/port.ts';
import type { QuerySpec, StateReader, StateView, TableRef } from '../../ports/state-machine.ts';
import type { AccountId, BucketId } from '../../types/names.ts';
import { accountCodec, bucketCodec, nameCodec } from '../../types/records/rows.ts';
import { decodeVersionSummary } from '../../types/records/version-record.ts';
import { repairCounts } from '../blobs/check-repairs.ts';
import { jobCounts } from '../jobs/check-jobs.ts';
import { outcomeCounts } from '../outcomes/check-outcome-bytes.ts';
import { COUNTER } from '../schema/counters.ts';
import { REGION, TABLES } from '../schema/keyspace.ts';
import { CheckScan } from './scan.ts';

interface Sums {
  objectCount: number;
  sizeBytes: number;
}

export const checkCounters: QuerySpec<QueryOf<'check-counters'>, ResultOf<'check-counters'>> = {
  async run({ counted }, state: StateReader, { shard }) {
    const view = state.view();
    try {
      const scan = new CheckScan(view, shard);
      const byBucket = new Map(counted.map((usage): [string, Sums] => [usage.bucketId, usage]));
      const total = await checkBuckets(scan, byBucket);
      const ofAccounts = [...total.byOwner].flatMap(([owner, { objectCount, sizeBytes }]) => [
        [COUNTER.accountObjects(owner), objectCount] as [string, number],
        [COUNTER.accountBytes(owner), sizeBytes] as [string, number],
      ]);
      const condemned = await countRows(view, TABLES.condemned);
      await expectCounters(scan, [
        [COUNTER.objects, total.objectCount],
        [COUNTER.bytes, total.sizeBytes],
        [COUNTER.buckets, total.openCount],
        [COUNTER.condemned, condemned],
        ...ofAccounts,
        ...(await repairCounts(view)),
        ...(await jobCounts(view)),
        ...(await outcomeCounts(view)),
      ]);
      if (shard === SYSTEM_SHARD) await checkBucketCounts(scan);
      return { findings: scan.findings };
    } finally {
      view.close();
    }
  },
};

async function checkBuckets(scan: CheckScan, counted: ReadonlyMap<string, Sums>) {
  const total = { objectCount: 0, sizeBytes: 0, openCount: 0, byOwner: new Map<AccountId, Sums>() };
  for await (const { value } of allRows(scan.view, TABLES.buckets)) {
    const { bucketId, name, state, owner } = bucketCodec.decode(value);
    if (state !== 'deleted') total.openCount++;
    const names = [COUNTER.bucketObjects(bucketId), COUNTER.bucketBytes(bucketId)];
    const [objects = 0, bytes = 0] = await scan.view.counters(names);
    let seen = counted.get(bucketId) ?? { objectCount: 0, sizeBytes: 0 };
    if (seen.objectCount !== objects || seen.sizeBytes !== bytes) seen = await recount(scan.view, bucketId);
    total.objectCount += seen.objectCount;
    total.sizeBytes += seen.sizeBytes;
    const owned = total.byOwner.get(owner) ?? { objectCount: 0, sizeBytes: 0 };
    total.byOwner.set(owner, {
      objectCount: owned.objectCount + seen.objectCount,
      sizeBytes: owned.sizeBytes + seen.sizeBytes,
    });
    if (seen.objectCount !== objects) {
      scan.found('counter-wrong', { bucket: name, note: `${objects} objects, is ${seen.objectCount}` });
    }
    if (seen.sizeBytes !== bytes) {
      scan.found('counter-wrong', { bucket: name, note: `${bytes} bytes, is ${seen.sizeBytes}` });
    }
  }
  return total;
}

async function recount(view: StateView, bucketId: BucketId): Promise<Sums> {
  const sums = { objectCount: 0, sizeBytes: 0 };
  for (const region of Object.values(REGION)) {
    const prefix = concatBytes(Uint8Array.of(region), fromHex(bucketId));
    for await (const { value } of allRows(view, TABLES.objects, prefix)) {
      const { isDeleteMarker, sizeBytes } = decodeVersionSummary(value);
      if (!isDeleteMarker) sums.objectCount++;
      sums.sizeBytes += sizeBytes;
    }
  }
  return sums;
}

async function expectCounters(scan: CheckScan, wanted: [name: string, value: number][]): Promise<void> {
  const stored = await scan.view.counters(wanted.map(([name]) => name));
  for (const [at, [name, value]] of wanted.entries()) {
    const found = stored[at] ?? 0;
    if (found !== value) scan.found('counter-wrong', { note: `${found} ${name}, is ${value}` });
  }
}

/** How many buckets accounts own: by it their limit is kept. */
async function checkBucketCounts(scan: CheckScan): Promise<void> {
  const owned = new Map<string, number>();
  for await (const { value } of allRows(scan.view, TABLES.names)) {
    const { owner, state } = nameCodec.decode(value);
    // R43: a bucket that is being renamed has two, and counts once.
    if (state === 'entering') continue;
    owned.set(owner, (owned.get(owner) ?? 0) + 1);
  }
  for await (const { value } of allRows(scan.view, TABLES.accounts)) {
    const { accountId, bucketCount } = accountCodec.decode(value);
    const count = owned.get(accountId) ?? 0;
    if (bucketCount === count) continue;
    scan.found('counter-wrong', { account: accountId, note: `${bucketCount} buckets, is ${count}` });
  }
}

async function countRows(view: StateView, table: TableRef): Promise<number> {
  let count = 0;
  for await (const _ of allRows(view, table)) count++;
  return count;
}
