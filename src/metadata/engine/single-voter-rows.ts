// The rows by which a shard of the embedded form becomes a replica of a cluster, without any of its state being touched:
// the only voter, live, whose log begins behind what is applied (R1, R4; protocol section 1: with one voter an entry leaves
// no log row). The store must be of nobody who runs.
import type { KvPort, KvPut } from '../../ports/kv.ts';
import type { ReplicaId } from '../../ports/replication.ts';
import {
  type Applied,
  baseCodec,
  decodeApplied,
  decodeTimeJump,
  type ReplicaRecord,
  replicaCodec,
  selfCodec,
  type TimeJumpRecord,
} from './entry-rows.ts';
import { ENGINE_TABLES, rowKey } from './row-keys.ts';

const NO_KEY = new Uint8Array(0);

export interface SingleVoterShard {
  /** As it was last opened; no later epoch was acted in. */
  incarnation: number;
  epoch: number;
  applied: Applied;
  /** R19: what the clock has jumped and stepped, without the operator's word. */
  timeJump: TimeJumpRecord;
}

/** undefined: the shard was never opened here by the embedded form. */
export async function readSingleVoterShard(kv: KvPort, shard: number): Promise<SingleVoterShard | undefined> {
  const { self, applied, timeJump } = ENGINE_TABLES;
  const keys = [self, applied, timeJump].map((table) => rowKey(shard, table, NO_KEY));
  const [selfRow, appliedRow, jumpRow] = await kv.getMany('rows', keys);
  if (selfRow === undefined || appliedRow === undefined) return undefined;
  const { incarnation, epoch } = selfCodec.decode(selfRow);
  return {
    incarnation,
    epoch,
    applied: decodeApplied(appliedRow),
    timeJump: decodeTimeJump(jumpRow),
  };
}

/**
 * Who the replica is from now on. `epoch`: of its record in the registry, which names it as the primary; it takes the next
 * one when it opens.
 */
export function firstVoterRows(
  shard: number,
  replica: { clusterId: string; replicaId: ReplicaId; incarnation: number; epoch: number; applied: Applied },
): KvPut[] {
  const { clusterId, replicaId, incarnation, epoch, applied } = replica;
  const record: ReplicaRecord = {
    clusterId,
    replicaId,
    incarnation,
    promised: epoch,
    state: 'live',
    isDamaged: false,
    votesFor: null,
    seen: null,
  };
  const key = (table: (typeof ENGINE_TABLES)[keyof typeof ENGINE_TABLES]) => rowKey(shard, table, NO_KEY);
  const { self, base, replica: replicaTable } = ENGINE_TABLES;
  return [
    { column: 'rows', key: key(replicaTable), value: replicaCodec.encode(record) },
    {
      column: 'rows',
      key: key(base),
      value: baseCodec.encode({ seq: applied.seq, epoch: applied.epoch }),
    },
    { column: 'rows', key: key(self), value: null },
  ];
}
