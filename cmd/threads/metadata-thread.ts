// A metadata thread of a single node: some of the shards, over the database that the main thread has opened, with a committer of
// its own. Gateway threads ask it directly, background work from the main thread. Wiring only; metadata-threads.ts starts it.
import { type MessagePort, workerData } from 'node:worker_threads';
import { METADATA_COLUMNS, measureCommits } from '../../src/admin/open-databases.ts';
import { must } from '../../src/base/assert.ts';
import { createDiskReserve, shareAdmittedBytes } from '../../src/chunks/disk/disk-reserve.ts';
import { watchIdentityCommands } from '../../src/coordination/watch-identity-commands.ts';
import { cacheRows } from '../../src/metadata/engine/cached-rows.ts';
import { readDiskSpace } from '../../src/platform/disk/disk-space.ts';
import { attachRocksdbKv } from '../../src/platform/rocksdb/rocksdb-kv.ts';
import { serveMetadata } from '../../src/platform/threads/metadata-line.ts';
import { remoteCalls, serveCalls } from '../../src/platform/threads/named-calls.ts';
import { openShards } from '../open-shards.ts';
import {
  SHARDS_MAIN_CALLS,
  type ShardsCalls,
  type ShardsMainCalls,
  type ShardsStart,
} from './thread-calls.ts';
import { openLine, openThreadContext } from './thread-entry.ts';

/** With what a metadata thread is started, beside what `open` brings. */
export interface MetadataThreadData {
  readonly number: number;
  /** Of the metadata database. */
  readonly handle: bigint;
  /** Of shareAdmittedBytes. */
  readonly admitted: SharedArrayBuffer;
  /** Lines to the gateway threads. */
  readonly gatewayPorts: readonly MessagePort[];
}

const data = workerData as MetadataThreadData;

const line = openLine();
serveCalls(line, {
  async open(start: ShardsStart) {
    const { status, calls } = await openThread(start);
    serveCalls(line, calls);
    return status;
  },
});

async function openThread({
  config,
  folder,
  shardCount,
  own,
  threads,
}: ShardsStart): Promise<{ status: ReturnType<Opened['status']>; calls: Omit<ShardsCalls, 'open'> }> {
  const main = remoteCalls<ShardsMainCalls>(line, SHARDS_MAIN_CALLS);
  const threadContext = openThreadContext(line, { config, thread: `metadata-${data.number}` });
  const { log, telemetry, clock, loop, closing } = threadContext;
  const database = {
    handle: data.handle,
    columns: METADATA_COLUMNS,
    onGroup: measureCommits(telemetry, 'metadata'),
  };
  const kv = cacheRows(await attachRocksdbKv(database), 'rows');
  closing.defer(() => kv.close());
  const admitted = shareAdmittedBytes(data.admitted);
  const reserve = createDiskReserve({ readSpace: () => readDiskSpace(folder), clock, log, admitted });
  const onFatal = (error: Error) => void main.storeFailed(error.message);
  const parts = { kv, reserve, shardCount, own, threads, onFatal };
  const shards = await openShards(threadContext, parts);
  closing.defer(() => shards.close());
  const metadata = watchIdentityCommands(shards.metadata, (changes) => main.takeIdentities(changes));
  const stopping = new AbortController();
  const workerOf = (name: string) =>
    must(
      shards.workers.find((worker) => worker.name === name),
      `no worker ${name}`,
    );
  serveMetadata(line, metadata);
  for (const port of data.gatewayPorts) serveMetadata(openLine(port), metadata);
  return {
    status: shards.status(),
    calls: {
      pulse: () => ({ loopHeldMs: loop.heldMs() }),
      work: (name) => workerOf(name).work(stopping.signal),
      turnOver: () => shards.turnOver(stopping.signal),
      async acceptTimeJump(atMostMs) {
        const accepted = await shards.timeJumps.accept(atMostMs);
        return { accepted, status: shards.status() };
      },
      readFigures: () => telemetry.figures(),
      async close() {
        stopping.abort();
        await closing.disposeAsync();
        log.flush();
      },
    },
  };
}

type Opened = Awaited<ReturnType<typeof openShards>>;
