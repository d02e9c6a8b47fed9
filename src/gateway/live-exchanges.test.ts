import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createManualClock } from '../../tests/support/simulated.ts';
import { LIMITS } from '../model/limits.ts';
import type { Exchange } from './exchange.ts';
import { LiveExchanges } from './live-exchanges.ts';

const MiB = 1024 * 1024;

function setUp(limits: { connectionsMax?: number; requestsInFlightMax?: number } = {}) {
  const clock = createManualClock(0);
  const live = new LiveExchanges({
    clock,
    limits: { idleTimeoutMs: 60_000, connectionsMax: 100, requestsInFlightMax: 100, ...limits },
  });
  const destroyed: string[] = [];
  function connect(name: string): Socket {
    const socket = Object.assign(new EventEmitter(), {
      destroy() {
        destroyed.push(name);
        socket.emit('close');
      },
    });
    live.addSocket(socket as unknown as Socket);
    return socket as unknown as Socket;
  }
  /** One whose answer waits for its client. */
  function begin(socket: Socket, unsentBytes = 0): Exchange {
    const exchange = {
      request: { socket },
      response: { writableLength: unsentBytes, headersSent: true },
      body: { waitingSinceMs: undefined, isAtEnd: true },
      startedAtMs: clock.monotonicMs(),
      sendingSinceMs: unsentBytes > 0 ? clock.monotonicMs() : undefined,
      mustClose: false,
    } as unknown as Exchange;
    live.begin(exchange);
    socket.once('close', () => live.end(exchange));
    return exchange;
  }
  return { clock, live, connect, begin, destroyed };
}

test('what comes on connections beyond their number is one too many, and is told to close', () => {
  const { live, connect, begin } = setUp({ connectionsMax: 2 });
  const [first, , third] = [connect('a'), connect('b'), connect('c')];
  const excess = begin(third);
  expect([live.overloadOf(excess), excess.mustClose]).toEqual(['connections', true]);
  const other = begin(first);
  expect([live.overloadOf(other), other.mustClose]).toEqual([undefined, false]);
  third.emit('close');
  first.emit('close');
  expect(begin(connect('d')).mustClose).toBe(false);
});

test('requests beyond their number are too many until others have ended', () => {
  const { live, connect, begin } = setUp({ requestsInFlightMax: 2 });
  const [first, , third] = [begin(connect('a')), begin(connect('b')), begin(connect('c'))];
  expect([live.overloadOf(third), third.mustClose]).toEqual(['requests', false]);
  live.end(first);
  expect(live.overloadOf(third)).toBeUndefined();
});

test('answers that are not taken keep new requests out; those that stand still longest make room', async () => {
  const { clock, live, connect, begin, destroyed } = setUp();
  const stopped = new AbortController();
  void live.watch(stopped.signal);
  for (const name of ['a', 'b', 'c']) {
    begin(connect(name), LIMITS.unsentBytesMax / 2 - MiB);
    clock.advance(1000);
  }
  const next = begin(connect('new'));
  expect(live.overloadOf(next)).toBe('answers');
  for (let second = 0; second < LIMITS.bodyStalledMs / 1000; second++) {
    await new Promise(setImmediate);
    clock.advance(1000);
  }
  await new Promise(setImmediate);
  expect(destroyed).toEqual(['a']);
  expect(live.overloadOf(next)).toBeUndefined();
  stopped.abort();
});

test('requests that wait behind others on one connection have a bound', () => {
  const { live, connect } = setUp();
  const socket = connect('a');
  for (let count = 0; count < LIMITS.pipelinedRequestsMax; count++) expect(live.mayWait(socket)).toBe(true);
  expect(live.mayWait(socket)).toBe(false);
  live.endWait(socket);
  expect(live.mayWait(socket)).toBe(true);
  expect(live.mayWait(connect('b'))).toBe(true);
});
