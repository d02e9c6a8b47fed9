// Sends an answer, and decides what happens to the connection: an unread body is dropped, or ends the connection, and is
// never read as a request (s3-behaviour 16, s3-behaviour "A refused upload"). It knows HTTP, not S3.
import type { BatchReadable } from '../../base/bytes/batch-stream.ts';
import { isTls, partEnd } from '../../base/bytes/tls-parts.ts';
import { freeMemory } from '../../base/free-memory.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { LIMITS } from '../../types/limits.ts';
import type { Exchange } from './exchange.ts';

export type AnswerBody =
  | { kind: 'bytes'; bytes: Buffer | string }
  | { kind: 'stream'; stream: BatchReadable; sizeBytes: number }
  /** Of unknown length, written as it comes. */
  | { kind: 'texts'; texts: AsyncIterable<string> };

export interface Answer {
  status: number;
  /** Names and values in turn; a Content-Length only for answers to HEAD. */
  headers: string[];
  body?: AnswerBody | undefined;
}

/** A longer text is sent as a buffer: Node would make it anew, with the head before it, and leave both to the collector. */
const LONG_TEXT_CHARACTERS = 64 * 1024;

/** Of one write over TLS. */
const TLS_PART_BYTES = 64 * 1024;

/** Of a stream. */
interface Part {
  bytes: Buffer;
  /** Gives the memory back of what it is the last part of. */
  free?: () => void;
}

/** What is done with a body that was not read to its end. */
type Rest = 'none' | 'linger';

/**
 * Resolves when the answer is handed over or the client is gone. Rejects by a fault of ours, and by what a stream fails with: before
 * the head is out another answer can be given. A stream is done with in any case.
 */
export async function sendAnswer(exchange: Exchange, answer: Answer, clock: ClockPort): Promise<void> {
  const stream = answer.body?.kind === 'stream' ? answer.body.stream : undefined;
  if (stream === undefined) return send(exchange, answer, { clock });
  // Its memory may be taken back for others before anybody reads it; and an error that nobody listens for would end the process.
  const failed = new Promise<never>((_, reject) => stream.once('error', reject));
  failed.catch(() => {});
  try {
    await send(exchange, answer, { clock, failed });
  } catch (error) {
    stream.destroy();
    throw error;
  }
}

/** `failed`: rejects when there is nothing any more that could be sent. */
async function send(
  exchange: Exchange,
  answer: Answer,
  { clock, failed }: { clock: ClockPort; failed?: Promise<never> },
): Promise<void> {
  const { response } = exchange;
  const { body } = answer;
  if (body?.kind === 'bytes') exchange.ready = { bytes: body.bytes.length, sinceMs: clock.monotonicMs() };
  const finished = finishBody(exchange, answer.status);
  const rest = await (failed === undefined ? finished : Promise.race([finished, failed]));
  exchange.ready = undefined;
  if (response.destroyed || exchange.isAborted) return discardBody(body);
  writeHead(exchange, answer, clock);
  await writeBody(exchange, { answer, clock, mayEnd: rest === 'none' });
  // All of it is handed over, but the client may not read it.
  if (response.writableLength > 0) exchange.sendingSinceMs = clock.monotonicMs();
  if (rest === 'none') return exchange.closed;
  await linger(exchange, clock);
  response.end();
  return exchange.closed;
}

/** A connection that closed on bytes of its client's would take the answer away from it again. */
async function linger(exchange: Exchange, clock: ClockPort): Promise<void> {
  const { body, signal } = exchange;
  exchange.beginLingering();
  const isDone = new AbortController();
  const discarding = body.discard(LIMITS.refusedBodyDrainBytesMax).finally(() => isDone.abort());
  // It may end when nobody waits for it any more.
  discarding.catch(() => {});
  const untilMs = clock.monotonicMs() + LIMITS.refusedBodyDrainMaxMs;
  const waits = AbortSignal.any([signal, isDone.signal]);
  for (let fromMs = clock.monotonicMs(); !waits.aborted && fromMs < untilMs; fromMs = clock.monotonicMs()) {
    await clock.sleep(LIMITS.refusedBodyIdleMaxMs, waits);
    if (body.lastByteAtMs <= fromMs) return;
  }
  if (isDone.signal.aborted) await discarding;
}

