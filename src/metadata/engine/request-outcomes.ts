// Outcomes kept under the ids of their requests, so that a retry gets the first answer and has no second effect (R18).
// The outcome lies under the id alone, for a look-up in one read; a second row, by minute of shard time, says which
// ones may be forgotten. Forgetting them is a unit of background work in shard.ts.
import { utf8 } from '../../base/bytes/bytes.ts';
import { packPlain, unpackPlain } from '../../base/record-codec.ts';
import type { KvPut } from '../../ports/kv.ts';
import type { RowAddress } from '../../ports/state-machine.ts';
import { LIMITS } from '../../types/limits.ts';
import { ENGINE_TABLES, rowKey } from './row-keys.ts';

const MINUTE_MS = 60_000;
const PRESENT = Uint8Array.of(1);

export function outcomeAddress(requestId: string): RowAddress {
  return { table: ENGINE_TABLES.requests, key: utf8(requestId) };
}

export function outcomeRows(
  shard: number,
  request: { requestId: string; outcome: unknown; timeMs: number },
): KvPut[] {
  const id = utf8(request.requestId);
  const timeKey = Buffer.concat([minuteKey(request.timeMs), id]);
  return [
    {
      column: 'rows',
      key: rowKey(shard, ENGINE_TABLES.requests, id),
      value: packPlain({ outcome: request.outcome }),
    },
    { column: 'rows', key: rowKey(shard, ENGINE_TABLES.requestTimes, timeKey), value: PRESENT },
  ];
}

export function decodeOutcome(row: Uint8Array): unknown {
  return (unpackPlain(row) as { outcome: unknown }).outcome;
}

/** Rows of `requestTimes` before this key are older than outcomes are kept. */
export function forgettableBefore(nowMs: number): Uint8Array {
  return minuteKey(Math.max(0, nowMs - LIMITS.requestIdKeptMs));
}

/** The deletes that forget the outcome which a row of `requestTimes` stands for. */
export function forgetRows(shard: number, timeKey: Uint8Array): KvPut[] {
  const id = timeKey.subarray(4);
  return [
    { column: 'rows', key: rowKey(shard, ENGINE_TABLES.requests, id), value: null },
    { column: 'rows', key: rowKey(shard, ENGINE_TABLES.requestTimes, timeKey), value: null },
  ];
}

function minuteKey(timeMs: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(Math.floor(timeMs / MINUTE_MS));
  return bytes;
}
