// How fast does a cluster mend what a lost disk has held, and what do clients notice of it? A cluster of its own with four
// storage nodes is filled; one of them is killed for good, its disk removed. Repair is seen from outside: by the bytes that the
// disks of the other nodes hold. Run: npx node bench/repair.ts [--mib N] [--seconds N]
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { readClusterStatus } from '../src/admin/status/read-cluster.ts';
import { formatBytes } from '../src/cli/format.ts';
import { loadConfig } from '../src/config/load.ts';
import { createChunkClient } from '../src/platform/chunk-http/client.ts';
import { systemClock } from '../src/platform/system-clock.ts';
import type { DiskChunks } from '../src/ports/disk-chunks.ts';
import { describeEnvironment } from './environment.ts';
import { generate } from './load/generate.ts';
import type { LoadResult, LoadSpec, Target } from './load/spec.ts';
import { type OwnCluster, startOwnCluster } from './measured-server.ts';
import { quantity } from './quantity.ts';
import { toPage, toTable } from './report.ts';

const MiB = 1024 * 1024;
const COPIES = 3;
const AWAY_AFTER = '10s';
const BEGINS_WITHIN_MS = 180_000;
/** No copy for so long: it is over. */
const QUIET_MS = 20_000;
const WARM_UP_MS = 2000;

interface Options {
  mib: number;
  seconds: number;
}

interface Foreground {
  put: LoadResult;
  get: LoadResult;
}

const program = new Command('repair')
  .description('measures how a cluster of its own mends the loss of a disk, and what clients notice')
  .option(
    '--mib <n>',
    'of objects of 1 MiB that are there first',
    quantity({ kind: 'integer', min: 64, max: 1e6 }),
    2048,
  )
  .option('--seconds <n>', 'of each measurement', quantity({ kind: 'integer', min: 2, max: 600 }), 10);

async function main(options: Options): Promise<void> {
  const own = await startOwnCluster(
    { metadata: 3, storage: 4, gateway: 2 },
    { 'storage.awayAfter': AWAY_AFTER },
  );
  try {
    const lines = await measure(own, options);
    const environment = await describeEnvironment('npx node bench/repair.ts');
    process.stdout.write(toPage({ table: toTable(['what', ''], lines), environment, bounds: undefined }));
  } finally {
    await own.stop();
  }
}

async function measure(own: OwnCluster, { mib, seconds }: Options): Promise<string[][]> {
  const target = await targetOf(own);
  const base = {
    target,
    sizeBytes: MiB,
    durationMs: seconds * 1000,
    warmupMs: WARM_UP_MS,
    payload: 'unsigned',
  } as const;
  const prepared = { ...base, workload: 'get', bucket: 'repair-read', preparedCount: mib } as const;
  await generate({ ...prepared, concurrency: 2, durationMs: 1000 });
  // What is overwritten need not be mended: nothing is, so that all that was lost counts.
  const writing = (bucket: string) =>
    ({ ...base, workload: 'put', bucket, preparedCount: 0, keepsAll: true }) as const;
  const alone = rateOf(await generate({ ...writing('repair-alone'), concurrency: 8 }));
  const beside = (bucket: string, warmupMs: number) =>
    foreground(
      { ...writing(bucket), concurrency: 2, warmupMs },
      { ...prepared, concurrency: 2, warmupMs, isPrepared: true },
    );
  const before = await beside('repair-before', WARM_UP_MS);

  const disks = await openDisks(own);
  try {
    const lostBytes = await disks.lose('storage-4');
    const atFirst = await disks.storedBytes();
    const lostAt = performance.now();
    const begun = await untilMore(disks, atFirst);
    const during = await beside('repair-during', 0);
    const besideBytes = (await disks.storedBytes()) - begun.bytes - COPIES * during.put.bytes;
    const besideSeconds = (performance.now() - begun.atMs) / 1000;
    const end = await untilQuiet(disks);
    const repaired = end.bytes - atFirst - COPIES * during.put.bytes;
    const rate = repaired / MiB / ((end.atMs - begun.atMs) / 1000);
    return [
      ['PUT 1 MiB x8 alone', `${alone.toFixed(0)} MiB/s`],
      ['PUT and GET 1 MiB x2 each, all well', latencies(before)],
      ['lost with the disk', formatBytes(lostBytes)],
      [
        'first copy made',
        `${((begun.atMs - lostAt) / 1000).toFixed(1)} s after the loss (${AWAY_AFTER} of them patience)`,
      ],
      ['repair beside clients', `${(besideBytes / MiB / besideSeconds).toFixed(0)} MiB/s of copies`],
      ['PUT and GET 1 MiB x2 each, during repair', latencies(during)],
      [
        'all mended',
        `${((end.atMs - begun.atMs) / 1000).toFixed(0)} s after the first copy, ${rate.toFixed(0)} MiB/s`,
      ],
      ['mended of what was lost', `${((repaired / lostBytes) * 100).toFixed(1)} %`],
      ['repair : write speed', (rate / alone).toFixed(2)],
      ['p99 during : before', `PUT ${worse(during, before, 'put')}, GET ${worse(during, before, 'get')}`],
    ];
  } finally {
    await disks.close();
  }
}

