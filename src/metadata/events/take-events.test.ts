// Consumers of events: pages from any place, what has been taken, what was too much to be kept, and histories that were given
// up. What is read again is the same, whatever others do.
import { beforeEach, expect, test } from 'vitest';
import {
  BUCKET,
  BUCKET_NAME,
  type MetadataShards,
  OWNER,
  openMetadata,
} from '../../../tests/support/metadata/metadata-shards.ts';
import { utf8 } from '../../base/bytes/bytes.ts';
import type { CommandOf, QueryOf } from '../../ports/metadata/port.ts';
import { LIMITS } from '../../types/limits.ts';
import type { BucketId, BucketName } from '../../types/names.ts';
import { eventCodec } from '../../types/records/event-record.ts';
import { historyRow } from '../blobs/history.ts';
import { ENGINE_TABLES, rowKey } from '../engine/row-keys.ts';
import { HISTORY_ROW } from '../schema/keyspace.ts';
import { eventRow } from './event-rows.ts';

let world: MetadataShards;
const OTHER = 'b000000000000002' as BucketId;

async function record(bucketId = BUCKET, name = BUCKET_NAME): Promise<void> {
  await world.execute('create-bucket', { bucketId, name, owner: OWNER });
  const document = { consumers: ['feed' as const] };
  await world.execute('set-bucket-config', { bucketId, kind: 'events', document });
}

beforeEach(async () => {
  world = await openMetadata();
  await record();
});

const at = (seq: number) => ({ incarnation: 1, seq });
const list = async (query: Partial<QueryOf<'list-events'>> = {}) => {
  const { events, ...rest } = await world.query('list-events', { consumer: 'feed', limit: 100, ...query });
  return { keys: events.map(({ event }) => event.key), seqs: events.map(({ seq }) => seq), ...rest };
};
const take = (upTo: CommandOf<'take-events'>['upTo']) =>
  world.execute('take-events', { consumer: 'feed', upTo });
const findings = async () => {
  const all = await Promise.all(
    (['events', 'eventCursors'] as const).map((table) =>
      world.query('check-rows', { table, limit: 1000, keyIds: [] }),
    ),
  );
  return all.flatMap((page) => page.findings);
};

/** As if so many had been written, and `kept` of them are there, the newest. */
async function plantWritten(total: number, kept: number): Promise<void> {
  const value = Buffer.allocUnsafe(8);
  value.writeDoubleBE(total);
  const event = eventCodec.encode({
    type: 's3:ObjectCreated:Put',
    bucketId: BUCKET,
    bucket: BUCKET_NAME,
    key: 'before' as never,
    timeMs: 0,
  });
  const rows = Array.from({ length: kept }, (_, index) => {
    const { table, key } = eventRow('feed', total - 1 - index);
    return { column: 'rows', key: rowKey(0, table, key), value: event };
  });
  const counter = { column: 'rows', key: rowKey(0, ENGINE_TABLES.counters, utf8('events/feed')), value };
  await world.kv.commit([...rows, counter]);
  // Counters are kept in memory.
  world = await openMetadata({ kv: world.kv, clock: world.clock, seed: 3 });
}

test('pages go on where the one before ended, and again from any place', async () => {
  for (const key of ['a', 'b', 'c', 'd', 'e']) await world.put(key);
  expect(await list({ limit: 2 })).toEqual({
    keys: ['a', 'b'],
    seqs: [0, 1],
    next: at(2),
    isAll: false,
    lostCount: 0,
  });
  expect(await list({ from: at(2), limit: 3 })).toMatchObject({ keys: ['c', 'd', 'e'], isAll: true });
  expect(await list({ from: at(5) })).toMatchObject({ keys: [], next: at(5), isAll: true });
  expect(await list({ from: at(1), limit: 1 })).toMatchObject({ keys: ['b'], isAll: false });
  await world.put('f');
  expect(await list({ from: at(5) })).toMatchObject({ keys: ['f'], seqs: [5] });
});

