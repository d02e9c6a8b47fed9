// Turns of requests on simulated connections: the loop turns on request, and each start takes as long as a turn, so that
// all but the first of a crowd wait.
import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { must } from '../../base/assert.ts';
import { AppError } from '../../types/errors.ts';
import { LIMITS } from '../../types/limits.ts';
import { createAdmission } from './admission.ts';
import { createClientViewer } from './client-view.ts';
import type { Exchange } from './exchange.ts';
import { LiveExchanges } from './live-exchanges.ts';
import { senderOf } from './sender.ts';

function setUp() {
  const clock = createManualClock(0);
  const limits = { idleTimeoutMs: 60_000, connectionsMax: 100, requestsInFlightMax: 100 };
  const live = new LiveExchanges({ clock, limits });
  const viewer = createClientViewer({ trustedProxies: [], publicNames: [] });
  const turns: (() => void)[] = [];
  const admit = createAdmission({ live, viewer, clock, nextTurn: (then) => void turns.push(then) });
  const begun: string[] = [];
  let portCount = 0;

  function connect(remoteAddress: string): Socket {
    const socket = Object.assign(new EventEmitter(), {
      remoteAddress,
      remotePort: ++portCount,
      bytesRead: 0,
      destroyed: false,
      writableEnded: false,
      destroySoon: () => Object.assign(socket, { writableEnded: true }),
      destroy() {
        socket.destroyed = true;
        socket.emit('close');
      },
    });
    live.connections.open(socket as unknown as Socket);
    return socket as unknown as Socket;
  }

  /** A request has come; gives its response. `isFirst`: nothing before it waits for its answer. */
  function ask(url: string, socket: Socket, { accessKey = '', isFirst = true } = {}) {
    const headers = accessKey === '' ? {} : { authorization: `AWS ${accessKey}:signature` };
    const request = { socket, headers, url } as unknown as IncomingMessage;
    const response = Object.assign(new EventEmitter(), { socket: isFirst ? socket : null });
    admit(request, response as unknown as ServerResponse, () => {
      begun.push(url);
      clock.advance(LIMITS.requestStartsTurnMs);
    });
    return response;
  }

  async function turnAll(): Promise<void> {
    while (turns.length > 0) {
      for (const then of turns.splice(0)) then();
      await new Promise(setImmediate);
    }
  }
  return { live, begun, connect, ask, turnAll };
}

test('a request does not wait for many access keys of another account at its address', async () => {
  const { live, begun, connect, ask, turnAll } = setUp();
  const connectAs = (account: string) => {
    const socket = connect('192.0.2.1');
    live.connections.prove(must(live.connections.get(socket), 'it is open'), { account });
    return socket;
  };
  for (let at = 0; at < 32; at++) ask(`crowd ${at}`, connectAs('crowd'), { accessKey: `KEY${at}` });
  ask('own', connectAs('own'), { accessKey: 'OWN' });
  await turnAll();
  expect(begun.indexOf('own')).toBe(1);
});

test('a request does not wait for a crowd of another address that came first', async () => {
  const { begun, connect, ask, turnAll } = setUp();
  for (let at = 0; at < 32; at++) ask(`crowd ${at}`, connect('192.0.2.1'));
  ask('other', connect('192.0.2.2'));
  await turnAll();
  expect(begun.indexOf('other')).toBe(1);
  expect(begun.length).toBe(33);
});

test('a request does not wait for requests of its address with another access key, or none', async () => {
  const { begun, connect, ask, turnAll } = setUp();
  for (const accessKey of ['', 'ANOTHER']) {
    for (let at = 0; at < 16; at++) ask(`crowd ${at}`, connect('192.0.2.1'), { accessKey });
  }
  ask('own', connect('192.0.2.1'), { accessKey: 'OWN' });
  await turnAll();
  expect(begun.indexOf('own')).toBe(2);
});

test('a request does not wait for those who name its access key and have proved nothing, or another account', async () => {
  const { live, begun, connect, ask, turnAll } = setUp();
  const connectAs = (account: string, address: string) => {
    const socket = connect(address);
    live.connections.prove(must(live.connections.get(socket), 'it is open'), { account });
    return socket;
  };
  for (const open of [connect, (address: string) => connectAs('attacker', address)]) {
    for (let at = 0; at < 8; at++) ask('crowd', open(`192.0.2.${at}`), { accessKey: 'OWN' });
  }
  await turnAll();
  begun.length = 0;
  for (let at = 0; at < 4; at++) ask('other', connect('198.51.100.1'), { accessKey: 'OTHER' });
  ask('own', connectAs('own', '203.0.113.1'), { accessKey: 'OWN' });
  await turnAll();
  expect(begun.indexOf('own')).toBe(1);
});