async function targetOf({ cluster }: OwnCluster): Promise<Target> {
  return { endpoint: cluster.endpoints.join(','), ...(await cluster.credentials()), region: 'us-east' };
}

async function foreground(put: LoadSpec, get: LoadSpec): Promise<Foreground> {
  const [written, read] = await Promise.all([generate(put), generate(get)]);
  return { put: written, get: read };
}

const rateOf = ({ bytes, seconds }: LoadResult) => bytes / MiB / seconds;

function latencies({ put, get }: Foreground): string {
  const text = ({ latencyMs, errorCount }: LoadResult) =>
    `p50 ${latencyMs.p50.toFixed(0)} ms, p99 ${latencyMs.p99.toFixed(0)} ms, ${errorCount} errors`;
  return `PUT ${rateOf(put).toFixed(0)} MiB/s ${text(put)}; GET ${rateOf(get).toFixed(0)} MiB/s ${text(get)}`;
}

function worse(during: Foreground, before: Foreground, kind: keyof Foreground): string {
  return (during[kind].latencyMs.p99 / before[kind].latencyMs.p99).toFixed(2);
}

interface WatchedDisks {
  /** Kills the node and removes its data; answers what its disks held. */
  lose(name: string): Promise<number>;
  /** On all disks that are left. */
  storedBytes(): Promise<number>;
  close(): Promise<void>;
}

async function openDisks({ cluster, dataDir }: OwnCluster): Promise<WatchedDisks> {
  const { etcdEndpoint, secret } = cluster;
  const config = loadConfig({
    flags: { join: etcdEndpoint, ...cluster.etcdSettings },
    env: { HOLDFAST_CLUSTER_SECRET: secret },
  });
  const { clusterId, members } = await readClusterStatus({ config });
  const client = createChunkClient({
    clusterId,
    credentials: { kind: 'secret', secret },
    clock: systemClock,
  });
  const disks = new Map<string, DiskChunks[]>();
  for (const { role, address, zone, nodeId, disks: held } of members) {
    if (role !== 'storage') continue;
    const chunksOf = ({ diskId: id }: (typeof held)[number]) =>
      client.chunksOf({ id, address, zone, nodeId, capacityBytes: 0 });
    // Each node is in a zone of its own, of its own number.
    disks.set(zone.replace('zone', 'storage'), held.map(chunksOf));
  }
  const sum = async (some: Iterable<DiskChunks>) => {
    const usages = await Promise.all(Array.from(some, (disk) => disk.usage()));
    return usages.reduce((bytes, { liveBytes }) => bytes + liveBytes, 0);
  };
  return {
    async lose(name) {
      const bytes = await sum(disks.get(name) ?? []);
      disks.delete(name);
      await cluster.kill(name);
      await rm(join(dataDir, name), { recursive: true });
      return bytes;
    },
    storedBytes: () => sum([...disks.values()].flat()),
    close: () => client.close(),
  };
}

interface Moment {
  bytes: number;
  atMs: number;
}

async function untilMore(disks: WatchedDisks, than: number): Promise<Moment> {
  const endMs = performance.now() + BEGINS_WITHIN_MS;
  while (performance.now() < endMs) {
    const bytes = await disks.storedBytes();
    if (bytes > than) return { bytes, atMs: performance.now() };
    await sleep(200);
  }
  throw new Error(`no copy was made within ${BEGINS_WITHIN_MS / 1000} s`);
}

async function untilQuiet(disks: WatchedDisks): Promise<Moment> {
  let last: Moment = { bytes: 0, atMs: 0 };
  for (;;) {
    const bytes = await disks.storedBytes();
    if (bytes !== last.bytes) last = { bytes, atMs: performance.now() };
    else if (performance.now() - last.atMs > QUIET_MS) return last;
    await sleep(200);
  }
}

await main(program.parse().opts<Options>());
