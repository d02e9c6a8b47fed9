// The one place that turns what a handler gave back, or threw, into an S3 answer.
import { XML_DECLARATION } from '../../base/xml/write-xml.ts';
import type { ClockPort } from '../../ports/clock.ts';
import type { Logger } from '../../ports/telemetry.ts';
import { AppError } from '../../types/errors.ts';
import { OutcomeStoreFull } from '../../types/outcome-store-full.ts';
import { type AnswerBody, sendAnswer } from '../http/answer.ts';
import type { Exchange } from '../http/exchange.ts';
import type { AccessRecord } from './access-record.ts';
import { corsHeaders } from './buckets/cors.ts';
import type { OperationResult } from './operation.ts';
import { errorXml } from './xml/error-xml.ts';

const XML_TYPE = 'application/xml';
const SERVER_NAME = 'Holdfast';
/** How often a slow answer shows that it is still alive. */
const WHITE_SPACE_EVERY_MS = 5000;

export interface Reply {
  exchange: Exchange;
  record: AccessRecord;
  clock: ClockPort;
  log: Logger;
}

/**
 * Turns the error that ended the request into one of the catalogue. A fault of the server is logged here, and not revealed
 * to clients.
 */
export function resolveError({ record, log }: Pick<Reply, 'record' | 'log'>, error: unknown): AppError {
  const appError = error instanceof AppError ? error : new AppError('InternalError', { cause: error });
  if (appError.code === 'InternalError') {
    const { requestId, operation } = record;
    log.error({ requestId, operation, err: appError.cause ?? appError }, 'request-failed');
  }
  if (appError instanceof OutcomeStoreFull) record.shedFor = 'kept';
  return appError;
}

export async function sendResult(reply: Reply, result: OperationResult): Promise<void> {
  const { exchange, record, clock } = reply;
  record.status = result.status;
  const headers = baseHeaders(reply);
  if (isXml(result.body)) headers.push('Content-Type', XML_TYPE);
  for (const name in result.headers) {
    const value = result.headers[name];
    if (value !== undefined) headers.push(name, String(value));
  }
  await sendAnswer(exchange, { status: result.status, headers, body: answerBody(reply, result) }, clock);
}

function isXml(body: OperationResult['body']): boolean {
  return body?.kind === 'xml' || body?.kind === 'slow-xml' || body?.kind === 'xml-stream';
}

/** Errors of HEAD, and 304, have no body. */
export async function sendError(reply: Reply, error: AppError): Promise<void> {
  const { exchange, record, clock } = reply;
  record.status = error.status;
  record.errorCode = error.code;
  const headers = baseHeaders(reply);
  const isBare = exchange.request.method === 'HEAD' || error.status === 304;
  if (error.status !== 304) headers.push('Content-Type', XML_TYPE);
  headers.push(...Object.entries(error.headers).flat());
  const body: AnswerBody | undefined = isBare
    ? undefined
    : { kind: 'bytes', bytes: errorXml(error, placeOf(reply)) };
  // The connection is of no more use when the client is too slow, or the end of its body is unknown.
  if (error.code === 'RequestTimeout') exchange.mustClose = true;
  await sendAnswer(exchange, { status: error.status, headers, body }, clock);
}

function baseHeaders({ exchange, record }: Reply): string[] {
  return [
    'x-amz-request-id',
    record.requestId,
    'x-amz-id-2',
    record.hostId,
    'Server',
    SERVER_NAME,
    ...corsHeaders(exchange.headers.values),
  ];
}

function answerBody(reply: Reply, result: OperationResult): AnswerBody | undefined {
  const { body } = result;
  if (body?.kind === 'stream' || body?.kind === 'xml-stream') reply.exchange.patience.beginSending();
  if (body?.kind === 'slow-xml') reply.exchange.patience.beginLong();
  if (body === undefined || body.kind === 'stream' || body.kind === 'bytes') return body;
  if (body.kind === 'xml') return { kind: 'bytes', bytes: body.text };
  const texts = body.kind === 'slow-xml' ? slowTexts(reply, body.text) : streamedTexts(reply, body);
  return { kind: 'texts', texts };
}

/** The declaration, a blank now and then, and the document or the error that came of it: the status is long sent. */
async function* slowTexts(reply: Reply, text: Promise<string>): AsyncGenerator<string, void> {
  const { exchange, record, clock } = reply;
  let outcome: string | undefined;
  const isDone = new AbortController();
  const work = text
    .catch((error: unknown) => {
      const appError = resolveError(reply, error);
      record.errorCode = appError.code;
      return errorXml(appError, placeOf(reply));
    })
    .then((document) => {
      outcome = document;
      isDone.abort();
    });
  yield XML_DECLARATION;
  while (outcome === undefined) {
    yield ' ';
    await Promise.race([
      work,
      clock.sleep(WHITE_SPACE_EVERY_MS, AbortSignal.any([isDone.signal, exchange.signal])),
    ]);
    // Nobody listens any more; the work goes on to its own end, and the request with it: a rotation of master keys
    // must see that somebody may still write.
    if (exchange.isAborted) return work;
  }
  yield outcome.startsWith(XML_DECLARATION) ? outcome.slice(XML_DECLARATION.length) : outcome;
}

/** The declaration and the pieces, with a blank where the next one takes long. */
async function* streamedTexts(
  reply: Reply,
  body: Extract<OperationResult['body'], { kind: 'xml-stream' }>,
): AsyncGenerator<string, void> {
  const { exchange, record, clock } = reply;
  const { texts } = body;
  try {
    yield XML_DECLARATION;
    let sentAtMs = clock.monotonicMs();
    for (;;) {
      const next = texts.next();
      const restMs = () => Math.max(0, sentAtMs + WHITE_SPACE_EVERY_MS - clock.monotonicMs());
      while (!(await isThereIn(restMs(), next, { clock, signal: exchange.signal }))) {
        if (exchange.isAborted) return;
        yield ' ';
        sentAtMs = clock.monotonicMs();
      }
      const { done, value } = await next;
      if (done || exchange.isAborted) return;
      // An empty text: many of them are silence, too.
      const isDue = value === '' && restMs() === 0;
      if (value === '' && !isDue) continue;
      yield isDue ? ' ' : value;
      sentAtMs = clock.monotonicMs();
    }
  } catch (error) {
    const appError = resolveError(reply, error);
    record.errorCode = appError.code;
    yield body.whenBroken(appError);
  } finally {
    // What makes them ends at its next rest; what it has begun goes on without it.
    await texts.return();
  }
}

/** Whether `work` ends within `ms`; at once when the signal aborts. */
async function isThereIn(
  ms: number,
  work: Promise<unknown>,
  { clock, signal }: { clock: ClockPort; signal: AbortSignal },
): Promise<boolean> {
  const isDone = new AbortController();
  const done = work.then(
    () => true,
    () => true,
  );
  const waits = clock.sleep(ms, AbortSignal.any([isDone.signal, signal])).then(() => false);
  const isThere = await Promise.race([done, waits]);
  isDone.abort();
  return isThere;
}

function placeOf({ exchange, record }: Reply): { resource: string; requestId: string; hostId: string } {
  const { uri } = exchange;
  const question = uri.indexOf('?');
  return {
    resource: question === -1 ? uri : uri.slice(0, question),
    requestId: record.requestId,
    hostId: record.hostId,
  };
}
