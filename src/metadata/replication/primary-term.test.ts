import { describe, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../../../tests/support/run/simulated.ts';
import { must } from '../../base/assert.ts';
import { createMemoryKv } from '../../platform/memory/memory-kv.ts';
import type { NackMessage } from '../../ports/replication.ts';
import { encodeEntry } from '../engine/entry-codec.ts';
import { LOG_COLUMN } from '../engine/row-keys.ts';
import { HEARTBEAT_MS, LEASE_MARGIN_MS, SILENCE_MS } from '../engine/timing.ts';
import { LogStore } from './log-store.ts';
import type { MessageBody } from './message-envelope.ts';
import { PrimaryTerm } from './primary-term.ts';

const OTHER = { replicaId: 'f', nodeId: 'f' };

/** Of a primary of epoch 1 whose log has ten entries, and has lost those up to `baseSeq`. */
async function openTerm(baseSeq: number) {
  const clock = createManualClock(0);
  const kv = createMemoryKv(['rows', LOG_COLUMN]);
  const budget = { waitingBytes: 0, tailBytes: 0 };
  const log = new LogStore(0, kv, { base: { seq: 0, epoch: 1 }, markBytes: 1024, budget });
  const entries = Array.from({ length: 10 }, (_, i) =>
    encodeEntry({ seq: i + 1, epoch: 1, timeMs: 1, rows: [] }),
  );
  await log.append(log.last, entries);
  if (baseSeq > 0) await log.trim({ seq: baseSeq, epoch: 1 });
  const said: MessageBody[] = [];
  let leftBehindCount = 0;
  const term = new PrimaryTerm({
    self: 'p',
    epoch: 1,
    log,
    clock,
    sets: { voters: ['p', 'f', 'g'] },
    others: [OTHER],
    ownSeq: () => 10,
    send: (_to, body) => said.push(body),
    onCommitted() {},
    onLeftBehind: () => leftBehindCount++,
    onMajorityLost() {},
  });
  const nack = (hintSeq: number, echoMs: number): NackMessage => ({
    kind: 'nack',
    shard: 0,
    incarnation: 1,
    epoch: 1,
    from: 'f',
    to: 'p',
    promised: 1,
    hintSeq,
    echoMs,
    wallMs: 0,
    counts: false,
  });
  return { clock, term, said, nack, leftBehind: () => leftBehindCount };
}

test('an answer that leads no further back is followed up with the next heartbeat, not at once', async () => {
  const { clock, term, said, nack } = await openTerm(0);
  term.tick();
  term.onNack(nack(5, 0));
  const countBefore = said.length;
  for (let i = 0; i < 100; i++) term.onNack(nack(8, 0));
  expect(said).toHaveLength(countBefore);
  clock.advance(HEARTBEAT_MS);
  term.tick();
  expect(said.at(-1)).toMatchObject({ kind: 'append', prev: { seq: 7 } });
});

test('a late answer does not mark a follower as left behind', async () => {
  const { clock, term, nack, leftBehind } = await openTerm(8);
  term.tick();
  clock.advance(HEARTBEAT_MS);
  term.tick();
  const { echoMs: _, ...head } = nack(0, 0);
  const ack = { kind: 'ack', matchSeq: 10, echoMs: HEARTBEAT_MS, wallMs: 0, counts: true } as const;
  term.onAck({ ...head, ...ack });
  term.onNack(nack(2, 0));
  term.tick();
  expect(leftBehind()).toBe(0);
  term.onNack(nack(2, HEARTBEAT_MS));
  expect(leftBehind()).toBe(1);
});

describe('R10, I3: a round that a read waits for', () => {
  async function openRead() {
    const opened = await openTerm(0);
    const { clock, term, said, nack } = opened;
    const { echoMs: _, ...head } = nack(0, 0);
    const sentAtMs = () =>
      must(
        said.findLast((body) => body.kind === 'append'),
        'one was sent',
      ).echoMs;
    return {
      clock,
      /** A read that needs an answer; whether it may be answered, as soon as that is known. */
      read() {
        const asked: { mayAnswer?: boolean } = {};
        void Promise.resolve(term.confirmRead()).then((mayAnswer) => {
          asked.mayAnswer = mayAnswer ?? true;
        });
        return { asked, sentAtMs: sentAtMs() };
      },
      async answer(echoMs: number) {
        const ack = { kind: 'ack', matchSeq: 10, wallMs: 0, counts: true } as const;
        term.onAck({ ...head, ...ack, echoMs });
        await new Promise((resolve) => setImmediate(resolve));
      },
      /** Of the next heartbeat. */
      beat() {
        clock.advance(HEARTBEAT_MS);
        term.tick();
        return sentAtMs();
      },
    };
  }

  test('ends when a majority has answered it', async () => {
    const { read, answer } = await openRead();
    const { asked, sentAtMs } = read();
    await answer(sentAtMs);
    expect(asked).toEqual({ mayAnswer: true });
  });

  test.each<[string, (clock: ManualClock) => void]>([
    ['the process stood still', (clock) => clock.advance(SILENCE_MS - LEASE_MARGIN_MS)],
    ['the machine was suspended, and its monotonic clock with it', (clock) => clock.shiftWall(3_600_000)],
    ['nobody knows for how long, because the wall clock was set back', (clock) => clock.shiftWall(-1000)],
  ])('goes on by the next heartbeat where what answers it was heard late: %s', async (_, stand) => {
    const { clock, read, answer, beat } = await openRead();
    const { asked, sentAtMs } = read();
    stand(clock);
    await answer(sentAtMs);
    expect(asked).toEqual({});
    await answer(beat());
    expect(asked).toEqual({ mayAnswer: true });
  });

  test('is its own: answers of an earlier round do not count for a later read, even if both clocks stood still', async () => {
    const { read, answer } = await openRead();
    const before = read();
    // Here the machine is suspended. The answer waits in the socket, and others lead.
    const behind = read();
    await answer(before.sentAtMs);
    expect(behind.asked).toEqual({});
    await answer(behind.sentAtMs);
    expect(behind.asked).toEqual({ mayAnswer: true });
  });
});
