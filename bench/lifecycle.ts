// Lifecycle without HTTP, over RocksDB: keys that it examines and expires each second, what a bucket costs in which nothing is
// due, and how long PUTs beside it take. Run: npx node bench/lifecycle.ts [--keys N] [--share PERCENT]
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { rowKey } from '../src/metadata/engine/row-keys.ts';
import type { Shards } from '../src/metadata/engine/shards.ts';
import { createLifecycleWorker } from '../src/metadata/lifecycle/lifecycle-worker.ts';
import { currentRow } from '../src/metadata/schema/keyspace.ts';
import { metadataMachine } from '../src/metadata/state-machine.ts';
import { systemClock, systemRandom } from '../src/platform/system-clock.ts';
import type { KvPort } from '../src/ports/kv.ts';
import type { CommandName, CommandOf, OutcomeOf } from '../src/ports/metadata/port.ts';
import type { LifecycleRule } from '../src/types/lifecycle.ts';
import {
  type AccountId,
  type BucketId,
  type BucketName,
  makeBlobId,
  makeLinkId,
  NULL_VERSION,
  type ObjectKey,
} from '../src/types/names.ts';
import { packOriginals } from '../src/types/originals.ts';
import { encodeVersion } from '../src/types/records/version-record.ts';
import type { BlobUse, VersionRecord } from '../src/types/version.ts';
import { openShards } from './open-shards.ts';
import { quantity } from './quantity.ts';
import { percentile, timed } from './timing.ts';

const DAY = 24 * 3600 * 1000;
const BUCKET = 'b000000000000001' as BucketId;
const BESIDE = 'b000000000000002' as BucketId;
const OWNER = '000000000001' as AccountId;
const BATCH = 2000;
const LOOKS = 2000;
const WRITERS = 8;
const PUTS = 4000;
const MD5 = '0123456789abcdef'.repeat(2);
const kek = { by: 'master' as const, keyId: 'k1', wrapped: new Uint8Array(60) };

/** An object of 4 KiB whose data is in a chunk. */
function objectOf(modifiedAtMs: number): Omit<VersionRecord, 'versionId' | 'order' | 'isDeleteMarker'> {
  const sizeBytes = 4096;
  const use: BlobUse = {
    blobId: makeBlobId({ timeMs: modifiedAtMs, homeShard: 0, random: systemRandom.bytes(8) }),
    linkId: makeLinkId({ timeMs: modifiedAtMs, random: systemRandom.bytes(10) }),
    sizeBytes,
    storage: 'chunks',
    chunkSizeBytes: 1024 * 1024,
    wrappedDataKey: new Uint8Array(60),
  };
  return {
    sizeBytes,
    modifiedAtMs,
    etag: MD5,
    owner: OWNER,
    kek,
    sealedHeaders: new Uint8Array(60),
    originals: packOriginals({ sizeBytes, md5: MD5 }),
    manifest: { kind: 'direct', uses: [use], segments: [{ use: 0, offsetBytes: 0, sizeBytes }], parts: [] },
  };
}

/** Rows of objects that are a hundred days old, written past the shard. */
async function fill(kv: KvPort, keyCount: number): Promise<void> {
  const modifiedAtMs = Date.now() - 100 * DAY;
  for (let from = 0; from < keyCount; from += BATCH) {
    const rows = Array.from({ length: Math.min(BATCH, keyCount - from) }, (_, at) => {
      const { table, key } = currentRow(BUCKET, `folder/${String(from + at).padStart(9, '0')}` as ObjectKey);
      const version = { ...objectOf(modifiedAtMs), versionId: NULL_VERSION, order: 1, isDeleteMarker: false };
      return { column: 'rows' as const, key: rowKey(0, table, key), value: encodeVersion(version) };
    });
    await kv.commit(rows);
  }
}

interface World {
  shards: Shards;
  share: number;
}

async function execute<N extends CommandName>(
  { shards }: World,
  name: N,
  command: CommandOf<N>,
): Promise<OutcomeOf<N>> {
  const reply = await shards.execute({ shard: 0 }, name, command);
  if (reply.kind !== 'done') throw new Error(`${name}: ${reply.kind}`);
  return reply.value;
}

function workerOf({ shards, share }: World) {
  return createLifecycleWorker({
    metadata: shards,
    shards: () => [0],
    clock: systemClock,
    telemetry: { count() {}, observe() {}, gauge() {}, gaugeAll() {} },
    timeJumps: { mayRemoveByAge: () => true },
    lifecycleDayMs: DAY,
    lifecycleLookEveryMs: 60_000,
    lifecycleWorkShare: share,
  });
}

