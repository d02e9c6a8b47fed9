// Memory does not grow with the size of a body: a PUT and a GET of 1 GiB at full speed beside 50 clients that trickle keeps
// the server's peak within 150 MiB of the same run with a 64 MiB object. Nor with the number of clients: 2,000 idle
// connections cost little, and a crowd that does not read its answers has a bound, keeps nobody out and leaves nothing
// behind. A new process for each run, because its peak is what is read.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as sleep, setInterval as ticks } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { LIMITS } from '../../src/types/limits.ts';
import { amountOf } from '../support/run/long-form.ts';
import { answerOf, openRequest, send } from '../support/servers/raw-s3.ts';
import { headOf, openSocket, type RawSocket } from '../support/servers/raw-socket.ts';
import { startServer, type TestServer } from '../support/servers/start-server.ts';

const KiB = 1024;
const MiB = 1024 * KiB;
const LARGE_MIB = amountOf({ short: 256, long: 2048 });
const TRICKLERS = 50;
const ALLOWED_GROWTH_MIB = 150;
const IDLE_CONNECTIONS = 2000;
const IDLE_GROWTH_MIB = 100;
/** More than the memory for bodies serves at a time. */
const STALLED_READERS = 120;
/** Of a server with the default settings, whatever its clients do here. */
const PEAK_MIB = 700;

/** `count` times the same mebibyte, without ever holding more than one. */
function* mebibytes(count: number): Generator<Buffer> {
  const mebibyte = Buffer.alloc(MiB, 'speed');
  for (let index = 0; index < count; index++) yield mebibyte;
}

/** VmHWM: the peak so far; VmRSS: now. */
function memoryMiB(server: TestServer, what: 'VmHWM' | 'VmRSS'): number {
  const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
  return Number(new RegExp(`${what}:\\s+(\\d+) kB`).exec(status)?.[1]) / KiB;
}

