// Opens one shard: reads where it stands, takes an epoch, writes the Begin entry (R12 d, for one voter), and only then
// lets commands in. It does not elect anybody; the coordinator says that this process may act.

import type { FairTurns } from '../../base/async/fair-turns.ts';
import { toHex } from '../../base/bytes/bytes.ts';
import type { ClockPort, RandomPort } from '../../ports/clock.ts';
import type { CoordinatorPort, EpochGrant } from '../../ports/coordination.ts';
import type { KvPort } from '../../ports/kv.ts';
import type { StateMachine } from '../../ports/state-machine.ts';
import { ClockSteps } from './clock-steps.ts';
import { Counters } from './counters.ts';
import { decodeApplied, decodeTimeJump, type SelfRecord, selfCodec, timeJumpCodec } from './entry-rows.ts';
import { Overlay, type OverlayBudget } from './overlay.ts';
import { ENGINE_TABLES, rowKey } from './row-keys.ts';
import { Shard } from './shard.ts';
import { ShardLog } from './shard-log.ts';
import { createShardTime, type ShardTime } from './shard-time.ts';
import { createStateReader } from './state-reader.ts';

const REPLICA_ID_BYTES = 16;
const NO_KEY = new Uint8Array(0);

export interface ShardOptions {
  shard: number;
  shardCount: number;
  kv: KvPort;
  machine: StateMachine;
  /** Of queries that read many rows. Default: none, each reads on. */
  turns?: FairTurns;
  clock: ClockPort;
  random: RandomPort;
  coordinator: CoordinatorPort;
  budget: OverlayBudget;
  /** The store failed: the shard answers `unknown` from now on, and the process should end (R20). */
  onFatal(error: Error): void;
}

export interface OpenShard {
  shard: Shard;
  log: ShardLog;
  time: ShardTime;
  incarnation: number;
  epoch: number;
}

/** Throws when the coordinator is behind what the shard has promised (R23): an older one was put back. */
export async function createShard(options: ShardOptions): Promise<OpenShard> {
  const { shard: number, shardCount, kv, machine, random } = options;
  const selfKey = rowKey(number, ENGINE_TABLES.self, NO_KEY);
  const appliedKey = rowKey(number, ENGINE_TABLES.applied, NO_KEY);
  const jumpKey = rowKey(number, ENGINE_TABLES.timeJump, NO_KEY);
  const [selfRow, appliedRow, jumpRow] = await kv.getMany('rows', [selfKey, appliedKey, jumpKey]);
  const grant = await options.coordinator.acquire(number);
  const self = nextSelf(selfRow === undefined ? undefined : selfCodec.decode(selfRow), grant, random);
  const last = appliedRow === undefined ? undefined : decodeApplied(appliedRow);
  const time = createShardTime(options.clock, last?.timeMs);
  const steps = new ClockSteps();
  const earlier = decodeTimeJump(jumpRow);
  steps.restore(earlier, last?.timeMs ?? 0);
  const followed = steps.add(time.stepMs);
  const timeJumpMs = earlier.jumpMs + (followed.kind === 'jump' ? followed.jumpMs : 0);

  const overlay = new Overlay(options.budget);
  const log: ShardLog = new ShardLog({
    shard: number,
    epoch: grant.epoch,
    kv,
    overlay,
    time,
    applied: last ?? { seq: 0, epoch: 0, timeMs: 0 },
    onFailed(error) {
      shard.fail();
      options.onFatal(error);
    },
  });
  const shard = new Shard({
    shard: number,
    shardCount,
    kv,
    machine,
    ...(options.turns && { turns: options.turns }),
    random,
    overlay,
    budget: options.budget,
    log,
    counters: new Counters(number, { kv, overlay }),
    state: createStateReader(number, kv),
    timeJumpMs,
    steps,
  });
  const rows = [{ column: 'rows', key: selfKey, value: selfCodec.encode(self) }];
  const timeMs = log.nowMs();
  // With the entry that makes the new time the shard's: at the next start nothing would show the step any more.
  if (followed.kind !== 'small') {
    const record = { jumpMs: timeJumpMs, stepsMs: steps.sumMs, timeMs };
    rows.push({ column: 'rows', key: jumpKey, value: timeJumpCodec.encode(record) });
  }
  const begun = new Promise<void>((done) => log.append({ rows, timeMs, done }));
  await Promise.race([begun, kv.failed.then((error) => Promise.reject(error))]);
  return { shard, log, time, ...grant };
}

function nextSelf(self: SelfRecord | undefined, grant: EpochGrant, random: RandomPort): SelfRecord {
  if (self === undefined) return { replicaId: toHex(random.bytes(REPLICA_ID_BYTES)), ...grant };
  if (grant.incarnation < self.incarnation || grant.epoch <= self.epoch)
    throw new Error(
      `the coordinator gave epoch ${grant.incarnation}/${grant.epoch}, behind ${self.incarnation}/${self.epoch} of the shard: an older state of it was restored`,
    );
  return { ...self, ...grant };
}