/** Until nothing is due, with the rests that the worker asks for. */
async function pass(world: World): Promise<void> {
  const worker = workerOf(world);
  for (;;) {
    const outcome = await worker.work(new AbortController().signal);
    const { due } = await dueOf(world);
    if (due.length === 0) return;
    if (outcome.state === 'idle') await systemClock.sleep(Math.min(outcome.idleMs, 1000));
  }
}

async function dueOf({ shards }: World) {
  const reply = await shards.query({ shard: 0 }, 'list-due-lifecycles', { limit: 1 });
  if (reply.kind !== 'done') throw new Error(reply.kind);
  return reply.value;
}

async function putRule(world: World, rule: Partial<LifecycleRule>): Promise<void> {
  const document = { rules: [{ id: 'rule', isEnabled: true, filter: {}, ...rule }] };
  await execute(world, 'set-bucket-config', { bucketId: BUCKET, kind: 'lifecycle', document });
}

async function measured(name: string, keyCount: number, work: () => Promise<void>): Promise<void> {
  const cpu = process.cpuUsage();
  const tookMs = await timed(work);
  const { user, system } = process.cpuUsage(cpu);
  const cpuUs = (user + system) / keyCount;
  console.log(`${name}: ${Math.round((1000 * keyCount) / tookMs)}/s, ${cpuUs.toFixed(1)} us CPU each`);
}

/** PUTs into another bucket of the shard, some at a time: their times, ms. */
async function putsBeside(world: World, isOver: (count: number) => boolean): Promise<number[]> {
  const times: number[] = [];
  let next = 0;
  const write = async () => {
    while (!isOver(times.length)) {
      const key = `k${next++}` as ObjectKey;
      const version = objectOf(Date.now());
      const { modifiedAtMs: _, ...given } = version;
      const [use] = version.manifest.kind === 'direct' ? version.manifest.uses : [];
      if (use === undefined) throw new Error('an object has data');
      const data = { births: [{ use }], links: [] };
      times.push(
        await timed(() => execute(world, 'commit-version', { bucketId: BESIDE, key, version: given, data })),
      );
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, write));
  return times;
}

function reportPuts(name: string, times: readonly number[]): void {
  const [p50, p99] = [50, 99].map((share) => percentile(times, share).toFixed(2));
  console.log(`PUTs ${name}: ${times.length}, p50 ${p50} ms, p99 ${p99} ms`);
}

async function run(folder: string, { keys, share }: { keys: number; share: number }): Promise<void> {
  const { kv, shards, close } = await openShards({ folder, machine: metadataMachine, shardCount: 1 });
  const world = { shards, share };
  for (const [bucketId, name] of [
    [BUCKET, 'bucket'],
    [BESIDE, 'beside'],
  ] as const)
    await execute(world, 'create-bucket', { bucketId, name: name as BucketName, owner: OWNER });
  await fill(kv, keys);
  await putRule(world, { expiration: { days: 3650 } });
  await measured('examined', keys, () => pass(world));
  const worker = workerOf(world);
  await measured('looks at the queue, nothing due', LOOKS, async () => {
    for (let count = 0; count < LOOKS; count++) await worker.work(new AbortController().signal);
  });
  reportPuts('alone', await putsBeside(world, (count) => count >= PUTS));
  await putRule(world, { expiration: { days: 3651 } });
  let isOver = false;
  const besideExamining = putsBeside(world, () => isOver);
  await pass(world);
  isOver = true;
  reportPuts('beside examining', await besideExamining);
  // A tenth of the keys: those that begin with this digit, where it is the first that is not 0.
  const tenth = `folder/${'5'.padStart(10 - String(keys - 1).length, '0')}`;
  const isOfTenth = (at: number) => `folder/${String(at).padStart(9, '0')}`.startsWith(tenth);
  const leftCount = Array.from({ length: keys }, (_, at) => at).filter((at) => !isOfTenth(at)).length;
  await putRule(world, { expiration: { days: 1 }, filter: { prefix: tenth } });
  isOver = false;
  const beside = putsBeside(world, () => isOver);
  await pass(world);
  isOver = true;
  reportPuts('beside expiring', await beside);
  await putRule(world, { expiration: { days: 1 } });
  await measured('expired', leftCount, () => pass(world));
  await close();
}

const program = new Command('lifecycle')
  .description('how fast lifecycle examines and expires, and what clients beside it notice')
  .option(
    '--keys <n>',
    'in the bucket',
    quantity({ kind: 'integer', min: 1000, max: 100_000_000 }),
    1_000_000,
  )
  .option('--share <percent>', 'lifecycle.workShare', quantity({ kind: 'integer', min: 1, max: 100 }), 50);
const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
try {
  await run(folder, program.parse().opts());
} finally {
  await rm(folder, { recursive: true });
}
