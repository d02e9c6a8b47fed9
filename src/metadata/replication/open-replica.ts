// Opens one replica of a cluster: reads what its rows say, looks at its log, and judges whether it may count (R1, R17).
import { Corruption } from '../../base/corruption.ts';
import type { KvPort, KvPut } from '../../ports/kv.ts';
import type { ReplicaId } from '../../ports/replication.ts';
import type { RegisteredShard, ShardRecord } from '../../ports/shard-registry.ts';
import type { TableRef } from '../../ports/state-machine.ts';
import type { WitnessPort } from '../../ports/witness.ts';
import {
  type Applied,
  baseCodec,
  decodeApplied,
  type ReplicaRecord,
  replicaCodec,
} from '../engine/entry-rows.ts';
import { ENGINE_TABLES, LOG_COLUMN, logBounds, rowKey } from '../engine/row-keys.ts';
import { watchDamage } from './damage-watch.ts';
import { LogStore } from './log-store.ts';
import { LOG_RETENTION } from './log-trimmer.ts';
import { Replica } from './replica.ts';
import type { OpenedReplica, ReplicaDeps } from './replica-parts.ts';
import { clearShard } from './snapshots.ts';

const NO_KEY = new Uint8Array(0);
/** Steps in which a log is trimmed, of what is kept of it. */
const MARKS = 64;
const NOTHING: Applied = { seq: 0, epoch: 0, timeMs: 0 };

export interface ReplicaIdentity {
  clusterId: string;
  replicaId: ReplicaId;
}

/**
 * `mayBeFirst`: one without rows may be of a shard that was never opened. Not for rows of another history (R23). Throws when
 * they are another cluster's or another replica's: they were copied here.
 */
export async function openReplica(
  given: ReplicaDeps,
  identity: ReplicaIdentity,
  { registered, mayBeFirst }: { registered: RegisteredShard; mayBeFirst: boolean },
): Promise<Replica> {
  const { shard, witness } = given;
  const damage = watchDamage(given.kv);
  const deps = { ...given, kv: damage.kv };
  const { kv } = deps;
  const stored = await readOwnRows(kv, shard);
  const isFirst =
    mayBeFirst &&
    stored.damage === undefined &&
    registered.record.epoch === 0 &&
    witness.read(shard) === undefined;
  const record = stored.record ?? newRecord(identity, registered.record, isFirst);
  if (record.clusterId !== identity.clusterId || record.replicaId !== identity.replicaId)
    throw new Error(
      `shard ${shard} is of another cluster or replica: ${record.clusterId}/${record.replicaId}`,
    );
  const { bytes } = deps.logRetention ?? LOG_RETENTION;
  const log = new LogStore(shard, kv, {
    base: stored.base ?? NOTHING,
    markBytes: bytes / MARKS,
    budget: deps.logBudget,
  });
  const position = witness.read(shard);
  const witnessed = position === 'damaged' ? undefined : position;
  const opened = {
    record,
    witnessed,
    log,
    damage,
    isNew: stored.record === undefined && stored.damage === undefined,
    applied: stored.applied ?? NOTHING,
  };
  if (stored.damage !== undefined) noteUnreadable(deps, { opened, damage: stored.damage });
  else if (record.isDamaged && record.state !== 'live') forgetPosition(opened);
  else if (record.state === 'installing') await beginAnew(kv, shard, log);
  // One that was removed, too: listed again, it goes on from what it has.
  else await judge(deps, opened);
  if (record.state === 'installing') opened.applied = NOTHING;
  if (opened.record.state !== 'live') opened.record = distrusted(opened.record, registered.record, position);
  await kv.commit([recordRow(shard, opened.record)]);
  const replica = new Replica(deps, opened);
  replica.onRegistered(registered);
  return replica;
}

interface OwnRows {
  record: ReplicaRecord | undefined;
  base: { seq: number; epoch: number } | undefined;
  applied: Applied | undefined;
  /** One of them cannot be read. */
  damage: Corruption | undefined;
}

async function readOwnRows(kv: KvPort, shard: number): Promise<OwnRows> {
  let damage: Corruption | undefined;
  const read = async (table: TableRef) => {
    try {
      return (await kv.getMany('rows', [rowKey(shard, table, NO_KEY)]))[0];
    } catch (error) {
      if (!(error instanceof Corruption)) throw error;
      damage = error;
      return undefined;
    }
  };
  const recordRow = await read(ENGINE_TABLES.replica);
  const baseRow = await read(ENGINE_TABLES.base);
  const appliedRow = await read(ENGINE_TABLES.applied);
  return {
    record: recordRow && replicaCodec.decode(recordRow),
    base: baseRow && baseCodec.decode(baseRow),
    applied: appliedRow && decodeApplied(appliedRow),
    damage,
  };
}

