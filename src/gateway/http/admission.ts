// From a head to the start of its request. Requests of one connection start in their order, each when those before it are
// answered; requests of all connections take turns at the thread, by address, by the access key that they name and by the
// account that the connection has proved, and those of one turn that are about single objects start together. So what waits for its turn is one request of each connection at
// most, and what waits on connections is bounded in connections.ts.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { createStartTurns } from '../../base/async/start-turns.ts';
import type { ClockPort } from '../../ports/clock.ts';
import { LIMITS } from '../../types/limits.ts';
import type { ClientViewer } from './client-view.ts';
import type { LiveExchanges } from './live-exchanges.ts';
import { senderOf } from './sender.ts';

export function createAdmission(deps: {
  live: LiveExchanges;
  viewer: ClientViewer;
  clock: Pick<ClockPort, 'monotonicMs'>;
  /** Of tests. */
  nextTurn?(then: () => void): void;
}): (request: IncomingMessage, response: ServerResponse, begin: RequestListener) => void {
  const { live, viewer } = deps;
  const turns = createStartTurns({ ...deps, turnMs: LIMITS.requestStartsTurnMs });

  function takeTurn(request: IncomingMessage, response: ServerResponse, begin: RequestListener): void {
    const { socket } = request;
    live.beginStartWait(socket);
    turns.add({
      senderOf: () => senderOf(request, viewer, live.connections.get(socket)?.tenant),
      isLight: isLight(request),
      start() {
        // Meanwhile the client may have gone, or others' answers have ended the connection.
        if (!hasEnded(socket)) begin(request, response);
        live.endStartWait(socket);
      },
    });
  }

  return (request, response, begin) => {
    const { socket } = request;
    // What follows an answer that ends the connection is not looked at any more (RFC 9112 9.6).
    if (hasEnded(socket)) return;
    // Requests in one packet take effect in their order: a response has its socket when those before it have ended.
    if (response.socket !== null) takeTurn(request, response, begin);
    else if (!live.connections.mayWait(socket)) socket.destroy();
    else {
      response.once('socket', () => {
        live.connections.endWait(socket);
        takeTurn(request, response, begin);
      });
    }
  };
}

function hasEnded({ destroyed, writableEnded }: Socket): boolean {
  return destroyed || writableEnded;
}

/** Longer targets and heads are not light. */
const LIGHT_TARGET_CHARACTERS_MAX = 1024;
const LIGHT_FIELDS_MAX = 64;
const LIGHT_METHODS = new Set(['GET', 'HEAD', 'PUT', 'DELETE']);

/**
 * Whether a request takes little of the thread until it first waits: it is about one object, and about nothing else of it (its
 * query is none, or that of a read). Lists, documents, IAM and whatever takes longer start one by one.
 */
function isLight({ method = '', url = '', rawHeaders }: IncomingMessage): boolean {
  if (!LIGHT_METHODS.has(method) || url.length > LIGHT_TARGET_CHARACTERS_MAX) return false;
  if (rawHeaders.length > 2 * LIGHT_FIELDS_MAX) return false;
  const queryAt = url.indexOf('?');
  if (queryAt !== -1 && method !== 'GET' && method !== 'HEAD') return false;
  const keyAt = url.indexOf('/', 1) + 1;
  return keyAt > 0 && keyAt < (queryAt === -1 ? url.length : queryAt);
}
