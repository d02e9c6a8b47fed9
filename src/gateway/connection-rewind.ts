// A client that was refused without 100 Continue does not send the body that it announced: its next bytes are the next
// request (s3-behaviour 16). Node's parser would take them for the body, and offers no way to tell it otherwise, so it
// is set back to the beginning of a message here. This is the one place that reaches into Node; where what it needs is
// not as expected, the connection is closed instead, which is correct too.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

interface Parser {
  remove(): void;
  initialize(kind: number, resource: object, headerBytesMax: number, leniency: number, list: object): void;
}

/** Node's HTTPParser.REQUEST. */
const REQUEST = 1;
const STRICT = 0;

/** True when the next bytes of the connection will be read as a new request. Nothing of the body may have arrived. */
export function rewindConnection(
  request: IncomingMessage,
  response: ServerResponse,
  options: { headerBytesMax: number },
): boolean {
  const socket = request.socket as IncomingMessage['socket'] & { parser?: Parser; server?: Server };
  const { parser, server } = socket;
  const key = Object.getOwnPropertySymbols(server ?? {}).find(
    (symbol) => symbol.description === 'http.server.connections',
  );
  const connections = (server as unknown as Record<symbol, object> | undefined)?.[key ?? Symbol()];
  if (typeof parser?.initialize !== 'function' || typeof parser.remove !== 'function') return false;
  if (connections === undefined || request.readableLength > 0 || request.complete) return false;
  // The list orders parsers by the time of their message, so it must lose this one before that changes.
  parser.remove();
  const resource = { type: 'HTTPINCOMINGMESSAGE', socket };
  parser.initialize(REQUEST, resource, options.headerBytesMax, STRICT, connections);
  // Node closes after such an answer, because of the very bytes that are dealt with here.
  (response as { _expect_continue?: boolean })._expect_continue = false;
  request.complete = true;
  request.push(null);
  return true;
}
