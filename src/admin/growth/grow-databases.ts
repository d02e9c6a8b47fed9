// The databases of a single node for `holdfast cluster grow`: checked, then marked as those of a metadata node and of a
// storage node by identity rows. No process may have them open.
import { lstat, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { toHex } from '../../base/bytes/bytes.ts';
import { Refusal } from '../../base/refusal.ts';
import { keepDiskIdentity, readDiskIdentity } from '../../chunks/disk/disk-identity.ts';
import { ClockSteps } from '../../metadata/engine/clock-steps.ts';
import {
  firstVoterRows,
  readSingleVoterShard,
  type SingleVoterShard,
} from '../../metadata/engine/single-voter-rows.ts';
import { readDiskSpace } from '../../platform/disk/disk-space.ts';
import { createLocalCoordinator } from '../../platform/local-coordinator.ts';
import { KvOpenError, openRocksdbKv } from '../../platform/rocksdb/rocksdb-kv.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
import { openMetadataDatabase } from '../metadata-folder.ts';
import { databaseIdRow, readDatabaseId } from '../node-folder.ts';
import { CHUNK_COLUMNS, CHUNKS_FOLDER, METADATA_COLUMNS, METADATA_FOLDER } from '../open-databases.ts';
import { findDatabase } from './grow-folder.ts';
import type { GrowPlan } from './grow-plan.ts';

const ID_BYTES = 16;
/** Rows of the database itself, not of its shards. */
const OWN_ROWS = { column: 'rows', gte: Uint8Array.of(0xff, 0xff), lt: Uint8Array.of(0xff, 0xff, 0xff) };

/**
 * The facts for the plan: for each shard an epoch above all in which it has acted. Throws {@link Refusal} when the folder
 * is not complete.
 */
export async function takeStock(
  folder: string,
  { shardCount, clock }: { shardCount: number; clock: ClockPort },
): Promise<{ shards: GrowPlan['shards']; capacityBytes: number }> {
  await refuseOtherFileSystems(folder);
  await using closing = new AsyncDisposableStack();
  const chunkKv = await openDatabase(folder, CHUNKS_FOLDER, (path) =>
    openRocksdbKv({ folder: path, columns: CHUNK_COLUMNS }),
  );
  closing.defer(() => chunkKv.close());
  const identity = await readDiskIdentity(chunkKv);
  if (identity !== undefined)
    throw new Refusal(`the chunks in ${folder} are a disk of cluster ${identity.clusterId} already`);
  const kv = await openDatabase(folder, METADATA_FOLDER, (path) =>
    openRocksdbKv({ folder: path, columns: METADATA_COLUMNS }),
  );
  closing.defer(() => kv.close());
  if ((await readDatabaseId(kv)) !== undefined)
    throw new Refusal(`the metadata in ${folder} is that of a cluster's node already`);
  if ((await readSingleVoterShard(kv, shardCount)) !== undefined)
    throw new Refusal(`the metadata in ${folder} has more shards than format.json says`);
  const coordinator = createLocalCoordinator(kv);
  const shards: GrowPlan['shards'] = [];
  for (let shard = 0; shard < shardCount; shard++) {
    const found = await readSingleVoterShard(kv, shard);
    if (found === undefined)
      throw new Refusal(
        `shard ${shard} in ${folder} was never opened: start the single node, stop it, and repeat`,
      );
    refuseTimeJump(found, clock);
    shards.push(await coordinator.acquire(shard));
  }
  const { totalBytes } = await readDiskSpace(folder);
  return { shards, capacityBytes: totalBytes };
}

/** Mounts and links cannot be renamed, and that would be noticed too late. */
async function refuseOtherFileSystems(folder: string): Promise<void> {
  const { dev } = await stat(folder);
  for (const name of [METADATA_FOLDER, CHUNKS_FOLDER]) {
    const path = join(folder, name);
    const found = await lstat(path).catch(() => undefined);
    if (found !== undefined && !(found.isDirectory() && found.dev === dev))
      throw new Refusal(
        `${path} is a link or a file system of its own and cannot be renamed: move what is in it into a folder of that name on the file system of ${folder}`,
      );
  }
}

/** R19: a clock that is too far ahead needs the operator's confirmation, which only the single node takes. */
function refuseTimeJump(
  { timeJump, applied }: Pick<SingleVoterShard, 'timeJump' | 'applied'>,
  clock: ClockPort,
): void {
  const steps = new ClockSteps();
  steps.restore(timeJump, applied.timeMs);
  const followed = steps.add(Math.max(0, clock.wallMs() - applied.timeMs));
  if (timeJump.jumpMs === 0 && followed.kind !== 'jump') return;
  throw new Refusal(
    'the clock is more than 7 days ahead of what is stored: start the single node, say `holdfast clock accept` if the time is right, stop it, and repeat',
  );
}

/** Durable when it resolves; does nothing if it was done before. */
export async function adoptDatabases(folder: string, plan: GrowPlan): Promise<void> {
  await using closing = new AsyncDisposableStack();
  const kv = await openDatabase(folder, METADATA_FOLDER, openMetadataDatabase);
  closing.defer(() => kv.close());
  await adoptMetadata(kv, plan);
  const chunkKv = await openDatabase(folder, CHUNKS_FOLDER, (path) =>
    openRocksdbKv({ folder: path, columns: CHUNK_COLUMNS }),
  );
  closing.defer(() => chunkKv.close());
  if ((await readDiskIdentity(chunkKv)) !== undefined) return;
  const { clusterId } = plan.identity;
  await keepDiskIdentity(chunkKv, { clusterId, diskId: plan.disk.id, mapVersion: 0 });
}

/** In one batch: a database is either a single node's or a metadata node's. */
async function adoptMetadata(kv: KvPort, { identity, voter, shards }: GrowPlan): Promise<void> {
  if ((await readDatabaseId(kv)) === voter.replicaId) return;
  const { clusterId, shardCount } = identity;
  const rows: KvPut[] = [];
  for (const { key } of await kv.range({ ...OWN_ROWS, limit: shardCount + 16, keysOnly: true }))
    rows.push({ column: 'rows', key, value: null });
  for (const [shard, { incarnation, epoch }] of shards.entries()) {
    const found = await readSingleVoterShard(kv, shard);
    if (found === undefined) throw new Refusal(`shard ${shard} is not there any more`);
    const { replicaId } = voter;
    const replica = { clusterId, replicaId, incarnation, epoch, applied: found.applied };
    rows.push(...firstVoterRows(shard, replica));
  }
  rows.push(databaseIdRow(voter.replicaId));
  await kv.commit(rows);
}

async function openDatabase(
  folder: string,
  name: typeof METADATA_FOLDER | typeof CHUNKS_FOLDER,
  open: (path: string) => Promise<KvPort>,
): Promise<KvPort> {
  const path = await findDatabase(folder, name);
  if (path === undefined) throw new Refusal(`${folder} is not whole: its database ${name} is not there`);
  try {
    return await open(path);
  } catch (error) {
    if (!(error instanceof KvOpenError)) throw error;
    throw new Refusal(`the database ${path} cannot be opened: ${error.message}`);
  }
}

export const newId = (random: RandomPort) => toHex(random.bytes(ID_BYTES));
