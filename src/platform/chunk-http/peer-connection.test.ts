import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { createPeerAuthority } from '../../../tests/support/coordination/peer-certificates.ts';
import {
  answer,
  askPeer,
  type PeerSide,
  question,
} from '../../../tests/support/coordination/scripted-peer.ts';
import { freeMemory } from '../../base/free-memory.ts';
import { LIMITS } from '../../types/limits.ts';
import { systemClock } from '../system-clock.ts';
import type { PeerAnswer } from './peer-connection.ts';

const MiB = 1024 * 1024;
const upload = (body: Uint8Array) =>
  question({ head: () => `PUT / HTTP/1.1\r\ncontent-length: ${body.length}\r\n\r\n`, body });

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

describe('an answer', () => {
  test('is the same wherever it is split, and leaves its connection for the next', async () => {
    const whole = answer('hello', 'holdfast-map: 7\r\n');
    const { peer, ask } = await open(async (side) => {
      for (let at = 1; at < whole.length; at++) {
        await side.until({ heads: at });
        await side.say(whole.subarray(0, at));
        await side.say(whole.subarray(at));
      }
      await side.until({ heads: whole.length });
      for (const byte of whole) await side.say(Buffer.of(byte));
    });
    for (let at = 1; at <= whole.length; at++) {
      const answered = await ask(question(), patient);
      expect(text(answered)).toBe('hello');
      expect(answered.head).toMatchObject({ status: 200, sizeBytes: 5, isLast: false });
      expect(answered.head.headers.get('holdfast-map')).toBe('7');
    }
    expect(peer.sides).toHaveLength(1);
  });

  test('of several MiB comes in buffers of any size, in memory of its own', async () => {
    const body = randomBytes(3 * MiB + 7);
    const { peer, ask } = await open(async (side) => {
      for (let count = 1; count <= 3; count++) {
        await side.until({ heads: count });
        const whole = answer(body);
        for (let at = 0; at < whole.length; ) {
          const sizeBytes = 1 + Math.floor(Math.random() * 300_000);
          await side.say(whole.subarray(at, at + sizeBytes));
          at += sizeBytes;
        }
      }
    });
    for (let count = 0; count < 3; count++) {
      const { bytes } = await ask(question(), patient);
      expect(body.equals(bytes)).toBe(true);
      expect(bytes.byteLength).toBe(bytes.buffer.byteLength);
      freeMemory(bytes);
    }
    expect(peer.sides).toHaveLength(1);
  });

  test('to HEAD has a length and no bytes; a 204 has neither', async () => {
    const { peer, ask } = await open(async (side) => {
      await side.until({ heads: 1 });
      await side.say('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n');
      await side.until({ heads: 2 });
      await side.say('HTTP/1.1 204 No Content\r\n\r\n');
    });
    const bare = await ask(question({ isAnswerBare: true, answerBytesMax: 0 }), patient);
    expect([bare.head.sizeBytes, bare.bytes.length]).toEqual([1000, 0]);
    expect((await ask(question(), patient)).head.status).toBe(204);
    expect(peer.sides).toHaveLength(1);
  });

  test('that closes its connection is followed by a new connection', async () => {
    const { peer, ask } = await open(async (side) => {
      await side.until({ heads: 1 });
      await side.say(answer('one', 'connection: close\r\n'));
    });
    for (let count = 0; count < 2; count++) expect(text(await ask(question(), patient))).toBe('one');
    expect(peer.sides).toHaveLength(2);
    await peer.sides[0]?.closed;
  });

  test.each([
    ['is no HTTP', 'SSH-2.0-OpenSSH\r\n\r\n', 'malformed'],
    ['is of another version', 'HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n', 'malformed'],
    ['was not asked for', 'HTTP/1.1 100 Continue\r\n\r\n', 'malformed'],
    ['has two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\nContent-Length: 2\r\n\r\n', 'malformed'],
    ['has a length that is none', 'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n', 'malformed'],
    ['does not tell its length', 'HTTP/1.1 200 OK\r\n\r\n', 'does not tell its length'],
    ['comes in chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n', 'tell its length'],
    ['is longer than was asked for', `HTTP/1.1 200 OK\r\ncontent-length: ${5 * MiB}\r\n\r\n`, 'too long'],
    ['has more bytes than it says', `${answer('hello')}more`, 'longer than it says'],
    ['has a head without end', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(LIMITS.peerHeaderBytesMax)}`, 'too long'],
  ])('that %s costs its connection', async (_name, said, message) => {
    const { peer, ask } = await open(async (side) => {
      await side.until({ heads: 1 });
      await side.say(side.number === 1 ? said : answer('well'));
    });
    await expect(ask(question(), patient)).rejects.toMatchObject(because(message));
    await peer.sides[0]?.closed;
    expect(text(await ask(question(), patient))).toBe('well');
    expect(peer.sides).toHaveLength(2);
  });

  test('that is malformed is refused unread', async () => {
    const { peer, ask } = await open(async (side) => {
      await side.until({ heads: 1 });
      await side.say(answer(Buffer.alloc(MiB)));
    });
    const wary = question({ problemOf: ({ status }) => `a peer that says ${status}` });
    await expect(ask(wary, patient)).rejects.toMatchObject(because('a peer that says 200'));
    await peer.sides[0]?.closed;
  });

  test.each(['end', 'resetAndDestroy'] as const)(
    'that is broken off (%s) is none, and not asked again',
    async (how) => {
      const { peer, ask } = await open(async (side) => {
        await side.until({ heads: 1 });
        await side.say(answer('hello').subarray(0, -2));
        side.socket[how]();
      });
      await expect(ask(question(), patient)).rejects.toMatchObject(because('ended early'));
      expect(peer.sides).toHaveLength(1);
    },
  );

  test('does not begin with bytes that came before its request', async () => {
    const { peer, ask } = await open(async (side) => {
      await side.until({ heads: 1 });
      // Not in one packet: the second finds the connection idle.
      await side.say(answer('one'));
      if (side.number === 1) await side.say(answer('another'));
    });
    expect(text(await ask(question(), patient))).toBe('one');
    await peer.sides[0]?.closed;
    expect(text(await ask(question(), patient))).toBe('one');
  });
});

describe('a body', () => {
  const body = randomBytes(32 * MiB);

  test('of a request arrives unchanged, behind its head', async () => {
    const { peer, ask } = await open(async (side) => {
      await side.until({ bytes: body.length });
      await side.say(answer());
    });
    await ask(upload(body), patient);
    const received = peer.sides[0]?.received() ?? Buffer.alloc(0);
    expect(received.subarray(received.indexOf('\r\n\r\n') + 4).equals(body)).toBe(true);
  });

  test('stays in use during an early answer, which counts when the body is sent', async () => {
    const { peer, ask } = await open(async (side) => {
      await side.until({ heads: 1 });
      side.socket.pause();
      await side.say(answer('early'));
    });
    let isAnswered = false;
    const asking = ask(upload(body), patient).then((answered) => {
      isAnswered = true;
      return answered;
    });
    while (peer.sides.length === 0) await systemClock.sleep(1);
    await systemClock.sleep(20);
    expect(isAnswered).toBe(false);
    peer.sides[0]?.socket.resume();
    expect(text(await asking)).toBe('early');
    const side = peer.sides[0];
    await side?.until({ bytes: upload(body).head().length + body.length });
    expect(side?.received().subarray(-100).equals(body.subarray(-100))).toBe(true);
  });

  test.each([
    ['says that it is the last', 'connection: close\r\n', () => {}],
    ['ends the connection behind it', '', (side: PeerSide) => side.socket.resetAndDestroy()],
  ])('is not sent to its end when an early answer %s', async (_name, more, then) => {
    const { peer, ask } = await open(async (side) => {
      await side.until({ heads: 1 });
      side.socket.pause();
      await side.say(answer('early', more));
      then(side);
    });
    expect(text(await ask(upload(body), patient))).toBe('early');
    expect(peer.sides[0]?.received().length).toBeLessThan(body.length);
  });

  test('is released once its request is cancelled', async () => {
    const { peer, ask } = await open(async (side) => {
      await side.until({ heads: 1 });
      side.socket.pause();
    });
    const giveUp = new AbortController();
    const own = new Uint8Array(32 * MiB).fill(7);
    const asking = ask(upload(own), { ...patient, signal: giveUp.signal });
    while ((peer.sides[0]?.received().length ?? 0) === 0) await systemClock.sleep(1);
    giveUp.abort(new Error('enough'));
    await expect(asking).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    freeMemory(own);
    const side = peer.sides[0];
    side?.socket.resume();
    await side?.closed;
    const received = side?.received() ?? Buffer.alloc(0);
    expect(received.length).toBeLessThan(32 * MiB);
    const sent = received.subarray(received.indexOf('\r\n\r\n') + 4);
    expect(sent.every((byte) => byte === 7)).toBe(true);
  });
});

describe('with certificates', () => {
  test('bodies pass both ways', async () => {
    const authority = await createPeerAuthority();
    const body = randomBytes(2 * MiB);
    const { peer, ask } = await open(
      async (side) => {
        for (let count = 1; count <= 2; count++) {
          await side.until({ bytes: count * body.length });
          await side.say(answer(body));
        }
      },
      { credentials: await authority.issue(), peer: await authority.issue() },
    );
    for (let count = 0; count < 2; count++) {
      const { bytes } = await ask(upload(body), patient);
      expect(body.equals(bytes)).toBe(true);
    }
    expect(peer.sides).toHaveLength(1);
  });

  test('nothing is sent to a peer of another authority', async () => {
    const foreign = await (await createPeerAuthority()).issue();
    const credentials = await (await createPeerAuthority()).issue();
    const { peer, ask } = await open(async () => {}, { credentials, peer: foreign });
    await expect(ask(question(), patient)).rejects.toMatchObject({ code: 'ServiceUnavailable' });
    for (const side of peer.sides) {
      await side.closed;
      expect(side.received()).toHaveLength(0);
    }
  });
});
