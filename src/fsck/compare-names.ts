// Buckets in their homes and their names in the system shard (R41 to R43), both ways. A name comes before its bucket and
// goes after it, and a rename changes the two one after the other; so what does not agree is looked at again.

import { SYSTEM_SHARD } from '../ports/metadata/port.ts';
import type { BucketName } from '../types/names.ts';
import type { BucketRecord, NameRecord } from '../types/records/rows.ts';
import { findInOutbox } from './compare-claims.ts';
import type { FsckRun } from './run.ts';

/** What moves between looks is no damage: that does not move. */
const LOOKS = 3;

/** Every bucket of `shard` that is not deleted has its name. */
export async function compareBuckets(run: FsckRun, shard: number): Promise<void> {
  for await (const { facts, findings } of run.pages(shard, 'buckets')) {
    run.foundAll(findings);
    for (const bucket of facts.buckets) {
      if (await isNamed(run, shard, bucket)) continue;
      run.found('name-missing', { shard, bucket: bucket.name, note: bucket.bucketId });
    }
  }
}

async function isNamed(run: FsckRun, shard: number, { bucketId, ...seen }: BucketRecord): Promise<boolean> {
  let { name, state } = seen;
  for (let look = 0; look < LOOKS && state !== 'deleted'; look++) {
    const { record } = await run.ask(SYSTEM_SHARD, 'find-name', { name });
    if (record?.bucketId === bucketId && record.homeShard === shard) return true;
    const { bucket } = await run.ask(shard, 'get-bucket', { bucketId, kinds: [] });
    if (bucket === null) return true;
    ({ name, state } = bucket);
  }
  return state === 'deleted';
}

/** Every name that may be seen by readers has its bucket, or a message on its way that ends it. */
export async function compareNames(run: FsckRun): Promise<void> {
  for await (const { facts, findings } of run.pages(SYSTEM_SHARD, 'names')) {
    run.foundAll(findings);
    for (const { name, record } of facts.names) {
      if (record.state === 'creating' || !(await isOrphan(run, name, record))) continue;
      run.found('name-orphaned', { shard: SYSTEM_SHARD, bucket: name, note: record.bucketId });
    }
  }
}

async function isOrphan(run: FsckRun, name: BucketName, seen: NameRecord): Promise<boolean> {
  for (let look = 0, record: NameRecord | null = seen; look < LOOKS; look++) {
    if (record === null || record.bucketId !== seen.bucketId || (await leads(run, name, record)))
      return false;
    ({ record } = await run.ask(SYSTEM_SHARD, 'find-name', { name }));
  }
  return true;
}

/** Whether the bucket bears this name, or the other one of a rename; or is gone, with a message that ends its names. */
async function leads(run: FsckRun, name: BucketName, record: NameRecord): Promise<boolean> {
  const { bucketId, homeShard, change } = record;
  const { bucket } = await run.ask(homeShard, 'get-bucket', { bucketId, kinds: [] });
  const hasName = bucket?.name === name || (bucket !== null && bucket.name === change?.other);
  if (hasName && bucket?.state !== 'deleted') return true;
  const ending = await findInOutbox(run, homeShard, ({ record: item }) =>
    item.kind === 'forget-name' ? item.bucketId : undefined,
  );
  return ending.has(bucketId);
}
