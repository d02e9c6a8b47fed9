// Sends the connections of a fuzz of framing and judges, by the answers and the server's log, what was executed: exactly
// what was meant as requests, in order, each answered to who sent it, and never a part of a body.
import { expect, vi } from 'vitest';
import { longestTurnMs, TURN_MS_MAX } from '../run/loop-watch.ts';
import type { Access } from '../servers/raw-s3.ts';
import { headOf, openSocket, type RawSocket, type SocketAnswer } from '../servers/raw-socket.ts';
import type { LogLine, TestServer } from '../servers/start-server.ts';
import {
  CANARY,
  FUZZ_BUCKET,
  type FuzzConnection,
  type FuzzMessage,
  planConnection,
  THERE,
  TRAP_BUCKET,
  trap,
} from './fuzz-connections.ts';
import { rollDice } from './fuzz-words.ts';

const SILENCE_MS_MAX = 20_000;
/** Connections that are open at a time, and may share those of a proxy. */
const AT_ONCE = 8;

/** Where a fuzz goes: to a server, or to a proxy before it. */
export interface FuzzTarget {
  server: Pick<TestServer, 'logs'>;
  /** Of the server or the proxy, as the root account. */
  access: Access;
  /** Of the service, as clients sign it. */
  host: string;
  /** `access` is a proxy's. */
  isProxied: boolean;
  /** Requests under way in the server. */
  inFlight(): Promise<number>;
}

/** Makes what messages refer to. */
async function prepareFuzz({ access, host }: FuzzTarget): Promise<void> {
  for (const path of [`/${FUZZ_BUCKET}`, `/${FUZZ_BUCKET}/${THERE}`, `/${FUZZ_BUCKET}/${CANARY}`]) {
    const headers = { host, 'user-agent': 'meant-world', 'content-length': '0' };
    const answer = await sendOne(access, headOf(access, { method: 'PUT', path, headers }));
    expect(answer?.status).toBe(200);
  }
}

/** That a body is no request shows nothing, unless it would be a good one. */
export async function expectTrapsWork({ server, access, host }: FuzzTarget): Promise<void> {
  const before = server.logs().length;
  for (let index = 0; index < 12; index++) {
    const dice = rollDice(`trap:${index}`);
    const answer = await sendOne(access, trap({ dice, access, host }));
    // The canary may have been deleted, the bucket made.
    expect([200, 204, 404, 409]).toContain(answer?.status);
  }
  await vi.waitFor(() => expect(unmeantIn(server.logs().slice(before))).toHaveLength(12));
  const headers = { host, 'user-agent': 'meant-world' };
  const removed = await sendOne(
    access,
    headOf(access, { method: 'DELETE', path: `/${TRAP_BUCKET}`, headers }),
  );
  expect(removed?.status).toBe(204);
}

/** Reads the number off the metrics that a server serves at this address. */
export function inFlightAt(address: string): () => Promise<number> {
  return async () => {
    const metrics = await (await fetch(`http://${address}/metrics`)).text();
    return Number(/^holdfast_requests_in_flight (\d+)$/m.exec(metrics)?.[1]);
  };
}

async function sendOne(access: Access, bytes: string): Promise<SocketAnswer | undefined> {
  const socket = await openSocket(access);
  socket.write(bytes);
  const answer = await socket.answer();
  socket.destroy();
  return answer;
}

/** Connections judged together. */
const ROUND = 500;
/** A turn may be long by chance; what a connection does to the loop it does again. */
const TRIES = 3;

/** Sends so many connections of a seed and judges them, and that what was there beside them is untouched. */
export async function fuzzSeed(target: FuzzTarget, seed: string, connectionCount: number): Promise<void> {
  await prepareFuzz(target);
  for (let from = 0; from < connectionCount; from += ROUND) {
    const to = Math.min(from + ROUND, connectionCount);
    let turnMs = Number.POSITIVE_INFINITY;
    for (let tries = 0; tries < TRIES && turnMs > TURN_MS_MAX; tries++) {
      const done = await fuzzConnections(target, { seed, from, to });
      // A fuzz that is refused at the door shows nothing.
      expect(Math.min(done.executed, done.answered)).toBeGreaterThan((to - from) / 2);
      turnMs = Math.min(turnMs, done.turnMs);
    }
    const held = `the longest turn of the event loop, in ms: seed ${seed}, connections ${from} to ${to}`;
    expect(turnMs, held).toBeLessThanOrEqual(TURN_MS_MAX);
  }
  await expectUntouched(target);
}

