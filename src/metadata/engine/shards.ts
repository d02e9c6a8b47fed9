// All shards of a metadata node over one store: the metadata port of the embedded form. It finds the shard of an
// envelope and hands commands over; what spans shards is for the callers' intents, never for a batch.

import { must } from '../../base/assert.ts';
import type { FairTurns } from '../../base/async/fair-turns.ts';
import { utf8 } from '../../base/bytes/bytes.ts';
import { defineRecord } from '../../base/record-codec.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { CoordinatorPort } from '../../ports/coordination.ts';
import type { KvPort } from '../../ports/kv.ts';
import type { MetadataPort } from '../../ports/metadata/port.ts';
import type { StateMachine } from '../../ports/state-machine.ts';
import type { TimeJumps } from '../../ports/time-jumps.ts';
import type { Worker } from '../../ports/worker.ts';
import { sumOfAccepted } from '../../types/accepted-jumps.ts';
import { createEngineWorkers } from './engine-workers.ts';
import { createShard, type OpenShard } from './open-shard.ts';
import { createOverlayBudget } from './overlay.ts';
import { assertShardCount } from './row-keys.ts';

/** Columns that the store must have. */
export const SHARD_COLUMNS = ['rows', 'bodies'] as const;

/** Above all shards' rows, which begin with the shard's number. */
const LAYOUT_KEY = Buffer.concat([Buffer.of(0xff, 0xff), utf8('layout')]);
const layoutCodec = defineRecord<{ shardCount: number }>({ name: 'layout', version: 1 });

export interface ShardsOptions {
  kv: KvPort;
  machine: StateMachine;
  /** Of queries that read many rows. Default: none, each reads on. */
  turns?: FairTurns;
  /** Fixed when the store is made: another number is refused later. */
  shardCount: number;
  /** Those that are opened here; default all. The others are opened elsewhere, over the same store. */
  own?: readonly number[];
  /** How many threads have shards of this store, and share its bounds; default this one alone. */
  threads?: number;
  clock: ClockPort;
  random: RandomPort;
  coordinator: CoordinatorPort;
  /** The store has failed; called once. Everything is answered `unknown`; end the process (R20). */
  onFatal(error: Error): void;
}

export interface ShardStatus {
  shard: number;
  incarnation: number;
  epoch: number;
  committedSeq: number;
  committedTimeMs: number;
  callCount: number;
  /** R19: how far the clock has jumped at starts, by more than 7 days each, without the operator's word; else 0. */
  timeJumpMs: number;
  /** Wall clock less shard time. */
  timeGapMs: number;
}

export interface Shards extends MetadataPort {
  /** Background work of the engine: run it with the others. */
  readonly workers: readonly Worker[];
  readonly timeJumps: TimeJumps;
  status(): { overlayBytes: number; shards: ShardStatus[] };
  /** Answers what was admitted, `unknown` to the rest. The store stays open. */
  close(): Promise<void>;
}

/** Opens the shards. Rejects when the store is of another number of shards. */
export async function createShards(options: ShardsOptions): Promise<Shards> {
  const { shardCount, kv, own = Array.from({ length: shardCount }, (_, shard) => shard) } = options;
  await keepLayout(kv, shardCount);
  const budget = createOverlayBudget({ threads: options.threads });
  let isFatal = false;
  const onFatal = (error: Error) => {
    if (isFatal) return;
    isFatal = true;
    for (const { log } of shards) log.fail(error);
    options.onFatal(error);
  };
  let shards: OpenShard[] = [];
  shards = await Promise.all(own.map((shard) => createShard({ ...options, shard, budget, onFatal })));
  kv.failed.then(onFatal);
  const byNumber: (OpenShard | undefined)[] = [];
  for (const [index, shard] of own.entries()) byNumber[shard] = shards[index];
  const shardOf = (shard: number) => must(byNumber[shard], `no shard ${shard}`).shard;
  return {
    shardCount,
    // The engine knows no command by name: the port's types tie names to outcomes, the state machine's table keeps them.
    execute: async (envelope, name, command) =>
      shardOf(envelope.shard).execute(envelope, name, command) as ReturnType<
        MetadataPort['execute']
      > as never,
    query: async (envelope, name, query) => shardOf(envelope.shard).query(envelope, name, query) as never,
    workers: createEngineWorkers(() => shards.map(({ shard }) => shard)),
    timeJumps: timeJumpsOf(shards, shardOf),
    status: () => ({
      overlayBytes: budget.usedBytes,
      shards: shards.map((shard, index) => shardStatus(shard, own[index] ?? 0)),
    }),
    async close() {
      await Promise.all(shards.map(({ shard }) => shard.close()));
    },
  };
}

/** Writes down of how many shards the store is. Rejects when it is of another number. */
export async function keepLayout(kv: KvPort, shardCount: number): Promise<void> {
  assertShardCount(shardCount);
  const [row] = await kv.getMany('rows', [LAYOUT_KEY]);
  if (row === undefined) {
    const value = layoutCodec.encode({ shardCount });
    return kv.commit([{ column: 'rows', key: LAYOUT_KEY, value }]);
  }
  const stored = layoutCodec.decode(row).shardCount;
  if (stored !== shardCount)
    throw new Error(`the store was made for ${stored} shards and cannot be opened with ${shardCount}`);
}

function timeJumpsOf(
  shards: readonly OpenShard[],
  shardOf: (shard: number) => OpenShard['shard'],
): TimeJumps {
  return {
    mayRemoveByAge: (shard) => shardOf(shard).timeJumpMs === 0,
    unacceptedMs: async () => Math.max(...shards.map(({ shard }) => shard.timeJumpMs)),
    accept: async (atMostMs) =>
      sumOfAccepted(await Promise.all(shards.map(({ shard }) => shard.acceptTimeJump(atMostMs)))),
  };
}

function shardStatus({ shard, log, time, incarnation, epoch }: OpenShard, number: number): ShardStatus {
  return {
    shard: number,
    incarnation,
    epoch,
    committedSeq: log.committed.seq,
    committedTimeMs: log.committed.timeMs,
    callCount: shard.callCount,
    timeJumpMs: shard.timeJumpMs,
    timeGapMs: time.gapMs(),
  };
}
