// Buckets in their homes and their names in the system shard (R41, R42), both ways. A name comes before its bucket and
// goes after it, so what does not agree is looked at again where it began.

import type { BucketName } from '../model/names.ts';
import type { NameRecord } from '../model/records/rows.ts';
import { SYSTEM_SHARD } from '../ports/metadata.ts';
import { findInOutbox } from './compare-claims.ts';
import type { FsckRun } from './run.ts';

/** Every open bucket of `shard` has its name. */
export async function compareBuckets(run: FsckRun, shard: number): Promise<void> {
  for await (const { facts, findings } of run.pages(shard, 'buckets')) {
    run.foundAll(findings);
    for (const { bucketId, name, state } of facts.buckets) {
      if (state === 'deleted') continue;
      const { record } = await run.ask(SYSTEM_SHARD, 'find-name', { name });
      if (record?.bucketId === bucketId && record.homeShard === shard) continue;
      const { bucket } = await run.ask(shard, 'get-bucket', { bucketId });
      if (bucket !== null && bucket.state !== 'deleted') {
        run.found('name-missing', { shard, bucket: name, note: bucketId });
      }
    }
  }
}

/** Every name that readers see has its bucket, or a message on its way that ends it. */
export async function compareNames(run: FsckRun): Promise<void> {
  for await (const { facts, findings } of run.pages(SYSTEM_SHARD, 'names')) {
    run.foundAll(findings);
    for (const { name, record } of facts.names) {
      if (record.state === 'active' && (await isStray(run, name, record))) {
        run.found('name-stray', { shard: SYSTEM_SHARD, bucket: name, note: record.bucketId });
      }
    }
  }
}

async function isStray(
  run: FsckRun,
  name: BucketName,
  { bucketId, homeShard }: NameRecord,
): Promise<boolean> {
  const { bucket } = await run.ask(homeShard, 'get-bucket', { bucketId });
  if (bucket?.name === name && bucket.state !== 'deleted') return false;
  const ending = await findInOutbox(run, homeShard, ({ record }) =>
    record.kind === 'forget-name' ? record.bucketId : undefined,
  );
  if (ending.has(bucketId)) return false;
  const { record } = await run.ask(SYSTEM_SHARD, 'find-name', { name });
  return record?.bucketId === bucketId && record.state === 'active';
}