test('a request whose connection has ended before its turn never begins', async () => {
  const { live, begun, connect, ask, turnAll } = setUp();
  const sockets = ['first', 'gone', 'closing', 'last'].map((name) => {
    const socket = connect('192.0.2.1');
    ask(name, socket);
    return socket;
  });
  sockets[1]?.destroy();
  sockets[2]?.destroySoon();
  await turnAll();
  expect(begun).toEqual(['first', 'last']);
  // Nothing is left behind that the end would wait for.
  await live.drain(60_000);
});

test('requests of one connection start in order, each after the answers before it', async () => {
  const { begun, connect, ask, turnAll } = setUp();
  const socket = connect('192.0.2.1');
  ask('one', socket);
  const [second, third] = ['two', 'three'].map((name) => ask(name, socket, { isFirst: false }));
  ask('of another', connect('192.0.2.2'));
  await turnAll();
  expect(begun).toEqual(['one', 'of another']);
  for (const response of [second, third]) {
    response?.emit('socket', socket);
    await turnAll();
  }
  expect(begun).toEqual(['one', 'of another', 'two', 'three']);
});

test('a connection with a waiting request counts as busy, and reports bad bytes in its answer', async () => {
  const { live, connect, ask, turnAll } = setUp();
  const [, waits] = [connect('192.0.2.1'), connect('192.0.2.1')].map((socket) => {
    ask('a', socket);
    return socket;
  });
  if (waits === undefined) throw new Error('two connections');
  for (let at = 0; at < 120; at++) connect('192.0.2.1');
  expect(waits.destroyed).toBe(false);
  expect(live.breakOff(waits, new AppError('BadRequest'))).toBe(true);
  await turnAll();
  const exchange = { request: { socket: waits, complete: true }, mustClose: false } as unknown as Exchange;
  live.begin(exchange);
  expect(exchange.mustClose).toBe(true);
});

test('the server waits at its end for requests that wait for their turn', async () => {
  const { live, connect, ask, begun, turnAll } = setUp();
  for (const name of ['one', 'two', 'three']) ask(name, connect('192.0.2.1'));
  let hasEnded = false;
  const drained = live.drain(60_000).then(() => {
    hasEnded = true;
  });
  await new Promise(setImmediate);
  expect([hasEnded, begun]).toEqual([false, []]);
  await turnAll();
  await drained;
  expect(begun).toEqual(['one', 'two', 'three']);
});

test('a sender is the address, as a trusted proxy reports it, and the access key or credentials that are named', () => {
  const viewer = createClientViewer({ trustedProxies: ['192.0.2.0/24'], publicNames: [] });
  const sender = (remoteAddress: string, headers: Record<string, string>, url = '/b/k') => {
    const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: remoteAddress });
    return senderOf({ socket, headers, url } as unknown as IncomingMessage, viewer, undefined);
  };
  const v4 = 'AWS4-HMAC-SHA256 Credential=KEY/20260101/us-east-1/s3/aws4_request, SignedHeaders=host';
  expect(sender('198.51.100.1', { authorization: v4 })).toEqual(['198.51.100.1', 'KEY 198.51.100.1']);
  expect(sender('198.51.100.1', { authorization: 'AWS KEY:signature' })).toEqual([
    '198.51.100.1',
    'KEY 198.51.100.1',
  ]);
  expect(sender('198.51.100.1', {}, '/b/k?X-Amz-Credential=KEY%2F2026')).toEqual([
    '198.51.100.1',
    '?KEY 198.51.100.1',
  ]);
  expect(sender('198.51.100.1', {}, '/b/k?AWSAccessKeyId=KEY&x=y')).toEqual([
    '198.51.100.1',
    '?KEY 198.51.100.1',
  ]);
  const basic = ['dXNlcjpvbmU=', 'dXNlcjp0d28='];
  for (const sent of basic)
    expect(sender('198.51.100.1', { authorization: `basic  ${sent}` })).toEqual([
      '198.51.100.1',
      `${sent} 198.51.100.1`,
    ]);
  expect(sender('2001:db8::1', {})).toEqual(['2001:db8:0:0::/64', '']);
  const forwarded = { 'x-forwarded-for': '203.0.113.5' };
  expect(sender('192.0.2.1', forwarded)).toEqual(['203.0.113.5', '']);
  expect(sender('198.51.100.1', forwarded)).toEqual(['198.51.100.1', '']);
});
