// Sends the requests of a fuzz on one connection after another, and says what is wrong with an answer to whatever was
// asked: it must be HTTP, no fault of the server's, with an error of the catalogue where it is one, and the connection
// must go on, or end, as the answer says.
import { setTimeout as sleep } from 'node:timers/promises';
import { childrenOf, parseXml, textOf } from '../../../src/base/xml/parse-xml.ts';
import { ERRORS } from '../../../src/types/errors.ts';
import { openSocket, type RawSocket, type SocketAnswer } from '../servers/raw-socket.ts';
import type { FuzzRequest } from './fuzz-requests.ts';

const ANSWER_MS_MAX = 30_000;
const PROBE = 'GET /health/live HTTP/1.1\r\nhost: probe\r\n\r\n';
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

export interface FuzzSender {
  /** What is wrong with the answer, if anything; and its status, 0 where there is none. */
  exchange(request: FuzzRequest): Promise<{ status: number; problem?: string }>;
  close(): void;
}

export function createFuzzSender(access: { endpoint: string }): FuzzSender {
  let open: RawSocket | undefined;
  const close = () => {
    open?.destroy();
    open = undefined;
  };
  return {
    close,
    async exchange(request) {
      open ??= await openSocket(access);
      const socket = open;
      const seen = { status: 0 };
      try {
        const stays = await inTime(
          request.isWhole ? askWhole(socket, request, seen) : askBroken(socket, request, seen),
        );
        if (!stays) close();
        return seen;
      } catch (error) {
        close();
        return { ...seen, problem: (error as Error).message };
      }
    },
  };
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  const stop = new AbortController();
  const late = sleep(ANSWER_MS_MAX, undefined, { signal: stop.signal }).then(() => {
    throw new Error('no answer, or no end of the connection, in time');
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    stop.abort();
    late.catch(() => {});
  }
}

/** True when the connection is good for the next request. */
async function askWhole(socket: RawSocket, request: FuzzRequest, seen: { status: number }): Promise<boolean> {
  const isHead = request.method === 'HEAD';
  socket.write(request.awaitsContinue ? request.head : Buffer.concat([request.head, request.body]));
  let answer = await socket.answer({ isHead });
  const isContinued = answer?.status === 100;
  if (isContinued) {
    require(request.awaitsContinue, '100 that nobody waited for');
    socket.write(request.body);
    answer = await socket.answer({ isHead });
  }
  require(answer !== undefined, 'the connection ended without an answer');
  seen.status = answer.status;
  judge(answer, { isHead });
  if (answer.headers.get('connection')?.toLowerCase() === 'close') {
    // The server listens for a while whether the body comes all the same.
    if (request.awaitsContinue && !isContinued) socket.end();
    await socket.closed;
    return false;
  }
  socket.write(PROBE);
  const probe = await socket.answer();
  require(probe?.status === 200 &&
    probe.body.includes('"ok"'), `then health is ${probe?.status} ${probe?.body}`);
  return true;
}

/** Where the end of a message is unknown each answer is judged, and the connection ends. */
async function askBroken(socket: RawSocket, request: FuzzRequest, seen: { status: number }): Promise<false> {
  const isHead = request.method === 'HEAD';
  socket.write(Buffer.concat([request.head, request.body]));
  socket.end();
  for (;;) {
    const answer = await socket.answer({ isHead });
    if (answer === undefined) break;
    seen.status = answer.status;
    // The body of a refusal, which a HEAD that could not be read has too, looks like no answer.
    if (isHead && Number.isNaN(answer.status)) break;
    if (answer.status >= 200) judge(answer, { isHead });
  }
  await socket.closed;
  return false;
}

function judge({ status, headers, body }: SocketAnswer, { isHead }: { isHead: boolean }): void {
  require(status >= 200 &&
    status < 600 &&
    ![500, 502, 503, 504, 507].includes(status), `status ${status}: ${body}`);
  for (const [name, value] of headers) {
    require(HEADER_NAME.test(name) &&
      HEADER_VALUE.test(value), `header ${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  }
  if (status < 400) {
    require(!body.includes('<Code>InternalError</Code>'), body);
    return;
  }
  if (isHead) return;
  const code = headers.get('content-type') === 'application/json' ? codeInJson(body) : codeInXml(body);
  const spec = Object.hasOwn(ERRORS, code) ? ERRORS[code as keyof typeof ERRORS] : undefined;
  require(spec?.status === status, `status ${status} with ${code}`);
}

function codeInXml(body: string): string {
  const root = parseXml(Buffer.from(body), { depthMax: 4 });
  // What stands in the way of a MOVE of one key is told by its entry (docs/extensions.md).
  if (root.name === 'MoveObjectResult') {
    const [error] = childrenOf(root, 'MoveObject').flatMap((entry) => childrenOf(entry, 'Error'));
    return (error && textOf(error, 'Code')) ?? '';
  }
  require(root.name === 'Error' && !!textOf(root, 'Message') && !!textOf(root, 'RequestId'), body);
  return textOf(root, 'Code') ?? '';
}

function codeInJson(body: string): string {
  const { error, requestId } = JSON.parse(body);
  require(typeof error?.message === 'string' && typeof requestId === 'string', body);
  return error.code;
}

function require(condition: boolean, problem: string): asserts condition {
  if (!condition) throw new Error(problem);
}
