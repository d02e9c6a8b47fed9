// The bucket that an operator names: read from its shards, past every cache.
import type { MetadataPort } from '../../ports/metadata/port.ts';
import { AppError } from '../../types/errors.ts';
import { parseBucketName } from '../../types/names.ts';
import { lookUpBucket } from '../s3/buckets/bucket-cache.ts';
import type { ResolvedBucket } from '../s3/context.ts';

/** The path of an endpoint that is about one. */
export const BUCKET_PARAMETER = {
  type: 'object',
  properties: { bucket: { type: 'string', description: 'Its name.' } },
  required: ['bucket'],
} as const;

export interface OfBucket {
  Params: { bucket: string };
}

/** NoSuchEntity. */
export async function findBucket(metadata: MetadataPort, text: string): Promise<ResolvedBucket> {
  const name = parseBucketName(text);
  const bucket = name && (await lookUpBucket(metadata, name));
  if (bucket === undefined) throw noSuchBucket();
  return bucket;
}

export function noSuchBucket(): AppError {
  return new AppError('NoSuchEntity', { message: 'There is no bucket of that name.' });
}
