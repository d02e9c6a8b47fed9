import { Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import {
  answer,
  askPeer,
  type PeerSide,
  question,
} from '../../../tests/support/coordination/scripted-peer.ts';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { LIMITS } from '../../types/limits.ts';
import { systemClock } from '../system-clock.ts';
import { createDial } from './dial.ts';
import type { PeerAnswer } from './peer-connection.ts';
import { PeerPool } from './peer-pool.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const open: typeof askPeer = async (...args) => {
  const opened = await askPeer(...args);
  closers.push(opened.close);
  return opened;
};
const patient = { timeoutMs: LIMITS.chunkRequestMaxMs };
const text = ({ bytes }: PeerAnswer) => Buffer.from(bytes).toString();
const because = (message: string) => ({
  code: 'ServiceUnavailable',
  cause: { cause: { message: expect.stringContaining(message) } },
});

describe('a pooled connection', () => {
  /** Answers the first request of a connection and ends it at the second, having said `said` of an answer. */
  const endsAtSecond =
    (said = '') =>
    async (side: PeerSide) => {
      await side.until({ heads: 1 });
      await side.say(answer(`of ${side.number}`));
      await side.until({ heads: 2 });
      if (said !== '') await side.say(said);
      side.socket.resetAndDestroy();
    };

  test('that ends during a request: the request is sent once more, over a new one', async () => {
    const { peer, ask } = await open(endsAtSecond());
    expect(text(await ask(question(), patient))).toBe('of 1');
    expect(text(await ask(question(), patient))).toBe('of 2');
    expect(text(await ask(question(), patient))).toBe('of 3');
    expect(peer.sides).toHaveLength(3);
  });

  test('that ends within an answer: the request is not sent again', async () => {
    const { peer, ask } = await open(endsAtSecond('HTTP/1.1'));
    await ask(question(), patient);
    await expect(ask(question(), patient)).rejects.toMatchObject(because('there was no answer'));
    expect(peer.sides).toHaveLength(1);
  });

  test('is retried once; a new connection is not', async () => {
    const { peer, ask } = await open(async (side) => {
      await side.until({ heads: 1 });
      if (side.number === 1) await side.say(answer('of 1'));
      if (side.number === 1) await side.until({ heads: 2 });
      side.socket.resetAndDestroy();
    });
    await ask(question(), patient);
    await expect(ask(question(), patient)).rejects.toMatchObject(because('there was no answer'));
    expect(peer.sides).toHaveLength(2);
    await expect(ask(question(), patient)).rejects.toMatchObject(because('there was no answer'));
    expect(peer.sides).toHaveLength(3);
  });

  test('is not used when it has ended before', async () => {
    const { peer, ask } = await open(async (side) => {
      await side.until({ heads: 1 });
      await side.say(answer(`of ${side.number}`));
      side.socket.end();
    });
    await ask(question(), patient);
    await peer.sides[0]?.closed;
    await systemClock.sleep(5);
    expect(text(await ask(question(), patient))).toBe('of 2');
  });

  test('ends after it was idle for too long', async () => {
    const clock = createManualClock(0);
    const { peer, ask } = await open(
      async (side) => {
        await side.until({ heads: 1 });
        await side.say(answer());
      },
      { clock },
    );
    await ask(question(), patient);
    let isClosed = false;
    void peer.sides[0]?.closed.then(() => {
      isClosed = true;
    });
    // Sleepers see each step.
    for (let passedMs = 0; passedMs < LIMITS.chunkIdleMaxMs; passedMs += 1000) {
      await systemClock.sleep(1);
      expect(isClosed).toBe(false);
      clock.advance(1000);
    }
    await peer.sides[0]?.closed;
  });
});

describe('a request that waits too long', () => {
  test.each([
    ['for an answer', ''],
    ['for the end of one', answer('hello').subarray(0, -1)],
  ])('%s', async (_name, said) => {
    const clock = createManualClock(0);
    const { peer, ask } = await open(
      async (side) => {
        await side.until({ heads: 1 });
        await side.say(said);
      },
      { clock },
    );
    const asking = expect(ask(question(), patient)).rejects.toMatchObject(because('no answer within'));
    while (peer.sides.length === 0) await systemClock.sleep(1);
    await peer.sides[0]?.until({ heads: 1 });
    for (let passedMs = 0; passedMs < LIMITS.chunkRequestMaxMs; passedMs += 1000) {
      clock.advance(1000);
      await systemClock.sleep(1);
    }
    await asking;
    await peer.sides[0]?.closed;
  });

  test('for a connection', async () => {
    const clock = createManualClock(0);
    const dial = () => ({ socket: new Socket(), readyEvent: 'connect' as const });
    const pool = new PeerPool('127.0.0.1:1', { dial, clock });
    const asking = expect(pool.request(question(), patient)).rejects.toMatchObject(
      because('no connection within'),
    );
    await systemClock.sleep(1);
    clock.advance(LIMITS.chunkConnectMaxMs);
    await asking;
  });
});

describe('a cancelled request', () => {
  test('rejects with one common error, and leaves its place to others', async () => {
    const { peer, ask } = await open(async (side) => {
      await side.until({ heads: 1 });
      if (side.number > LIMITS.chunkConnectionsPerNode) await side.say(answer('at last'));
    });
    const giveUp = new AbortController();
    const asked = Array.from({ length: LIMITS.chunkConnectionsPerNode + 3 }, () =>
      ask(question(), { ...patient, signal: giveUp.signal }).catch((error: unknown) => error),
    );
    const other = ask(question(), patient);
    while (peer.sides.length < LIMITS.chunkConnectionsPerNode) await systemClock.sleep(1);
    giveUp.abort(new Error('enough'));
    const reasons = new Set(await Promise.all(asked));
    expect([...reasons]).toMatchObject([{ code: 'ServiceUnavailable' }]);
    expect(text(await other)).toBe('at last');
    await expect(ask(question(), { ...patient, signal: giveUp.signal })).rejects.toBe([...reasons][0]);
    // Those that waited were never sent.
    expect(peer.sides).toHaveLength(LIMITS.chunkConnectionsPerNode + 1);
  });
});

test('closing the pool ends everything', async () => {
  const { peer, pool, ask } = await open(async () => {});
  const asking = expect(ask(question(), patient)).rejects.toMatchObject(because('closed'));
  while (peer.sides.length === 0) await systemClock.sleep(1);
  pool.close();
  await asking;
  await peer.sides[0]?.closed;
  await expect(ask(question(), patient)).rejects.toMatchObject(because('closed'));
});

test('a malformed address is ServiceUnavailable', async () => {
  const pool = new PeerPool('127.0.0.1:none', {
    dial: createDial({ kind: 'secret', secret: 'of nobody' }),
    clock: systemClock,
  });
  await expect(pool.request(question(), patient)).rejects.toMatchObject({ code: 'ServiceUnavailable' });
});
