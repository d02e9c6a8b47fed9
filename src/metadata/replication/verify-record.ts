// The entry by which the replicas of a shard compare their states (R22), as the row that it writes: the range that is to be
// hashed once exactly the entries up to it are applied. The row is also where the pass has come to, for whoever leads next.
import { defineRecord } from '../../base/record-codec.ts';
import type { KvBounds, KvPort, KvPut } from '../../ports/kv.ts';
import { ENGINE_TABLES, rowKey, shardBounds } from '../engine/row-keys.ts';
import { STATE_COLUMNS } from '../engine/state-digest.ts';

export interface VerifyRecord {
  /** null: the pass is over. */
  range: KvBounds | null;
  /** Shard time. */
  passBeganAtMs: number;
  /** Ranges of the pass so far that were not compared over all voters. */
  partialCount: number;
  /** Shard time at which replicas last were found to differ, in this pass or the one before; null: they were not. */
  mismatchAtMs: number | null;
  lastPass: VerifiedPass | null;
}

export interface VerifiedPass {
  /** Shard time. */
  endedAtMs: number;
  /** As in VerifyRecord. */
  partialCount: number;
}

const verifyCodec = defineRecord<VerifyRecord>({ name: 'verify', version: 1 });

export const NEVER_VERIFIED: VerifyRecord = {
  range: null,
  passBeganAtMs: 0,
  partialCount: 0,
  mismatchAtMs: null,
  lastPass: null,
};

function verifyKey(shard: number): Uint8Array {
  return rowKey(shard, ENGINE_TABLES.verify, new Uint8Array(0));
}

export function verifyRow(shard: number, record: VerifyRecord): KvPut {
  return { column: 'rows', key: verifyKey(shard), value: verifyCodec.encode(record) };
}

export async function readVerifyRecord(kv: KvPort, shard: number): Promise<VerifyRecord> {
  const [row] = await kv.getMany('rows', [verifyKey(shard)]);
  return row === undefined ? NEVER_VERIFIED : verifyCodec.decode(row);
}

/** What an entry with these rows asks for. */
export function requestedRange(rows: readonly KvPut[]): KvBounds | undefined {
  const row = rows.find(({ column, key }) => column === 'rows' && key[2] === ENGINE_TABLES.verify.id);
  return row?.value ? (verifyCodec.decode(row.value).range ?? undefined) : undefined;
}

/** The range behind `before`, or the first one: about `bytesMax` of rows. undefined: there is none. */
export async function rangeBehind(
  kv: KvPort,
  shard: number,
  { before, rowsMax, bytesMax }: { before: KvBounds | null; rowsMax: number; bytesMax: number },
): Promise<KvBounds | undefined> {
  const bounds = shardBounds(shard);
  let at = before === null ? 0 : (STATE_COLUMNS as readonly string[]).indexOf(before.column);
  let gte = before === null ? bounds.gte : before.lt;
  if (Buffer.compare(gte, bounds.lt) >= 0) {
    at++;
    gte = bounds.gte;
  }
  const column = STATE_COLUMNS[at];
  if (column === undefined) return undefined;
  const rows = await kv.range({ column, gte, lt: bounds.lt, limit: rowsMax, bytesMax });
  const sizeBytes = rows.reduce((total, { value }) => total + value.length, 0);
  const last = rows.at(-1);
  const isRest = last === undefined || (rows.length < rowsMax && sizeBytes < bytesMax);
  return { column, gte, lt: isRest ? bounds.lt : Buffer.concat([last.key, Uint8Array.of(0)]) };
}
