// Audits all chunks of a shard (R39): after each change of owners, and each so many days. A chunk that is not on just its
// owners gets a repair entry. Progress is a row of the shard, so that another primary continues there. Disks that were away
// are inspected separately when they return.

import type { ChunkId } from '../../ports/chunks.ts';
import type { CommandOf, ResultOf } from '../../ports/metadata/port.ts';
import type { DiskId } from '../../ports/placement.ts';
import type { Worker } from '../../ports/worker.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BlobId } from '../../types/names.ts';
import type { AuditRecord } from '../../types/records/rows.ts';
import { chunkCount } from '../../types/version.ts';
import { type HomeShardDeps, missingOf, recordMissing } from '../workers/home-shard.ts';
import { createShardWorker, doneValue } from '../workers/shard-worker.ts';

const IDLE_MS = 1000;
/** From one look at disks that are back to the next: one that fails for being busy is not to get busier by it. */
const REVISIT_EVERY_MS = 2 * 60_000;

export interface BlobAuditDeps extends Omit<HomeShardDeps, 'log'> {
  /** From the beginning of one to that of the next, where nothing else asks for it. */
  auditEveryMs: number;
}

/** A look at what some disks have, since they are back. Kept in memory: the whole audit comes in any case. */
interface Revisit {
  disks: Set<DiskId>;
  after?: BlobId;
}

interface ShardTurn {
  /** How often each disk was back, when it was last looked at for that. */
  seen: Map<DiskId, number>;
  revisit?: Revisit;
  nextRevisitAtMs: number;
}

export function createBlobAudit(deps: BlobAuditDeps): Worker {
  const { metadata, disks } = deps;
  const turns = new Map<number, ShardTurn>();

  async function note(shard: number, command: CommandOf<'note-audit'>): Promise<true> {
    // `gone`: another primary is at work. It is looked at anew.
    doneValue(await metadata.execute({ shard }, 'note-audit', command));
    return true;
  }

  async function goOn(shard: number, audit: AuditRecord, signal: AbortSignal): Promise<boolean> {
    const { mapVersion, beganAtMs, after, ended } = audit;
    // Asked for by a change of owners: nobody else would remember what is passed over here (R39).
    const countsSilentAsMissing = ended === undefined || ended.mapVersion < disks.auditFrom();
    const next = await lookAtPage(deps, { shard, after, countsSilentAsMissing, signal });
    if (next === 'later') return false;
    if (next === 'end') return note(shard, { step: 'end', mapVersion, beganAtMs });
    return note(shard, { step: 'reach', mapVersion, beganAtMs, after: next });
  }

  async function revisit(shard: number, signal: AbortSignal): Promise<boolean> {
    const turn: ShardTurn = turns.get(shard) ?? { seen: new Map(), nextRevisitAtMs: 0 };
    turns.set(shard, turn);
    if (turn.revisit === undefined) {
      const nowMs = deps.clock.monotonicMs();
      if (nowMs < turn.nextRevisitAtMs) return false;
      const back = disks.disks().filter((disk) => disks.returnsOf(disk) > (turn.seen.get(disk) ?? 0));
      if (back.length === 0) return false;
      for (const disk of back) turn.seen.set(disk, disks.returnsOf(disk));
      turn.revisit = { disks: new Set(back) };
      turn.nextRevisitAtMs = nowMs + REVISIT_EVERY_MS;
    }
    const { disks: of, after } = turn.revisit;
    const next = await lookAtPage(deps, { shard, after, of, signal });
    if (next === 'later') return false;
    if (next === 'end') delete turn.revisit;
    else turn.revisit.after = next;
    return true;
  }

  return createShardWorker({
    name: 'audit-blobs',
    shards: deps.shards,
    idleMs: IDLE_MS,
    async unit(shard, signal) {
      const mapVersion = disks.mapVersion();
      if (mapVersion === 0) return false;
      const reply = await metadata.query({ shard }, 'get-audit', {});
      const { audit } = doneValue(reply);
      const nowMs = reply.kind === 'done' ? reply.timeMs : 0;
      if (isDue(deps, audit, nowMs)) return note(shard, { step: 'begin', mapVersion });
      // By a map from before it began it would pass over what it is for.
      if (audit?.isUnderWay && mapVersion < audit.mapVersion) return false;
      return audit?.isUnderWay ? goOn(shard, audit, signal) : revisit(shard, signal);
    },
  });
}

function isDue({ disks, auditEveryMs }: BlobAuditDeps, audit: AuditRecord | null, nowMs: number): boolean {
  if (audit === null || audit.mapVersion < disks.auditFrom()) return true;
  return !audit.isUnderWay && nowMs - audit.beganAtMs >= auditEveryMs;
}

/** Behind which blob the next page begins. `later`: the map, the epoch or the shard is not to be relied on now. */
async function lookAtPage(
  deps: BlobAuditDeps,
  page: {
    shard: number;
    after: BlobId | undefined;
    of?: ReadonlySet<DiskId>;
    countsSilentAsMissing?: boolean;
    signal: AbortSignal;
  },
): Promise<BlobId | 'end' | 'later'> {
  const { metadata, disks, telemetry } = deps;
  const { shard, after, of, countsSilentAsMissing, signal } = page;
  const query = { limit: LIMITS.repairPageMax, ...(after && { after }) };
  const { blobs, next } = doneValue(await metadata.query({ shard }, 'list-blobs', query));
  const fence = deps.fenceOf(shard);
  for (const ids of idBatches(blobs)) {
    const how = { fence, ...(of && { of }), ...(countsSilentAsMissing && { countsSilentAsMissing }), signal };
    const seen = await disks.look(ids, how);
    if (seen === undefined) return 'later';
    // At once: all chunks of large blobs together would take hundreds of MiB.
    const { mapVersion, states } = seen;
    await recordMissing(deps, { shard, missing: missingOf(ids, states), mapVersion });
    telemetry.count('holdfast_audited_chunks_total', {}, ids.length);
  }
  return next ?? 'end';
}

function* idBatches(blobs: ResultOf<'list-blobs'>['blobs']): Generator<ChunkId[]> {
  let batch: ChunkId[] = [];
  for (const { blobId, ...layout } of blobs) {
    const count = chunkCount({ ...layout, storage: 'chunks' });
    for (let index = 0; index < count; index++) {
      batch.push({ blobId, index });
      if (batch.length < LIMITS.chunkBatchIdsMax) continue;
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}
