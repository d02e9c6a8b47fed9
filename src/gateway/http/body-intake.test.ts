// What of a body's intake no client can show at will; the rest is in server.test.ts.
import { once } from 'node:events';
import { type IncomingHttpHeaders, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createManualClock } from '../../../tests/support/run/simulated.ts';
import { createFairShare, type FairShare } from '../../base/async/fair-share.ts';
import { createReadTurns, type ReadTurns } from '../../base/async/read-turns.ts';
import { LIMITS } from '../../types/limits.ts';
import { SHARE_WEIGHTS, type Tenant } from '../../types/tenant.ts';
import { BodyIntake } from './body-intake.ts';
import { ParsedRequest } from './parsed-request.ts';

const READ_BYTES = 64 * 1024;
const ALICE = { account: 'alice', address: '192.0.2.1' };
const BOB = { account: 'bob', address: '192.0.2.1' };

const newQueues = () => createFairShare({ limit: LIMITS.intakeQueuesBytesMax, weights: SHARE_WEIGHTS });

/** The body of a request with these headers, which nobody reads yet. */
function intakeOf(
  headers: IncomingHttpHeaders,
  queues = newQueues(),
  tenant: Tenant = ALICE,
  reads: ReadTurns = { mayGoOn: () => true, enter: () => undefined, wait: async () => {} },
) {
  const request = new ParsedRequest(new Socket());
  request.headers = headers;
  const response = new ServerResponse(request);
  const intake = new BodyIntake({
    request,
    response,
    queues,
    reads,
    clock: createManualClock(0),
    tenant: () => tenant,
    onWait: () => {},
  });
  return { request, response, intake };
}

/** One that somebody reads, and what its client sends without being stopped. */
function open(queues: FairShare, tenant: Tenant) {
  const { request, response, intake } = intakeOf({ 'content-length': String(1024 * 1024) }, queues, tenant);
  const first = intake.read();
  return {
    intake,
    first,
    /** Reads of the socket until it is paused. */
    fill(): number {
      for (let reads = 1; ; reads++) {
        request.emit('data', Buffer.alloc(READ_BYTES));
        if (request.isPaused()) return reads;
      }
    },
    close: () => response.emit('close'),
  };
}

test('a body that has had its reads of a turn is read on when its next turn comes', async () => {
  let goOn: (() => void) | undefined;
  const reads: ReadTurns = {
    mayGoOn: (_path, _sizeBytes, then) => {
      goOn = then;
      return false;
    },
    enter: () => undefined,
    wait: async () => {},
  };
  const { request, intake } = intakeOf({ 'content-length': '10' }, newQueues(), ALICE, reads);
  const first = intake.read();
  request.emit('data', Buffer.alloc(4));
  expect(request.isPaused()).toBe(true);
  expect((await first)?.length).toBe(4);
  // Nor does who asks for more bring its turn forward.
  const second = intake.read();
  expect(request.isPaused()).toBe(true);
  goOn?.();
  expect(request.isPaused()).toBe(false);
  request.emit('data', Buffer.alloc(6));
  expect((await second)?.length).toBe(6);
});

test('of bodies whose last bytes come at once some end in a turn, and the others in later ones', async () => {
  const turns: (() => void)[] = [];
  const reads = createReadTurns({
    turnBytesMax: 1024 * 1024,
    readBytes: READ_BYTES,
    pieceBytesMin: 4096,
    nextTurn: (then) => void turns.push(then),
  });
  let ended = 0;
  const crowd = ['10', undefined].flatMap((length) =>
    Array.from({ length: 50 }, () => {
      const headers =
        length === undefined ? { 'transfer-encoding': 'chunked' } : { 'content-length': length };
      const { request, intake } = intakeOf(headers, newQueues(), ALICE, reads);
      const isOver = async () => {
        while (!intake.isAtEnd) await intake.read();
        ended++;
      };
      return { request, over: isOver() };
    }),
  );
  for (const { request } of crowd) {
    request.emit('data', Buffer.alloc(10));
    request.emit('end');
  }
  const counts: number[] = [];
  while (ended < crowd.length) {
    for (const then of turns.splice(0)) then();
    await new Promise(setImmediate);
    counts.push(ended - (counts.length === 0 ? 0 : counts.reduce((sum, count) => sum + count, 0)));
  }
  await Promise.all(crowd.map(({ over }) => over));
  expect(Math.max(...counts)).toBeLessThanOrEqual(64);
  expect(counts.length).toBeGreaterThan(1);
});

test('a client that leaves while the end of its body waits for its turn is a cut body', async () => {
  const turn = Promise.withResolvers<void>();
  const reads: ReadTurns = { mayGoOn: () => true, enter: () => turn.promise, wait: async () => {} };
  const { request, response, intake } = intakeOf({ 'content-length': '10' }, newQueues(), ALICE, reads);
  const read = intake.read();
  request.emit('data', Buffer.alloc(10));
  await new Promise(setImmediate);
  response.emit('close');
  turn.resolve();
  await expect(read).rejects.toMatchObject({ code: 'IncompleteBody' });
});

test('who waits for the rest of a body when the answer is out is told at once that it is cut', async () => {
  const { request, response, intake } = intakeOf({ 'transfer-encoding': 'chunked' });
  const first = intake.read();
  request.emit('data', Buffer.alloc(10));
  await first;
  const second = intake.read();
  response.emit('close');
  await expect(second).rejects.toMatchObject({ code: 'IncompleteBody' });
});

test('unread bodies of one tenant leave room in the queues for another tenant', async () => {
  const queues = newQueues();
  const whole = LIMITS.intakeQueueBytesMax / READ_BYTES;
  const crowd = Array.from({ length: 200 }, () => open(queues, ALICE));
  const reads = crowd.map(({ fill }) => fill());
  expect([reads[0], reads.at(-1)]).toEqual([whole, 1]);
  const other = open(queues, BOB);
  expect(other.fill()).toBe(whole);
  await Promise.all([...crowd, other].map(({ first }) => first));
  for (const { close } of [...crowd, other]) close();
  expect(queues.used).toBe(0);
});

test('a client that left before its body is read is not waited for', async () => {
  const { request, intake } = intakeOf({ 'content-length': '10' });
  request.destroy();
  await once(request, 'close');
  await expect(intake.read()).rejects.toMatchObject({ code: 'IncompleteBody' });
  expect(intake.waitingSinceMs).toBeUndefined();
});

test('a body of very small chunks is gathered, and is not read only to be dropped', async () => {
  const { request, intake } = intakeOf({ 'transfer-encoding': 'chunked' });
  const dropped = intake.discard(LIMITS.refusedBodyDrainBytesMax);
  for (let count = 0; count < 1000; count++) request.push(Buffer.from('a'));
  request.giveGathered();
  expect(await dropped).toBe(false);
  for (let count = 0; count < 500; count++) request.push(Buffer.from('a'));
  request.giveGathered();
  expect((await intake.read())?.length).toBe(500);
});