/**
 * Decides about the unread rest of the request's body before the head of the answer says what comes next. A client that
 * has not been told to go on may send its body all the same (RFC 9110 10.1.1): the connection ends then, too. Nobody
 * waits for the body of a stranger, which may never come: the answer goes out at once.
 */
async function finishBody(exchange: Exchange, status: number): Promise<Rest> {
  const { body } = exchange;
  if (body.isAtEnd) return 'none';
  const isKnown = exchange.tenant.account !== undefined;
  const isUseless = status < 400 && !body.awaitsContinue && isKnown;
  if (isUseless && (await body.discard(LIMITS.refusedBodyDrainBytesMax))) return 'none';
  // It is too late for 100 Continue: what is dropped from here on is not asked for.
  body.awaitsContinue = false;
  exchange.mustClose = true;
  return 'linger';
}

function writeHead(exchange: Exchange, answer: Answer, clock: ClockPort): void {
  const { response } = exchange;
  const { headers, status, body } = answer;
  if (exchange.mustClose) headers.push('Connection', 'close');
  if (body?.kind === 'bytes') headers.push('Content-Length', String(Buffer.byteLength(body.bytes)));
  else if (body?.kind === 'stream') headers.push('Content-Length', String(body.sizeBytes));
  else if (body === undefined && mayHaveBody(exchange, status)) headers.push('Content-Length', '0');
  exchange.answeredAtMs = clock.monotonicMs();
  response.writeHead(status, headers);
}

function mayHaveBody(exchange: Exchange, status: number): boolean {
  return exchange.request.method !== 'HEAD' && status !== 204 && status !== 304;
}

interface BodyOptions {
  answer: Answer;
  clock: ClockPort;
  /** False while the rest of the request's body is still to be dropped: the end of the answer ends the connection. */
  mayEnd: boolean;
}

async function writeBody(exchange: Exchange, options: BodyOptions): Promise<void> {
  const { response } = exchange;
  const { body } = options.answer;
  if (body?.kind === 'stream') return sendStream(exchange, body, options);
  if (body?.kind === 'texts') {
    for await (const data of body.texts) {
      exchange.sentBytes += Buffer.byteLength(data);
      if (!response.write(data)) await drained(exchange, options.clock);
    }
    if (options.mayEnd) response.end();
    return;
  }
  if (body === undefined) {
    if (options.mayEnd) response.end();
    else response.flushHeaders();
    return;
  }
  await writeBytes(exchange, body.bytes, options);
}

async function writeBytes(
  exchange: Exchange,
  bytes: Buffer | string,
  { clock, mayEnd }: BodyOptions,
): Promise<void> {
  const { response } = exchange;
  exchange.sentBytes += Buffer.byteLength(bytes);
  // What ends the connection may be written at once, and its client may have to be listened to before it reads.
  if (!mayEnd) {
    response.write(bytes);
    return;
  }
  const long = longTextOf(bytes);
  const parts = partsOf(exchange, long ?? bytes);
  let leftBytes = bytes.length;
  while (parts.length > 1 && !response.destroyed) {
    const part = parts.shift() as Buffer;
    leftBytes -= part.length;
    exchange.ready = { bytes: leftBytes, sinceMs: clock.monotonicMs() };
    if (!response.write(part)) await drained(exchange, clock);
  }
  exchange.ready = undefined;
  response.end(parts[0], long && (() => freeMemory(long)));
}

function longTextOf(bytes: Buffer | string): Buffer | undefined {
  if (typeof bytes !== 'string' || bytes.length < LONG_TEXT_CHARACTERS) return undefined;
  return Buffer.from(bytes);
}

