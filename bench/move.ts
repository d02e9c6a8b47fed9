// Renames without HTTP: `npx node bench/move.ts [--keys N] [--versions N]`. A prefix of N objects of 1 KiB, each with so many
// versions, is renamed by its job, and objects one by one, on one shard over RocksDB. Prints keys for each second.
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { must } from '../src/base/assert.ts';
import type { Shards } from '../src/metadata/engine/shards.ts';
import { driveMove } from '../src/metadata/moves/drive-move.ts';
import { metadataMachine } from '../src/metadata/state-machine.ts';
import { systemClock, systemRandom } from '../src/platform/system-clock.ts';
import type { CommandName, CommandOf, OutcomeOf } from '../src/ports/metadata/port.ts';
import {
  type AccountId,
  type BucketId,
  type BucketName,
  makeBlobId,
  makeLinkId,
  type ObjectKey,
} from '../src/types/names.ts';
import { packOriginals } from '../src/types/originals.ts';
import { openShards } from './open-shards.ts';

const { values: flags } = parseArgs({
  options: { keys: { type: 'string', default: '100000' }, versions: { type: 'string', default: '1' } },
});
const keyCount = Number(flags.keys);
const versionCount = Number(flags.versions);
const IN_FLIGHT = 64;
const BODY_BYTES = 1024;
const SINGLE_COUNT = 20_000;

const home = { shard: 0 };
const bucketId = 'b000000000000001' as BucketId;
const owner = '000000000001' as AccountId;
const keyAt = (index: number) => `from/${String(index).padStart(9, '0')}` as ObjectKey;

async function execute<N extends CommandName>(
  shards: Shards,
  name: N,
  command: CommandOf<N>,
): Promise<OutcomeOf<N>> {
  const reply = await shards.execute(home, name, command);
  if (reply.kind !== 'done') throw new Error(`${name}: ${reply.kind}`);
  return reply.value;
}

/** An inline object as a small PUT commits it. */
async function putObject(shards: Shards, key: ObjectKey): Promise<void> {
  const timeMs = systemClock.wallMs();
  const use = {
    blobId: makeBlobId({ timeMs, homeShard: 0, random: systemRandom.bytes(8) }),
    linkId: makeLinkId({ timeMs, random: systemRandom.bytes(10) }),
    sizeBytes: BODY_BYTES,
    storage: 'inline' as const,
    chunkSizeBytes: 1024 * 1024,
    wrappedDataKey: systemRandom.bytes(60),
  };
  const md5 = Buffer.from(systemRandom.bytes(16)).toString('hex');
  await execute(shards, 'commit-version', {
    bucketId,
    key,
    version: {
      sizeBytes: BODY_BYTES,
      etag: md5,
      owner,
      kek: { by: 'master', keyId: 'k1', wrapped: systemRandom.bytes(60) },
      sealedHeaders: systemRandom.bytes(60),
      originals: packOriginals({ sizeBytes: BODY_BYTES, md5 }),
      manifest: {
        kind: 'direct',
        uses: [use],
        segments: [{ use: 0, offsetBytes: 0, sizeBytes: BODY_BYTES }],
        parts: [],
      },
    },
    data: { births: [{ use, body: systemRandom.bytes(BODY_BYTES + 28) }], links: [] },
  });
}

/** Runs `work` for each index, so many at once; the seconds that it took. */
async function inFlight(count: number, work: (index: number) => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  let next = 0;
  const run = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, run));
  return (performance.now() - startedAt) / 1000;
}

async function movePrefix(shards: Shards, from: string, to: string): Promise<void> {
  const driver = 'bench';
  const begun = await execute(shards, 'begin-move', { bucketId, from, to, overwrites: false, driver });
  if (begun.kind !== 'begun') throw new Error(begun.kind);
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  const own = process.threadCpuUsage();
  let movedCount = 0;
  let stepCount = 0;
  const calls = {
    findMoves: async (query: Parameters<typeof shards.query<'find-moves'>>[2]) => {
      const reply = await shards.query(home, 'find-moves', query);
      if (reply.kind !== 'done') throw new Error(reply.kind);
      return reply.value;
    },
    step: (command: CommandOf<'step-move'>) => execute(shards, 'step-move', command),
    stepKey: (command: CommandOf<'step-key-move'>) => execute(shards, 'step-key-move', command),
    findJob: async () => undefined,
    driver,
    pause: async () => false,
  };
  for await (const { moved } of driveMove(calls, begun.job)) {
    stepCount++;
    for (const { result } of moved) if (Array.isArray(result)) movedCount++;
  }
  const seconds = (performance.now() - startedAt) / 1000;
  const used = process.cpuUsage(cpu);
  const ownUsed = process.threadCpuUsage(own);
  const us = (all: number) => (all / movedCount).toFixed(1);
  console.log(
    `prefix of ${movedCount} keys: ${(movedCount / seconds).toFixed(0)} keys/s in ${stepCount} steps, ` +
      `${us(used.user + used.system)} us CPU for each, ${us(ownUsed.user + ownUsed.system)} us of them on the shard's thread`,
  );
}

const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
console.log(
  `${cpus()[0]?.model}, ${availableParallelism()} cores, Node ${process.version}, commit ${commit}`,
);
const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
try {
  const { shards, close } = await openShards({ folder, machine: metadataMachine, shardCount: 1 });
  await execute(shards, 'create-bucket', { bucketId, name: 'bench' as BucketName, owner });
  if (versionCount > 1)
    await execute(shards, 'set-bucket-config', {
      bucketId,
      kind: 'versioning',
      document: { status: 'enabled' },
    });
  const putCount = keyCount * versionCount;
  const putSeconds = await inFlight(putCount, (index) => putObject(shards, keyAt(index % keyCount)));
  console.log(`PUT of ${putCount} objects: ${(putCount / putSeconds).toFixed(0)} /s`);
  for (const [from, to] of [
    ['from/', 'to/'],
    ['to/', 'to/to/'],
    ['to/to/', 'x/'],
    ['x/', 'y/'],
    ['y/', 'from/'],
  ] as const) {
    await movePrefix(shards, from, to);
  }
  const count = Math.min(SINGLE_COUNT, keyCount);
  const seconds = await inFlight(count, async (index) => {
    const from = keyAt(index);
    const move = { from, to: `single/${from}` };
    const { kind } = await execute(shards, 'move-key', { bucketId, move, overwrites: false });
    must(kind === 'moved-key' || undefined, 'it moves');
  });
  console.log(`MOVE of ${count} objects, ${IN_FLIGHT} in flight: ${(count / seconds).toFixed(0)} /s`);
  await close();
} finally {
  await rm(folder, { recursive: true });
}
