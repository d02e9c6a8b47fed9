// A group of commits as it crosses to the committer thread: one ArrayBuffer with all small bytes, and the large values
// beside it, which are moved and not copied. It knows neither threads nor RocksDB.
import { isMarkedAsUntransferable } from 'node:worker_threads';
import { assert, must } from '../../base/assert.ts';
import type { KvPut } from '../../ports/kv.ts';
import { LIMITS } from '../../types/limits.ts';

/** Values from this size on travel in their own ArrayBuffer when they cover it whole. */
const MOVED_VALUE_BYTES_MIN = 32 * 1024;

const ROW_HEADER_BYTES = 8;
const OP = { delete: 0, put: 1, putMoved: 2 } as const;

export interface CommitFrame {
  buffer: ArrayBuffer;
  usedBytes: number;
  /** Values in the order of their rows. */
  moved: ArrayBuffer[];
  /** One of the commits asks to be synced: then all of them are. */
  sync: boolean;
}

/** Bytes of the rows, for bounding groups and queues. Throws when a row cannot be stored. */
export function checkRows(rows: readonly KvPut[], columnIndex: ReadonlyMap<string, number>): number {
  let sizeBytes = 0;
  for (const { column, key, value } of rows) {
    assert(columnIndex.has(column), `unknown column ${column}`);
    assert(key.length > 0 && key.length <= LIMITS.kvKeyBytesMax, 'a key is of the allowed length');
    sizeBytes += ROW_HEADER_BYTES + key.length + (value?.length ?? 0);
  }
  return sizeBytes;
}

export interface CommitRows {
  rows: readonly KvPut[];
  /** The caller goes on reading its values: none is moved. */
  keep: boolean;
  sync: boolean;
}

/**
 * Writes the rows into `reuse` when it is large enough, else into a new buffer. Rows are: op u8, column u8, key
 * length u16, value length u32, key, value.
 */
export function encodeFrame(
  batches: readonly CommitRows[],
  columnIndex: ReadonlyMap<string, number>,
  reuse: ArrayBuffer | undefined,
): CommitFrame {
  const moved: ArrayBuffer[] = [];
  const seen = new Set<ArrayBufferLike>();
  let neededBytes = 0;
  for (const { rows, keep } of batches) {
    for (const { key, value } of rows) {
      neededBytes += ROW_HEADER_BYTES + key.length;
      if (value === null) continue;
      if (!keep && canMove(value) && !seen.has(value.buffer)) {
        seen.add(value.buffer);
        moved.push(value.buffer as ArrayBuffer);
      } else neededBytes += value.length;
    }
  }
  const buffer =
    reuse !== undefined && reuse.byteLength >= neededBytes ? reuse : new ArrayBuffer(frameSize(neededBytes));
  const usedBytes = writeRows(buffer, batches, { columnIndex, moved });
  assert(usedBytes === neededBytes, 'a frame holds what was counted');
  return { buffer, usedBytes, moved, sync: batches.some(({ sync }) => sync) };
}

function writeRows(
  buffer: ArrayBuffer,
  batches: readonly CommitRows[],
  options: { columnIndex: ReadonlyMap<string, number>; moved: readonly ArrayBuffer[] },
): number {
  const bytes = new Uint8Array(buffer);
  const header = new DataView(buffer);
  let offset = 0;
  let movedCount = 0;
  for (const { rows, keep } of batches) {
    for (const { column, key, value } of rows) {
      const isMoved = !keep && value !== null && value.buffer === options.moved[movedCount];
      header.setUint8(offset, value === null ? OP.delete : isMoved ? OP.putMoved : OP.put);
      header.setUint8(offset + 1, must(options.columnIndex.get(column), `unknown column ${column}`));
      header.setUint16(offset + 2, key.length);
      header.setUint32(offset + 4, value?.length ?? 0);
      offset += ROW_HEADER_BYTES;
      bytes.set(key, offset);
      offset += key.length;
      if (isMoved) movedCount++;
      else if (value !== null) {
        bytes.set(value, offset);
        offset += value.length;
      }
    }
  }
  return offset;
}

/** Calls `apply` for each row in order; the bytes are views of the frame, valid during the call. */
export function decodeFrame(
  frame: CommitFrame,
  apply: (columnIndex: number, key: Uint8Array, value: Uint8Array | null) => void,
): void {
  const bytes = new Uint8Array(frame.buffer);
  const header = new DataView(frame.buffer);
  let offset = 0;
  let movedCount = 0;
  while (offset < frame.usedBytes) {
    const op = header.getUint8(offset);
    const columnIndex = header.getUint8(offset + 1);
    const keyBytes = header.getUint16(offset + 2);
    const valueBytes = header.getUint32(offset + 4);
    offset += ROW_HEADER_BYTES;
    const key = bytes.subarray(offset, offset + keyBytes);
    offset += keyBytes;
    if (op === OP.delete) apply(columnIndex, key, null);
    else if (op === OP.putMoved)
      apply(columnIndex, key, new Uint8Array(must(frame.moved[movedCount++], 'a moved value')));
    else {
      apply(columnIndex, key, bytes.subarray(offset, offset + valueBytes));
      offset += valueBytes;
    }
  }
}

function canMove(value: Uint8Array): boolean {
  return (
    value.length >= MOVED_VALUE_BYTES_MIN &&
    value.length === value.buffer.byteLength &&
    value.buffer instanceof ArrayBuffer &&
    !isMarkedAsUntransferable(value.buffer)
  );
}

function frameSize(neededBytes: number): number {
  return Math.max(64 * 1024, 2 ** Math.ceil(Math.log2(neededBytes + 1)));
}
