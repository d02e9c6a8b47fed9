// A request as Node's parser hands it over, which can tell the parser to stop. One read of a socket holds thousands of
// small requests, and the parser makes them all before anything else runs, also when their connection has ended at the
// first. Where a request is a tunnel the parser stops behind its head, for other bytes than HTTP follow: so one that is
// not to be served says that it is a tunnel, and nothing behind it becomes a request.
import { IncomingMessage } from 'node:http';
import { LIMITS } from '../../types/limits.ts';

export class HeardRequest extends IncomingMessage {
  #endsParsing: boolean | undefined;

  /** Asked by Node when the head is there, before there is a response; what was said once stays. */
  get upgrade(): boolean {
    this.#endsParsing ??= this.method === 'CONNECT' || hasTooManyLines(this) || isOnEndedSocket(this);
    return this.#endsParsing;
  }

  // What Node makes of the headers Upgrade and Connection: nothing is upgraded here.
  set upgrade(_wanted: boolean | null) {}
}

/** Node has dropped some of its lines, or would have: none of them may be believed. */
export function hasTooManyLines({ rawHeaders }: IncomingMessage): boolean {
  return rawHeaders.length > 2 * LIMITS.headerLinesMax;
}

function isOnEndedSocket({ socket }: IncomingMessage): boolean {
  return socket.destroyed || socket.writableEnded;
}
