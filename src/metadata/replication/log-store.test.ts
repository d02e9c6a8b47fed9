import { expect, test } from 'vitest';
import { createMemoryKv } from '../../platform/memory/memory-kv.ts';
import type { KvPort } from '../../ports/kv.ts';
import { AppError } from '../../types/errors.ts';
import { encodeEntry } from '../engine/entry-codec.ts';
import { LOG_COLUMN } from '../engine/row-keys.ts';
import { TAILS_BYTES_MAX, UNSYNCED_BYTES_MAX } from '../engine/timing.ts';
import { type LogBudget, LogStore } from './log-store.ts';

const entry = (seq: number, value = new Uint8Array(1)) =>
  encodeEntry({ seq, epoch: 1, timeMs: 1, rows: [{ column: 'rows', key: Uint8Array.of(0, 0, 1), value }] });

function openLog(kv: KvPort, budget: LogBudget = { waitingBytes: 0, tailBytes: 0 }): LogStore {
  return new LogStore(0, kv, { base: { seq: 0, epoch: 1 }, markBytes: 1024, budget });
}

test('nothing is synced behind an entry that was not written, though later writes succeed', async () => {
  const kv = createMemoryKv(['rows', LOG_COLUMN]);
  let commitCount = 0;
  const refusesSecond: KvPort = {
    ...kv,
    commit: (rows, options) =>
      ++commitCount === 2 ? Promise.reject(new AppError('SlowDown')) : kv.commit(rows, options),
  };
  const log = openLog(refusesSecond);
  await log.append(log.last, [entry(1)]);
  const second = log.append(log.last, [entry(2)]);
  const third = log.append(log.last, [entry(3)]);
  const heartbeat = log.synced();
  const outcomes = await Promise.allSettled([second, third, heartbeat, log.append(log.last, [entry(4)])]);
  expect(outcomes.map(({ status }) => status)).toEqual(Array.from({ length: 4 }, () => 'rejected'));
  expect(log.syncedSeq).toBe(1);
});

test('a stalled disk holds up messages of others, for all shards of the process, until it is back', async () => {
  const kv = createMemoryKv(['rows', LOG_COLUMN]);
  const budget = { waitingBytes: 0, tailBytes: 0 };
  const [one, other] = [openLog(kv, budget), openLog(kv, budget)];
  kv.holdCommits();
  const writing = one.append(one.last, [entry(1, new Uint8Array(UNSYNCED_BYTES_MAX))]);
  expect([one.isBehind, other.isBehind]).toEqual([true, true]);
  kv.releaseCommits();
  await writing;
  expect([one.isBehind, other.isBehind]).toEqual([false, false]);
});

test('logs that use much memory leave less to the others, which read from the disk', async () => {
  const kv = createMemoryKv(['rows', LOG_COLUMN]);
  const append = async (log: LogStore) => {
    for (let seq = 1; seq <= 4; seq++) await log.append(log.last, [entry(seq, new Uint8Array(1024 * 1024))]);
  };
  const alone = { waitingBytes: 0, tailBytes: 0 };
  await append(openLog(kv, alone));
  expect(alone.tailBytes).toBeGreaterThan(4 * 1024 * 1024);
  const crowded = { waitingBytes: 0, tailBytes: TAILS_BYTES_MAX };
  const log = openLog(kv, crowded);
  await append(log);
  expect(crowded.tailBytes - TAILS_BYTES_MAX).toBeLessThan(2 * 1024 * 1024);
  expect(await log.read(1, 4, 8 * 1024 * 1024)).toHaveLength(4);
  log.reset({ seq: 0, epoch: 0 });
  expect(crowded.tailBytes).toBe(TAILS_BYTES_MAX);
});

test('entries that are not yet on disk are read from memory, however many there are', async () => {
  const kv = createMemoryKv(['rows', LOG_COLUMN]);
  const budget = { waitingBytes: 0, tailBytes: 0 };
  const log = openLog(kv, budget);
  kv.holdCommits();
  const entries = Array.from({ length: 12 }, (_, i) => entry(i + 1, new Uint8Array(1024 * 1024)));
  const writing = log.append(log.last, entries);
  const [first] = await log.read(1, 12, 1);
  expect(first).toBe(entries[0]);
  kv.releaseCommits();
  await writing;
  await log.append(log.last, [entry(13)]);
  expect(budget.tailBytes).toBeLessThan(9 * 1024 * 1024);
  const opened = openLog(kv, { waitingBytes: 0, tailBytes: 0 });
  expect(await opened.load()).toBe(undefined);
  expect([opened.last.seq, opened.syncedSeq]).toEqual([13, 13]);
});
