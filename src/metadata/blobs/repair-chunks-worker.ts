// Repairs the chunks of a shard by its repair entries (R39): fewest copies first, a few chunks at a time, so that shards
// take turns. A chunk that cannot be repaired now, because a disk is away or full, is skipped and tried again later; it
// delays nothing else. Nothing is ever given up: a chunk that no disk has keeps its repair entry, and is an alarm.

import type { Fence } from '../../ports/chunks.ts';
import type { ChunkState, ChunkToRepair } from '../../ports/home-disks.ts';
import type { ResultOf } from '../../ports/metadata/port.ts';
import type { RepairQueuePlace } from '../../ports/metadata/repair.ts';
import type { Worker } from '../../ports/worker.ts';
import { LIMITS } from '../../types/limits.ts';
import { isSameRepair, type RepairEntry, rangedChunks, repairOfChunks } from '../../types/repair-entries.ts';
import { chunkCount } from '../../types/version.ts';
import type { HomeShardDeps } from '../workers/home-shard.ts';
import { finishLeft } from '../workers/late-items.ts';
import { createShardWorker, doneValue } from '../workers/shard-worker.ts';

const IDLE_MS = 1000;
/** However far a pass has come, what has fewest copies is looked for so often. */
const HEAD_EVERY_MS = 10_000;
/** A pass that repaired nothing is followed by a rest of this many times its length. */
const REST_SHARE = 4;
const REST_MAX_MS = 30_000;
/** After a pass that found entries and repaired nothing. */
const REST_MIN_MS = 5000;
/** Lost chunks that are logged one by one: so many of a shard, and again after so long. */
const LOST_LOGGED_MAX = 10;
const LOST_LOG_EVERY_MS = 10 * 60_000;

type ListedRepair = ResultOf<'list-debts'>['debts'][number];

/** One way through the queue of a shard. */
interface Pass {
  after?: RepairQueuePlace;
  beganAtMs: number;
  missingCount: number;
  repairedCount: number;
  lostCount: number;
  /** Lost chunks are logged one by one. */
  logsLost: boolean;
}

interface ShardTurn {
  pass: Pass | undefined;
  headAtMs: number;
  /** Its last turn was for what has fewest copies: the next one is not, however long turns take. */
  wasHead: boolean;
  restUntilMs: number;
  /** Chunks that the last whole pass found nowhere. */
  lostCount: number;
  /** When they were last logged one by one, and how many there were. */
  lostLogged?: { atMs: number; count: number };
}

export function createRepairWorker(deps: HomeShardDeps): Worker {
  const { disks, clock } = deps;
  const turns = new Map<number, ShardTurn>();

  const worker = createShardWorker({
    name: 'repair-chunks',
    shards: deps.shards,
    idleMs: IDLE_MS,
    async unit(shard, signal) {
      if (disks.mapVersion() === 0) return false;
      const turn = turns.get(shard) ?? newTurn();
      turns.set(shard, turn);
      const nowMs = clock.monotonicMs();
      if (turn.pass === undefined) {
        if (nowMs < turn.restUntilMs) return false;
        const logsLost = isTimeToLog(turn, nowMs);
        turn.pass = { beganAtMs: nowMs, missingCount: 0, repairedCount: 0, lostCount: 0, logsLost };
        turn.headAtMs = nowMs;
      }
      turn.wasHead = !turn.wasHead && nowMs - turn.headAtMs >= HEAD_EVERY_MS;
      if (turn.wasHead) {
        turn.headAtMs = nowMs;
        const head = { ...turn.pass, logsLost: false };
        delete head.after;
        return (await repairSome(deps, { shard, pass: head, signal })) !== 'later';
      }
      const found = await repairSome(deps, { shard, pass: turn.pass, signal });
      if (found === 'later') return false;
      if (found === 'more') return true;
      return endPass(turn, turn.pass);
    },
  });
  return {
    ...worker,
    async work(signal) {
      try {
        return await worker.work(signal);
      } finally {
        // Also when no shard is led any more: the new primary reports lost chunks.
        const led = new Set(deps.shards());
        for (const shard of turns.keys()) if (!led.has(shard)) turns.delete(shard);
        reportLost();
      }
    },
  };

  function reportLost(): void {
    const lostCount = [...turns.values()].reduce((sum, { lostCount: some }) => sum + some, 0);
    deps.telemetry.gauge('holdfast_lost_chunks', lostCount);
  }

  /** True when something was repaired: then what comes next in the queue may be repairable now. */
  function endPass(turn: ShardTurn, pass: Pass): boolean {
    turn.pass = undefined;
    turn.lostCount = pass.lostCount;
    // Before the turns of other shards, which may take long.
    reportLost();
    const nowMs = clock.monotonicMs();
    if (pass.lostCount === 0) delete turn.lostLogged;
    else if (pass.logsLost) turn.lostLogged = { atMs: nowMs, count: pass.lostCount };
    if (pass.repairedCount > 0) return true;
    const restMs = Math.min((nowMs - pass.beganAtMs) * REST_SHARE, REST_MAX_MS);
    turn.restUntilMs = nowMs + Math.max(restMs, pass.missingCount > 0 ? REST_MIN_MS : 0);
    return false;
  }
}

function newTurn(): ShardTurn {
  return { pass: undefined, headAtMs: 0, wasHead: false, restUntilMs: 0, lostCount: 0 };
}

function isTimeToLog({ lostCount, lostLogged }: ShardTurn, nowMs: number): boolean {
  return (
    lostLogged === undefined || lostCount > lostLogged.count || nowMs - lostLogged.atMs >= LOST_LOG_EVERY_MS
  );
}

