// What the rows of a metadata node say of its replicas, without opening any: for the node's start, and for commands that
// rebuild the registry or recover a shard from it (R23).
import type { KvPort, KvRow } from '../../ports/kv.ts';
import type { StoredReplica } from '../../ports/node-records.ts';
import type { LogPosition } from '../../ports/replication.ts';
import type { WitnessPort } from '../../ports/witness.ts';
import { isEntrySound, readEntryHead } from '../engine/entry-codec.ts';
import { baseCodec, decodeApplied, replicaCodec } from '../engine/entry-rows.ts';
import { ENGINE_TABLES, LOG_COLUMN, logBounds, rowKey } from '../engine/row-keys.ts';

const NO_KEY = new Uint8Array(0);
const NOWHERE: LogPosition = { seq: 0, epoch: 0 };

/** Of all shards that have rows here that can be read. */
export async function readStoredReplicas(
  kv: KvPort,
  witness: WitnessPort,
  shardCount: number,
): Promise<StoredReplica[]> {
  const shards = Array.from({ length: shardCount }, (_, shard) => shard);
  const found = await Promise.all(
    shards.map((shard) => readStoredReplica(kv, witness, shard).catch(() => undefined)),
  );
  return found.filter((replica) => replica !== undefined);
}

export async function readStoredReplica(
  kv: KvPort,
  witness: WitnessPort,
  shard: number,
): Promise<StoredReplica | undefined> {
  const tables = [ENGINE_TABLES.replica, ENGINE_TABLES.base, ENGINE_TABLES.applied];
  const keys = tables.map((table) => rowKey(shard, table, NO_KEY));
  const [recordRow, baseRow, appliedRow] = await kv.getMany('rows', keys);
  if (recordRow === undefined) return undefined;
  const { state, incarnation, promised, seen } = replicaCodec.decode(recordRow);
  const lastRow = await readLastRow(kv, shard);
  const base = baseRow === undefined ? NOWHERE : baseCodec.decode(baseRow);
  return {
    shard,
    state,
    incarnation,
    promised,
    seen,
    last: lastRow !== undefined && isEntrySound(lastRow.value) ? positionOf(lastRow.value) : base,
    appliedSeq: appliedRow === undefined ? 0 : decodeApplied(appliedRow).seq,
    witness: witness.read(shard) ?? null,
  };
}

/** undefined: there is none, or it cannot be read. What that means is judged when the replica is opened (R17). */
async function readLastRow(kv: KvPort, shard: number): Promise<KvRow | undefined> {
  const rows = await kv
    .range({ column: LOG_COLUMN, ...logBounds(shard), limit: 1, reverse: true })
    .catch(() => []);
  return rows[0];
}

function positionOf(entry: Uint8Array): LogPosition {
  const { seq, epoch } = readEntryHead(entry);
  return { seq, epoch };
}
