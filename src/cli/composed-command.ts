// holdfast composed: the data that compositions alone keep, by bucket, added up page by page.
import { Refusal } from '../base/refusal.ts';
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
  missingShard?: number;
  next?: { shard: number; after?: string };
}

/** A shard that does not answer is asked again for as long as it takes a node to come back. */
const ASK_AGAIN_MS = 2000;
const TRIES_MAX = 60;

export async function showComposed(context: CliContext, options: ConnectOptions): Promise<void> {
  const client = await connect(context, options);
  const sums = new Map<string, Sum>();
  let tries = 0;
  for (let place: Page['next'] = { shard: 0 }; place !== undefined; ) {
    const { shard, after } = place;
    const path = `/composed/${shard}${after === undefined ? '' : `/${after}`}`;
    const sinceMs = context.nowMs();
    const { buckets, missingShard, next } = (await client.call('GET', path)) as Page;
    for (const { sizeBytes, blobCount, ...bucket } of buckets) {
      const sum = sums.get(bucket.bucketId) ?? { ...bucket, sizeBytes: 0, blobCount: 0 };
      sum.sizeBytes += sizeBytes;
      sum.blobCount += blobCount;
      sums.set(bucket.bucketId, sum);
    }
    tries = missingShard === undefined ? 0 : tries + 1;
    if (tries === TRIES_MAX) throw new Refusal(`shard ${missingShard} does not answer`);
    // Clients have at least half of the time.
    if (next !== undefined) await context.sleep(tries > 0 ? ASK_AGAIN_MS : context.nowMs() - sinceMs);
    place = next;
  }
  const buckets = [...sums.values()].sort((a, b) => b.sizeBytes - a.sizeBytes || (a.name < b.name ? -1 : 1));
  context.print(formatAnswer(options, { buckets }, () => formatComposed(buckets)));
}

function formatComposed(buckets: readonly Sum[]): string {
  if (buckets.length === 0) return 'No data is kept by compositions alone.';
  const rows = buckets.map(({ name, sizeBytes, blobCount }) => {
    return [name, formatBytes(sizeBytes), formatCount(blobCount)];
  });
  return formatTable([['bucket', 'kept by compositions alone', 'pieces'], ...rows]);
}
