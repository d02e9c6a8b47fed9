// A bucket and its configuration as its home has them now, for answers that are made of nothing else: what the cache holds
// may be gone.
import type { Acl } from '../../../types/acl.ts';
import type { BucketConfigs, ConfigKind, ConfigsOfBucket } from '../../../types/bucket-config.ts';
import { AppError } from '../../../types/errors.ts';
import type { BucketRecord } from '../../../types/records/rows.ts';
import type { OperationContext } from '../context.ts';

/** NoSuchBucket when it is gone. */
export async function presentBucket(context: OperationContext): Promise<BucketRecord> {
  return (await readPresent(context, [])).bucket;
}

/** Its document of a kind. NoSuchBucket when it is gone. */
export async function presentConfig<K extends ConfigKind>(
  context: OperationContext,
  kind: K,
): Promise<BucketConfigs[K] | undefined> {
  return (await readPresent(context, [kind])).configs[kind];
}

/** NoSuchBucket when it is gone. */
export async function presentAcl(context: OperationContext): Promise<Acl> {
  const { bucket, configs } = await readPresent(context, ['acl']);
  return { owner: bucket.owner, grants: configs.acl?.grants };
}

/**
 * With the time of its home, which never decreases. Only what is asked for is read: a document may be long. NoSuchBucket when it
 * is gone.
 */
export async function readPresent(
  context: OperationContext,
  kinds: readonly ConfigKind[],
): Promise<{ bucket: BucketRecord; configs: ConfigsOfBucket; timeMs: number }> {
  const { homeShard, believed } = context.bucket();
  const { bucketId } = believed;
  const target = { shard: homeShard, bucket: believed };
  const { value, timeMs } = await context.metadata.query(target, 'get-bucket', { bucketId, kinds });
  const { bucket, configs } = value;
  if (bucket === null) throw new AppError('NoSuchBucket', { fields: { BucketName: believed.name } });
  return { bucket, configs, timeMs };
}
