// How rows of a shard lie in the store: shard (2 bytes) | table (1) | key. Only here is the prefix put on and taken
// off, so no batch and no scan can leave its shard. The tables of the engine itself are at the top of the range.
import { assert } from '../../base/assert.ts';
import { asBuffer } from '../../base/bytes/bytes.ts';
import type { TableRef } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';

export const PREFIX_BYTES = 3;

const ENGINE_TABLE_MIN = 0xf0;
const SEQ_MAX = 2 ** 48 - 1;

export const ENGINE_TABLES = {
  /** (no key) -> who this replica is (R1) */
  self: { id: 0xf0, column: 'rows' },
  /** (no key) -> the last entry: seq, epoch, time */
  applied: { id: 0xf1, column: 'rows' },
  /** counter name -> value */
  counters: { id: 0xf2, column: 'rows' },
  /** request id -> outcome (R18) */
  requests: { id: 0xf3, column: 'rows' },
  /** minute of shard time | request id: in the order in which outcomes may be forgotten */
  requestTimes: { id: 0xf4, column: 'rows' },
  /** name of a queue -> the key up to which it is empty (B11) */
  cursors: { id: 0xf5, column: 'rows' },
  /** (no key) -> a jump of the clock that the operator has not accepted (R19) */
  timeJump: { id: 0xf6, column: 'rows' },
  /** (no key) -> who this replica is in its cluster, and what it has promised (R1, R3) */
  replica: { id: 0xf7, column: 'rows' },
  /** (no key) -> the entry up to which the log may be gone (R15) */
  base: { id: 0xf8, column: 'rows' },
  /** (no key) -> the range of the state that is compared, and where that has come to (R22) */
  verify: { id: 0xf9, column: 'rows' },
  /** (no key) -> since when the replica is not listed any more (R14) */
  unlisted: { id: 0xfa, column: 'rows' },
} as const satisfies Record<string, TableRef>;

/** The store's key of a row. Throws when the table is not the state machine's (or, for the engine, not one). */
export function rowKey(shard: number, table: TableRef, key: Uint8Array): Uint8Array {
  assert(table.id >= 0 && table.id <= 0xff, 'a table id is one byte');
  const bytes = Buffer.allocUnsafe(PREFIX_BYTES + key.length);
  bytes[0] = shard >>> 8;
  bytes[1] = shard & 0xff;
  bytes[2] = table.id;
  bytes.set(key, PREFIX_BYTES);
  return bytes;
}

/** Of the row that says who the replica is. */
export function replicaKey(shard: number): Uint8Array {
  return rowKey(shard, ENGINE_TABLES.replica, new Uint8Array(0));
}

/** Of encoded entries by number (entry-codec.ts): apart, because they come and go in order. */
export const LOG_COLUMN = 'log';

export function logKey(shard: number, seq: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeUInt16BE(shard, 0);
  bytes.writeUIntBE(Math.min(seq, SEQ_MAX), 2, 6);
  return bytes;
}

/** All entries of a shard from `fromSeq` on. */
export function logBounds(shard: number, fromSeq = 0): { gte: Uint8Array; lt: Uint8Array } {
  return { gte: logKey(shard, fromSeq), lt: logKey(shard, SEQ_MAX) };
}

export function seqOfLogKey(bytes: Uint8Array): number {
  return asBuffer(bytes).readUIntBE(2, 6);
}

/** A row's own key, as a view. */
export function keyOfRow(bytes: Uint8Array): Uint8Array {
  return bytes.subarray(PREFIX_BYTES);
}

/** All rows of a shard, in a column of rows. */
export function shardBounds(shard: number): { gte: Uint8Array; lt: Uint8Array } {
  const bound = (number: number) => {
    const bytes = Buffer.allocUnsafe(2);
    bytes.writeUInt16BE(number);
    return bytes;
  };
  return { gte: bound(shard), lt: bound(shard + 1) };
}

export function shardOfRow(bytes: Uint8Array): number {
  return ((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0);
}

/** State machines may not touch the engine's rows. */
export function assertMachineTable(table: TableRef): void {
  assert(table.id < ENGINE_TABLE_MIN, 'a state machine keeps to its own tables');
}

export function assertShardCount(shardCount: number): void {
  assert(shardCount >= 1 && shardCount <= LIMITS.shardCountMax, 'a number of shards within the limits');
}
