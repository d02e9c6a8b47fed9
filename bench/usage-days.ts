// What it costs to close a day of many buckets, without HTTP, over RocksDB: processor time of each bucket, and the share of a core
// that it takes in the background. Run: npx node bench/usage-days.ts [--buckets N]
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { rowKey } from '../src/metadata/engine/row-keys.ts';
import type { Shards } from '../src/metadata/engine/shards.ts';
import { bucketRow, usageStateRow } from '../src/metadata/schema/keyspace.ts';
import { metadataMachine } from '../src/metadata/state-machine.ts';
import { createUsageCloser } from '../src/metadata/usage/close-usage-worker.ts';
import { systemClock } from '../src/platform/system-clock.ts';
import type { KvPort } from '../src/ports/kv.ts';
import { DEFAULT_METERING, dayOf } from '../src/types/metered.ts';
import type { AccountId, BucketId, BucketName } from '../src/types/names.ts';
import { bucketCodec } from '../src/types/records/rows.ts';
import { usageStateCodec } from '../src/types/records/usage-record.ts';
import { openShards } from './open-shards.ts';
import { quantity } from './quantity.ts';
import { timed } from './timing.ts';

const DAY_MS = 24 * 3600 * 1000;
const BATCH = 2000;
const OWNERS = 1000;
/** Objects, raw and padded bytes at the end of the day before. */
const SUMS = [1234, 5_000_000_000, 5_001_000_000];

/** Buckets whose yesterday is not closed yet, written past the shard. */
async function fill(kv: KvPort, bucketCount: number): Promise<void> {
  const closedDay = dayOf(Date.now()) - 2;
  for (let from = 0; from < bucketCount; from += BATCH) {
    const rows = Array.from({ length: Math.min(BATCH, bucketCount - from) }, (_, at) => {
      const number = from + at;
      const bucketId = `b${String(number).padStart(15, '0')}` as BucketId;
      const owner = String(number % OWNERS).padStart(12, '0') as AccountId;
      const bucket = bucketCodec.encode({
        bucketId,
        name: `bucket-${number}` as BucketName,
        nameEpoch: 1,
        owner,
        state: 'open',
        createdAtMs: Date.now() - 2 * DAY_MS,
        cfgVersion: 1,
        versioning: 'unversioned',
      });
      const state = usageStateCodec.encode({ closedDay, sums: SUMS });
      return [
        { row: bucketRow(bucketId), value: bucket },
        { row: usageStateRow(owner, bucketId), value: state },
      ].map(({ row, value }) => ({ column: 'rows' as const, key: rowKey(0, row.table, row.key), value }));
    });
    await kv.commit(rows.flat());
  }
}

async function isClosed(shards: Shards, day: number): Promise<boolean> {
  const reply = await shards.query({ shard: 0 }, 'get-usage-closed', {});
  if (reply.kind !== 'done') throw new Error(`get-usage-closed: ${reply.kind}`);
  return (reply.value.day ?? 0) >= day;
}

async function run(folder: string, bucketCount: number): Promise<void> {
  const { kv, shards, close } = await openShards({ folder, machine: metadataMachine, shardCount: 1 });
  await fill(kv, bucketCount);
  const worker = createUsageCloser({
    metadata: shards,
    shards: () => [0],
    metering: DEFAULT_METERING,
    clock: systemClock,
    telemetry: { gauge() {} },
  });
  const signal = new AbortController().signal;
  const yesterday = dayOf(Date.now()) - 1;
  const cpu = process.cpuUsage();
  const tookMs = await timed(async () => {
    while (!(await isClosed(shards, yesterday))) {
      const outcome = await worker.work(signal);
      if (outcome.state === 'idle') await systemClock.sleep(Math.min(outcome.idleMs, 1000));
    }
  });
  const { user, system } = process.cpuUsage(cpu);
  const cpuUs = user + system;
  const share = (cpuUs / 1000 / tookMs) * 100;
  console.log(
    `${bucketCount} buckets: ${(tookMs / 1000).toFixed(1)} s, ${(cpuUs / bucketCount).toFixed(1)} us CPU each, ` +
      `${share.toFixed(1)} % of a core`,
  );
  await close();
}

const program = new Command('usage-days')
  .description('what it costs to close a day of many buckets')
  .option('--buckets <n>', 'of one shard', quantity({ kind: 'integer', min: 100, max: 10_000_000 }), 100_000);
const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
try {
  const { buckets } = program.parse().opts<{ buckets: number }>();
  await run(folder, buckets);
} finally {
  await rm(folder, { recursive: true });
}