/** Sends connections of a seed and judges them all. Throws with the seed, the number and the bytes of the first that is wrong. */
async function fuzzConnections(
  target: FuzzTarget,
  { seed, from, to }: { seed: string; from: number; to: number },
): Promise<{ executed: number; answered: number; turnMs: number }> {
  const { server, access, host, isProxied } = target;
  const firstLine = server.logs().length;
  const done: { index: number; plan: FuzzConnection; answered: Answered }[] = [];
  let next = from;
  const work = async () => {
    while (next < to) {
      const index = next++;
      const plan = planConnection({ seed, index, access, host, isProxied });
      done.push({ index, plan, answered: await converse(access, plan) });
    }
  };
  const turnMs = await longestTurnMs(() => Promise.all(Array.from({ length: AT_ONCE }, work)));
  await vi.waitFor(async () => expect(await target.inFlight()).toBe(0), { timeout: 60_000, interval: 50 });
  const lines = server.logs().slice(firstLine);
  expect(lines.filter(({ level }) => level === 'error')).toEqual([]);
  const context = `seed ${seed}, connections ${from} to ${to}`;
  const unmeant = unmeantIn(lines).filter(({ userAgent }) => !(isProxied && isTail(userAgent)));
  expect(unmeant, `${context}: parts of bodies were executed`).toEqual([]);
  for (const { index, plan, answered } of done) {
    const problem = judgeConnection(plan, answered, { lines, isProxied });
    if (problem !== undefined) expect.fail(describeFailure({ seed, index, plan, problem }));
  }
  return {
    executed: lines.filter(({ event }) => event === 'request').length,
    answered: done.reduce((sum, { answered }) => sum + answered.answers.length, 0),
    turnMs,
  };
}

/** All that it takes to see one failure again. */
function describeFailure(failure: {
  seed: string;
  index: number;
  plan: FuzzConnection;
  problem: string;
}): string {
  const { seed, index, plan, problem } = failure;
  const { messages, ...manner } = plan;
  const shown = messages.map(({ head, body, ...rest }) =>
    JSON.stringify({ ...rest, head: head.toString('latin1'), body: body.toString('latin1').slice(0, 3000) }),
  );
  return `seed ${seed}, connection ${index}: ${problem}\n${JSON.stringify(manner)}\n${shown.join('\n')}`;
}

/** What only bodies name is as it was. */
async function expectUntouched({ access, host }: FuzzTarget): Promise<void> {
  const statusOf = async (path: string) => {
    const headers = { host, 'user-agent': 'meant-look' };
    return (await sendOne(access, headOf(access, { method: 'GET', path, headers })))?.status;
  };
  expect(await statusOf(`/${FUZZ_BUCKET}/${CANARY}`)).toBe(200);
  expect(await statusOf(`/${TRAP_BUCKET}?location`)).toBe(404);
}

export interface Answered {
  /** Final ones, in their order. */
  answers: SocketAnswer[];
  /** The client went away by itself, or went on sending to a closed connection: it may miss answers. */
  hasAborted: boolean;
  /** Neither an answer nor the end came in time. */
  isSilent: boolean;
}

/** Says what a connection's messages say, and resolves with what came back when it is closed on both sides. */
export async function converse(access: { endpoint: string }, plan: FuzzConnection): Promise<Answered> {
  const socket = await openSocket(access);
  // A write to a connection that the server has closed may fail at any time.
  socket.socket.on('error', () => {});
  const answered: Answered = { answers: [], hasAborted: false, isSilent: false };
  const stop = setTimeout(() => {
    answered.isSilent = true;
    socket.destroy();
  }, SILENCE_MS_MAX);
  try {
    await (plan.isBurst ? burst(socket, plan, answered) : step(socket, plan, answered));
    if (!socket.socket.destroyed) {
      socket.end();
      await socket.closed;
    }
    // Who goes on sending to a connection that the server closes may lose answers.
    if (socket.socket.errored) answered.hasAborted = true;
    return answered;
  } finally {
    clearTimeout(stop);
    socket.destroy();
  }
}

