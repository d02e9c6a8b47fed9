import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
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
  let portCount = 0;
  function connect(name: string, remoteAddress = '192.0.2.1'): Socket {
    const socket = Object.assign(new EventEmitter(), {
      remoteAddress,
      remotePort: ++portCount,
      bytesRead: 0,
      destroy() {
        destroyed.push(name);
        socket.emit('close');
      },
    });
    live.connections.open(socket as unknown as Socket);
    return socket as unknown as Socket;
  }
  /** One whose answer waits for its client. */
  function begin(socket: Socket, unsentBytes = 0, account?: string): Exchange {
    const exchange = {
      request: { socket },
      tenant: { account, address: socket.remoteAddress, ...(account && { signer: 'own key' }) },
      response: { writableLength: unsentBytes, headersSent: true },
      body: { waitingSinceMs: undefined, isAtEnd: true },
      startedAtMs: clock.monotonicMs(),
      sendingSinceMs: unsentBytes > 0 ? clock.monotonicMs() : undefined,
      mustClose: false,
    } as unknown as Exchange;
    live.begin(exchange);
    if (account !== undefined) live.onProved(exchange);
    socket.once('close', () => live.end(exchange));
    return exchange;
  }
  return { clock, live, connect, begin, destroyed };
}

const CONNECTIONS = { reason: 'connections', share: 'tenant' };
const REQUESTS = { reason: 'requests', share: 'tenant' };

test('a connection beyond the limit is told to close', () => {
  const { live, connect, begin, destroyed } = setUp({ connectionsMax: 20 });
  // One address may have four fifths.
  const busy = Array.from({ length: 16 }, () => begin(connect('busy')));
  for (const exchange of busy) expect([live.admit(exchange), exchange.mustClose]).toEqual([undefined, false]);
  const excess = begin(connect('excess'));
  expect([live.admit(excess), excess.mustClose]).toEqual([CONNECTIONS, true]);
  excess.request.socket.emit('close');
  const other = begin(connect('other', '192.0.2.2'), 0, 'account');
  expect([live.admit(other), other.mustClose]).toEqual([undefined, false]);
  expect(destroyed).toEqual([]);
});

test('an idle connection makes room for a new one, and so does one that only drains its body', () => {
  const { live, connect, begin, destroyed } = setUp({ connectionsMax: 5 });
  const lingering = begin(connect('lingering'));
  for (const name of ['busy', 'busy']) begin(connect(name));
  connect('idle');
  expect(begin(connect('new')).mustClose).toBe(false);
  expect(destroyed).toEqual(['idle']);
  Object.assign(lingering, { isLingering: true });
  live.onLingering(lingering);
  expect(begin(connect('newer')).mustClose).toBe(false);
  expect(destroyed).toEqual(['idle', 'lingering']);
});

test('an authenticated connection makes no room for anonymous ones', () => {
  const { connect, begin, live, destroyed } = setUp({ connectionsMax: 20 });
  live.end(begin(connect('proved'), 0, 'account'));
  for (let count = 0; count < 40; count++) connect('stranger', `192.0.2.${count}`);
  expect(destroyed.length).toBeGreaterThan(20);
  expect(destroyed).not.toContain('proved');
});

test('both sockets of TLS are one connection, which counts before the handshake', () => {
  const { live, connect, destroyed } = setUp({ connectionsMax: 5 });
  const raw = [1, 2, 3, 4].map((at) => connect(`raw ${at}`));
  const { remoteAddress, remotePort } = raw[0] as Socket;
  const secured = Object.assign(new EventEmitter(), {
    remoteAddress,
    remotePort,
    destroy: () => destroyed.push('secured'),
  }) as unknown as Socket;
  live.connections.secure(secured);
  expect(live.connections.get(secured)).toBeDefined();
  connect('more');
  expect(destroyed).toEqual(['secured']);
  secured.emit('close');
  raw[0]?.emit('close');
  expect([...live.connections.all()]).toHaveLength(4);
});

test('requests beyond the limit are refused until others have ended', () => {
  const { live, connect, begin } = setUp({ requestsInFlightMax: 3 });
  const [first, second, third] = [begin(connect('a')), begin(connect('b')), begin(connect('c'))];
  expect([live.admit(first), live.admit(second), live.admit(third)]).toEqual([
    undefined,
    undefined,
    REQUESTS,
  ]);
  expect(third.mustClose).toBe(false);
  live.end(first);
  expect(live.admit(third)).toBeUndefined();
});

