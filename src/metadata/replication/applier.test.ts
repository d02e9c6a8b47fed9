import { expect, test } from 'vitest';
import { createMemoryKv } from '../../platform/memory/memory-kv.ts';
import { LIMITS } from '../../types/limits.ts';
import { encodeEntry } from '../engine/entry-codec.ts';
import { LOG_COLUMN } from '../engine/row-keys.ts';
import { Applier } from './applier.ts';
import { LogStore } from './log-store.ts';

const ROWS_OF_ENTRY = LIMITS.commitGroupRowsMax / 2;
const COUNT = 9;

function entryOf(seq: number): Uint8Array {
  const rows = Array.from({ length: ROWS_OF_ENTRY }, (_, at) => {
    const key = Buffer.from([0, 0, 1, seq, at >> 8, at & 0xff]);
    return { column: 'rows', key, value: null };
  });
  return encodeEntry({ seq, epoch: 1, timeMs: 1, rows });
}

test('entries of many small rows are applied in writes of a bounded number of rows, in order', async () => {
  const kv = createMemoryKv(['rows', LOG_COLUMN]);
  const budget = { waitingBytes: 0, tailBytes: 0 };
  const log = new LogStore(0, kv, { base: { seq: 0, epoch: 1 }, markBytes: 1024, budget });
  for (let seq = 1; seq <= COUNT; seq++) await log.append(log.last, [entryOf(seq)]);
  const rowCounts: number[] = [];
  const { commit } = kv;
  kv.commit = (rows, options) => {
    rowCounts.push(rows.length);
    return commit(rows, options);
  };
  const applied: number[] = [];
  const done = Promise.withResolvers<void>();
  const applier = new Applier({
    shard: 0,
    kv,
    log,
    applied: { seq: 0, epoch: 1, timeMs: 0 },
    onApplied({ seq }) {
      applied.push(seq);
      if (seq === COUNT) done.resolve();
    },
    isAwaited: () => true,
    verify: () => Promise.reject(new Error('nobody asks for it')),
  });
  applier.advance(COUNT);
  await done.promise;
  expect(applied).toEqual(Array.from({ length: COUNT }, (_, at) => at + 1));
  // With the row that says how far it has come.
  expect(Math.max(...rowCounts)).toBe(LIMITS.commitGroupRowsMax + 1);
});