async function burst(socket: RawSocket, plan: FuzzConnection, answered: Answered): Promise<void> {
  const bytes = Buffer.concat(plan.messages.flatMap(({ head, body }) => [head, body]));
  // A server may wait for more of a message whose end it sees elsewhere.
  const isEndless = plan.messages.some(({ isFaulty }) => isFaulty);
  const written = write(socket, bytes, plan.pieceBytes).then(() => {
    if (plan.closesHalf || isEndless) socket.end();
  });
  answered.hasAborted = plan.closesHalf;
  for (const message of plan.messages) {
    if (answered.answers.length === plan.abortsBehind) break;
    if (!(await readFinal(socket, message, answered))) break;
  }
  if (answered.answers.length === plan.abortsBehind) abort(socket, answered);
  await written;
  socket.end();
  await readRest(socket, answered);
}

async function step(socket: RawSocket, plan: FuzzConnection, answered: Answered): Promise<void> {
  let isEnding = false;
  for (const [index, message] of plan.messages.entries()) {
    if (index === plan.abortsBehind) return abort(socket, answered);
    await write(socket, message.head, plan.pieceBytes);
    if (message.awaitsContinue && !isEnding) {
      const first = await socket.answer({ isHead: message.isHead });
      if (first === undefined) return;
      if (first.status !== 100) {
        answered.answers.push(first);
        isEnding = isLast(first);
        // A body that is not sent leaves nothing else to be sent.
        if (!plan.isStubborn) {
          answered.hasAborted = !isEnding;
          return;
        }
        await write(socket, message.body, plan.pieceBytes);
        continue;
      }
    }
    await write(socket, message.body, plan.pieceBytes);
    if (isEnding) continue;
    if (message.isFaulty) socket.end();
    if (!(await readFinal(socket, message, answered)) || message.isFaulty) break;
    isEnding = isLast(answered.answers.at(-1));
    if (isEnding && !plan.isStubborn) return;
  }
  socket.end();
  await readRest(socket, answered);
}

/** What was answered beyond: the refusal of bytes that were no request, or that a proxy took for some. */
async function readRest(socket: RawSocket, answered: Answered): Promise<void> {
  while (!socket.socket.destroyed && (await readFinal(socket, undefined, answered)));
}

/** What the client does not read is lost with it. */
function abort(socket: RawSocket, answered: Answered): void {
  answered.hasAborted = true;
  socket.destroy();
}

/** False when there is none. */
async function readFinal(
  socket: RawSocket,
  message: FuzzMessage | undefined,
  answered: Answered,
): Promise<boolean> {
  for (;;) {
    const answer = await socket.answer({ isHead: message?.isHead === true });
    if (answer === undefined) return false;
    if (answer.status < 200) continue;
    answered.answers.push(answer);
    return !Number.isNaN(answer.status);
  }
}

async function write(socket: RawSocket, bytes: Buffer, pieceBytes: number): Promise<void> {
  const stepBytes = Math.max(pieceBytes, bytes.length >> 5);
  for (let at = 0; at < bytes.length && !socket.socket.destroyed; at += stepBytes) {
    socket.write(bytes.subarray(at, at + stepBytes));
    await new Promise(setImmediate);
  }
}

function isLast(answer: SocketAnswer | undefined): boolean {
  return answer === undefined || answer.headers.get('connection')?.toLowerCase() === 'close';
}

/** The lines of requests that nobody meant, parts of bodies: there must be none. */
export function unmeantIn(lines: readonly LogLine[]): readonly LogLine[] {
  // A line without a method tells of bytes that were refused before they were a request.
  return lines.filter(
    ({ event, method, userAgent, path }) =>
      event === 'request' &&
      method !== undefined &&
      !String(path).startsWith('/health/') &&
      !String(userAgent).startsWith('meant-'),
  );
}