/** `later`: the map, the epoch or the shard is not to be relied on now. */
async function repairSome(
  deps: HomeShardDeps,
  { shard, pass, signal }: { shard: number; pass: Pass; signal: AbortSignal },
): Promise<'more' | 'end' | 'later'> {
  const { metadata } = deps;
  const query = { limit: LIMITS.repairPageMax, ...(pass.after && { after: pass.after }) };
  const page = doneValue(await metadata.query({ shard }, 'list-debts', query));
  const fence = deps.fenceOf(shard);
  const debts = firstOf(page.debts);
  pass.missingCount += debts.length;
  if (debts.length > 0) {
    const repaired = await repairAll(deps, debts, { fence, signal });
    if (repaired === undefined) return 'later';
    await sendResolved(deps, { shard, pass, debts, repaired });
  }
  // A page of large blobs takes hours: others may have fewer copies by then, in this shard or another.
  const last = debts.length < page.debts.length ? debts.at(-1) : undefined;
  const next = last === undefined ? page.next : placeOf(last);
  if (next === undefined) return 'end';
  pass.after = next;
  return 'more';
}

function placeOf({ blobId, debt }: ListedRepair): RepairQueuePlace {
  return { copies: debt.copies, notedAtMs: debt.notedAtMs, blobId };
}

/** The first entries with few chunks together; at least one. */
function firstOf(debts: readonly ListedRepair[]): ListedRepair[] {
  let count = 0;
  const end = debts.findIndex(({ debt }, at) => {
    count += rangedChunks(debt.ranges);
    return at > 0 && count > LIMITS.repairChunksMax;
  });
  return debts.slice(0, end === -1 ? debts.length : end);
}

function* chunksOf({ blobId, debt, ...layout }: ListedRepair): Generator<ChunkToRepair> {
  const count = chunkCount({ ...layout, storage: 'chunks' });
  for (const { from, to, holders } of debt.ranges)
    for (let index = from; index < Math.min(to, count); index++)
      yield { id: { blobId, index }, holders, copies: debt.copies };
}

interface FoundChunk {
  id: ChunkToRepair['id'];
  state: ChunkState;
}

type MissingCopies = Parameters<typeof repairOfChunks>[0][number];

interface RepairedChunks {
  /** The oldest map by which one of them was repaired. */
  mapVersion: number;
  chunks: FoundChunk[];
}

async function repairAll(
  { disks }: HomeShardDeps,
  debts: readonly ListedRepair[],
  how: { fence: Fence; signal: AbortSignal },
): Promise<RepairedChunks | undefined> {
  const chunks = debts.flatMap((debt) => [...chunksOf(debt)]);
  const found: FoundChunk[] = [];
  let mapVersion = Number.POSITIVE_INFINITY;
  for (let from = 0; from < chunks.length; from += LIMITS.repairChunksMax) {
    const some = chunks.slice(from, from + LIMITS.repairChunksMax);
    const repaired = await disks.repair(some, how);
    if (repaired === undefined) return undefined;
    mapVersion = Math.min(mapVersion, repaired.mapVersion);
    found.push(...repaired.states.map((state, at) => ({ id: (some[at] as ChunkToRepair).id, state })));
  }
  return { mapVersion, chunks: found };
}

async function sendResolved(
  deps: HomeShardDeps,
  found: { shard: number; pass: Pass; debts: readonly ListedRepair[]; repaired: RepairedChunks },
): Promise<void> {
  const { shard, pass, debts, repaired } = found;
  const { mapVersion } = repaired;
  const byBlob = Map.groupBy(repaired.chunks, ({ id }) => id.blobId);
  const resolved = debts.flatMap(({ blobId, debt }) => {
    const its = byBlob.get(blobId) ?? [];
    noteLost(deps, pass, its);
    const left = repairOfChunks(
      its.flatMap((chunk) => missingCopies(chunk, debt)),
      mapVersion,
    );
    if (left !== undefined && isSameRepair(left, debt)) return [];
    return [{ blobId, mark: debt.mark, ...(left && { left }) }];
  });
  if (resolved.length === 0) return;
  const { metadata } = deps;
  const command = { mapVersion, debts: resolved, leavesBusy: true } as const;
  const { count, left = [] } = doneValue(await metadata.execute({ shard }, 'settle-debts', command));
  pass.repairedCount += count;
  const leftOut = resolved.filter(({ blobId }) => left.includes(blobId));
  await finishLeft(leftOut, async (debt) => {
    const one = { mapVersion, debts: [debt] };
    pass.repairedCount += doneValue(await metadata.execute({ shard }, 'settle-debts', one)).count;
  });
}

function missingCopies({ id, state }: FoundChunk, { copies, ranges }: RepairEntry): MissingCopies[] {
  const { index } = id;
  if (state.kind === 'incomplete') return [{ index, copies: state.copies, holders: state.holders }];
  if (state.kind === 'lost') return [{ index, copies: 0, holders: [] }];
  if (state.kind === 'whole') return [];
  // Nobody was asked: what was known of it stays.
  const { holders = [] } = ranges.find(({ from, to }) => from <= index && index < to) ?? {};
  return [{ index, copies, holders }];
}

function noteLost({ log, telemetry }: HomeShardDeps, pass: Pass, chunks: readonly FoundChunk[]): void {
  for (const { id, state } of chunks) {
    if (state.kind !== 'lost') continue;
    telemetry.count('holdfast_lost_chunks_found_total');
    if (pass.lostCount++ < LOST_LOGGED_MAX && pass.logsLost) log.error({ ...id }, 'chunk-lost');
  }
}
