// Throughput of the committer and of the shard engine on it, without HTTP: `npx node bench/commit.ts [--seconds N]`.
// Prints one line per measurement, with machine and commit, so that two runs can be laid side by side.
import { execFileSync } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createShards } from '../src/metadata/engine/shards.ts';
import { createLocalCoordinator } from '../src/platform/local-coordinator.ts';
import { openRocksdbKv } from '../src/platform/rocksdb/rocksdb-kv.ts';
import { systemClock, systemRandom } from '../src/platform/system-clock.ts';
import type { KvPort } from '../src/ports/kv.ts';
import { noteMachine } from '../tests/scenarios/note-machine.ts';

const MiB = 1024 * 1024;
const { values: flags } = parseArgs({ options: { seconds: { type: 'string', default: '3' } } });
const durationMs = Number(flags.seconds) * 1000;

interface Rate {
  perSecond: number;
  /** CPU of all threads, us for each operation. */
  cpuUs: number;
  /** Busy time of the calling thread, us for each operation. */
  loopUs: number;
}

/** Runs `work` in `inFlight` loops until the time is over. */
async function measure(inFlight: number, work: (index: number) => Promise<unknown>): Promise<Rate> {
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  const loop = performance.eventLoopUtilization();
  let count = 0;
  let next = 0;
  const run = async () => {
    while (performance.now() - startedAt < durationMs) {
      await work(next++);
      count++;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, run));
  const used = process.cpuUsage(cpu);
  return {
    perSecond: (count * 1000) / (performance.now() - startedAt),
    cpuUs: (used.user + used.system) / count,
    loopUs: (performance.eventLoopUtilization(loop).active * 1000) / count,
  };
}

function report(name: string, { perSecond, cpuUs, loopUs }: Rate, sizeBytes = 0): void {
  const throughput = sizeBytes === 0 ? '' : `, ${((perSecond * sizeBytes) / MiB).toFixed(0)} MiB/s`;
  console.log(
    `${name}: ${perSecond.toFixed(0)}/s${throughput}, ${cpuUs.toFixed(0)} us CPU, ${loopUs.toFixed(0)} us loop`,
  );
}

function keyOf(index: number): Uint8Array {
  const key = Buffer.alloc(16);
  key.writeDoubleBE(index, 8);
  return key;
}

async function measureRows(folder: string): Promise<void> {
  const kv = await openRocksdbKv({ folder, columns: { rows: { reads: 'sync', content: 'rows' } } });
  const value = randomFillSync(Buffer.alloc(1024));
  let written = 0;
  for (const inFlight of [1, 16, 64]) {
    const commit = () => kv.commit([{ column: 'rows', key: keyOf(written++), value }]);
    report(`commit 1 KiB, ${inFlight} in flight`, await measure(inFlight, commit));
  }
  const read = (index: number) => kv.getMany('rows', [keyOf(index % written), keyOf((index * 7) % written)]);
  report('read 2 rows', await measure(16, read));
  await kv.close();
}

async function measureChunks(folder: string): Promise<void> {
  const buffers: ArrayBuffer[] = [];
  const columns = { data: { reads: 'async', content: 'ciphertext' } } as const;
  const open = () => openRocksdbKv({ folder, columns, onReleased: (buffer) => buffers.push(buffer) });
  const kv = await open();
  let written = 0;
  const plain = randomFillSync(new Uint8Array(MiB));
  for (const inFlight of [1, 4, 8]) {
    const commit = () => {
      const value = new Uint8Array(buffers.pop() ?? new ArrayBuffer(MiB));
      value.set(plain);
      return kv.commit([{ column: 'data', key: keyOf(written++), value }]);
    };
    report(`commit 1 MiB, ${inFlight} in flight`, await measure(inFlight, commit), MiB);
  }
  const read = (index: number) => kv.getMany('data', [keyOf((index * 7) % written)]);
  report('read 1 MiB, 4 in flight', await measure(4, read), MiB);
  await kv.close();
  const startedAt = performance.now();
  await (await open()).close();
  console.log(`re-open after ${written} MiB: ${(performance.now() - startedAt).toFixed(0)} ms`);
}

async function measureShards(folder: string): Promise<void> {
  const kv: KvPort = await openRocksdbKv({
    folder,
    columns: { rows: { reads: 'sync', content: 'rows' }, bodies: { reads: 'sync', content: 'ciphertext' } },
  });
  const shards = await createShards({
    kv,
    machine: noteMachine,
    shardCount: 64,
    clock: systemClock,
    random: systemRandom,
    coordinator: createLocalCoordinator(kv),
    onFatal: (error) => {
      throw error;
    },
  });
  const text = 'x'.repeat(1024);
  for (const inFlight of [1, 16, 64]) {
    const write = (index: number) => {
      const command = { bucketId: 'b', key: `key ${index % 50_000}`, text };
      return shards.execute({ shard: index % 64 }, 'write-note' as never, command as never);
    };
    report(`command with 5 to 6 rows, ${inFlight} in flight`, await measure(inFlight, write));
  }
  await shards.close();
  await kv.close();
}

const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
console.log(
  `${cpus()[0]?.model}, ${availableParallelism()} cores, Node ${process.version}, commit ${commit}`,
);
const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
try {
  await measureRows(join(folder, 'rows'));
  await measureChunks(join(folder, 'chunks'));
  await measureShards(join(folder, 'shards'));
} finally {
  await rm(folder, { recursive: true });
}
