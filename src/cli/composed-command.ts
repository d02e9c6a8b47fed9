// holdfast composed: the data that compositions alone keep, by bucket, added up page by page.
import { type CliContext, type ConnectOptions, connect } from './connect.ts';
import { formatAnswer, formatBytes, formatCount, formatTable } from './format.ts';

interface Sum {
  bucketId: string;
  name: string;
  sizeBytes: number;
  blobCount: number;
}

/** As the operator API has it. */
interface Page {
  buckets: Sum[];
  next?: { shard: number; after?: string };
}

export async function showComposed(context: CliContext, options: ConnectOptions): Promise<void> {
  const client = await connect(context, options);
  const sums = new Map<string, Sum>();
  for (let place: Page['next'] = { shard: 0 }; place !== undefined; ) {
    const { shard, after } = place;
    const path = `/composed/${shard}${after === undefined ? '' : `/${after}`}`;
    const { buckets, next } = (await client.call('GET', path)) as Page;
    for (const { sizeBytes, blobCount, ...bucket } of buckets) {
      const sum = sums.get(bucket.bucketId) ?? { ...bucket, sizeBytes: 0, blobCount: 0 };
      sums.set(bucket.bucketId, {
        ...{ ...bucket, sizeBytes: sum.sizeBytes + sizeBytes, blobCount: sum.blobCount + blobCount },
      });
    }
    place = next;
  }
  const buckets = [...sums.values()].sort((a, b) => b.sizeBytes - a.sizeBytes || (a.name < b.name ? -1 : 1));
  context.print(formatAnswer(options, { buckets }, () => formatComposed(buckets)));
}

function formatComposed(buckets: readonly Sum[]): string {
  if (buckets.length === 0) return 'No data is kept by compositions alone.';
  const rows = buckets.map(({ name, sizeBytes, blobCount }) => [
    ...[name, formatBytes(sizeBytes), formatCount(blobCount)],
  ]);
  return formatTable([['bucket', 'kept by compositions alone', 'pieces'], ...rows]);
}