/**
 * A replica without rows counts only in a shard that was never opened: anywhere else it may have had some, and promised
 * or acknowledged what it does not remember. An epoch exists by the registry first (R2), so it has promised none above.
 */
function newRecord(
  { clusterId, replicaId }: ReplicaIdentity,
  { incarnation, epoch }: ShardRecord,
  isFirst: boolean,
): ReplicaRecord {
  const state = isFirst ? 'live' : 'installing';
  const promised = isFirst ? 0 : epoch;
  const none = { isDamaged: false, votesFor: null, seen: null };
  return { clusterId, replicaId, incarnation, promised, state, ...none };
}

/** R17: where the replica stands is not known, so nothing that it has is of use. */
function noteUnreadable(
  { shard, logger, onEvent }: ReplicaDeps,
  { opened, damage }: { opened: OpenedReplica; damage: Corruption },
): void {
  logger.error({ shard, err: damage }, 'replica-damaged');
  onEvent?.('quarantined');
  forgetPosition(opened);
  opened.record = { ...opened.record, state: 'installing', isDamaged: true };
}

/**
 * R3: a cut of the store's log may have reverted it to an earlier state, without its later promises. An epoch exists in the
 * registry first (R2), so it has promised none above. And it may only vote for the primary that emptied it last when the
 * witness, which nothing reverts, says that it has counted for nothing since.
 */
function distrusted(
  record: ReplicaRecord,
  { epoch }: ShardRecord,
  witnessed: ReturnType<WitnessPort['read']>,
): ReplicaRecord {
  const isAsItWas =
    witnessed !== undefined &&
    witnessed !== 'damaged' &&
    (witnessed.epoch < record.promised ||
      (witnessed.epoch === record.promised && (witnessed.seq === 0 || witnessed.isEmptied === true)));
  const votesFor = isAsItWas ? record.votesFor : null;
  return { ...record, promised: Math.max(record.promised, epoch), votesFor };
}

function forgetPosition(opened: OpenedReplica): void {
  opened.log.reset(NOTHING);
  opened.applied = NOTHING;
}

/** R16: what a snapshot that was broken off has left is worth nothing. */
async function beginAnew(kv: KvPort, shard: number, log: LogStore): Promise<void> {
  log.reset({ seq: 0, epoch: 0 });
  await clearShard(kv, shard);
}

/** R17. */
async function judge(
  { shard, kv, witness, logger, onEvent }: ReplicaDeps,
  opened: { record: ReplicaRecord; log: LogStore; applied: Applied },
): Promise<void> {
  const { log } = opened;
  const damage = await log.load();
  const witnessed = witness.read(shard);
  const why =
    damage ??
    (witnessed === 'damaged'
      ? 'witness-lost'
      : witnessed !== undefined && (log.last.seq < witnessed.seq || opened.record.promised < witnessed.epoch)
        ? 'shorter-than-witnessed'
        : opened.applied.seq > log.last.seq
          ? 'behind-the-state'
          : undefined);
  if (opened.applied.seq < log.base.seq) {
    logger.error({ shard, appliedSeq: opened.applied.seq, baseSeq: log.base.seq }, 'state-behind-the-log');
    opened.record = { ...opened.record, state: 'installing' };
    await kv.commit([recordRow(shard, opened.record)]);
    await beginAnew(kv, shard, log);
    opened.applied = NOTHING;
    return;
  }
  if (why === undefined) return;
  logger.error({ shard, why, last: log.last, witnessed }, 'replica-quarantined');
  onEvent?.('quarantined');
  opened.record = { ...opened.record, state: 'quarantined' };
  const soundSeq = log.last.seq;
  const rows = [recordRow(shard, opened.record)];
  // What is in the state was committed: the log may begin there.
  if (opened.applied.seq > log.last.seq) {
    const base = { seq: opened.applied.seq, epoch: opened.applied.epoch };
    log.reset(base);
    rows.push(log.baseRow(base));
  }
  // What lies behind damage must not look like part of the log later, and may be impossible to read. That it does not
  // count must be durable before: without what goes now the log may look sound.
  await kv.commit(rows);
  await kv.clear({ column: LOG_COLUMN, ...logBounds(shard, soundSeq + 1) });
}

function recordRow(shard: number, record: ReplicaRecord): KvPut {
  return {
    column: 'rows',
    key: rowKey(shard, ENGINE_TABLES.replica, NO_KEY),
    value: replicaCodec.encode(record),
  };
}