/** What a gauge says. */
async function gauge(server: TestServer, name: string): Promise<number> {
  const text = await (await fetch(`${server.endpoint}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for await (const _ of ticks(100)) if (await isSo()) return;
}

/**
 * Half of them write, half read an object, all by a kibibyte now and then, until `signal`. The writers begin in the
 * middle of a chunk: what they occupy must not depend on how long the run takes.
 */
async function trickle(server: TestServer, signal: AbortSignal): Promise<void> {
  const writers: ClientRequest[] = [];
  const readers: IncomingMessage[] = [];
  const sent: ClientRequest[] = [];
  for (let index = 0; index < TRICKLERS; index++) {
    const isWriter = index % 2 === 0;
    const request = openRequest(server, {
      method: isWriter ? 'PUT' : 'GET',
      path: isWriter ? `/memory/trickle-${index}` : '/memory/slow',
      ...(isWriter && { headers: { 'content-length': String(64 * MiB) } }),
    });
    request.on('error', () => {});
    sent.push(request);
    if (isWriter) {
      request.write(Buffer.alloc(1.5 * MiB));
      writers.push(request);
    } else {
      request.end();
      const answer = await answerOf(request);
      answer.on('error', () => {});
      readers.push(answer.pause());
    }
  }
  try {
    for await (const _ of ticks(50, undefined, { signal })) {
      for (const writer of writers) writer.write(Buffer.alloc(KiB));
      for (const reader of readers) reader.read(KiB);
    }
  } catch {
    // The signal ends the loop.
  }
  for (const request of sent) request.destroy();
}

/** The server's peak after a PUT and a GET of this size beside the trickling clients. */
async function peakOf(sizeMiB: number): Promise<number> {
  const server = await startServer({ child: true, settings: { 'log.level': 'warn' } });
  const done = new AbortController();
  try {
    await send(server, { method: 'PUT', path: '/memory' });
    await send(server, { method: 'PUT', path: '/memory/slow', body: Buffer.alloc(32 * MiB) });
    const trickling = trickle(server, done.signal);
    const startedMs = performance.now();
    const headers = { 'content-length': String(sizeMiB * MiB) };
    const body = Readable.from(mebibytes(sizeMiB), { objectMode: false, highWaterMark: MiB });
    const put = await send(server, { method: 'PUT', path: '/memory/large', headers, body });
    expect(put.status, put.body.toString()).toBe(200);
    const putMs = performance.now() - startedMs;
    const request = openRequest(server, { method: 'GET', path: '/memory/large' });
    request.end();
    const answer = await answerOf(request);
    const digest = createHash('md5');
    for await (const bytes of answer) digest.update(bytes as Buffer);
    expect(`"${digest.digest('hex')}"`).toBe(put.headers.etag);
    const getMs = performance.now() - startedMs - putMs;
    done.abort();
    await trickling;
    const peak = memoryMiB(server, 'VmHWM');
    console.log(
      `${sizeMiB} MiB: peak ${Math.round(peak)} MiB, PUT ${Math.round((sizeMiB * 1000) / putMs)} MiB/s, GET ${Math.round((sizeMiB * 1000) / getMs)} MiB/s`,
    );
    return peak;
  } finally {
    done.abort();
    await server.stop();
  }
}

test(`a body of ${LARGE_MIB} MiB takes no more memory than one of 64 MiB`, async () => {
  const small = await peakOf(64);
  const large = await peakOf(LARGE_MIB);
  expect(large - small).toBeLessThan(ALLOWED_GROWTH_MIB);
});

/** Connections that have each been served and are kept. */
async function openIdle(server: TestServer): Promise<RawSocket[]> {
  const sockets: RawSocket[] = [];
  while (sockets.length < IDLE_CONNECTIONS) {
    const opened = await Promise.all(Array.from({ length: 100 }, () => openSocket(server)));
    for (const socket of opened) socket.write('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n');
    await Promise.all(opened.map((socket) => socket.answer()));
    sockets.push(...opened);
  }
  return sockets;
}

test('a crowd of clients uses bounded memory, keeps nobody out and leaves nothing behind', async () => {
  const server = await startServer({ child: true, settings: { 'log.level': 'warn' } });
  try {
    await send(server, { method: 'PUT', path: '/memory' });
    await send(server, { method: 'PUT', path: '/memory/slow', body: Buffer.alloc(32 * MiB, 'slow') });
    const before = memoryMiB(server, 'VmRSS');
    const sockets = await openIdle(server);
    const idle = memoryMiB(server, 'VmRSS');
    for (let count = 0; count < STALLED_READERS; count++) {
      const socket = await openSocket(server);
      socket.socket.pause();
      socket.write(headOf(server, { method: 'GET', path: '/memory/slow' }));
      sockets.push(socket);
    }
    // They are one account at one address, whose share is less than all: until they have what they may.
    let heldBytes = 0;
    await until(async () => {
      const beforeBytes = heldBytes;
      heldBytes = await gauge(server, 'holdfast_body_buffer_bytes');
      if (heldBytes === 0 || heldBytes !== beforeBytes) await sleep(LIMITS.metricsKeptMs);
      return heldBytes > 0 && heldBytes === beforeBytes;
    });
    const get = () => send(server, { method: 'GET', path: '/memory/slow' });
    let read = await get();
    // Readers give back what they hold when their clients are slow, not while a slow disk keeps them waiting. As programs do it asks again.
    for (let tries = 1; read.status === 503 && tries < 5; tries++) read = await get();
    expect([read.status, read.body.length]).toEqual([200, 32 * MiB]);
    const peak = memoryMiB(server, 'VmHWM');
    for (const socket of sockets) socket.destroy();
    // This very question is the one.
    await until(async () => (await gauge(server, 'holdfast_requests_in_flight')) === 1);
    expect(await gauge(server, 'holdfast_body_buffer_bytes')).toBe(0);
    console.log(
      `crowd: ${Math.round(before)} MiB before, ${Math.round(idle)} with idle connections, peak ${Math.round(peak)}`,
    );
    expect(idle - before).toBeLessThan(IDLE_GROWTH_MIB);
    expect(peak).toBeLessThan(PEAK_MIB);
  } finally {
    await server.stop();
  }
});