/** The parts in which bytes are handed over, each when the one before it is out. */
function partsOf<T extends Buffer | string>({ request: { socket } }: Exchange, bytes: T): (T | Buffer)[] {
  if (typeof bytes === 'string') return [bytes];
  const endOf = (fromBytes: number) => partEnd(socket, bytes, { fromBytes, partBytes: TLS_PART_BYTES });
  if (endOf(0) === bytes.length) return [bytes];
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at = endOf(at)) parts.push(bytes.subarray(at, endOf(at)));
  return parts;
}

/** Resolves when the client has taken enough for more to be written, or is gone. */
function drained(exchange: Exchange, clock: ClockPort): Promise<void> {
  const { response } = exchange;
  if (response.destroyed) return Promise.resolve();
  exchange.sendingSinceMs = clock.monotonicMs();
  return new Promise((resolve) => {
    const goOn = () => {
      response.off('drain', goOn).off('close', goOn);
      exchange.sendingSinceMs = undefined;
      resolve();
    };
    response.on('drain', goOn).on('close', goOn);
  });
}

/** Resolves when what makes the body has ended. */
async function discardBody(body: AnswerBody | undefined): Promise<void> {
  if (body?.kind === 'stream') body.stream.destroy();
  if (body?.kind !== 'texts') return;
  const texts = body.texts[Symbol.asyncIterator]();
  while (!(await texts.next()).done);
}

/**
 * Passes the stream on at the client's pace. A stream that fails or has another size than was promised cuts the
 * connection: the client must not take a part for the whole (R33).
 */
function sendStream(
  exchange: Exchange,
  body: { stream: BatchReadable; sizeBytes: number },
  { clock, mayEnd }: BodyOptions,
): Promise<void> {
  const { response } = exchange;
  const { stream } = body;
  exchange.isBodyMemory = true;
  return new Promise((resolve, reject) => {
    let leftBytes = body.sizeBytes;
    /** What the stream gave last, and is not handed over. */
    const parts: Part[] = [];
    const finish = (error?: Error) => {
      response.off('drain', resume);
      exchange.sendingSinceMs = undefined;
      stream.destroy();
      if (error === undefined) return resolve();
      response.destroy();
      reject(error);
    };
    const complete = (last?: Part) => {
      // The last piece goes out with the end: one write for a small object.
      if (mayEnd) response.end(last?.bytes, () => last?.free?.());
      else if (last !== undefined) response.write(last.bytes);
      finish();
    };
    /** False: the client is to be waited for, or all is done. */
    const writeParts = (isTogether: boolean): boolean => {
      let mayGoOn = true;
      for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
        if (parts.length === 0 && leftBytes === 0) {
          complete(part);
          return false;
        }
        const { bytes, free } = part;
        mayGoOn = response.write(bytes, (error) => error ?? free?.());
        if (!mayGoOn && !isTogether) break;
      }
      if (mayGoOn) return true;
      stream.pause();
      exchange.sendingSinceMs = clock.monotonicMs();
      return false;
    };
    const handOver = (): boolean => {
      // One write for all of them, unless each is to wait for the one before.
      const isTogether = parts.length > 1 && !isTls(exchange.request.socket);
      if (isTogether) response.cork();
      const mayGoOn = writeParts(isTogether);
      if (isTogether) response.uncork();
      return mayGoOn;
    };
    const resume = () => {
      exchange.sendingSinceMs = undefined;
      if (handOver()) stream.resume();
    };
    response.on('drain', resume);
    void exchange.closed.then(() => finish());
    stream.on('error', (error) => finish(exchange.isAborted ? undefined : error));
    stream.on('end', () =>
      leftBytes === 0 ? complete() : finish(new Error(`${leftBytes} bytes are missing`)),
    );
    stream.on('data', (first: Buffer) => {
      for (const data of [first, ...(stream.takeRest?.() ?? [])]) {
        leftBytes -= data.length;
        exchange.sentBytes += data.length;
        if (leftBytes < 0) return finish(new Error('more bytes than the answer promised'));
        for (const bytes of partsOf(exchange, data)) parts.push({ bytes });
        (parts.at(-1) as Part).free = () => freeMemory(data);
      }
      // At once: a stream that is not paused yet when this returns is asked for more.
      handOver();
    });
  });
}