test('one account leaves request places to another, and to anonymous callers', () => {
  const { live, connect, begin } = setUp({ connectionsMax: 1000, requestsInFlightMax: 100 });
  const admit = (account?: string) => live.admit(begin(connect('any'), 0, account));
  let heldByOne = 0;
  while (admit('one') === undefined) heldByOne++;
  // An address alone may have so much.
  expect(heldByOne).toBe(72);
  expect(live.overload()).toBeUndefined();
  expect(admit('two')).toBeUndefined();
  expect(admit()).toBeUndefined();
  for (let at = 0; live.overload() === undefined && at < 100; at++) admit(`many ${at}`);
  expect(live.overload()).toEqual({ reason: 'requests', share: 'all' });
  expect(admit('last')).toEqual({ reason: 'requests', share: 'all' });
});

test('a refused request that is still read holds no place', () => {
  const { live, connect, begin } = setUp({ requestsInFlightMax: 3 });
  for (let count = 0; count < 10; count++) {
    const exchange = begin(connect('a'));
    expect(live.admit(exchange)).toBeUndefined();
    live.onLingering(exchange);
  }
  expect(live.overload()).toBeUndefined();
});

test('unread answers block new requests of their client; the longest stalled one is ended', async () => {
  const { clock, live, connect, begin, destroyed } = setUp();
  const stopped = new AbortController();
  void live.watch(stopped.signal);
  for (const name of ['a', 'b', 'c']) {
    begin(connect(name), LIMITS.unsentBytesMax / 2 - MiB, 'slow');
    clock.advance(1000);
  }
  begin(connect('other'), MiB, 'other');
  clock.advance(1000);
  const admit = (account?: string) => live.admit(begin(connect('new'), 0, account));
  expect(admit('slow')).toEqual({ reason: 'answers', share: 'tenant' });
  // There is more than there may be, and neither another account nor strangers are refused for it.
  expect([live.overload(), admit('other'), admit()]).toEqual([undefined, undefined, undefined]);
  for (let second = 0; second < LIMITS.bodyStalledMs / 1000; second++) {
    await new Promise(setImmediate);
    clock.advance(1000);
  }
  await new Promise(setImmediate);
  expect(destroyed).toEqual(['a']);
  stopped.abort();
});

test('a streamed object counts as body memory, not as an answer', () => {
  const { live, connect, begin } = setUp();
  const streamed = begin(connect('a'), LIMITS.unsentBytesMax, 'slow');
  Object.assign(streamed, { isBodyMemory: true });
  expect(live.admit(begin(connect('b'), 0, 'slow'))).toBeUndefined();
});

test('requests that wait behind others are bounded, per connection and in total', () => {
  const { live, connect } = setUp();
  const { connections } = live;
  const fill = (socket: Socket) => {
    let count = 0;
    while (connections.mayWait(socket)) count++;
    return count;
  };
  const socket = connect('a');
  expect(fill(socket)).toBe(LIMITS.pipelinedRequestsMax);
  connections.endWait(socket);
  expect(fill(socket)).toBe(1);
  const others = Array.from({ length: 60 }, () => connect('b'));
  for (const other of others) fill(other);
  // Places are left for another address.
  const alone = connect('c', '192.0.2.2');
  expect(fill(alone)).toBe(LIMITS.pipelinedRequestsMax);
  for (const gone of [socket, ...others]) gone.emit('close');
  expect(fill(connect('d'))).toBe(LIMITS.pipelinedRequestsMax);
});

test('a connection that breaks off ends its own requests, and no other is looked at', () => {
  const { live, connect } = setUp();
  const failed: string[] = [];
  const open = (name: string) => {
    const socket = Object.assign(connect(name), { destroySoon() {} });
    const request = { socket, complete: false };
    const body = { fail: () => failed.push(name) };
    const exchange = { request, body, tenant: { account: undefined, address: name }, mustClose: false };
    live.begin(exchange as unknown as Exchange);
    return { socket, exchange };
  };
  const [broken, other] = [open('broken'), open('other')];
  Object.defineProperty(other.exchange, 'request', { get: () => expect.fail('it is looked at') });
  expect(live.breakOff(broken.socket, new AppError('IncompleteBody'))).toBe(true);
  expect(failed).toEqual(['broken']);
  live.end(broken.exchange as unknown as Exchange);
  expect(live.breakOff(broken.socket, new AppError('IncompleteBody'))).toBe(false);
  expect(failed).toEqual(['broken']);
});

test('a waiting request whose client has gone ends with its body', () => {
  const { live, connect } = setUp();
  const socket = connect('half closed');
  expect(live.breakOff(socket, new AppError('IncompleteBody'))).toBe(false);
  const failed: AppError[] = [];
  const exchange = {
    request: { socket, complete: false },
    tenant: { account: undefined, address: '192.0.2.1' },
    body: { fail: (error: AppError) => failed.push(error) },
    mustClose: false,
  } as unknown as Exchange;
  live.begin(exchange);
  expect(failed.map(({ code }) => code)).toEqual(['IncompleteBody']);
  expect(exchange.mustClose).toBe(true);
});
