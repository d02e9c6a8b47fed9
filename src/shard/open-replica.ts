// Opens one replica of a cluster: reads what its rows say, looks at its log, and judges whether it may count (R1, R17).
import type { KvPort, KvPut } from '../ports/kv.ts';
import type { ReplicaId } from '../ports/replication.ts';
import type { RegisteredShard } from '../ports/shard-registry.ts';
import { type Applied, baseCodec, decodeApplied, type ReplicaRecord, replicaCodec } from './entry-rows.ts';
import { LogStore } from './log-store.ts';
import { LOG_KEPT } from './log-trimmer.ts';
import { Replica } from './replica.ts';
import type { ReplicaDeps } from './replica-parts.ts';
import { ENGINE_TABLES, LOG_COLUMN, logKey, rowKey } from './row-keys.ts';
import { clearShard } from './snapshots.ts';

const NO_KEY = new Uint8Array(0);
/** Steps in which a log is trimmed, of what is kept of it. */
const MARKS = 64;
const NOTHING: Applied = { seq: 0, epoch: 0, timeMs: 0 };
const CUT_ROWS = 1000;

export interface ReplicaIdentity {
  clusterId: string;
  replicaId: ReplicaId;
}

/**
 * `mayBeFirst`: one without rows may be of a shard that was never opened. Not for rows of another history (R23). Throws when
 * they are another cluster's or another replica's: they were copied here.
 */
export async function openReplica(
  deps: ReplicaDeps,
  identity: ReplicaIdentity,
  { registered, mayBeFirst }: { registered: RegisteredShard; mayBeFirst: boolean },
): Promise<Replica> {
  const { shard, kv, witness } = deps;
  const stored = await readOwnRows(kv, shard);
  const isFirst = mayBeFirst && registered.record.epoch === 0 && witness.read(shard) === undefined;
  const record = stored.record ?? newRecord(identity, registered.record.incarnation, isFirst);
  if (record.clusterId !== identity.clusterId || record.replicaId !== identity.replicaId)
    throw new Error(
      `shard ${shard} is of another cluster or replica: ${record.clusterId}/${record.replicaId}`,
    );
  const { bytes } = deps.logKept ?? LOG_KEPT;
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
    isNew: stored.record === undefined,
    log,
    applied: stored.applied ?? NOTHING,
  };
  if (record.state === 'installing') await beginAnew(kv, shard, log);
  // One that was removed, too: listed again, it goes on from what it has.
  else await judge(deps, opened);
  if (record.state === 'installing') opened.applied = NOTHING;
  await kv.commit([recordRow(shard, opened.record)]);
  const replica = new Replica(deps, opened);
  replica.onRegistered(registered);
  return replica;
}

interface OwnRows {
  record: ReplicaRecord | undefined;
  base: { seq: number; epoch: number } | undefined;
  applied: Applied | undefined;
}

async function readOwnRows(kv: KvPort, shard: number): Promise<OwnRows> {
  const { replica, base, applied } = ENGINE_TABLES;
  const keys = [replica, base, applied].map((table) => rowKey(shard, table, NO_KEY));
  const [recordRow, baseRow, appliedRow] = await kv.getMany('rows', keys);
  return {
    record: recordRow && replicaCodec.decode(recordRow),
    base: baseRow && baseCodec.decode(baseRow),
    applied: appliedRow && decodeApplied(appliedRow),
  };
}

/**
 * A replica without rows counts only in a shard that was never opened: anywhere else it may have had some, and promised
 * or acknowledged what it does not remember.
 */
function newRecord(
  { clusterId, replicaId }: ReplicaIdentity,
  incarnation: number,
  isFirst: boolean,
): ReplicaRecord {
  const state = isFirst ? 'live' : 'installing';
  return { clusterId, replicaId, incarnation, promised: 0, state, seen: null };
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
  await cutBehind(kv, shard, log.last.seq);
  // What is in the state was committed: the log may begin there.
  if (opened.applied.seq > log.last.seq) {
    const base = { seq: opened.applied.seq, epoch: opened.applied.epoch };
    log.reset(base);
    await kv.commit([log.baseRow(base)]);
  }
}

/** What lies behind damage must not look like part of the log later. */
async function cutBehind(kv: KvPort, shard: number, seq: number): Promise<void> {
  const bounds = { gte: logKey(shard, seq + 1), lt: logKey(shard, Number.MAX_SAFE_INTEGER) };
  for (;;) {
    const rows = await kv.range({ column: LOG_COLUMN, ...bounds, limit: CUT_ROWS, keysOnly: true });
    if (rows.length === 0) return;
    await kv.commit(rows.map(({ key }): KvPut => ({ column: LOG_COLUMN, key, value: null })));
  }
}

function recordRow(shard: number, record: ReplicaRecord): KvPut {
  return {
    column: 'rows',
    key: rowKey(shard, ENGINE_TABLES.replica, NO_KEY),
    value: replicaCodec.encode(record),
  };
}
