import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { createMemoryKv } from '../../platform/memory/memory-kv.ts';
import type { AppendMessage, LogPosition } from '../../ports/replication.ts';
import type { WitnessPort } from '../../ports/witness.ts';
import { encodeEntry } from '../engine/entry-codec.ts';
import { LOG_COLUMN } from '../engine/row-keys.ts';
import { SILENCE_MS } from '../engine/timing.ts';
import { Applier } from './applier.ts';
import { Follower } from './follower.ts';
import { LogStore } from './log-store.ts';
import type { MessageBody } from './message-envelope.ts';
import { Promises } from './promises.ts';

const PRIMARY = { replicaId: 'p', nodeId: 'p' };
const NOTHING = { seq: 0, epoch: 0 };
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
const entry = (seq: number, epoch: number) => encodeEntry({ seq, epoch, timeMs: 1, rows: [] });

/** A replica of shard 0 that has promised epoch 2, with a log of `entries`. `hold`: its witness is not lowered yet. */
async function openFollower(entries: Uint8Array[]) {
  const kv = createMemoryKv(['rows', 'bodies', LOG_COLUMN]);
  const clock = createManualClock(0);
  let lowering = Promise.withResolvers<void>();
  lowering.resolve();
  const witness: WitnessPort = {
    read: () => undefined,
    write() {},
    lower: () => lowering.promise,
    failed: new Promise(() => {}),
    async close() {},
  };
  const log = new LogStore(0, kv, {
    base: NOTHING,
    markBytes: 1024,
    budget: { waitingBytes: 0, tailBytes: 0 },
  });
  await log.append(NOTHING, entries);
  const parts = { shard: 0, kv, clock, witness, logger: SILENT, log };
  const record = {
    clusterId: 'c',
    replicaId: 'f',
    incarnation: 1,
    promised: 2,
    state: 'live',
    isDamaged: false,
    votesFor: null,
    seen: null,
  } as const;
  const promises = new Promises(parts, { record, isNew: true });
  const applied = { ...NOTHING, timeMs: 0 };
  const applier = new Applier({
    shard: 0,
    kv,
    log,
    applied,
    onApplied() {},
    isAwaited: () => true,
    async verify() {},
  });
  const said: MessageBody[] = [];
  const follower = new Follower({
    ...parts,
    applier,
    promises,
    witnessed: undefined,
    send: () => (_to, body) => said.push(body),
    onOtherLeads() {},
    isLeading: () => false,
    onEvent() {},
  });
  return {
    follower,
    log,
    promises,
    said,
    clock,
    hold: () => {
      lowering = Promise.withResolvers<void>();
      return () => lowering.resolve();
    },
  };
}

const head = (epoch: number) => ({ shard: 0, incarnation: 1, epoch, from: 'p', to: 'f' });
const append = (epoch: number, prev: LogPosition, entries: Uint8Array[]): AppendMessage => ({
  ...head(epoch),
  kind: 'append',
  prev,
  entries,
  commitSeq: 0,
  echoMs: 0,
  matchedSeq: 0,
});
const settle = () => new Promise((resolve) => setImmediate(resolve));

test('entries acknowledged to a primary of a higher epoch are not cut by a log that a candidate was fetching', async () => {
  const { follower, hold, log, said } = await openFollower([entry(1, 1), entry(2, 1)]);
  const release = hold();
  const adopting = follower.adopt({ seq: 1, epoch: 1 }, [entry(2, 2)]);
  follower.onAppend(PRIMARY, append(3, { seq: 2, epoch: 1 }, [entry(3, 3)]));
  await settle();
  expect(said.at(-1)).toMatchObject({ kind: 'ack', matchSeq: 3 });
  release();
  expect(await adopting).toBe(false);
  expect(log.last).toEqual({ seq: 3, epoch: 3 });
});

test('a live replica is not cleared for a snapshot of what its log has', async () => {
  const { follower, log, promises, said } = await openFollower([entry(1, 1), entry(2, 1)]);
  const begin = { ...head(2), kind: 'snapshot-begin', snapshotId: 's' } as const;
  follower.onSnapshot(PRIMARY, { ...begin, start: { seq: 2, epoch: 1, timeMs: 1 } });
  await settle();
  expect([promises.record.state, log.last.seq, said.length]).toEqual(['live', 2, 0]);
  // One whose end is another's, though it is as long, has nothing to lose.
  follower.onSnapshot(PRIMARY, { ...begin, start: { seq: 2, epoch: 2, timeMs: 1 } });
  await settle();
  expect(said.at(-1)).toMatchObject({ kind: 'snapshot-next', page: 0 });
  // Who offers it may be gone since: what is here stays until the first page shows that it is not.
  expect([promises.record.state, log.last.seq]).toEqual(['live', 2]);
  const page = { ...head(2), kind: 'snapshot-page' as const, page: 0, rows: [] };
  follower.onSnapshot(PRIMARY, { ...page, snapshotId: 'another' });
  await settle();
  expect(promises.record.state).toBe('live');
  follower.onSnapshot(PRIMARY, { ...page, snapshotId: 's' });
  await settle();
  expect(promises.record.state).toBe('installing');
  expect(said.at(-1)).toMatchObject({ kind: 'snapshot-next', page: 1 });
});

test('a late first page clears nothing', async () => {
  const { follower, promises, clock } = await openFollower([entry(1, 1), entry(2, 1)]);
  const head2 = { ...head(2), snapshotId: 's' };
  follower.onSnapshot(PRIMARY, { ...head2, kind: 'snapshot-begin', start: { seq: 9, epoch: 2, timeMs: 1 } });
  await settle();
  // As after a suspension, of which the monotonic clock knows nothing.
  clock.shiftWall(SILENCE_MS);
  follower.onSnapshot(PRIMARY, { ...head2, kind: 'snapshot-page', page: 0, rows: [] });
  await settle();
  expect(promises.record.state).toBe('live');
});
