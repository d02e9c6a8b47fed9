// What the workers of home shards that look after where chunks lie have in common (R32, R39, R40): whom they ask, which
// blobs they may speak of, and how what they find owed becomes debts.

import type { ChunkId, Fence } from '../../ports/chunks.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { ChunkState, HomeDisks } from '../../ports/home-disks.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { DiskId } from '../../ports/placement.ts';
import type { Logger, TelemetryPort } from '../../ports/telemetry.ts';
import { debtOfChunks } from '../../types/debts.ts';
import type { BlobId } from '../../types/names.ts';
import type { BlobRecord } from '../../types/records/rows.ts';
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
export interface OwedChunk extends ChunkId {
  /** Intact ones, or COPIES_UNKNOWN. */
  copies: number;
  holders: DiskId[];
}

/** Of chunks that were looked at, those that are owed. */
export function owedOf(ids: readonly ChunkId[], states: readonly ChunkState[]): OwedChunk[] {
  return ids.flatMap((id, at) => {
    const state = states[at];
    return state?.kind === 'incomplete' ? [{ ...id, copies: state.copies, holders: state.holders }] : [];
  });
}

/** Makes debts of what is owed by that map. */
export async function noteOwed(
  { metadata }: Pick<HomeShardDeps, 'metadata'>,
  { shard, owed, mapVersion }: { shard: number; owed: readonly OwedChunk[]; mapVersion: number },
): Promise<void> {
  const debts = [...Map.groupBy(owed, ({ blobId }) => blobId)].flatMap(([blobId, its]) => {
    const debt = debtOfChunks(its, mapVersion);
    return debt === undefined ? [] : [{ blobId, ...debt }];
  });
  if (debts.length > 0) doneValue(await metadata.execute({ shard }, 'note-debts', { debts }));
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