/** What stands behind a faulty message: a proxy may read it as a request. */
function isTail(userAgent: unknown): boolean {
  return String(userAgent).startsWith('tail-');
}

/** What is wrong with what became of a connection; undefined: nothing. */
export function judgeConnection(
  plan: FuzzConnection,
  { answers, hasAborted, isSilent }: Answered,
  { lines, isProxied }: { lines: readonly LogLine[]; isProxied: boolean },
): string | undefined {
  const { messages } = plan;
  const position = new Map(messages.map(({ id }, index) => [id, index]));
  const executed = lines.filter(
    ({ event, userAgent }) => event === 'request' && position.has(String(userAgent)),
  );
  const placeOf = ({ userAgent }: LogLine) => position.get(String(userAgent)) ?? 0;
  // A refused upload is logged when its body has been dropped: by then a proxy may have sent the next request elsewhere.
  if (isProxied) executed.sort((one, other) => placeOf(one) - placeOf(other));
  const order = executed.map(({ userAgent }) => position.get(String(userAgent)));
  const context = `executed ${order.join(', ')} of ${messages.length}, answered ${answers.map(({ status }) => status).join(', ')}`;
  if (isSilent) return `silence: ${context}`;
  if (order.some((at, index) => at !== index)) return `out of order: ${context}`;
  const faultyAt = messages.findIndex(({ isFaulty }) => isFaulty);
  if (faultyAt !== -1 && executed.length > faultyAt + 1)
    return `executed behind a faulty message: ${context}`;
  const endAt = answers.findIndex((answer) => isLast(answer));
  if (endAt !== -1 && executed.length > endAt + 1) return `executed behind the last answer: ${context}`;
  const mayHaveTail = faultyAt !== -1;
  const tails = lines.filter(
    ({ userAgent }) => isTail(userAgent) && userAgent === messages[faultyAt]?.id.replace('meant', 'tail'),
  );
  const answered = new Set(answers.map(({ headers }) => headers.get('x-amz-request-id')));
  const lost = tails.find(({ requestId }) => !answered.has(String(requestId)));
  if (lost !== undefined && !hasAborted)
    return `an answer that its client did not get: ${lost.requestId}; ${context}`;
  for (const [index, answer] of answers.entries()) {
    const requestId = answer.headers.get('x-amz-request-id');
    // Of a proxy itself, or to what it took for a request.
    const isProxys = requestId === undefined && answer.status >= 400;
    const isToTail = tails.some((line) => line.requestId === requestId);
    if (mayHaveTail && index >= faultyAt && (isProxys || isToTail)) continue;
    const problem = judgeAnswer(answer, { line: executed[index], message: messages[index] });
    if (problem !== undefined) return `answer ${index}: ${problem}; ${context}`;
  }
  if (endAt !== -1 && endAt !== answers.length - 1) return `answers behind the last one: ${context}`;
  const isComplete = hasAborted || endAt !== -1 || faultyAt !== -1 || answers.length === messages.length;
  return isComplete ? undefined : `left without an answer: ${context}`;
}

function judgeAnswer(
  { status, headers }: SocketAnswer,
  { line, message }: { line: LogLine | undefined; message: FuzzMessage | undefined },
): string | undefined {
  const requestId = headers.get('x-amz-request-id');
  if (line === undefined) {
    // Refused before it was a request, here or by a proxy.
    const isRefusal = status >= 400 || Number.isNaN(status);
    return isRefusal && message?.isFaulty !== false ? undefined : `${status} to nothing that was executed`;
  }
  if (line.requestId !== requestId) return `of another request: ${requestId}, not ${line.requestId}`;
  if (line.status !== status) return `${status}, but the log says ${line.status}`;
  if (message?.status !== undefined && message.status !== status) return `${status}, not ${message.status}`;
  const etag = headers.get('etag');
  if (message?.etag !== undefined && message.etag !== etag)
    return `stored other bytes: ${etag}, not ${message.etag}`;
  return undefined;
}