test('events of one bucket are had without those of others, which count for the place', async () => {
  await record(OTHER, 'other' as BucketName);
  await world.put('a');
  await world.put('x', { bucketId: OTHER });
  await world.put('b');
  expect(await list({ bucketId: OTHER, limit: 1 })).toMatchObject({ keys: [], next: at(1), isAll: false });
  expect(await list({ bucketId: OTHER })).toMatchObject({ keys: ['x'], next: at(3), isAll: true });
});

test('what is taken is gone, once; numbers go on, also behind a restart', async () => {
  for (const key of ['a', 'b', 'c']) await world.put(key);
  expect(await take(at(2))).toEqual({ kind: 'taken', takenTo: 2, isAll: true });
  expect(await take(at(1))).toEqual({ kind: 'taken', takenTo: 2, isAll: true });
  expect(await list()).toMatchObject({ keys: ['c'], lostCount: 0 });
  expect(await list({ from: at(0) })).toMatchObject({ keys: ['c'], lostCount: 0 });
  expect(await take(at(100))).toEqual({ kind: 'taken', takenTo: 3, isAll: true });
  world = await openMetadata({ kv: world.kv, clock: world.clock, seed: 3 });
  await world.remove('a');
  expect(await list()).toMatchObject({ keys: ['a'], seqs: [3], next: at(4) });
  expect(await findings()).toEqual([]);
});

test('many are taken some at a time', async () => {
  const total = 2 * LIMITS.eventsTakenMax + 1;
  await plantWritten(total, total);
  const taken = [];
  for (let isAll = false; !isAll; ) {
    const outcome = await take(at(total - 1));
    if (outcome.kind !== 'taken') throw new Error(outcome.kind);
    ({ isAll } = outcome);
    taken.push(outcome.takenTo);
  }
  expect(taken).toEqual([LIMITS.eventsTakenMax, 2 * LIMITS.eventsTakenMax]);
  expect(await list()).toMatchObject({ seqs: [total - 1], isAll: true });
});

test('more than are kept: the oldest make room, writers go on, and who reads is told how many are missing', async () => {
  const { eventsKeptMax } = LIMITS;
  await plantWritten(eventsKeptMax, 0);
  // The three oldest; those between are of no matter here.
  const old = eventCodec.encode({
    type: 's3:ObjectCreated:Put',
    bucketId: BUCKET,
    bucket: BUCKET_NAME,
    key: 'old' as never,
    timeMs: 0,
  });
  await world.kv.commit(
    [0, 1, 2].map((seq) => {
      const { table, key } = eventRow('feed', seq);
      return { column: 'rows', key: rowKey(0, table, key), value: old };
    }),
  );
  expect(await list({ limit: 1 })).toMatchObject({ seqs: [0], lostCount: 0 });
  await world.put('a');
  await world.put('b');
  expect(await list()).toMatchObject({
    keys: ['old', 'a', 'b'],
    seqs: [2, eventsKeptMax, eventsKeptMax + 1],
    lostCount: 2,
  });
  expect(await list({ from: at(1) })).toMatchObject({ lostCount: 1 });
  expect(await list({ from: at(2) })).toMatchObject({ lostCount: 0 });
  // What was taken is not missed.
  await take(at(3));
  for (const key of ['c', 'd']) await world.put(key);
  expect(await list()).toMatchObject({ keys: ['a', 'b', 'c', 'd'], lostCount: 1 });
});

test('a place of a history that was given up means nothing (R23): all that is kept comes, and nothing is taken by it', async () => {
  for (const key of ['a', 'b']) await world.put(key);
  const { table, key } = HISTORY_ROW;
  const value = historyRow.begin(2, world.clock.wallMs());
  await world.kv.commit([{ column: 'rows', key: rowKey(0, table, key), value }]);
  expect(await list({ from: at(1) })).toMatchObject({ keys: ['a', 'b'], next: { incarnation: 2, seq: 2 } });
  expect(await take(at(2))).toEqual({ kind: 'other-history' });
  expect(await take({ incarnation: 2, seq: 1 })).toMatchObject({ kind: 'taken', takenTo: 1 });
  expect(await list({ from: { incarnation: 2, seq: 7 } })).toMatchObject({ keys: ['b'], lostCount: 0 });
});
