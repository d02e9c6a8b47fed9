// Shared by the workers of home shards that check where chunks are (R32, R39, R40): the shards that they ask, the blobs
// that they may report on, and how missing copies become repair entries.

import type { ChunkId, Fence } from '../../ports/chunks.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { ChunkState, HomeDisks } from '../../ports/home-disks.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { DiskId } from '../../ports/placement.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import type { BlobId } from '../../types/names.ts';
import type { BlobRecord } from '../../types/records/rows.ts';
import { repairOfChunks } from '../../types/repair-entries.ts';
import { finishLeft } from './late-items.ts';
import { doneValue } from './shard-worker.ts';

export interface HomeShardDeps {
  metadata: MetadataPort;
  disks: HomeDisks;
  /** Those whose open primary is here. */
  shards(): readonly number[];
  /** Who orders copies and drops for a shard (R21). */
  fenceOf(shard: number): Fence;
  clock: ClockPort;
  log: Logger;
  telemetry: TelemetryPort;
}

/** A chunk that is not on just its owners. */
export interface MissingCopies extends ChunkId {
  /** Intact ones, or COPIES_UNKNOWN. */
  copies: number;
  holders: DiskId[];
}

/** The inspected chunks that lack copies. */
export function missingOf(ids: readonly ChunkId[], states: readonly ChunkState[]): MissingCopies[] {
  return ids.flatMap((id, at) => {
    const state = states[at];
    return state?.kind === 'incomplete' ? [{ ...id, copies: state.copies, holders: state.holders }] : [];
  });
}

/** Makes repair entries for copies that are missing by that map. */
export async function recordMissing(
  { metadata }: Pick<HomeShardDeps, 'metadata'>,
  { shard, missing, mapVersion }: { shard: number; missing: readonly MissingCopies[]; mapVersion: number },
): Promise<void> {
  const debts = [...Map.groupBy(missing, ({ blobId }) => blobId)].flatMap(([blobId, its]) => {
    const debt = repairOfChunks(its, mapVersion);
    return debt === undefined ? [] : [{ blobId, ...debt }];
  });
  if (debts.length === 0) return;
  const command = { debts, leavesBusy: true } as const;
  const { left = [] } = doneValue(await metadata.execute({ shard }, 'note-debts', command));
  const leftOut = debts.filter(({ blobId }) => left.includes(blobId));
  await finishLeft(leftOut, (debt) =>
    metadata.execute({ shard }, 'note-debts', { debts: [debt] }).then(doneValue),
  );
}

/** What the shard knows of the blobs of these chunks; `isUnconfirmed` (R23): what it does not know it may have lost. */
export async function findBlobs(
  { metadata }: Pick<HomeShardDeps, 'metadata'>,
  shard: number,
  ids: readonly ChunkId[],
): Promise<{ rows: ReadonlyMap<BlobId, BlobRecord | null>; isUnconfirmed: boolean }> {
  const blobIds = [...new Set(ids.map(({ blobId }) => blobId))];
  const { blobs, isUnconfirmed = false } = doneValue(
    await metadata.query({ shard }, 'get-blobs', { blobIds }),
  );
  return { rows: new Map(blobIds.map((blobId, at) => [blobId, blobs[at] ?? null])), isUnconfirmed };
}
