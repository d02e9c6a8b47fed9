// Heads that have begun on connections and are not complete: nobody knows yet who sends them, and each holds memory. They
// share LIMITS.unfinishedHeadsBytesMax by tenant; who holds more loses the oldest of such connections. Nothing is done for
// a head as it comes: what connections have sent since their last request is measured now and then.
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { compareHeld, createFairShare } from '../../base/async/fair-share.ts';
import { LIMITS } from '../../types/limits.ts';
import { SHARE_WEIGHTS, sharePathOf } from '../../types/tenant.ts';
import { shareOfThread } from '../../types/thread-share.ts';
import type { Connection } from './connections.ts';

/** What a line takes beside its bytes: two short strings, and their places in a list. */
const LINE_BYTES = 80;
/** `name:\r\n`. */
const SHORTEST_LINE_BYTES = 4;
/** No head is looked for behind a request when so little has come. */
const SHORT_REQUEST_BYTES = 4096;

/** Call it when a request has ended and nothing else is under way: from here on bytes belong to the next head. */
export function noteRequestEnd(
  connection: Connection,
  { request, body }: { request: IncomingMessage; body: { readonly receivedBytes: number } },
): void {
  const { bytesRead } = connection.socket;
  const freshBytes = bytesRead - connection.parsedBytes;
  const behindBytes =
    freshBytes > SHORT_REQUEST_BYTES
      ? Math.max(0, freshBytes - leastBytesOf(request, body.receivedBytes))
      : 0;
  // One read may hold the end of a request and most of the next head.
  connection.parsedBytes = bytesRead - Math.min(behindBytes, LIMITS.headerBytesMax);
}

/** Those that are to end: the oldest of the address that holds most, of the signer and the account that hold most. `all`: the oldest first. */
export function excessiveHeads(all: Iterable<Connection>, threads?: number): Connection[] {
  const limit = shareOfThread(LIMITS.unfinishedHeadsBytesMax, { threads });
  const share = createFairShare({ limit, weights: SHARE_WEIGHTS });
  const held = new Map<Connection, number>();
  for (const connection of all) {
    const bytes = bytesHeld(connection);
    if (bytes === 0) continue;
    held.set(connection, bytes);
    share.take(sharePathOf(connection.tenant), bytes);
  }
  const isWithin = [...held.keys()].every(({ tenant }) => !share.isOverShare(sharePathOf(tenant)));
  if (isWithin) return [];
  const ranked = [...held.keys()].map((connection) => {
    const path = sharePathOf(connection.tenant);
    return { connection, path, along: share.heldAlong(path) };
  });
  // Sorting is stable: the oldest stay in front of their equals.
  ranked.sort((a, b) => compareHeld(a.along, b.along));
  const excessive = ranked.filter(({ connection, path }) => {
    if (!share.isOverShare(path)) return false;
    share.giveBack(path, held.get(connection) ?? 0);
    return true;
  });
  return excessive.map(({ connection }) => connection);
}

/** Memory of the head that has begun on a connection, at most; 0 if none has. */
function bytesHeld({ socket, underWay, waiting, parsedBytes }: Connection): number {
  if (underWay > 0 || waiting.length > 0) return 0;
  const bytes = Math.min(Math.max(0, socket.bytesRead - parsedBytes), LIMITS.headerBytesMax);
  return bytes === 0 ? 0 : bytes + linesHeld(socket, bytes) * LINE_BYTES;
}

function linesHeld(socket: Socket, bytes: number): number {
  // Hands are still to be shaken.
  if (!('parser' in socket)) return 0;
  // Node's parser gives lines away 32 at a time. Where it does not say how many there are, there may be as many as fit.
  const { parser } = socket as { parser?: { _headers?: unknown } };
  if (Array.isArray(parser?._headers)) return parser._headers.length / 2;
  return Math.min(bytes / SHORTEST_LINE_BYTES, LIMITS.headerLinesMax);
}

/** What a request has taken of its connection at least. */
function leastBytesOf({ headers, rawHeaders }: IncomingMessage, receivedBytes: number): number {
  const headBytes = rawHeaders.reduce((sum, text) => sum + text.length, SHORTEST_LINE_BYTES);
  // How much the framing of chunks has taken nobody knows.
  if (headers['transfer-encoding'] !== undefined) return headBytes + receivedBytes;
  return headBytes + Number(headers['content-length'] ?? 0);
}
