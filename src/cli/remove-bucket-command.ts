// holdfast rb: deletes a bucket, with --force all that is in it (service.txt 4.1).
import { type CliContext, type ConnectOptions, connectS3 } from './connect.ts';
import { formatAnswer } from './format.ts';
import { parseBucketAddress } from './object-address.ts';

export interface RemoveBucketOptions extends ConnectOptions {
  /** Also when there are objects in it; refused whole when one of them must be kept. */
  force?: boolean;
}

export async function removeBucket(
  context: CliContext,
  text: string,
  { force = false, ...options }: RemoveBucketOptions,
): Promise<void> {
  const bucket = parseBucketAddress(text);
  const client = await connectS3(context, options);
  await client.send({
    method: 'DELETE',
    bucket,
    query: force ? { force_delete: 'true' } : {},
  });
  const told = force ? 'is gone; `holdfast jobs` tells how its data goes' : 'is gone';
  context.print(formatAnswer(options, { bucket }, () => `${bucket} ${told}`));
}
